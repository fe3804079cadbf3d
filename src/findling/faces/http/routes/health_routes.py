"""Whether the server is well, what it counts, and what it can be asked."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import accumulate
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from findling import __version__
from findling.faces.http.base.json_text import encoded, json_response, report_text
from findling.faces.http.request.context import CheckedRoute, Owning, Served
from findling.faces.http.routes.openapi import Report
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import BUCKETS_S, Host

METRICS = CONTENT_TYPE_PLAIN_0_0_4
"""The type of the text."""


def metrics_text(host: Host, line: WorkLine) -> bytes:
    """All metrics of a server, in Prometheus's text format."""
    registry = CollectorRegistry()
    registry.register(_Counts(host, line))
    return generate_latest(registry)


_COUNTERS = {
    "total_queries": ("findling_queries", "Questions that were answered."),
    "failed_queries": ("findling_failed_queries", "Questions that could not be answered."),
    "degraded_total": ("findling_degraded", "Answers that lacked something."),
    "cache_hits": ("findling_cache_hits", "Answers that were given before and still held."),
}

_TIMES = {
    "startup_time_ms": ("findling_startup_seconds", "From the start until everything was loaded."),
    "keyword_load_time_ms": ("findling_keyword_load_seconds", "Loading the keyword leg."),
    "vector_warmup_time_ms": ("findling_vector_warmup_seconds", "Loading the vectors."),
    "model_load_time_ms": ("findling_model_load_seconds", "Loading the model."),
    "avg_latency_ms": ("findling_average_latency_seconds", "Mean time of an answer since the start."),
    "p99_latency_ms": ("findling_p99_latency_seconds", "99th percentile of the latest 4096 answers."),
}


class _Counts(Collector):
    """Reads the statistics when it is asked, so that counting costs a search nothing more."""

    def __init__(self, host: Host, line: WorkLine) -> None:
        self._host, self._line = host, line

    def collect(self) -> Iterator[Metric]:
        counted = self._host.statistics.snapshot()
        yield _search_times(self._host)
        for key, (name, told) in _COUNTERS.items():
            yield CounterMetricFamily(name, told, value=counted[key])
        for key, (name, told) in _TIMES.items():
            yield GaugeMetricFamily(name, told, value=counted[key] / 1000)
        yield from _gauges(counted, self._host, self._line)


def _search_times(host: Host) -> Metric:
    family = HistogramMetricFamily(
        "findling_search_seconds", "How long each stage of answering took.", labels=("stage", "mode")
    )
    for (stage, mode), (counts, sums) in sorted(host.statistics.histograms().items()):
        buckets = zip((*map(str, BUCKETS_S), "+Inf"), map(float, accumulate(counts)), strict=True)
        family.add_metric((stage, mode), list(buckets), sums[0])
    return family


def _gauges(counted: dict[str, Any], host: Host, line: WorkLine) -> Iterator[Metric]:
    refreshed = counted["last_index_refresh"]
    lag = time.time() - refreshed if refreshed else 0
    told = (
        ("findling_documents", "Resources in the served workspace.", counted["documents"]),
        ("findling_last_index_refresh_seconds", "When the index was last brought up to date.", refreshed or 0),
        ("findling_index_lag_seconds", "Time since then.", max(lag, 0)),
        ("findling_queue_depth", "Questions that wait for a thread.", line.waiting),
        ("findling_running", "Questions that have a thread.", line.running),
        ("findling_uptime_seconds", "Time since the start.", counted["uptime_s"]),
        ("findling_ready", "Whether everything is loaded.", float(host.is_ready)),
    )
    yield from (GaugeMetricFamily(name, about, value=value) for name, about, value in told)
    legs = GaugeMetricFamily("findling_leg_available", "Whether a leg can be asked.", labels=("leg",))
    for leg in ("keyword", "vectors", "model"):
        legs.add_metric((leg,), float(counted["legs"].get(leg, False)))
    yield legs
    yield GaugeMetricFamily(
        "findling_model_loaded", "Whether the model is there to read questions.", value=float(counted["legs"]["model"])
    )
    about = GaugeMetricFamily("findling_build_info", "What runs here.", labels=("version",))
    about.add_metric((__version__,), 1)
    yield about


_STYLE = "\n" + (files(__package__) / "docs.css").read_text(encoding="utf-8")

PAGE_HEADERS: Mapping[str, str] = {
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'",
}
"""Headers of the page: a browser may use its own style and nothing else."""


def docs_page(document: Mapping[str, Any], version: str) -> str:
    """The page for an OpenAPI document."""
    sections = "".join(_sections(document))
    about = "".join(f"<p>{_prose(part)}</p>" for part in document["info"]["description"].split("\n\n"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>findling: HTTP API</title>'
        f"<style>{_STYLE}</style></head><body><h1>findling {escape(version)}: HTTP API</h1>{about}"
        f'<p>For programs: <a href="/openapi.json">/openapi.json</a>.</p>{sections}</body></html>'
    )


def _sections(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            told = "".join(f"<p>{_prose(part)}</p>" for part in operation.get("description", "").split("\n\n"))
            rows = "".join(_rows(document, operation))
            table = f"<table><tr><th>key<th>value<th>meaning</tr>{rows}</table>" if rows else ""
            yield f"<section><h2>{method.upper()} {escape(path)}</h2>{told}{table}</section>"


def _rows(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", ()):
        yield _row(parameter["name"], parameter["schema"], parameter.get("description", ""), parameter["required"])
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    yield from _body_rows(document, content.get("schema", {}), "")


def _body_rows(document: Mapping[str, Any], schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """The keys of an object, and those of objects in it under their own names behind a dot."""
    model = _resolved(document, schema)
    for name, value in model.get("properties", {}).items():
        inner = _resolved(document, value)
        yield _row(prefix + name, value, value.get("description", ""), name in model.get("required", ()))
        if "properties" in inner:
            yield from _body_rows(document, inner, f"{prefix}{name}.")


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for choice in (schema, *schema.get("anyOf", ())):
        if "$ref" in choice:
            found: Mapping[str, Any] = document["components"]["schemas"][choice["$ref"].rpartition("/")[2]]
            return found
    return schema


def _row(name: str, schema: Mapping[str, Any], told: str, required: bool) -> str:
    needed = " (needed)" if required else ""
    return f"<tr><td>{escape(name)}<td>{escape(_values(schema))}{needed}<td>{_prose(told)}</tr>"


def _values(schema: Mapping[str, Any]) -> str:
    """The values that a schema allows, in a few words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_values(choice) for choice in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_values(schema['items'])}"
    names = {"string": "text", "integer": "whole number", "boolean": "true, false"}
    kind = str(schema.get("type", "object"))
    bounds = [f"{word} {schema[key]:g}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    default = schema.get("default")
    told = [f"{names.get(kind, kind)}", *bounds]
    return " ".join(told) + (f"; {default}" if default not in (None, "", [], {}) else "")


def _prose(text: str) -> str:
    """Text in which `backticks` mark code."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


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

    text = await asked.run_beside(lambda: metrics_text(asked.host, asked.line))
    return Response(text, headers={"cache-control": "no-store", "content-type": METRICS})


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The description of all routes."""
    text = await run_in_threadpool(lambda: encoded(request.app.openapi()))
    return json_response(text, headers={"cache-control": "no-cache"})


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The same for people."""
    page = await run_in_threadpool(lambda: docs_page(request.app.openapi(), __version__))
    return Response(page, headers=PAGE_HEADERS, media_type="text/html")


router.include_router(_probes)
