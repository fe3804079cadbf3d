"""Routes that look at who asks, and at how much is asked, before anything is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from findling.domain.errors import InvalidValueError
from findling.faces.http.request.context import GATES

__all__ = ["REPEATED", "CheckedRoute"]

REPEATED = frozenset({"facets", "ext", "not_ext", "path", "type", "lang", "tag", "author"})
"""Parameters that are lists, and may be given several times."""

_MOST_PARAMETERS = 200
_MOST_KEYS = 1_000
"""Of one object in a body. Each that is not known would be an error of its own: 10 µs and 1.5 KB."""

_LONGEST_NAME = 100


class CheckedRoute(APIRoute):
    """A route that reads a body only from whoever may send one, and takes no name twice and none that it does not know.

    Raises DeniedError, InvalidValueError and RequestValidationError.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        # The framework asks them, too, but only when it has read and parsed the body.
        gates = [one.call for one in self.dependant.dependencies if one.call in GATES]
        has_parameters = bool(self.dependant.query_params)

        async def checked(request: Request) -> Response:
            request = _CheckedRequest(request.scope, request.receive)
            for gate in gates:
                await gate(request)
            if request.scope["query_string"]:
                _check_parameters(request, has_parameters)
            return await handle(request)

        return checked


class _CheckedRequest(Request):
    async def json(self) -> Any:
        return json.loads(await self.body(), object_pairs_hook=_unambiguous)


def _check_parameters(request: Request, has_parameters: bool) -> None:
    """Of two values of one parameter the framework would take the last."""
    if request.scope["query_string"].count(b"&") >= _MOST_PARAMETERS:
        raise InvalidValueError(f"there are more than {_MOST_PARAMETERS} parameters", hint="send a body with POST")
    names = [name for name, _ in request.query_params.multi_items()]
    if names and not has_parameters:
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", names[0]), "msg": "", "input": ""}])
    _check_once([name for name in names if name not in REPEATED])


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > _MOST_KEYS:
        raise InvalidValueError(f"an object has more than {_MOST_KEYS:,} keys", hint="send less at once")
    found = dict(pairs)
    if len(found) < len(pairs):
        _check_once([name for name, _ in pairs])
    return found


def _check_once(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValueError(f"{name[:_LONGEST_NAME]} is there twice", hint="give it once")
        seen.add(name)
