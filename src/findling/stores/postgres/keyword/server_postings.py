"""Postings in the server: a question says what it needs, and one statement fetches all of it.

Work that asks for postings runs once to say what it lacks. One round trip fetches that, and the work runs again. A
question takes two round trips, the vocabulary and the postings. A process that goes on asking fetches the whole
vocabulary: from then on a question takes one.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from findling.domain.budgets import trying
from findling.domain.errors import ReplacedError
from findling.domain.plans import FIELDS
from findling.ranking.postings_algebra import AnyTermPart, BeginningPart, Part, RowPart, TermPart, leaves_of
from findling.ranking.postings_scoring import Entries, Scores, shares_of
from findling.stores.keyword.posting_segments import PostingRow
from findling.stores.keyword.postings_reader import SegmentedPostings, SegmentInSight
from findling.stores.postgres.keyword.keyword_tables import StoredSegment
from findling.stores.postgres.keyword.posting_blocks import BlockDirectory, PostingBlock
from findling.stores.postgres.server.parts_cache import PARTS, PartsCache

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["ServerPostings"]

_T = TypeVar("_T")

_ROUNDS = 12
"""Round trips of one question; three are usual at most."""

_COUNTED, _LISTED, _PLACED = range(3)
"""The levels of a block: its frequencies, its entries, and their positions."""

# OFFSET 0 keeps the planner from reading whole tables: each line of a question is one look into the key.
_FETCH = """
SELECT q.line, b.* FROM unnest(%s::integer[], %s::integer[], %s::integer[])
    WITH ORDINALITY AS q(segment, block, level, line),
    LATERAL (SELECT {}CASE WHEN f.level > 0 THEN sizes END, CASE WHEN f.level > 0 THEN docs END,
        CASE WHEN f.level > 0 THEN tfs END, CASE WHEN f.level > 1 THEN positions END
        FROM findling.keyword_blocks, greatest(q.level, (octet_length(docs) < 4000)::integer) f(level)
        WHERE ws = %s AND unit = %s AND segment = q.segment AND block = q.block OFFSET 0) b
"""
_FETCH_WHOLE, _FETCH_ENTRIES = _FETCH.format("terms, dfs, "), _FETCH.format("")
"""A block comes with its entries where these are few: most terms then need no fetch but that of the vocabulary."""


_FETCH_VOCABULARIES = """
SELECT segment, terms, dfs FROM findling.keyword_blocks WHERE ws = %s AND unit = %s AND segment = ANY(%s)
    ORDER BY segment, block
"""

_WORTH_ALL = 50
"""Share of a segment's blocks, as a divisor, whose terms cost a process as much as the terms of all: 24 ms of 7,000."""

_MOST_BLOCKS = 1 << 17
"""Blocks of a state whose vocabulary is held: 80 MB at 600 bytes each, of 900,000 passages."""


_MOST_ROWS = 20_000
"""Terms whose rows are kept for one state; the cache of this process has their blocks."""


_ARRAYS = PartsCache(64 << 20)
"""Arrays of terms of all states of this process: 64 MB hold 800 terms with 5,000 entries each."""


class _TermArrays(NamedTuple):
    """The entries of a term, how often each has it, and in text fields the shares of what it can score."""

    entries: Entries
    counts: NDArray[np.integer]
    shares: Scores


_NO_SHARES = np.zeros(0)

