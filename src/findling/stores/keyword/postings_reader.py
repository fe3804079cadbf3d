"""Answers from segments of postings: the ranking of the local keyword leg, for what is in sight."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from findling.domain.backends import Scoring
from findling.domain.budgets import current_budget
from findling.domain.ports import KeywordHits
from findling.domain.queries import Filters, Node
from findling.ranking.postings_algebra import Part
from findling.ranking.postings_scoring import Entries, Matches, Scores, matches, shares_of
from findling.stores.keyword.posting_segments import (
    PostingRow,
    SegmentHead,
    row_counts,
    row_entries,
    row_positions,
)
from findling.stores.keyword.postings_query import PostingsQuery, PostingsStatistics
from findling.stores.keyword.query_builder import BuiltQuery, KeywordQuery
from findling.text.query.tree import asks_for_text

__all__ = ["PostingsReader", "SegmentInSight", "SegmentedPostings"]

_T = TypeVar("_T")

_NO_ENTRIES = np.zeros(0, np.int64)


class SegmentInSight(NamedTuple):
    """A segment, and which of its entries are in sight; None for all of them."""

    head: SegmentHead
    sight: NDArray[np.bool_] | None = None


class SegmentedPostings:
    """Implements `TermPostings` by segments whose entries are numbered one after the other."""

    def __init__(self, segments: Sequence[SegmentInSight]) -> None:
        self._segments = segments
        self._bases = [0, *np.cumsum([len(one.head) for one in segments], dtype=int).tolist()]
        self.slots = self._bases[-1]
        self.entries = len(self.every())
        self._totals: dict[str, int] = {}
        self._norms: dict[str, NDArray[np.uint8]] = {}
        self._columns: dict[str, NDArray[np.int64]] = {}

    @abstractmethod
    def rows(self, field: str, term: str, *, with_positions: bool = False) -> Sequence[tuple[int, PostingRow]]:
        """The rows of a term, each with the number of its segment, in the order of segments."""

    @abstractmethod
    def begun(self, field: str, prefix: str) -> Sequence[str]:
        """The terms of a field that begin so, in order; some may be in no entry in sight."""

    def settled(self, work: Callable[[], _T], part: Part | None = None) -> _T:
        """The result of work that asks for postings, all of which are at hand; `part` is the query that it scores."""
        return work()

    def every(self) -> Entries:
        return self._every

    @cached_property
    def _every(self) -> Entries:
        sights = [np.ones(len(head), np.bool_) if sight is None else sight for head, sight in self._segments]
        return np.flatnonzero(np.concatenate(sights)) if sights else _NO_ENTRIES

    def total(self, field: str) -> int:
        if (total := self._totals.get(field)) is None:
            each = [
                head.lengths[field] if sight is None else head.lengths[field][sight] for head, sight in self._segments
            ]
            total = self._totals[field] = sum([int(one.sum(dtype=np.int64)) for one in each])
        return total

    def norms(self, field: str) -> NDArray[np.uint8]:
        if (norms := self._norms.get(field)) is None:
            norms = self._norms[field] = np.concatenate([one.head.norms(field) for one in self._segments])
        return norms

    def column(self, name: str) -> NDArray[np.int64]:
        if (column := self._columns.get(name)) is None:
            attribute = {"cid": "cids", "turn": "turns", "updated": "updated"}[name]
            each = [getattr(one.head, attribute) for one in self._segments]
            column = self._columns[name] = np.concatenate(each) if each else _NO_ENTRIES
        return column

    def term(self, field: str, term: str) -> tuple[Entries, NDArray[np.integer]]:
        return self.joined(self.rows(field, term))

    def shares(self, field: str, term: str) -> tuple[Entries, Scores]:
        entries, counts = self.term(field, term)
        return entries, shares_of(field, entries, counts, self) if len(entries) else np.zeros(0)

    def places(self, field: str, term: str, is_wanted: NDArray[np.bool_]) -> tuple[Entries, NDArray[np.integer]]:
        found = []
        for number, row in self.rows(field, term, with_positions=True):
            entries = row_entries(row)
            base = self._bases[number]
            kept = np.flatnonzero(is_wanted[base : self._bases[number + 1]][entries])
            if len(kept):
                counts = row_counts(row)
                owners = np.repeat(entries[kept].astype(np.int64) + base, counts[kept])
                found.append((owners, row_positions(row, counts, kept)))
        return _joined(found)

    def frequency(self, field: str, term: str) -> int:
        return self.counted(self.rows(field, term))

    def joined(self, rows: Sequence[tuple[int, PostingRow]]) -> tuple[Entries, NDArray[np.integer]]:
        """The entries in sight of the rows of a term, and how often each has it."""
        return _joined([self._in_sight(number, row) for number, row in rows])

    def counted(self, rows: Sequence[tuple[int, PostingRow]]) -> int:
        """The number of entries in sight of the rows of a term."""
        total = 0
        for number, row in rows:
            sight = self._segments[number].sight
            total += row.df if sight is None else int(np.count_nonzero(sight[row_entries(row)]))
        return total

    def _in_sight(self, number: int, row: PostingRow) -> tuple[Entries, NDArray[np.integer]]:
        """Those entries of a row that are in sight, and how often each has the term."""
        entries, counts = row_entries(row), row_counts(row)
        if (sight := self._segments[number].sight) is not None:
            is_seen = sight[entries]
            entries, counts = entries[is_seen], counts[is_seen]
        base = self._bases[number]
        return np.add(entries, base, dtype=np.int64) if base else entries.astype(np.int64, copy=False), counts


def _joined(lists: Sequence[tuple[Entries, NDArray[np.integer]]]) -> tuple[Entries, NDArray[np.integer]]:
    if len(lists) == 1:
        return lists[0]
    if not lists:
        return _NO_ENTRIES, _NO_ENTRIES
    return np.concatenate([one for one, _ in lists]), np.concatenate([other for _, other in lists])


class PostingsReader:
    """The questions of `KeywordLeg` to one state of the postings."""

    def __init__(self, postings: SegmentedPostings, scoring: Scoring | None = None) -> None:
        self._postings = postings
        self._number = next(_numbers)
        self._query = KeywordQuery(PostingsQuery, None, PostingsStatistics(postings), scoring or Scoring())
        """It knows leaves that were made with all of their postings at hand."""

    def size(self) -> int:
        """The number of entries in sight."""
        return self._postings.entries

    def cids(self) -> set[int]:
        """The chunk ids of all entries in sight."""
        return set(self._postings.column("cid")[self._postings.every()].tolist())

    def search(
        self, node: Node, filters: Filters, limit: int, *, weights: Mapping[str, float] | None = None
    ) -> KeywordHits:
        """The best `limit` chunks among those that pass the filters; equal scores keep one order."""
        built, found = self._found(node, filters, weights)
        best = self._best(found, limit, is_ranked=asks_for_text(node))
        return KeywordHits(best, len(found.entries), built.ceiling, built.forms)

    def scores(
        self, node: Node, cids: Sequence[int], *, weights: Mapping[str, float] | None = None
    ) -> dict[int, float]:
        """The scores that a search would give some chunks."""
        found = self._found(node, Filters(), weights)[1]
        is_ranked = asks_for_text(node)
        own = self._postings.column("cid")[found.entries]
        at = np.flatnonzero(np.isin(own, np.array([*cids], np.int64)))
        known = dict(zip(own[at].tolist(), found.scores[at].tolist(), strict=True))
        return {cid: known[cid] if is_ranked else 0.0 for cid in cids if cid in known}

    def count(
        self, node: Node, filters: Filters, least: float, *, most: int, weights: Mapping[str, float] | None = None
    ) -> int:
        """The number of chunks that a search would score with at least so much, or `most`."""
        found = self._found(node, filters, weights)[1]
        return min(most, int(np.count_nonzero(found.scores >= least)))

    def definers(
        self, names: Iterable[str], node: Node, filters: Filters, limit: int, weights: Mapping[str, float] | None = None
    ) -> list[tuple[int, float]]:
        """The best chunks that define any of the names, with their scores."""
        asked = [*names]
        defining = self._asking(lambda query: query.defining(asked, None, filters, weights))
        entries = self._matches(defining).entries
        if not len(entries):
            return []
        # Under the same filters the tree gives them the scores that it gives all that it finds.
        ranked = self._found(node, filters, weights)[1]
        scores = np.zeros(self._postings.slots)
        scores[ranked.entries] = ranked.scores
        return self._best(Matches(entries, scores[entries]), limit, is_ranked=True)

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """The frequency of each term in the body."""
        asked = [*terms]
        return self._postings.settled(lambda: {term: self._postings.frequency("body", term) for term in asked})

    def vocabulary(self, prefix: str = "") -> Iterable[tuple[str, int]]:
        """The words of all text fields that begin so, each with the number of chunks it stands in."""
        return self._asking(lambda query: [*query.words.vocabulary(prefix)])

    def _found(self, node: Node, filters: Filters, weights: Mapping[str, float] | None) -> tuple[BuiltQuery, Matches]:
        """The query for a tree and all that it finds; an answer asks for it up to six times."""

        def work() -> tuple[BuiltQuery, Matches]:
            built = self._asking(lambda query: query.build(node, filters, weights))
            return built, self._matches(built.query)

        key = self._number, node, filters, *sorted((weights or {}).items())
        return current_budget().once(key, work)

    def _asking(self, ask: Callable[[KeywordQuery], _T]) -> _T:
        """The answer of a query that knows all of the vocabulary that it asks for."""

        def work() -> tuple[KeywordQuery, _T]:
            query = self._query.branch()
            return query, ask(query)

        self._query, answer = self._postings.settled(work)
        return answer

    def _matches(self, part: Part | None) -> Matches:
        return _nothing() if part is None else self._postings.settled(lambda: matches(part, self._postings), part)

    def _best(self, found: Matches, limit: int, *, is_ranked: bool) -> list[tuple[int, float]]:
        """The best chunks: by score, or the latest where nothing ranks; equals by their turn."""
        entries, scores = found
        keys = -scores if is_ranked else -self._postings.column("updated")[entries].astype(np.float64)
        if limit < len(entries):
            worst = np.partition(keys, limit - 1)[limit - 1] if limit else -np.inf
            kept = np.flatnonzero(keys <= worst)
            entries, scores, keys = entries[kept], scores[kept], keys[kept]
        order = np.lexsort((self._postings.column("turn")[entries], keys))[:limit]
        cids = self._postings.column("cid")[entries[order]].tolist()
        return list(zip(cids, scores[order].tolist() if is_ranked else [0.0] * len(cids), strict=True))


_numbers = count()


def _nothing() -> Matches:
    return Matches(_NO_ENTRIES, np.zeros(0))
