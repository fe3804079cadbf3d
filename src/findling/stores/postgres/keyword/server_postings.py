"""Postings in the server: a question says what it needs, and one statement fetches all of it.

Work that asks for postings runs once to say what it lacks. One round trip fetches that, and the work runs again. A
question takes two round trips, the vocabulary and the postings; a third one where positions depend on the second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from findling.domain.budgets import trying
from findling.domain.errors import ReplacedError
from findling.ranking.postings_scoring import Entries, Scores
from findling.stores.keyword.posting_segments import PostingRow
from findling.stores.keyword.postings_reader import SegmentedPostings, SegmentInSight
from findling.stores.postgres.keyword.keyword_tables import StoredSegment
from findling.stores.postgres.keyword.posting_blocks import PostingBlock
from findling.stores.postgres.server.parts_cache import PARTS, PartsCache

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["ServerPostings"]

_T = TypeVar("_T")
_Array = TypeVar("_Array", bound=NDArray[Any])

_ROUNDS = 12
"""Round trips of one question; three are usual at most."""

_COUNTED, _LISTED, _PLACED = range(3)
"""The levels of a block: its frequencies, its entries, and their positions."""

# OFFSET 0 keeps the planner from reading whole tables: each line of a question is one look into the key.
_FETCH = """
SELECT q.line, b.* FROM unnest(%s::integer[], %s::integer[], %s::integer[])
    WITH ORDINALITY AS q(segment, block, level, line),
    LATERAL (SELECT terms, dfs, CASE WHEN f.level > 0 THEN sizes END, CASE WHEN f.level > 0 THEN docs END,
        CASE WHEN f.level > 0 THEN tfs END, CASE WHEN f.level > 1 THEN positions END
        FROM findling.keyword_blocks, greatest(q.level, (octet_length(docs) < 4000)::integer) f(level)
        WHERE ws = %s AND unit = %s AND segment = q.segment AND block = q.block OFFSET 0) b
"""
"""A block comes with its entries where these are few: most terms then need no fetch but that of the vocabulary."""


_MOST_ROWS = 20_000
"""Terms whose rows are kept for one state; the cache of this process has their blocks."""


_ARRAYS = PartsCache(64 << 20)
"""Arrays of terms of all states of this process: 64 MB hold 800 terms with 5,000 entries each."""


_NOT_AT_HAND: Any = np.zeros(0, np.int64), np.zeros(0, np.int64)
"""Arrays of a term whose rows are not at hand: the work runs again with them."""


class _Lacking(threading.local):
    """The blocks that the work of this thread lacks, with their levels, and those that were fetched for it."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[int, int], int] = {}
        self.held: dict[tuple[int, int], PostingBlock] = {}