_NOT_AT_HAND = _TermArrays(np.zeros(0, np.int64), np.zeros(0, np.int64), _NO_SHARES)
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
        self._can_hold_all = sum(len(one.directory) for one in segments) <= _MOST_BLOCKS
        self._rows: dict[tuple[str, str], tuple[int, list[tuple[int, PostingRow]]]] = {}
        self._ranges: dict[tuple[str, str], list[str]] = {}
        self._counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._lacking = _Lacking()
        self._key = object()
        """No other state has it among the arrays of this process."""

    def rows(self, field: str, term: str, *, with_positions: bool = False) -> Sequence[tuple[int, PostingRow]]:
        return self._row(field, term, _PLACED if with_positions else _LISTED) or ()

    def frequency(self, field: str, term: str) -> int:
        if (count := self._counts[field].get(term)) is None:
            rows = self._row(field, term, _COUNTED if self._is_whole else _LISTED)
            count = self.counted(rows or ())
            if rows is not None:
                self._counts[field][term] = count
        return count

    def term(self, field: str, term: str) -> tuple[Entries, NDArray[np.integer]]:
        return self._arrays(field, term)[:2]

    def shares(self, field: str, term: str) -> tuple[Entries, Scores]:
        entries, _, shares = self._arrays(field, term)
        return entries, shares

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
        self._counts[field].update(counts)  # no pair for each term: the collector would look at all of them
        terms = sorted(counts or {term for _, block in at_hand for term in block.begun(prefix)[1]})
        self._ranges[field, prefix] = terms
        return terms

    def _arrays(self, field: str, term: str) -> _TermArrays:
        """The arrays of a term, which are kept once they were made of all of its rows."""
        key = self._key, field, term
        known: _TermArrays | None = _ARRAYS.get(key)
        if known is not None:
            return known
        if (rows := self._row(field, term, _LISTED)) is None:
            return _NOT_AT_HAND
        entries, counts = self.joined(rows)
        shares = shares_of(field, entries, counts, self) if len(entries) and field in FIELDS else _NO_SHARES
        made = _TermArrays(entries, counts, shares)
        _ARRAYS.put(key, made, entries.nbytes + counts.nbytes + shares.nbytes + 500)
        return made

    def settled(self, work: Callable[[], _T], part: Part | None = None) -> _T:
        """The result of work that asks for postings, which are fetched in between; those of a query before."""
        if len(self._rows) > _MOST_ROWS:
            self._rows, self._ranges, self._counts = {}, {}, defaultdict(dict)
        try:
            if part is not None:
                self._gather(part)
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

    def _gather(self, part: Part) -> None:
        """Fetch what a query reads: to learn that by scoring takes 1 ms."""
        self._lacking.blocks = {}
        for leaf in leaves_of(part):
            if isinstance(leaf, TermPart):
                self._row(leaf.field, leaf.term, _LISTED)
            elif isinstance(leaf, RowPart):
                for _, word in leaf.words:
                    for term in self.begun(word.field, word.prefix) if isinstance(word, BeginningPart) else (word,):
                        self._row(leaf.field, term, _PLACED)
            elif isinstance(leaf, (AnyTermPart, BeginningPart)):
                terms = leaf.terms if isinstance(leaf, AnyTermPart) else self.begun(leaf.field, leaf.prefix)
                for term in terms:
                    self._row(leaf.field, term, _LISTED)
        if self._lacking.blocks:
            self._fetch(self._lacking.blocks)

    def _counted(self, prefix: str, blocks: Sequence[tuple[int, PostingBlock]]) -> dict[str, int]:
        """The frequencies of all terms that begin so, block by block: term by term takes twenty times as long."""
        counts: dict[str, int] = {}
        for at, block in blocks:
            sight, (places, terms) = self._segments[at].sight, block.begun(prefix)
            if terms:
                dfs = block.frequencies(places) if sight is None else block.counts(sight)[places]
                for term, count in zip(terms, dfs, strict=True):
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
        block = self._at_hand(at, number)
        if block is None or block.level < level:
            self._lack(at, number, level)
            return None
        return block

    def _at_hand(self, at: int, number: int) -> PostingBlock | None:
        # Those of this question stay, however full the cache is.
        block: PostingBlock | None = self._lacking.held.get((at, number)) or PARTS.get(self._block_key(at, number))
        if block is None and (vocabulary := PARTS.get(_whole_key(self._stored[at].directory))) is not None:
            block = self._lacking.held[at, number] = PostingBlock(*vocabulary[number])
        return block

    def _lack(self, at: int, number: int, level: int) -> None:
        lacking = self._lacking.blocks
        lacking[at, number] = max(level, lacking.get((at, number), 0))

    def _block_key(self, at: int, number: int) -> tuple[int, int]:
        return self._stored[at].directory.key, number

    def _fetch(self, lacking: Mapping[tuple[int, int], int]) -> None:
        """Fetch blocks at their levels, and the vocabulary of a segment once many were fetched."""
        self._fetch_vocabularies(Counter(at for at, _ in lacking))
        known = {key: block for key in lacking if (block := self._at_hand(*key)) is not None}
        wanted = {key: level for key, level in lacking.items() if level or key not in known}
        has_terms = known.keys() >= wanted.keys()
        for key, data in self._fetched(_FETCH_ENTRIES if has_terms else _FETCH_WHOLE, wanted):
            block = known[key].extended(data) if has_terms else PostingBlock(data[0], data[1], data[2:])
            self._lacking.held[key] = block
            PARTS.put(self._block_key(*key), block, block.size)

    def _fetch_vocabularies(self, wanted: Mapping[int, int]) -> None:
        """Fetch the terms of all blocks of segments, once those of many were wanted; so many are now, by segment."""
        due: dict[int, BlockDirectory] = {}
        for at, blocks in wanted.items():
            number, _, directory, _ = self._stored[at]
            if self._can_hold_all and PARTS.get(_whole_key(directory)) is None:
                directory.wanted += blocks
                if directory.wanted * _WORTH_ALL >= len(directory):
                    due[number], directory.wanted = directory, 0
        if not due:
            return
        from findling.stores.postgres.server.arrays import integers

        found: dict[int, list[tuple[bytes, bytes]]] = {number: [] for number in due}
        for number, *block in self._connections.rows(
            _FETCH_VOCABULARIES, (self._connections.ws, self._unit, integers(due))
        ):
            found[number].append((block[0], block[1]))
        for number, directory in due.items():
            if len(found[number]) != len(directory):
                raise _joined_meanwhile()
            size = sum(len(terms) + len(dfs) + 200 for terms, dfs in found[number])
            PARTS.put(_whole_key(directory), found[number], size)

    def _fetched(
        self, statement: str, wanted: Mapping[tuple[int, int], int]
    ) -> list[tuple[tuple[int, int], Sequence[Any]]]:
        """The columns of blocks."""
        from findling.stores.postgres.server.arrays import integers

        keys = [*wanted]
        if not keys:
            return []
        found = self._connections.rows(
            statement,
            (
                integers([self._stored[at].number for at, _ in keys]),
                integers([number for _, number in keys]),
                integers(wanted.values()),
                self._connections.ws,
                self._unit,
            ),
        )
        if len(found) < len(keys):
            raise _joined_meanwhile()
        return [(keys[line - 1], data) for line, *data in found]


def _whole_key(directory: BlockDirectory) -> tuple[str, int]:
    """The key of the vocabulary of a segment."""
    return "vocabulary", directory.key


def _joined_meanwhile() -> ReplacedError:
    return ReplacedError("segments of the keyword leg were joined while they were read", hint="ask again")
