"""Counters of a server: questions, their times, degraded answers, and the times of its start."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from typing import Any, NamedTuple

__all__ = ["BUCKETS_S", "Histogram", "ServerStatistics"]

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of times."""

_RECENT = 4096
"""Questions of the 99th percentile: one in a hundred of them is 41."""


class Histogram(NamedTuple):
    """Times of one kind of work: the count of each bucket, the last one above every bound, and their sum."""

    counts: list[int]
    sums: list[float]

    def add(self, seconds: float) -> None:
        """Count one time."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sums[0] += seconds


class ServerStatistics:
    """Counts since the start; may be shared between threads."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self._lock = threading.Lock()
        self._times_ms: dict[str, float] = {}
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._histograms: dict[tuple[str, str], Histogram] = {}
        self._degraded: Counter[str] = Counter()
        self._facts: dict[str, Any] = {}
        self._queries = self._cached = self._failed = 0
        self._seconds = 0.0

    def took(self, name: str, seconds: float) -> None:
        """Note the time of a step of the start, under a name that ends in `_time_ms`."""
        with self._lock:
            self._times_ms[name] = round(seconds * 1000, 3)

    def tell(self, **facts: Any) -> None:
        """Note present facts, such as `documents` or `last_index_refresh`."""
        with self._lock:
            self._facts |= facts

    def observe(self, stage: str, mode: str, seconds: float) -> None:
        """Count a stage of answering, such as `search` or `fetch`."""
        with self._lock:
            empty = Histogram([0] * (len(BUCKETS_S) + 1), [0.0])
            self._histograms.setdefault((stage, mode), empty).add(seconds)

    def answered(self, mode: str, seconds: float, *, degraded: int = 0, cached: bool = False) -> None:
        """Count a question that was answered."""
        self.observe("search", mode, seconds)
        with self._lock:
            self._queries += 1
            self._cached += cached
            self._seconds += seconds
            self._recent.append(seconds)
            self._degraded[mode] += bool(degraded)

    def failed(self) -> None:
        """Count a question that was not answered."""
        with self._lock:
            self._failed += 1

    def histograms(self) -> dict[tuple[str, str], Histogram]:
        """The times of every stage and mode, as they are now."""
        with self._lock:
            return {key: Histogram(list(one.counts), list(one.sums)) for key, one in self._histograms.items()}

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain values; times without a value yet are 0."""
        with self._lock:
            recent = sorted(self._recent)
            return {
                "startup_time_ms": 0.0,
                "keyword_load_time_ms": 0.0,
                "vector_warmup_time_ms": 0.0,
                "model_load_time_ms": 0.0,
                "documents": 0,
                "last_index_refresh": None,
                "legs": {"keyword": False, "vectors": False, "model": False},
                "queue_depth": 0,
                **self._times_ms,
                **self._facts,
                "uptime_s": round(time.time() - self.started_at, 3),
                "total_queries": self._queries,
                "failed_queries": self._failed,
                "cache_hits": self._cached,
                "degraded_total": sum(self._degraded.values()),
                "avg_latency_ms": round(self._seconds / self._queries * 1000, 3) if self._queries else 0.0,
                "p99_latency_ms": round(recent[int(len(recent) * 0.99)] * 1000, 3) if recent else 0.0,
            }
