"""Refining: a model reads the passages without a vector, those that searches wanted first.

Every batch is kept by itself, so a run that was stopped or killed continues where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from findling.domain.ports import TruthStore
from findling.domain.resources import Resource, StoredChunk
from findling.models.ports import Embedder
from findling.text.chunking.chunk_plan import passage

_BATCH = 16  # passages read and kept at a time: a killed run loses a second of a model


class RefineProgress(NamedTuple):
    """A moment of a run: this run and earlier ones have read `done` of `total` passages."""

    done: int
    total: int
    seconds: float
    read: int = 0

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest at this speed; `None` before there is any."""
        return (self.total - self.done) * self.seconds / self.read if self.read else None


class RefineReport(NamedTuple):
    """The counts of a run: passages read by the model, borrowed from other workspaces, withheld from the model."""

    read: int = 0
    borrowed: int = 0
    withheld: int = 0
    covered: int = 0
    chunks: int = 0
    seconds: float = 0.0


_GLANCE_S = 1.0
"""Longest rest without a look whether to stop: at a hundredth of the time, a batch of 1 s rests for 99."""

Borrow = Callable[[Sequence[bytes]], Mapping[bytes, bytes]]
"""Vectors of the same model in other workspaces, by digest."""


def refine(
    store: TruthStore,
    embedder: Embedder,
    *,
    may_read: Callable[[Resource], bool] = lambda resource: True,
    borrow: Borrow = lambda digests: {},
    cpu_share: float = 1.0,
    on_progress: Callable[[RefineProgress], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> RefineReport:
    """Have the model read every passage that it may read, until none is left or `should_stop`. Raises ModelError."""
    model = embedder.fingerprint
    started = time.monotonic()
    read = borrowed = 0
    withheld: set[bytes] = set()
    while not should_stop():
        batch = store.unembedded(model, _BATCH, skip=withheld)
        if not batch:
            break
        withheld.update(stored.chunk.digest for stored in batch if not may_read(stored.resource))
        allowed = [stored for stored in batch if stored.chunk.digest not in withheld]
        found = dict(borrow([stored.chunk.digest for stored in allowed]))
        store.put_vectors(model, found)
        borrowed += len(found)
        unknown = [stored for stored in allowed if stored.chunk.digest not in found]
        busy = time.monotonic()
        store.put_vectors(model, embed_chunks(embedder, unknown))
        read += len(unknown)
        if on_progress is not None:
            covered, chunks = store.coverage(model)
            on_progress(RefineProgress(covered, chunks, time.monotonic() - started, read))
        rested = time.monotonic() + (time.monotonic() - busy) * (1 / max(cpu_share, 0.01) - 1)
        while (left_s := rested - time.monotonic()) > 0 and not should_stop():
            time.sleep(min(left_s, _GLANCE_S))
    covered, chunks = store.coverage(model)
    return RefineReport(read, borrowed, len(withheld), covered, chunks, time.monotonic() - started)


def embed_chunks(embedder: Embedder, chunks: Iterable[StoredChunk]) -> dict[bytes, bytes]:
    """The vectors of some chunks by digest, as a store keeps them."""
    chunks = list(chunks)
    if not chunks:
        return {}
    texts = [passage(stored.resource, stored.chunk.heading, stored.text, stored.chunk.cid) for stored in chunks]
    rows = np.asarray(embedder.embed(texts), dtype="<f2")
    return {stored.chunk.digest: row.tobytes() for stored, row in zip(chunks, rows, strict=True)}
