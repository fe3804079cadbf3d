"""The keyword leg in PostgreSQL: segments of postings that commits add, and answers with the local tier's ranking."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from findling.domain.backends import Scoring
from findling.domain.errors import CorruptError, LockedError, ReplacedError
from findling.domain.ports import Change, KeywordHits
from findling.domain.queries import Filters, Node
from findling.stores.keyword.entries import PreparedResource, prepare
from findling.stores.keyword.posting_segments import SegmentBuilder
from findling.stores.keyword.postings_reader import PostingsReader, SegmentInSight
from findling.stores.keyword.segment_files import POSTINGS_LAYOUT, made_for
from findling.stores.postgres.keyword.keyword_merge import join_heads, join_rows, to_join, with_dead
from findling.stores.postgres.keyword.keyword_tables import (
    SELECT_STATE,
    UNITS,
    KeywordState,
    Known,
    StoredSegment,
    begin_keyword_state,
    drop_segments,
    insert_segment,
    kill_entries,
    read_segments,
    release_segments,
    write_keyword_state,
)
from findling.stores.postgres.keyword.server_postings import ServerPostings
from findling.stores.postgres.server.connections import BUSY_SECONDS
from findling.stores.postgres.server.errors import damaged_leg

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

__all__ = ["PostgresKeywordLeg", "discard_keyword_leg", "read_keyword_state"]

_T = TypeVar("_T")

_MOST_TERMS = 4_000_000
"""Terms that are gathered in memory before they become a segment: 100 MB."""

_MOST_ENTRIES = 1 << 15
"""Entries of a segment that is written at once; two of them can be joined."""

_LEG = "keyword leg"

_BRIEF_S = 0.2
"""The patience of a merge with writers: the next commit tries again."""


def read_keyword_state(connections: PostgresConnections, unit: str) -> KeywordState:
    """The state of a leg, of whatever owner."""
    row = connections.row(SELECT_STATE, (connections.ws, UNITS[unit]))
    return KeywordState(*row) if row else KeywordState()


def discard_keyword_leg(connections: PostgresConnections, unit: str) -> None:
    """Delete a leg; numbers of its segments are not used again."""
    ws, number = connections.ws, UNITS[unit]
    with connections.writing() as connection, connections.errors:
        state = begin_keyword_state(connection, ws, number)
        drop_segments(connection, ws, number, None)
        fresh = KeywordState(generation=state.generation + 1, next_segment=state.next_segment)
        write_keyword_state(connection, ws, number, fresh)


class _View(NamedTuple):
    """One state of the leg, its segments, and the reader of what is in sight."""

    state: KeywordState
    segments: list[StoredSegment]
    reader: PostingsReader


class _Pending:
    """Entries that wait for a commit: in a builder, and in segments that are staged, by number and size."""

    def __init__(self, *, is_cleared: bool = False) -> None:
        self.is_cleared = is_cleared
        self.builder = SegmentBuilder()
        self.staged: list[tuple[int, int]] = []
        self.dropped: set[int] = set()
        self._where: dict[int, tuple[int, int]] = {}
        self._dead: dict[int, list[int]] = {}

    def drop(self, cid: int) -> None:
        """Have an entry be dead, wherever it is."""
        self.dropped.add(cid)
        if (at := self._where.pop(cid, None)) is not None:
            self._dead.setdefault(at[0], []).append(at[1])

    def add(self, prepared: PreparedResource) -> None:
        """Take in the entries of a resource."""
        for place, row in enumerate(prepared.rows, len(self.builder)):
            self._where[row[0]] = len(self.staged), place
        self.builder.add(prepared)

    def dead(self, segment: int, size: int) -> NDArray[np.bool_] | None:
        """The dead entries of a waiting segment, by its place among them."""
        if segment not in self._dead:
            return None
        dead = np.zeros(size, np.bool_)
        dead[self._dead[segment]] = True
        return dead


class PostgresKeywordLeg:
    """Implements `KeywordLeg`. It answers for one state until it is opened again or commits.

    `numbers` are those of the resources in sight, None for all. Such a leg is only read.
    """

    def __init__(
        self,
        connections: PostgresConnections,
        *,
        store_id: str,
        unit: str = "chunk",
        scoring: Scoring | None = None,
        numbers: Collection[int] | None = None,
    ) -> None:
        self.unit = unit
        self._connections = connections
        self._unit = UNITS[unit]
        self._owner = made_for(store_id, unit, POSTINGS_LAYOUT)
        self._damage = connections.leg_errors(_LEG)
        self._scoring = scoring
        self._numbers = None if numbers is None else np.fromiter(numbers, np.int64)
        self._guard = threading.Lock()
        self._opened: _View | None = None
        self._pending = _Pending()
        self._state = self._read_state()

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._state.seq if self._state.owner == self._owner else 0

    def is_current(self) -> bool:
        """Whether the segments are still those that were opened."""
        return self._read_state().generation == self._state.generation

    def apply(self, changes: Iterable[Change]) -> None:
        """Index changes; they become visible and durable with `commit`."""
        pending, is_page = self._pending, self.unit == "page"
        for change in changes:
            document = change.document
            # A page has the id of its first chunk, which is dropped or still a chunk of it.
            others = [chunk.cid for chunk in document.chunks] if is_page and document is not None else []
            for cid in (*change.dropped, *others):
                pending.drop(cid)
            if document is not None:
                pending.add(prepare(document, change.number, unit=self.unit, added=change.added))
            if len(pending.builder) >= _MOST_ENTRIES or pending.builder.weight >= _MOST_TERMS:
                self._stage()

    def commit(self, seq: int) -> None:
        """Make everything applied so far durable, together with the number it reaches.

        Raises ReplacedError when another process has committed since the leg was opened; nothing lands then.
        """
        ws, unit, pending = self._connections.ws, self._unit, self._pending
        with self._connections.writing() as connection, self._connections.errors:
            state = begin_keyword_state(connection, ws, unit)
            is_new = pending.is_cleared or state.owner != self._owner
            if not is_new and state.seq != self._state.seq:
                message = "another process has written to the keyword leg meanwhile"
                raise ReplacedError(message, hint="do it again: nothing of this was written")
            self._bury(connection, None if is_new else pending.dropped)
            release_segments(connection, ws, unit, [number for number, _ in pending.staged])
            for place, (number, size) in enumerate(pending.staged):
                if (dead := pending.dead(place, size)) is not None:
                    kill_entries(connection, ws, unit, number, dead)
            number = state.next_segment + self._write(connection, state.next_segment)
            state = KeywordState(self._owner, seq, state.generation + 1, number)
            write_keyword_state(connection, ws, unit, state)
        self._state, self._pending, self._opened = state, _Pending(), None
        with suppress(CorruptError):  # the commit stands; a reader that comes upon the damage has it mended
            self._merge()

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self._pending = _Pending(is_cleared=True)
        self._state = KeywordState(self._owner, 0, self._state.generation, self._state.next_segment)
        self._opened = _View(self._state, [], self._reader([]))

    def close(self) -> None:
        """Forget what was not committed. Staged segments go with the next commit of anybody."""
        self._pending = _Pending()

    def size(self) -> int:
        """The number of entries in sight."""
        return self._asking(PostingsReader.size)

    def cids(self) -> set[int]:
        """Every chunk id in sight; for checks."""
        return self._asking(PostingsReader.cids)

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """The frequency of each term in the body."""
        asked = [*terms]
        return self._asking(lambda reader: reader.frequencies(asked))

    def vocabulary(self, prefix: str = "") -> Iterable[tuple[str, int]]:
        """The words of all text fields that begin so, each with the number of chunks it stands in."""
        return self._asking(lambda reader: reader.vocabulary(prefix))

    def search(
        self, node: Node, filters: Filters, limit: int, *, weights: Mapping[str, float] | None = None
    ) -> KeywordHits:
        """The best `limit` chunks among those that pass the filters; equal scores keep one order."""
        return self._asking(lambda reader: reader.search(node, filters, limit, weights=weights))

    def scores(
        self, node: Node, cids: Sequence[int], *, weights: Mapping[str, float] | None = None
    ) -> dict[int, float]:
        """The scores that a search would give some chunks."""
        return self._asking(lambda reader: reader.scores(node, cids, weights=weights))

    def count(
        self, node: Node, filters: Filters, least: float, *, most: int, weights: Mapping[str, float] | None = None
    ) -> int:
        """The number of chunks that a search would score with at least so much, or `most`."""
        return self._asking(lambda reader: reader.count(node, filters, least, most=most, weights=weights))

    def definers(
        self, names: Iterable[str], node: Node, filters: Filters, limit: int, weights: Mapping[str, float] | None = None
    ) -> list[tuple[int, float]]:
        """The best chunks that define any of the names, with their scores."""
        asked = [*names]
        return self._asking(lambda reader: reader.definers(asked, node, filters, limit, weights))

    def _asking(self, ask: Callable[[PostingsReader], _T]) -> _T:
        """The answer of one state; of a later one where segments were joined while it was asked."""
        former = self._view()
        try:
            with self._damage:
                return ask(former.reader)
        except ReplacedError as error:
            self._opened = None
            state = self._view().state
            if state.generation == former.state.generation:
                raise damaged_leg(_LEG, self._connections.place, "postings are missing") from error
            # Later changes may be out of the sight that this leg was opened for.
            if state.seq != former.state.seq and self._numbers is not None:
                raise
            with self._damage:
                return ask(self._view().reader)

    def _view(self) -> _View:
        with self._guard:
            if (opened := self._opened) is None:
                with self._connections.reading() as connection:
                    state = begin_keyword_state(connection, self._connections.ws, self._unit)
                    segments = self._segments(connection) if state.owner == self._owner else []
                opened = self._opened = _View(state, segments, self._reader(segments))
                self._state = state
            return opened

    def _reader(self, segments: Sequence[StoredSegment]) -> PostingsReader:
        in_sight = [SegmentInSight(one.head, _sight(one, self._numbers)) for one in segments]
        return PostingsReader(ServerPostings(self._connections, self._unit, segments, in_sight), self._scoring)

    def _segments(self, connection: Connection) -> list[StoredSegment]:
        known = _known_heads(self._connections, self._unit, self._owner)
        with self._damage:
            segments = read_segments(connection, self._connections.ws, self._unit, known)
        for gone in known.keys() - {one.number for one in segments}:
            known.pop(gone, None)
        return segments

    def _read_state(self) -> KeywordState:
        return read_keyword_state(self._connections, self.unit)

    def _bury(self, connection: Connection, dropped: Collection[int] | None) -> None:
        """Mark dropped entries of all segments, or delete the segments without any."""
        ws, unit = self._connections.ws, self._unit
        if dropped is None:
            drop_segments(connection, ws, unit, [one.number for one in self._segments(connection)])
        elif dropped:
            wanted = np.fromiter(dropped, np.int64)
            for one in self._segments(connection):
                dead = np.isin(one.head.cids, wanted)
                if dead.any():
                    kill_entries(connection, ws, unit, one.number, dead if one.dead is None else dead | one.dead)

    def _stage(self) -> None:
        """Write what was gathered as a segment that nobody reads yet."""
        ws, unit, pending = self._connections.ws, self._unit, self._pending
        with self._connections.writing() as connection, self._connections.errors:
            state = begin_keyword_state(connection, ws, unit)
            written = self._write(connection, state.next_segment, is_staged=True)
            write_keyword_state(connection, ws, unit, state._replace(next_segment=state.next_segment + written))
        pending.staged.append((state.next_segment, len(pending.builder)))
        pending.builder = SegmentBuilder()

    def _write(self, connection: Connection, number: int, *, is_staged: bool = False) -> int:
        """Write the segment that was gathered; whether there was one."""
        builder = self._pending.builder
        if not len(builder):
            return 0
        dead = None if is_staged else self._pending.dead(len(self._pending.staged), len(builder))
        if dead is not None and dead.all():
            return 0
        key = self._connections.ws, self._unit, number
        insert_segment(connection, key, builder.head(), builder.rows(), dead=dead, is_staged=is_staged)
        return 1

    def purge(self) -> int:
        """Write segments anew that hold dead entries, whatever they cost; returns how many entries are gone."""
        held = sum(len(one.head) for one in self._view().segments)
        self._merge(with_dead, BUSY_SECONDS)
        return held - sum(len(one.head) for one in self._view().segments)

    def _merge(
        self, choose: Callable[[Sequence[StoredSegment]], list[StoredSegment]] = to_join, patience_s: float = _BRIEF_S
    ) -> None:
        """Join small segments; another process that writes, or joins them, comes first."""
        ws, unit = self._connections.ws, self._unit
        while True:
            try:
                with self._connections.writing(patience_s) as connection, self._connections.errors:
                    state = begin_keyword_state(connection, ws, unit)
                    chosen = choose(self._segments(connection)) if state == self._state else []
                    if not chosen:
                        return
                    key = ws, unit, state.next_segment
                    with self._damage:
                        insert_segment(connection, key, join_heads(chosen), join_rows(connection, ws, unit, chosen))
                    drop_segments(connection, ws, unit, [one.number for one in chosen])
                    state = state._replace(generation=state.generation + 1, next_segment=state.next_segment + 1)
                    write_keyword_state(connection, ws, unit, state)
            except LockedError:
                return
            self._state, self._opened = state, None


_MOST_LEGS = 32
_heads: OrderedDict[tuple[str, int, int, str], Known] = OrderedDict()
_heads_guard = threading.Lock()


def _known_heads(connections: PostgresConnections, unit: int, owner: str) -> Known:
    """The heads of segments that this process has fetched for any leg of a store; they never change."""
    key = connections.place.dsn, connections.ws, unit, owner
    with _heads_guard:
        known = _heads.setdefault(key, {})
        _heads.move_to_end(key)
        while len(_heads) > _MOST_LEGS:
            _heads.popitem(last=False)
    return known


def _sight(segment: StoredSegment, numbers: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
    """The entries of a segment in sight; None for all of them."""
    if numbers is None:
        return None if segment.dead is None else ~segment.dead
    seen = np.isin(segment.head.numbers, numbers)
    if segment.dead is not None:
        seen &= ~segment.dead
    return None if seen.all() else seen
