"""The vectors of the latest queries: the next page, the next stage and what is typed back need no model again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from findling.domain.ports import Embedder

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

__all__ = ["MOST_QUERIES", "query_vector"]

MOST_QUERIES = 1024
"""Queries that are kept of each model: 1.5 MB with 384 numbers a vector."""

_kept: WeakKeyDictionary[Embedder, OrderedDict[str, Vectors]] = WeakKeyDictionary()
_lock = threading.Lock()


def query_vector(embedder: Embedder, text: str) -> Vectors:
    """The vector of a query, which must not be changed: others have it, too. Raises ModelError as the model does."""
    with _lock:
        kept = _kept.setdefault(embedder, OrderedDict())
        if text in kept:
            kept.move_to_end(text)
            return kept[text]
    # Outside the lock: two threads that read the same query at once cost less than all others waiting for one.
    vector: Vectors = embedder.embed([text], "query")[0].copy()
    vector.flags.writeable = False
    with _lock:
        kept[text] = vector
        while len(kept) > MOST_QUERIES:
            kept.popitem(last=False)
    return vector
