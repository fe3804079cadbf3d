"""Errors as HTTP tells them: application/problem+json (RFC 9457) with a stable code and the next step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple, TypeVar

from starlette.responses import Response

from findling.domain.errors import (
    BusyError,
    CallerError,
    DeniedError,
    DiskFullError,
    FindlingError,
    LockedError,
    NotFoundError,
    NotIndexedError,
    OverdueError,
    PathNotFoundError,
    QuotaError,
    ReplacedError,
    TokenError,
    UsageError,
)

__all__ = [
    "CHALLENGE",
    "Problem",
    "TooManyError",
    "as_problem",
    "problem_document",
    "problem_response",
    "protection",
]

CHALLENGE = 'Bearer realm="findling"'
"""What a client is asked for that has shown no token."""

_Value = TypeVar("_Value")

_PROTECTION = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class TooManyError(BusyError):
    """One caller asks more at once than may."""


_STATUS: Mapping[type[FindlingError], int] = {
    NotFoundError: 404,
    PathNotFoundError: 404,
    UsageError: 422,
    TokenError: 401,
    DeniedError: 403,
    CallerError: 403,
    BusyError: 503,
    TooManyError: 429,
    OverdueError: 504,
    NotIndexedError: 409,
    LockedError: 503,
    ReplacedError: 503,
    QuotaError: 507,
    DiskFullError: 507,
    FindlingError: 500,
}
"""Error → status; the nearest class above an error counts."""

_HEADERS: Mapping[type[FindlingError], Mapping[str, str]] = {
    TokenError: {"www-authenticate": CHALLENGE},
    BusyError: {"retry-after": "1"},
    LockedError: {"retry-after": "2"},
    ReplacedError: {"retry-after": "1"},
}

_FOR_EVERYBODY = (UsageError, CallerError, OverdueError)
"""Errors about what was asked. All others may name files of the owner."""


class Problem(NamedTuple):
    """What is wrong with a request. `code` and the title follow from the status when they are not given."""

    status: int
    detail: str = ""
    hint: str = ""
    code: str = ""
    headers: Mapping[str, str] = {}


def as_problem(error: FindlingError | Problem | int, *, is_owner: bool = True) -> Problem:
    """An error, or a bare status, as a problem; others than the owner are not told what may name files of the owner."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, int):
        return Problem(error)
    status, headers = _nearest(_STATUS, error, 500), _nearest(_HEADERS, error, {})
    if is_owner or isinstance(error, _FOR_EVERYBODY):
        return Problem(status, error.message, error.hint, error.code, headers)
    return Problem(status, "the server cannot do that now", "ask whoever runs it", error.code, headers)


def problem_document(
    error: FindlingError | Problem | int, *, instance: str = "", is_owner: bool = True, **more: object
) -> dict[str, object]:
    """The document that tells of an error. `instance` is the id of the request; `more` are further members."""
    problem = as_problem(error, is_owner=is_owner)
    title = HTTPStatus(problem.status).phrase
    code = problem.code or title.lower().replace(" ", "-")
    return {
        "type": f"urn:findling:problem:{code}",
        "title": title,
        "status": problem.status,
        "detail": problem.detail or title,
        "code": code,
        "hint": problem.hint,
        "instance": instance,
        **more,
    }


def problem_response(
    error: FindlingError | Problem | int, *, instance: str = "", is_owner: bool = True, **more: object
) -> Response:
    """The response that tells of an error, with the headers that go with it; see `problem_document`."""
    problem = as_problem(error, is_owner=is_owner)
    document = {**problem_document(problem, instance=instance), **more}
    # A path that is no UTF-8 comes in surrogates, which JSON must not hold.
    content = json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", "replace")
    headers = {"cache-control": "no-store", **problem.headers}
    return Response(content, problem.status, headers, media_type="application/problem+json")


def protection(request_id: str) -> tuple[tuple[bytes, bytes], ...]:
    """Headers of every response: its id, and what keeps browsers from taking it for something else."""
    return ((b"x-request-id", request_id.encode()), *_PROTECTION)


def _nearest(table: Mapping[type[FindlingError], _Value], error: FindlingError, otherwise: _Value) -> _Value:
    return next((table[kind] for kind in type(error).__mro__ if kind in table), otherwise)
