"""Errors as application/problem+json (RFC 9457), with a stable code and the next step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
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
    UnreachableError,
    UsageError,
)

CHALLENGE = 'Bearer realm="findling"'
"""The challenge for a client without a token."""

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
    UnreachableError: 503,
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
    UnreachableError: {"retry-after": "5"},
}

_FOR_EVERYBODY = (UsageError, CallerError, OverdueError)
"""Errors about what was asked. All others may name files of the owner."""


class Problem(NamedTuple):
    """The fault of a request. `code` and the title follow from the status when they are not given."""

    status: int
    detail: str = ""
    hint: str = ""
    code: str = ""
    headers: Mapping[str, str] = {}


def as_problem(error: FindlingError | Problem | int, *, is_owner: bool = True) -> Problem:
    """An error, or a bare status, as a problem; only the owner learns what may name files of the owner."""
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
    """The document of an error. `instance` is the id of the request; `more` are further members."""
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
    """The response to an error with its headers; see `problem_document`."""
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


_MOST_TOLD = 20
"""Fields of one request whose errors are reported."""

_LONGEST_NAME = 100
"""Characters of a key that are repeated."""

_GONE = 499
"""Status in logs for a client that did not wait for its answer."""


def tell_errors(app: FastAPI) -> None:
    """Have an app report every error as application/problem+json."""
    app.add_exception_handler(FindlingError, _findling)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _fault)


async def _findling(request: Request, error: Exception) -> Response:
    assert isinstance(error, FindlingError)
    return problem_response(error, instance=_instance(request), is_owner=_is_owner(request))


async def _invalid(request: Request, error: Exception) -> Response:
    """The fields that cannot be used, and why; values are not sent back."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    told = [{"field": _field(one["loc"]), "problem": _problem(one)} for one in found[:_MOST_TOLD]]
    first = f"{told[0]['field'] or 'the request'}: {told[0]['problem']}" if told else "the request cannot be read"
    is_unreadable = any(one["type"] == "json_invalid" for one in found)
    problem = Problem(
        400 if is_unreadable else 422, first, "/openapi.json lists all keys, and what each may be", "invalid-request"
    )
    return problem_response(problem, instance=_instance(request), errors=told)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, FindlingError):  # what is wrong with a body comes wrapped by the framework
        return await _findling(request, error.__cause__)
    hints = {404: "/docs lists all addresses", 405: "/docs lists all addresses"}
    headers = dict(error.headers or {})
    problem = Problem(error.status_code, str(error.detail), hints.get(error.status_code, ""), headers=headers)
    return problem_response(problem, instance=_instance(request))


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=_GONE)


async def _fault(request: Request, error: Exception) -> Response:
    # The framework raises it again behind this, so that it is logged.
    problem = Problem(500, "findling has failed at this", "its log has more under this id", "fault")
    return problem_response(problem, instance=_instance(request))


def _field(location: Sequence[Any]) -> str:
    """`filters.ext.0` for `("body", "filters", "ext", 0)`."""
    return ".".join(str(part)[:_LONGEST_NAME] for part in location[1:])


def _problem(error: Mapping[str, Any]) -> str:
    return "there is no such key" if error["type"] == "extra_forbidden" else str(error["msg"])


def _instance(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))


def _is_owner(request: Request) -> bool:
    return bool(request.app.state.served.identify(request.scope).is_owner)
