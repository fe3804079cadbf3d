"""Whether the server is well, what it counts, and what it can be asked."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from findling import __version__
from findling.faces.http.base.json_text import json_response, report_text
from findling.faces.http.request.context import CheckedRoute, Owning, Served
from findling.faces.http.routes.docs_page import PAGE_HEADERS, docs_page
from findling.faces.http.routes.openapi import Report

__all__ = ["router"]

router = APIRouter(route_class=CheckedRoute, tags=["server"])


class _ProbeRoute(APIRoute):
    """A route that is answered without a token, and so without looking at its parameters: 9,500 would take 90 ms."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def probed(request: Request) -> Response:
            return await handle(Request({**request.scope, "query_string": b""}))

        return probed


_probes = APIRouter(route_class=_ProbeRoute, tags=["server"])


@_probes.head("/healthz", include_in_schema=False)
@_probes.get("/healthz", response_model=Report)
async def healthz() -> Response:
    """Whether the server runs: `status` is `ok`."""
    return json_response(report_text({"status": "ok"}))


@_probes.head("/readyz", include_in_schema=False)
@_probes.get("/readyz", response_model=Report)
async def readyz(request: Request) -> Response:
    """Whether everything is loaded: 503 until it is; questions are answered before, but the first ones wait."""
    served: Served = request.app.state.served
    is_ready = served.host.is_ready
    told = report_text({"status": "ready" if is_ready else "warming-up"})
    if is_ready:
        return json_response(told)
    return json_response(told, status=503, headers={"cache-control": "no-store", "retry-after": "1"})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(asked: Owning) -> Response:
    """Metrics of the server in the format of Prometheus. For the owner."""
    from findling.faces.http.routes.metrics import METRICS, metrics_text

    text = await asked.run_beside(lambda: metrics_text(asked.host, asked.line))
    return Response(text, headers={"cache-control": "no-store", "content-type": METRICS})


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The description of all routes."""
    return json_response(request.app.state.openapi_text, headers={"cache-control": "no-cache"})


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The same for people."""
    return Response(docs_page(request.app.openapi(), __version__), headers=PAGE_HEADERS, media_type="text/html")


router.include_router(_probes)
