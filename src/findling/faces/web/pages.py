"""The page as a browser gets it: one document, its style and its modules, and a policy that lets nothing else in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

OPEN_PATHS = ("/", "/assets/")
"""Paths that need no token: they hold nothing of anybody's, and the page asks for the token."""

_FOLDER = files(__package__)
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

ASSETS: Mapping[str, str] = MappingProxyType(
    {
        name: _TYPES[PurePath(name).suffix]
        for name in sorted(one.name for one in _FOLDER.iterdir())
        if PurePath(name).suffix in _TYPES
    }
)
"""Every file that the page is made of, and its media type. Nothing else is served."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Rights of the page in a browser: its own modules and its own server. No text can become markup."""

_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "cache-control": "no-cache",  # kept, and asked after each time: a new version shows at once
        "content-security-policy": POLICY,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
)


def page_routes() -> list[Route]:
    """The routes of the page: `/` and `/assets/NAME`."""
    return [
        Route("/", _page, methods=["GET"], name="page"),
        Route("/assets/{name}", _asset, methods=["GET"], name="asset"),
    ]


class _File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


async def _page(request: Request) -> Response:
    return _respond(request, _load("page.html", "text/html"))


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        raise HTTPException(404)
    return _respond(request, _load(name, ASSETS[name]))


def _respond(request: Request, file: _File) -> Response:
    headers = {**_HEADERS, "etag": file.etag}
    # A proxy, or gzip on the way, may have made the tag a weak one; the content is the same.
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if known & {file.etag, "*"}:
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


@cache
def _load(name: str, media_type: str) -> _File:
    content = (_FOLDER / name).read_bytes()
    return _File(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')
