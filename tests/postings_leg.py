"""The keyword leg over postings in memory: the segments of the PostgreSQL tier without a database."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from findling.domain.ports import Change, KeywordHits
from findling.domain.queries import Filters, Node
from findling.stores.keyword.entries import prepare
from findling.stores.keyword.posting_segments import INDEXED, PostingRow, SegmentBuilder, SegmentHead
from findling.stores.keyword.postings_reader import PostingsReader, SegmentedPostings, SegmentInSight

__all__ = ["PostingsLeg"]


class _MemorySegment:
    def __init__(self, builder: SegmentBuilder) -> None:
        self.head: SegmentHead = builder.head()
        self.rows: dict[str, dict[str, PostingRow]] = {field: {} for field in INDEXED}
        for number, term, row in builder.rows():
            self.rows[INDEXED[number]][term] = row
        self.terms = {field: sorted(rows) for field, rows in self.rows.items()}
        self.dead: set[int] = set()


class _MemoryPostings(SegmentedPostings):
    def __init__(self, segments: Sequence[_MemorySegment], numbers: Collection[int] | None) -> None:
        self._held = segments
        super().__init__([SegmentInSight(one.head, _sight(one, numbers)) for one in segments])

    def rows(self, field: str, term: str, *, with_positions: bool = False) -> Sequence[tuple[int, PostingRow]]:
        found = ((at, one.rows[field].get(term)) for at, one in enumerate(self._held))
        return [(at, row) for at, row in found if row is not None]

    def begun(self, field: str, prefix: str) -> Sequence[str]:
        found: set[str] = set()
        for one in self._held:
            terms = one.terms[field]
            for term in terms[bisect_left(terms, prefix) :]:
                if not term.startswith(prefix):
                    break
                found.add(term)
        return sorted(found)


def _sight(segment: _MemorySegment, numbers: Collection[int] | None) -> NDArray[np.bool_] | None:
    if numbers is None and not segment.dead:
        return None
    alive = ~np.isin(segment.head.cids, [*segment.dead])
    return alive if numbers is None else alive & np.isin(segment.head.numbers, [*numbers])


class PostingsLeg:
    """Implements `KeywordLeg`; keeps nothing when the process ends. Each commit adds a segment."""

    unit = "chunk"

    def __init__(self) -> None:
        self._segments: list[_MemorySegment] = []
        self._seq = 0
        self._builder, self._dropped = SegmentBuilder(), set[int]()
        self._reader = self.within(None)

    def within(self, numbers: Collection[int] | None) -> PostingsReader:
        """The answers for a caller who sees these resources; None for all."""
        return PostingsReader(_MemoryPostings(self._segments, numbers))

    def is_current(self) -> bool:
        """Whether nobody else has rewritten it: nobody can."""
        return True

    def seq(self) -> int:
        return self._seq

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self._dropped.update(change.dropped)
            if change.document is not None:
                self._builder.add(prepare(change.document, change.number, unit=self.unit, added=change.added))

    def commit(self, seq: int) -> None:
        for segment in self._segments:
            segment.dead.update(self._dropped.intersection(segment.head.cids.tolist()))
        if len(self._builder):
            self._segments.append(_MemorySegment(self._builder))
        self._seq = seq
        self.close()
        self._reader = self.within(None)

    def clear(self) -> None:
        self._segments, self._seq = [], 0
        self.close()
        self._reader = self.within(None)

    def close(self) -> None:
        self._builder, self._dropped = SegmentBuilder(), set()

    def size(self) -> int:
        return self._reader.size()

    def cids(self) -> set[int]:
        return self._reader.cids()

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        return self._reader.frequencies(terms)

    def vocabulary(self, prefix: str = "") -> Iterable[tuple[str, int]]:
        return self._reader.vocabulary(prefix)

    def search(
        self, node: Node, filters: Filters, limit: int, *, weights: Mapping[str, float] | None = None
    ) -> KeywordHits:
        return self._reader.search(node, filters, limit, weights=weights)

    def scores(
        self, node: Node, cids: Sequence[int], *, weights: Mapping[str, float] | None = None
    ) -> dict[int, float]:
        return self._reader.scores(node, cids, weights=weights)

    def count(
        self, node: Node, filters: Filters, least: float, *, most: int, weights: Mapping[str, float] | None = None
    ) -> int:
        return self._reader.count(node, filters, least, most=most, weights=weights)

    def definers(
        self, names: Iterable[str], node: Node, filters: Filters, limit: int, weights: Mapping[str, float] | None = None
    ) -> list[tuple[int, float]]:
        return self._reader.definers(names, node, filters, limit, weights)
