"""The HTTP interface as one app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from findling.domain.permissions import Caller
from findling.faces.http.base.problems import tell_errors
from findling.faces.http.request.context import DirectRoute, IndexRuns, Served
from findling.faces.http.request.fair_queue import Shares
from findling.faces.http.routes import (
    compat_v2,
    document_routes,
    exact_routes,
    glossary_routes,
    health_routes,
    memory_routes,
    resource_routes,
    search_routes,
    workspace_routes,
)
from findling.faces.http.routes.openapi import PROBLEMS, openapi_document
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Any]]

_LEAST_COMPRESSED = 1024
_COMPRESSION = 4
"""An answer of 35 KB becomes 10 KB in 0.8 ms; level 9 takes twice as long for 7 % less."""

_GZIP = Middleware(GZipMiddleware, minimum_size=_LEAST_COMPRESSED, compresslevel=_COMPRESSION)

_ROUTERS = (
    search_routes.direct,
    search_routes.router,
    compat_v2.router,
    exact_routes.router,
    document_routes.router,
    workspace_routes.router,
    resource_routes.router,
    memory_routes.router,
    glossary_routes.router,
    health_routes.router,
)


def create_app(
    host: Host,
    line: WorkLine,
    *,
    identify: Callable[[Scope], Caller],
    extra_routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
    shares: Shares | None = None,
) -> FastAPI:
    """All routes of the interface, and others beside them.

    `identify` names the caller of each request: the server puts a guard before the app. The app closes neither the host
    nor the line. `shares` is for others who work in the line.
    """
    runs = IndexRuns(host)
    app = _ShortApp(
        title="findling",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(runs, lifespan),
        middleware=[_GZIP],
    )
    app.state.served = Served(host, line, identify, runs, shares or Shares(line, host.processes))
    app.router.routes.extend((*_routes(), *extra_routes))
    tell_errors(app)
    app.find_short_ways()
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """The routes of every app of this process: the parameters of all take 0.2 s, each when it is first asked for."""
    every = APIRouter(responses=PROBLEMS)
    for router in _ROUTERS:
        every.include_router(router)
    return tuple(every.routes)


@cache
def _description() -> dict[str, Any]:
    """The description of all routes, which takes 0.4 s and few ask for."""
    return openapi_document(_routes())


class _ShortApp(FastAPI):
    """The app, with a short way to direct routes, whose response is whole before any of it is sent.

    A look at all routes and at telemetry costs 0.1 to 0.3 ms a request, and middleware that has nothing to do 0.2 ms.
    """

    _short: Mapping[tuple[str, str], ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        way = self._short.get((scope.get("method", ""), scope.get("path", "")))
        if way is None:
            await super().__call__(scope, receive, send)
            return
        scope["app"], scope["path_params"] = self, {}
        await way(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The description of all routes but the extra ones."""
        return _description()

    def find_short_ways(self) -> None:
        """Note the routes; to be called when the app reports errors."""
        handlers = dict(self.exception_handlers)
        fault = handlers.pop(Exception)

        def way(route: DirectRoute) -> ASGIApp:
            handle = route.get_route_handler()

            async def answer(scope: Scope, receive: Receive, send: Send) -> None:
                try:
                    response = await handle(Request(scope, receive, send))
                except Exception as error:
                    inner = ExceptionMiddleware(_raising(error), handlers=handlers)
                    await ServerErrorMiddleware(_gzipped(inner), handler=fault)(scope, receive, send)
                    return
                if len(response.body) < _LEAST_COMPRESSED:
                    await response(scope, receive, send)
                elif any(name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"]):
                    await _gzipped(response)(scope, receive, send)
                else:
                    response.headers.add_vary_header("Accept-Encoding")
                    await response(scope, receive, send)

            return answer

        routes = [one for router in _ROUTERS for one in router.routes if isinstance(one, DirectRoute)]
        self._short = {(method, route.path): way(route) for route in routes for method in route.methods or ()}


def _gzipped(app: ASGIApp) -> ASGIApp:
    return _GZIP.cls(app, *_GZIP.args, **_GZIP.kwargs)


def _raising(error: Exception) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise error

    return app


def _lifespan(runs: IndexRuns, lifespan: Lifespan | None) -> Lifespan:
    """The lifespan of the caller, and in it the end of all index runs."""

    @asynccontextmanager
    async def lasting(app: FastAPI) -> AsyncIterator[None]:
        async with nullcontext() if lifespan is None else lifespan(app):
            try:
                yield
            finally:
                await run_in_threadpool(runs.close)

    return lasting
