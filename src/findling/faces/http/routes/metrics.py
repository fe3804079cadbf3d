"""Metrics of the server in the format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from findling import __version__
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.server.statistics import BUCKETS_S

__all__ = ["METRICS", "metrics_text"]

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
        total, buckets = 0, []
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        family.add_metric((stage, mode), buckets, sums[0])
    return family


def _gauges(counted: dict[str, Any], host: Host, line: WorkLine) -> Iterator[Metric]:
    refreshed = counted["last_index_refresh"]
    yield GaugeMetricFamily("findling_documents", "Resources in the served workspace.", value=counted["documents"])
    yield GaugeMetricFamily(
        "findling_last_index_refresh_seconds", "When the index was last brought up to date.", value=refreshed or 0
    )
    lag = time.time() - refreshed if refreshed else 0
    yield GaugeMetricFamily("findling_index_lag_seconds", "Time since then.", value=max(lag, 0))
    yield GaugeMetricFamily("findling_queue_depth", "Questions that wait for a thread.", value=line.waiting)
    yield GaugeMetricFamily("findling_running", "Questions that have a thread.", value=line.running)
    yield GaugeMetricFamily("findling_uptime_seconds", "Time since the start.", value=counted["uptime_s"])
    yield GaugeMetricFamily("findling_ready", "Whether everything is loaded.", value=float(host.is_ready))
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
