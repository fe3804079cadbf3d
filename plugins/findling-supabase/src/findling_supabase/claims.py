"""Access tokens of Supabase: verified with the project's secret, and their claims as principals."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from findling.domain.errors import UsageError
from findling.domain.permissions import is_principal

__all__ = ["issuer", "principals_of", "verified_claims"]

_SECRET, _URL = "SUPABASE_JWT_SECRET", "SUPABASE_URL"
_FEWEST_BYTES = 32
"""A shorter secret of HS256 can be guessed."""

_LONGEST_TOKEN = 8_192
_SKEW_S = 60.0
"""Seconds by which clocks may differ."""

_MOST_GROUPS = 200


def issuer() -> Callable[[str], tuple[str, ...]]:
    """A function that gives the principals of a token, none for one that is not valid. Raises UsageError."""
    secret = os.environ.get(_SECRET, "").encode()
    if len(secret) < _FEWEST_BYTES:
        hint = f"export {_SECRET}=…, the JWT secret of the project, of {_FEWEST_BYTES} characters at least"
        raise UsageError(f"{_SECRET} is not set, or too short", hint=hint)
    project = os.environ.get(_URL, "").rstrip("/")
    made_by = f"{project}/auth/v1" if project else ""

    def principals(token: str) -> tuple[str, ...]:
        claims = verified_claims(token, secret, made_by=made_by)
        return () if claims is None else principals_of(claims)

    return principals


def verified_claims(
    token: str, secret: bytes, *, made_by: str = "", clock: Callable[[], float] = time.time
) -> Mapping[str, Any] | None:
    """The claims of a token, None for one that is not valid now; `made_by` is the issuer that it must name."""
    head, _, signature = token.rpartition(".")
    parts = head.split(".")
    if len(token) > _LONGEST_TOKEN or len(parts) != 2 or not token.isascii():
        return None
    expected = hmac.digest(secret, head.encode(), "sha256")
    given = _decoded(signature)
    if given is None or not hmac.compare_digest(expected, given):
        return None
    header, claims = _object(parts[0]), _object(parts[1])
    # The signature counts only for the algorithm that it was checked with.
    if header is None or claims is None or header.get("alg") != "HS256" or "crit" in header:
        return None
    now = clock()
    expires, begins = claims.get("exp"), claims.get("nbf", 0)
    if not isinstance(expires, int | float) or not isinstance(begins, int | float):
        return None
    if not (now < expires and begins <= now + _SKEW_S):
        return None
    return claims if not made_by or claims.get("iss") == made_by else None


def principals_of(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The principals that verified claims name; those that users may write themselves name none."""
    app = claims.get("app_metadata")
    groups = app.get("groups") if isinstance(app, Mapping) else None
    named = [("user", claims.get("sub")), ("role", claims.get("role"))]
    named += [("group", group) for group in (groups[:_MOST_GROUPS] if isinstance(groups, list) else ())]
    found = [f"{kind}:{name}" for kind, name in named if isinstance(name, str) and name]
    return tuple(dict.fromkeys(principal for principal in found if is_principal(principal)))


def _object(part: str) -> dict[str, Any] | None:
    data = _decoded(part)
    try:
        found = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _decoded(part: str) -> bytes | None:
    if "=" in part:
        return None
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
