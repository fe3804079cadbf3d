"""The exact leg in PostgreSQL: lists of the resources that hold a trigram, in segments that each commit adds to.

A GIN index cannot be used under a policy of its table, so the lists are our own. They take 11 % of the text, and one
question to the server for all trigrams of a pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from findling.domain.errors import CorruptError
from findling.domain.ports import Change
from findling.domain.queries import Required
from findling.stores.postgres.legs.exact_segments import (
    SegmentBlocks,
    TrigramPostings,
    block_of,
    holders,
    matching,
    merged,
    packed,
    text_trigrams,
    trigram_hashes,
    unpacked,
)
from findling.stores.postgres.legs.leg_states import ServerLegState, begin_state, forget_state, read_state, write_state
from findling.stores.postgres.legs.rewriting import worn_out

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

__all__ = ["PostgresTrigrams", "damaged_segments", "discard_exact_leg", "has_exact_leg"]

_LEG = "exact"

_MOST_PAIRS = 4_000_000
"""Trigrams of resources that one segment has: those of 45 MB of code."""


_SENT_BLOCKS = 512
"""Blocks sent at once: 2 MB."""


class _Segment(NamedTuple):
    """A segment without its lists: numbers and ids of its resources, and the places of those that are gone."""

    segment: int
    bits: int
    pairs: int
    numbers: NDArray[np.int64]
    rids: NDArray[np.int64]
    dead: NDArray[np.uint32]

    def alive(self) -> NDArray[np.bool_]:
        """Marks the resources that are not gone."""
        marks = np.ones(len(self.numbers), np.bool_)
        marks[self.dead] = False
        return marks


class _Draft(NamedTuple):
    """A segment that waits for the commit."""

    numbers: NDArray[np.int64]
    rids: NDArray[np.int64]
    pairs: int
    lists: SegmentBlocks
    is_gone: NDArray[np.bool_]


class PostgresTrigrams:
    """Implements `ExactLeg` in one workspace. Writing needs its write lock."""

    def __init__(self, connections: PostgresConnections, *, owner: str) -> None:
        """Open the leg, an empty one where there is none of this owner."""
        self._connections, self._owner = connections, owner
        self._damage = connections.leg_errors("exact leg")
        self._state = self._read_state()
        self._segments: tuple[int, list[_Segment]] | None = None
        """The segments of one generation."""
        self._changed: dict[int, tuple[int, NDArray[np.uint32]] | None] = {}
        """Id → number and trigrams, none for a resource that is gone; from the next commit on."""
        self._touched: set[int] = set()
        self._drafts: list[_Draft] = []
        self._pairs = 0
        self._is_cleared = False

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._state.seq if self._state is not None else 0

    def is_current(self) -> bool:
        """Whether nobody has committed since it was opened."""
        return self._state is not None and self._state == self._read_state()

    def size(self) -> int:
        """Number of its resources."""
        return len(self.numbers())

    def numbers(self) -> set[int]:
        """The numbers of all resources that it holds; for checks."""
        if self._state is None:
            return set()
        with self._damage:
            return {number for one in self._current()[1] for number in one.numbers[one.alive()].tolist()}

    def candidates(self, required: Required, allowed: Collection[int] | None = None) -> list[int]:
        """The numbers of those allowed resources that hold the trigrams, in order. Raises CorruptError."""
        if self._state is None:
            return []
        with self._damage:
            found = self._holding(required)
        return sorted(found if allowed is None else (number for number in found if number in allowed))

    def apply(self, changes: Iterable[Change]) -> None:
        """Absorb changes; they become visible and durable with `commit`."""
        for change in changes:
            rid = _rid_hash(change.rid)
            if change.document is None:
                self._changed[rid] = None
                continue
            trigrams = text_trigrams(change.document.text)
            self._changed[rid] = change.number, trigrams
            self._pairs += len(trigrams)
            if self._pairs >= _MOST_PAIRS:
                self._drafts.append(_drafted(*self._settled()))

    def commit(self, seq: int) -> None:
        """Make everything applied so far visible and durable in one transaction, with the number it reaches."""
        connections = self._connections
        with connections.writing() as connection, connections.errors, self._damage:
            state = begin_state(connection, connections.ws, _LEG)
            if self._is_cleared or state.owner != self._owner:
                _delete_all(connection, connections.ws)
            segment = self._write(connection, state.next_segment)
            state = ServerLegState(self._owner, seq, state.generation + 1, segment)
            write_state(connection, connections.ws, _LEG, state)
        self._forget()
        self._state = state

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self._forget()
        self._is_cleared, self._state = True, None

    def close(self) -> None:
        """Forget what was not committed; a question that another thread asks is still answered."""
        self._forget()

    def _read_state(self) -> ServerLegState | None:
        state = read_state(self._connections, _LEG)
        return state if state is not None and state.owner == self._owner else None

    def _forget(self) -> None:
        self._changed, self._drafts, self._pairs, self._is_cleared = {}, [], 0, False
        self._touched, self._segments = set(), None

    def _current(self) -> tuple[int, list[_Segment]]:
        """The segments of the last commit, and its generation."""
        with self._connections.reading() as connection, self._damage:
            state = begin_state(connection, self._connections.ws, _LEG)
            segments = _segments(connection, self._connections.ws) if state.owner == self._owner else []
        self._segments = state.generation, segments
        return self._segments

    def _holding(self, required: Required) -> list[int]:
        """The numbers of all resources that hold the trigrams."""
        hashes = trigram_hashes(required)
        for _ in range(5):
            generation, segments = self._segments or self._current()
            blocks = self._blocks(generation, segments, hashes.values())
            if blocks is not None:
                break
            self._segments = None  # another process has committed
        else:
            raise CorruptError("the exact leg changes faster than it can be read", hint="try again")
        found: list[int] = []
        for one in segments:
            size = len(one.numbers)
            marks = {
                trigram: holders(blocks.get((one.segment, block_of(hash_, one.bits)), b""), hash_, size)
                for trigram, hash_ in hashes.items()
            }
            found += one.numbers[matching(required, marks) & one.alive()].tolist()
        return found

    def _blocks(
        self, generation: int, segments: Sequence[_Segment], hashes: Collection[int]
    ) -> dict[tuple[int, int], bytes] | None:
        """The blocks of some trigrams by segment and number; None when the leg has another generation by now."""
        wanted = sorted({(one.segment, block_of(hash_, one.bits)) for one in segments for hash_ in hashes})
        ws = self._connections.ws
        (latest, *_), *rows = self._connections.rows(
            "SELECT coalesce(max(generation), 0), 0::bigint, 0, ''::bytea FROM findling.leg_states"
            " WHERE ws = %s AND leg = %s UNION ALL SELECT 0, b.segment, b.block, b.data"
            " FROM unnest(%s::bigint[], %s::integer[]) AS t(segment, block) JOIN findling.exact_blocks b"
            " ON b.ws = %s AND b.segment = t.segment AND b.block = t.block",
            (ws, _LEG, [segment for segment, _ in wanted], [block for _, block in wanted], ws),
        )
        if latest != generation:
            return None
        return {(segment, block): _unsealed(block, data) for _, segment, block, data in rows}

    def _settled(self) -> tuple[NDArray[np.int64], NDArray[np.int64], TrigramPostings]:
        """Numbers, ids and trigrams of what was applied, which is forgotten; drafts lose what came again."""
        known = {rid: one for rid, one in self._changed.items() if one is not None}
        for draft in self._drafts:
            draft.is_gone[np.isin(draft.rids, _array(self._changed))] = True
        self._touched.update(self._changed)
        self._changed, self._pairs = {}, 0
        numbers = _array([number for number, _ in known.values()])
        return numbers, _array(known), TrigramPostings.of([trigrams for _, trigrams in known.values()])

    def _write(self, connection: Connection, segment: int) -> int:
        """Write what was applied, and with it what is worn out; returns the number of the next segment."""
        ws = self._connections.ws
        numbers, rids, postings = self._settled()
        living: dict[int, _Segment] = {}
        for one in _segments(connection, ws):
            is_gone = np.isin(one.rids, _array(self._touched))
            living[one.segment] = one._replace(dead=np.flatnonzero(~one.alive() | is_gone).astype(np.uint32))
            if (is_gone & one.alive()).any():
                statement = "UPDATE findling.exact_segments SET dead = %b WHERE ws = %s AND segment = %s"
                connection.execute(statement, (living[one.segment].dead.astype("<u4").tobytes(), ws, one.segment))
        sizes = {one.segment: (_live_pairs(one), one.pairs) for one in living.values()}
        again = sorted(worn_out(sizes, len(postings.hashes), _MOST_PAIRS))
        parts = [(postings, np.ones(len(numbers), np.bool_))]
        for one in (living[segment] for segment in again):
            parts.append((unpacked(_all_blocks(connection, ws, one.segment), len(one.numbers)), one.alive()))
            numbers = np.concatenate([numbers, one.numbers[one.alive()]])
            rids = np.concatenate([rids, one.rids[one.alive()]])
        _delete(connection, ws, again)
        latest = [_drafted(numbers, rids, merged(parts))] if len(numbers) else []
        for number, draft in enumerate([*self._drafts, *latest], segment):
            _insert(connection, ws, number, draft)
        return segment + len(self._drafts) + len(latest)


def _drafted(numbers: NDArray[np.int64], rids: NDArray[np.int64], postings: TrigramPostings) -> _Draft:
    lists = packed(postings, len(numbers))
    return _Draft(numbers, rids, len(postings.hashes), lists, np.zeros(len(numbers), np.bool_))


def _rid_hash(rid: str) -> int:
    return int.from_bytes(blake2b(rid.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def _live_pairs(segment: _Segment) -> int:
    return segment.pairs * int(np.count_nonzero(segment.alive())) // max(len(segment.numbers), 1)


def _array(numbers: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64, len(numbers))


def _segments(connection: Connection, ws: int) -> list[_Segment]:
    found = connection.cursor(binary=True).execute(
        "SELECT segment, bits, pairs, numbers, rids, dead FROM findling.exact_segments WHERE ws = %s ORDER BY segment",
        (ws,),
    )
    return [
        _Segment(segment, bits, pairs, np.frombuffer(one, "<i8"), np.frombuffer(two, "<i8"), np.frombuffer(dead, "<u4"))
        for segment, bits, pairs, one, two, dead in found
    ]


def _all_blocks(connection: Connection, ws: int, segment: int) -> list[bytes]:
    found = connection.cursor(binary=True).execute(
        "SELECT block, data FROM findling.exact_blocks WHERE ws = %s AND segment = %s ORDER BY block", (ws, segment)
    )
    return [_unsealed(block, data) for block, data in found]


def _insert(connection: Connection, ws: int, segment: int, draft: _Draft) -> None:
    bits, blocks = draft.lists
    numbers, rids = draft.numbers.astype("<i8").tobytes(), draft.rids.astype("<i8").tobytes()
    dead = np.flatnonzero(draft.is_gone).astype("<u4").tobytes()
    connection.execute(
        "INSERT INTO findling.exact_segments (ws, segment, bits, pairs, sum, numbers, rids, dead)"
        " VALUES (%s, %s, %s, %s, %s, %b, %b, %b)",
        (ws, segment, bits, draft.pairs, _sum(numbers, rids, *blocks), numbers, rids, dead),
    )
    for start in range(0, len(blocks), _SENT_BLOCKS):
        part = [(number, block) for number, block in enumerate(blocks[start : start + _SENT_BLOCKS], start) if block]
        connection.execute(
            "INSERT INTO findling.exact_blocks SELECT %s, %s, block, data"
            " FROM unnest(%b::integer[], %b::bytea[]) AS t(block, data)",
            (ws, segment, [number for number, _ in part], [_sealed(number, block) for number, block in part]),
        )


def _sealed(number: int, block: bytes) -> bytes:
    """A block with a checksum of its number and its bytes: a damaged one would leave out what a pattern matches."""
    return block + crc32(block, number).to_bytes(4, "little")


def _unsealed(number: int, data: bytes) -> bytes:
    block = data[:-4]
    if crc32(block, number).to_bytes(4, "little") != data[-4:]:
        raise CorruptError(f"block {number} of the exact leg is not what was written", hint="findling doctor --repair")
    return block


def _delete(connection: Connection, ws: int, segments: list[int]) -> None:
    for table in ("exact_segments", "exact_blocks"):
        connection.execute(f"DELETE FROM findling.{table} WHERE ws = %s AND segment = ANY(%s)", (ws, segments))


def _delete_all(connection: Connection, ws: int) -> None:
    for table in ("exact_segments", "exact_blocks"):
        connection.execute(f"DELETE FROM findling.{table} WHERE ws = %s", (ws,))


def _sum(*parts: bytes) -> int:
    sum_ = 0
    for part in parts:
        sum_ = crc32(part, sum_)
    return sum_


def has_exact_leg(connections: PostgresConnections) -> bool:
    """Whether there is an exact leg, of whatever store or version."""
    return read_state(connections, _LEG) is not None


def discard_exact_leg(connections: PostgresConnections) -> None:
    """Delete the exact leg. The caller holds the write lock."""
    with connections.writing() as connection, connections.errors:
        _delete_all(connection, connections.ws)
        forget_state(connection, connections.ws, _LEG)


def damaged_segments(connections: PostgresConnections) -> list[str]:
    """The segments that are not what was written; every byte is read."""
    with connections.reading() as connection:
        found = connection.cursor(binary=True).execute(
            "SELECT segment, sum, numbers, rids FROM findling.exact_segments WHERE ws = %s ORDER BY segment",
            (connections.ws,),
        )
        wrong = []
        for segment, sum_, *columns in found.fetchall():
            try:
                is_sound = _sum(*columns, *_all_blocks(connection, connections.ws, segment)) == sum_
            except CorruptError:
                is_sound = False
            wrong += [] if is_sound else [f"segment {segment}"]
        return wrong
