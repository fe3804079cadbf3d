"""What goes wrong, told as problems: by findling, by the framework, and by mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from findling.domain.errors import FindlingError
from findling.faces.http.base.problems import Problem, problem_response

__all__ = ["tell_errors"]

_MOST_TOLD = 20
"""Fields of one request whose errors are told."""

_LONGEST_NAME = 100
"""Characters of a key that are repeated."""

_GONE = 499
"""What logs show of a client that did not wait for its answer; nobody reads it."""


def tell_errors(app: FastAPI) -> None:
    """Have an app tell every error as application/problem+json."""
    app.add_exception_handler(FindlingError, _findling)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _fault)


async def _findling(request: Request, error: Exception) -> Response:
    assert isinstance(error, FindlingError)
    return problem_response(error, instance=_instance(request), is_owner=_is_owner(request))


async def _invalid(request: Request, error: Exception) -> Response:
    """Which fields cannot be used, and why; what was sent is not sent back."""
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
