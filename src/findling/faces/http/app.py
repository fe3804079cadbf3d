"""The HTTP interface as one app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute
from starlette.types import Scope

from findling.domain.permissions import Caller
from findling.faces.http.base.json_text import encoded
from findling.faces.http.base.problems import tell_errors
from findling.faces.http.request.context import IndexRuns, Served
from findling.faces.http.request.fair_queue import Shares
from findling.faces.http.routes import (
    compat_v2,
    document_routes,
    glossary_routes,
    health_routes,
    resource_routes,
    search_routes,
    workspace_routes,
)
from findling.faces.http.routes.openapi import PROBLEMS, openapi_document
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host

__all__ = ["Lifespan", "create_app"]

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[Any]]

_LEAST_COMPRESSED = 1024
_COMPRESSION = 4
"""An answer of 35 KB becomes 10 KB in 0.8 ms; level 9 takes twice as long for 7 % less."""

_ROUTERS = (
    search_routes.router,
    compat_v2.router,
    document_routes.router,
    workspace_routes.router,
    resource_routes.router,
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
    app = FastAPI(
        title="findling",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
        redirect_slashes=False,
        lifespan=_lifespan(runs, lifespan),
        middleware=[Middleware(GZipMiddleware, minimum_size=_LEAST_COMPRESSED, compresslevel=_COMPRESSION)],
    )
    app.state.served = Served(host, line, identify, runs, shares or Shares(line))
    for router in _ROUTERS:
        app.include_router(router)
    description = openapi_document(app)
    app.openapi = lambda: description  # type: ignore[method-assign]
    app.state.openapi_text = encoded(description)
    app.router.routes.extend(extra_routes)
    tell_errors(app)
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
