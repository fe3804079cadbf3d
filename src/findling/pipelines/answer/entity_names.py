"""The names in passages as their texts write them, and the facet `entity`: how many resources have which name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from findling.pipelines.retrieve.legs import Retrievers
from findling.text.mining.chunk_names import chunk_names, hash_of
from findling.text.mining.marked_names import is_told

if TYPE_CHECKING:
    from findling.domain.ports import ReadStore
    from findling.domain.resources import StoredChunk

MOST_ENTITIES = 50
"""Names in an answer: to write one, a passage is read, which takes 0.4 ms."""


def labels_of(stored: StoredChunk) -> dict[int, str]:
    """The names of a chunk by the numbers that a graph knows them by, as its text or title writes them.

    Commands, units, days and currencies are no names to tell, though a graph may join passages by them.
    """
    names = chunk_names(stored.resource, stored.chunk.heading, stored.text)
    labels = {hash_of(one.key): " ".join(one.label.split()) for one in reversed(names)}
    return {key: label for key, label in labels.items() if is_told(label)}


class NamedPassages:
    """The passages of one sight and the names in them, each read once.

    A passage is None, and has no names, when it is gone, or out of sight, since the graph was read.
    """

    def __init__(self, store: ReadStore) -> None:
        self.chunk: Callable[[int], StoredChunk | None] = cache(lambda cid: store.chunks([cid]).get(cid))
        self.labels: Callable[[int], dict[int, str]] = cache(self._labels)

    def _labels(self, cid: int) -> dict[int, str]:
        stored = self.chunk(cid)
        return {} if stored is None else labels_of(stored)


def is_part(label: str, others: Iterable[str]) -> bool:
    """Whether a name stands in another one, word by word: `Jump` in Jump for Glory."""
    return any(f" {label} ".casefold() in f" {other} ".casefold() for other in others)


def count_entities(legs: Retrievers, cids: Sequence[int]) -> tuple[dict[str, int], tuple[str, ...]]:
    """The names of these chunks by the number of resources that have them, frequent ones first, and what is missing.

    Only what the caller sees is counted.
    """
    at_hand = legs.graph
    if at_hand.rows is None:
        return {}, (f"facet entity is empty: {at_hand.lack}",)
    import numpy as np  # the graph has loaded it

    near = at_hand.rows.named((), cids)
    size = len(near.hashes)
    if not size:
        return {}, ()
    pairs = np.unique(near.numbers[near.rows] * size + near.things)
    counts = np.bincount(pairs % size, minlength=size)
    # A tie at the last place is decided by the hash: its label is not known yet.
    chosen = np.lexsort((near.hashes, -counts))[:MOST_ENTITIES].tolist()
    things, places = np.unique(near.things, return_index=True)
    first = dict(zip(things.tolist(), near.rows[places].tolist(), strict=True))
    written: dict[int, str] = {}
    found: dict[str, int] = {}
    for thing in chosen:
        hash_ = int(near.hashes[thing])
        if hash_ not in written:
            for stored in legs.store.chunks([int(near.cids[first[thing]])]).values():
                written = {**labels_of(stored), **written}
        if hash_ in written:  # else the passage has changed since
            label = written[hash_]
            found[label] = max(int(counts[thing]), found.get(label, 0))
    # A part of a name that comes with it alone says nothing beside it.
    whole = {
        label: count
        for label, count in found.items()
        if not is_part(label, (one for one in found if one != label and found[one] >= count))
    }
    cut = f"facet entity tells the {MOST_ENTITIES} most frequent of {size:,} names"
    counted = dict(sorted(whole.items(), key=lambda one: (-one[1], one[0])))
    return counted, (cut,) if size > MOST_ENTITIES else ()