class ServerPostings(SegmentedPostings):
    """Implements `TermPostings` for one state of a leg; threads may share it."""

    def __init__(
        self,
        connections: PostgresConnections,
        unit: int,
        segments: Sequence[StoredSegment],
        in_sight: Sequence[SegmentInSight],
    ) -> None:
        super().__init__(in_sight)
        self._connections = connections
        self._unit = unit
        self._stored = segments
        self._is_whole = all(one.sight is None for one in in_sight)
        self._rows: dict[tuple[str, str], tuple[int, list[tuple[int, PostingRow]]]] = {}
        self._ranges: dict[tuple[str, str], list[str]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._lacking = _Lacking()
        self._key = object()
        """No other state has it among the arrays of this process."""

    def rows(self, field: str, term: str, *, with_positions: bool = False) -> Sequence[tuple[int, PostingRow]]:
        return self._row(field, term, _PLACED if with_positions else _LISTED) or ()

    def frequency(self, field: str, term: str) -> int:
        if (count := self._counts.get((field, term))) is None:
            rows = self._row(field, term, _COUNTED if self._is_whole else _LISTED)
            count = self.counted(rows or ())
            if rows is not None:
                self._counts[field, term] = count
        return count

    def term(self, field: str, term: str) -> tuple[Entries, NDArray[np.integer]]:
        return self._kept(("entries", field, term), lambda: super(ServerPostings, self).term(field, term))

    def shares(self, field: str, term: str) -> tuple[Entries, Scores]:
        return self._kept(("shares", field, term), lambda: super(ServerPostings, self).shares(field, term))

    def begun(self, field: str, prefix: str) -> Sequence[str]:
        if (found := self._ranges.get((field, prefix))) is not None:
            return found
        # Who sees a part needs the entries to count them.
        level = _COUNTED if self._is_whole else _LISTED
        wanted = [(at, number) for at, one in enumerate(self._stored) for number in one.directory.blocks(field, prefix)]
        blocks = [(at, self._block(at, number, level)) for at, number in wanted]
        if any(block is None for _, block in blocks):
            return []
        at_hand = [(at, block) for at, block in blocks if block is not None]
        counts = self._counted(prefix, at_hand) if self._is_whole or not prefix else {}
        for term, count in counts.items():
            self._counts[field, term] = count
        terms = sorted(counts or {term for _, block in at_hand for term in block.terms[block.begun(prefix)]})
        self._ranges[field, prefix] = terms
        return terms

    def _kept(self, key: tuple[str, str, str], make: Callable[[], tuple[Entries, _Array]]) -> tuple[Entries, _Array]:
        """Arrays of a term, which are kept once they were made of all of its rows."""
        whole = self._key, *key
        if (known := _ARRAYS.get(whole)) is not None:
            kept: tuple[Entries, _Array] = known
            return kept
        if self._row(*key[1:], _LISTED) is None:
            nothing: tuple[Entries, _Array] = _NOT_AT_HAND
            return nothing
        made = make()
        _ARRAYS.put(whole, made, sum(array.nbytes for array in made) + 500)
        return made

    def settled(self, work: Callable[[], _T]) -> _T:
        """The result of work that asks for postings, which are fetched in between."""
        if len(self._rows) > _MOST_ROWS:
            self._rows, self._ranges, self._counts = {}, {}, {}
        try:
            for _ in range(_ROUNDS):
                self._lacking.blocks = {}
                with trying() as adopt:
                    result = work()
                    if not self._lacking.blocks:
                        adopt()
                        return result
                self._fetch(self._lacking.blocks)
        finally:
            self._lacking.held = {}
        raise AssertionError("a question asks for the same postings again and again")

    def _counted(self, prefix: str, blocks: Sequence[tuple[int, PostingBlock]]) -> dict[str, int]:
        """The frequencies of all terms that begin so, block by block: term by term takes twenty times as long."""
        counts: dict[str, int] = {}
        for at, block in blocks:
            sight, places = self._segments[at].sight, block.begun(prefix)
            dfs = block.dfs if sight is None else block.counts(sight)
            for term, count in zip(block.terms[places], dfs[places], strict=True):
                counts[term] = counts.get(term, 0) + count
        return counts

    def _row(self, field: str, term: str, level: int) -> Sequence[tuple[int, PostingRow]] | None:
        """The rows of a term; None where some are not at hand."""
        known = self._rows.get((field, term))
        if known is not None and known[0] >= level:
            return known[1]
        found: list[tuple[int, PostingRow]] = []
        is_complete = True
        for at, one in enumerate(self._stored):
            if (number := one.directory.block(field, term)) is None:
                continue
            block = self._block(at, number, _COUNTED)
            place = None if block is None else block.find(term)
            if block is None or (place is not None and block.level < level):
                self._lack(at, number, level)
                is_complete = False
            elif place is not None:
                found.append((at, block.row(place)))
        if not is_complete:
            return None
        self._rows[field, term] = level, found
        return found

    def _block(self, at: int, number: int, level: int) -> PostingBlock | None:
        """A block, which is asked for where it is not at hand."""
        # Those of this question stay, however full the cache is.
        block: PostingBlock | None = self._lacking.held.get((at, number)) or PARTS.get(self._block_key(at, number))
        if block is None or block.level < level:
            self._lack(at, number, level)
            return None
        return block

    def _lack(self, at: int, number: int, level: int) -> None:
        lacking = self._lacking.blocks
        lacking[at, number] = max(level, lacking.get((at, number), 0))

    def _block_key(self, at: int, number: int) -> tuple[int, int]:
        return self._stored[at].directory.key, number

    def _fetch(self, lacking: Mapping[tuple[int, int], int]) -> None:
        from findling.stores.postgres.server.arrays import integers

        keys = [*lacking]
        found = self._connections.rows(
            _FETCH,
            (
                integers([self._stored[at].number for at, _ in keys]),
                integers([number for _, number in keys]),
                integers(lacking.values()),
                self._connections.ws,
                self._unit,
            ),
        )
        if len(found) < len(keys):
            raise ReplacedError("segments of the keyword leg were joined while they were read", hint="ask again")
        for line, *data in found:
            block = PostingBlock(data)
            self._lacking.held[keys[line - 1]] = block
            PARTS.put(self._block_key(*keys[line - 1]), block, block.size)
