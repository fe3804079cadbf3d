"""What a server counts: how many questions, how long they took, what was missing, how long it took to get ready."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Any, NamedTuple

__all__ = ["BUCKETS_S", "Histogram", "Statistics"]

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds by which times are counted."""

_RECENT = 4096
"""Questions that the 99th percentile is taken of: one in a hundred of them is 41."""


class Histogram(NamedTuple):
    """Times of one kind of work: how many were at most each bound, not counting lower ones, and their sum.

    The last count is of those above every bound.
    """

    counts: list[int]
    sums: list[float]

    @classmethod
    def empty(cls) -> Histogram:
        """Of nothing yet."""
        return cls([0] * (len(BUCKETS_S) + 1), [0.0])

    def add(self, seconds: float) -> None:
        """Count one time."""
        place = next((place for place, bound in enumerate(BUCKETS_S) if seconds <= bound), len(BUCKETS_S))
        self.counts[place] += 1
        self.sums[0] += seconds


class Statistics:
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
        """Note how long a step of getting ready took, under a name that ends in `_time_ms`."""
        with self._lock:
            self._times_ms[name] = round(seconds * 1000, 3)

    def tell(self, **facts: Any) -> None:
        """Note what holds now, such as `documents` or `last_index_refresh`."""
        with self._lock:
            self._facts |= facts

    def observe(self, stage: str, mode: str, seconds: float) -> None:
        """Count a stage of answering, such as `search` or `fetch`."""
        with self._lock:
            self._histograms.setdefault((stage, mode), Histogram.empty()).add(seconds)

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
