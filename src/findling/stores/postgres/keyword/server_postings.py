"""Postings in the server: a question says what it needs, and one statement fetches all of it.

Work that asks for postings runs once to say what it lacks. One round trip fetches that, and the work runs again. A
question takes two round trips, the vocabulary and the postings; a third one where positions depend on the second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from findling.domain.budgets import trying
from findling.domain.errors import ReplacedError
from findling.stores.keyword.posting_segments import INDEXED, PostingRow
from findling.stores.keyword.postings_reader import SegmentedPostings, SegmentInSight
from findling.stores.postgres.keyword.keyword_tables import StoredSegment, stored_term, term_of

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import PostgresConnections

__all__ = ["ServerPostings"]

_T = TypeVar("_T")

_MOST_BYTES = 64 << 20
"""Postings that are kept for one state."""

_ROUNDS = 12
"""Round trips of one question; four are usual at most."""

_FIELDS = {field: number for number, field in enumerate(INDEXED)}
_LAST = "\U0010ffff"

_COUNTED, _LISTED, _PLACED = range(3)
"""The parts of a fetched row: its frequency, its entries, and their positions."""

# OFFSET 0 keeps the planner from reading whole tables: each line of a question is one look into the key.
_FETCH = """
SELECT -1, 0::bigint, ''::text, NULL::text, count(*)::integer, 0, NULL::bytea, NULL::bytea, NULL::bytea
    FROM findling.keyword_segments WHERE ws = %s AND unit = %s AND segment = ANY(%s) AND NOT is_staged
UNION ALL
SELECT 0, q.line, p.term, p.whole, p.segment, p.df, NULL, NULL, NULL
    FROM unnest(%s::smallint[], %s::text[], %s::text[])
        WITH ORDINALITY AS q(field, low, high, line),
    LATERAL (SELECT term, whole, segment, df FROM findling.keyword_postings WHERE ws = %s AND unit = %s
        AND field = q.field AND term >= q.low AND term < q.high OFFSET 0) p
UNION ALL
SELECT 1, q.line, '', NULL, p.segment, p.df, p.docs, p.tfs, p.positions
    FROM unnest(%s::smallint[], %s::text[], %s::smallint[])
        WITH ORDINALITY AS q(field, term, level, line),
    LATERAL (SELECT segment, df, CASE WHEN q.level > 0 THEN docs END AS docs, CASE WHEN q.level > 0 THEN tfs END AS tfs,
        CASE WHEN q.level > 1 THEN positions END AS positions FROM findling.keyword_postings
        WHERE ws = %s AND unit = %s AND field = q.field AND term = q.term OFFSET 0) p
"""


class _LackingRows(threading.local):
    """The rows and ranges that the work of this thread lacks."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], int] = {}
        self.ranges: dict[tuple[str, str], None] = {}


class ServerPostings(SegmentedPostings):
    """Implements `Postings` for one state of a leg; threads may share it."""

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
        self._places = {one.number: place for place, one in enumerate(segments)}
        self._is_whole = all(one.sight is None for one in in_sight)
        self._rows: dict[tuple[str, str], tuple[int, list[tuple[int, PostingRow]]]] = {}
        self._ranges: dict[tuple[str, str], list[str]] = {}
        self._bytes = 0
        self._asked = _LackingRows()

    def rows(self, field: str, term: str, *, with_positions: bool = False) -> Sequence[tuple[int, PostingRow]]:
        return self._row(field, term, _PLACED if with_positions else _LISTED)

    def frequency(self, field: str, term: str) -> int:
        if self._is_whole:
            return sum(row.df for _, row in self._row(field, term, _COUNTED))
        return super().frequency(field, term)

    def begun(self, field: str, prefix: str) -> Sequence[str]:
        found = self._ranges.get((field, prefix))
        if found is None and self.slots:
            self._asked.ranges[field, prefix] = None
        return found or []

    def settled(self, work: Callable[[], _T]) -> _T:
        """The result of work that asks for postings, which are fetched in between."""
        for _ in range(_ROUNDS):
            asked = self._asked
            asked.rows, asked.ranges = {}, {}
            with trying() as adopt:
                result = work()
                if not asked.rows and not asked.ranges:
                    adopt()
                    return result
            self._fetch(dict(asked.rows), [*asked.ranges])
        raise AssertionError("a question asks for the same postings again and again")

    def _row(self, field: str, term: str, level: int) -> Sequence[tuple[int, PostingRow]]:
        known = self._rows.get((field, term))
        if known is not None and known[0] >= level:
            return known[1]
        if known is None and self._is_known_to_lack(field, term):
            return ()
        if self.slots:
            self._asked.rows[field, term] = max(level, self._asked.rows.get((field, term), 0))
        return ()

    def _is_known_to_lack(self, field: str, term: str) -> bool:
        return any((field, term[:end]) in self._ranges for end in range(len(term) + 1))

    def _fetch(self, rows: dict[tuple[str, str], int], ranges: Sequence[tuple[str, str]]) -> None:
        if self._bytes > _MOST_BYTES:
            # The work runs again, and asks for what it needs.
            self._rows, self._ranges, self._bytes = {}, {}, 0
        lows = [stored_term(prefix)[0] for _, prefix in ranges]
        ws, unit = self._connections.ws, self._unit
        found = self._connections.rows(
            _FETCH,
            (
                *(ws, unit, [*self._places]),
                *([_FIELDS[field] for field, _ in ranges], lows, [f"{low}{_LAST}" for low in lows], ws, unit),
                [_FIELDS[field] for field, _ in rows],
                [stored_term(term)[0] for _, term in rows],
                [*rows.values()],
                *(ws, unit),
            ),
        )
        listed: list[dict[str, list[tuple[int, PostingRow]]]] = [{} for _ in ranges]
        fetched: list[list[tuple[int, PostingRow]]] = [[] for _ in rows]
        for kind, line, key, whole, segment, df, *data in found:
            if kind < 0 and segment < len(self._places):
                raise ReplacedError("segments of the keyword leg were joined while they were read", hint="ask again")
            place = self._places.get(segment, -1)
            if kind < 0 or place < 0:
                continue
            if kind == 0:
                listed[line - 1].setdefault(term_of(key, whole), []).append((place, PostingRow(df, b"", b"", b"")))
            else:
                fetched[line - 1].append((place, PostingRow(df, *(one or b"" for one in data))))
                self._bytes += sum(len(one) for one in data if one)
        self._keep(rows, fetched, ranges, listed)

    def _keep(
        self,
        rows: dict[tuple[str, str], int],
        fetched: Sequence[list[tuple[int, PostingRow]]],
        ranges: Sequence[tuple[str, str]],
        listed: Sequence[dict[str, list[tuple[int, PostingRow]]]],
    ) -> None:
        for (key, level), found in zip(rows.items(), fetched, strict=True):
            self._rows[key] = level, sorted(found, key=_place)
        for (field, prefix), terms in zip(ranges, listed, strict=True):
            kept = {term: found for term, found in terms.items() if term.startswith(prefix)}
            self._ranges[field, prefix] = sorted(kept)
            self._bytes += 100 * len(kept)
            for term, found in kept.items():
                if (field, term) not in self._rows:
                    self._rows[field, term] = _COUNTED, sorted(found, key=_place)


def _place(pair: tuple[int, Any]) -> int:
    return pair[0]
