"""The tables of the keyword leg: how far it has come, its segments, and the rows of their postings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from findling.domain.plans import FIELDS
from findling.stores.keyword.posting_segments import PostingRow, SegmentHead, packed, unpacked
from findling.stores.postgres.keyword.posting_blocks import BlockDirectory, pack_blocks

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

__all__ = [
    "SELECT_STATE",
    "UNITS",
    "KeywordState",
    "Known",
    "StoredSegment",
    "begin_keyword_state",
    "damaged_segments",
    "drop_segments",
    "insert_segment",
    "kill_entries",
    "read_segments",
    "release_segments",
    "write_keyword_state",
]

UNITS = {"chunk": 0, "page": 1}
"""The numbers that units have in the tables."""

_BLOCKS_AT_ONCE = 2_000
"""Rows of one statement: about 8 MB."""


class KeywordState(NamedTuple):
    """The change that a leg has reached. Its generation rises with every commit; no segment has a number twice."""

    owner: str = ""
    seq: int = 0
    generation: int = 0
    next_segment: int = 1


class StoredSegment(NamedTuple):
    """A segment with those of its entries that are dead; None without any."""

    number: int
    head: SegmentHead
    directory: BlockDirectory
    dead: NDArray[np.bool_] | None


SELECT_STATE = "SELECT owner, seq, generation, next_segment FROM findling.keyword_legs WHERE ws = %s AND unit = %s"


def begin_keyword_state(connection: Connection, ws: int, unit: int) -> KeywordState:
    """The state of a leg, of whatever owner."""
    row = connection.execute(SELECT_STATE, (ws, unit)).fetchone()
    return KeywordState(*row) if row else KeywordState()


def write_keyword_state(connection: Connection, ws: int, unit: int, state: KeywordState) -> None:
    """Replace the state of a leg."""
    connection.execute(
        "INSERT INTO findling.keyword_legs (ws, unit, owner, seq, generation, next_segment)"
        " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (ws, unit) DO UPDATE SET owner = excluded.owner,"
        " seq = excluded.seq, generation = excluded.generation, next_segment = excluded.next_segment",
        (ws, unit, *state),
    )


def insert_segment(
    connection: Connection,
    key: tuple[int, int, int],
    head: SegmentHead,
    rows: Iterable[tuple[int, str, PostingRow]],
    *,
    dead: NDArray[np.bool_] | None = None,
    is_staged: bool = False,
) -> None:
    """Add a segment; `key` is workspace, unit and number. Nobody reads one that is staged."""
    from findling.stores.postgres.server.arrays import byteas, integers

    alive = len(head) - (0 if dead is None else int(np.count_nonzero(dead)))
    blocks = [*pack_blocks(rows)]
    columns = [column.astype("<i8").tobytes() for column in (head.cids, head.numbers, head.turns, head.updated)]
    columns.append(packed(np.concatenate([head.lengths[field] for field in FIELDS])))
    columns.append(BlockDirectory((field, first) for field, first, _ in blocks).written())
    sum_ = _sum([*columns, *(column for _, _, block in blocks for column in block)])
    connection.execute(
        "INSERT INTO findling.keyword_segments (ws, unit, segment, is_staged, entries, alive, dead, cids, numbers,"
        " turns, updated, lengths, directory, sum) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (*key, is_staged, len(head), alive, _bits(dead), *columns, sum_),
    )
    for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
        batch = [block for _, _, block in blocks[first : first + _BLOCKS_AT_ONCE]]
        connection.execute(
            "INSERT INTO findling.keyword_blocks (ws, unit, segment, block, terms, dfs, sizes, docs, tfs, positions)"
            " SELECT %s, %s, %s, r.* FROM unnest(%b::integer[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[],"
            " %b::bytea[], %b::bytea[]) r",
            (*key, integers(range(first, first + len(batch))), *map(byteas, zip(*batch, strict=True))),
        )


Known = dict[int, tuple[SegmentHead, BlockDirectory]]
"""The parts of segments that never change, by number."""


def read_segments(connection: Connection, ws: int, unit: int, known: Known) -> list[StoredSegment]:
    """The segments that are read, in order; what is known of them is not fetched again, and new ones become known."""
    at_hand = known.copy()  # another thread may forget heads meanwhile: those of segments that it finds joined
    cursor = connection.cursor(binary=True)
    alive = cursor.execute(
        "SELECT segment, entries, dead FROM findling.keyword_segments WHERE ws = %s AND unit = %s AND NOT is_staged"
        " ORDER BY segment",
        (ws, unit),
    ).fetchall()
    lacking = [number for number, _, _ in alive if number not in at_hand]
    if lacking:
        fetched = cursor.execute(
            "SELECT segment, entries, cids, numbers, turns, updated, lengths, directory FROM findling.keyword_segments"
            " WHERE ws = %s AND unit = %s AND segment = ANY(%s)",
            (ws, unit, lacking),
        )
        for number, entries, *columns, lengths, directory in fetched:
            fields = unpacked(lengths, len(FIELDS) * entries).reshape(len(FIELDS), entries)
            cids, numbers, turns, updated = (np.frombuffer(column, "<i8") for column in columns)
            if {len(column) for column in (cids, numbers, turns, updated)} != {entries}:
                raise ValueError(f"segment {number} has columns of several lengths")
            head = SegmentHead(cids, numbers, turns, updated, dict(zip(FIELDS, fields, strict=True)))
            known[number] = at_hand[number] = head, BlockDirectory.read(directory)
    # The length of the head, not the number beside it: that may be any.
    return [StoredSegment(number, *at_hand[number], _dead(bits, len(at_hand[number][0]))) for number, _, bits in alive]


def damaged_segments(connection: Connection, ws: int) -> list[str]:
    """The segments that are not what was written; every byte is read. Those of an earlier format have no sum."""
    cursor = connection.cursor(binary=True)
    listed = cursor.execute(
        "SELECT unit, segment, sum, cids, numbers, turns, updated, lengths, directory FROM findling.keyword_segments"
        " WHERE ws = %s AND sum IS NOT NULL ORDER BY unit, segment",
        (ws,),
    ).fetchall()
    wrong = []
    for unit, segment, sum_, *columns in listed:
        blocks = cursor.execute(
            "SELECT terms, dfs, sizes, docs, tfs, positions FROM findling.keyword_blocks"
            " WHERE ws = %s AND unit = %s AND segment = %s ORDER BY block",
            (ws, unit, segment),
        )
        if _sum([*columns, *(column for block in blocks for column in block)]) != sum_:
            wrong.append(f"segment {segment}")
    return wrong


def kill_entries(connection: Connection, ws: int, unit: int, segment: int, dead: NDArray[np.bool_]) -> None:
    """Mark the dead entries of a segment; one without a living entry goes."""
    alive = len(dead) - int(np.count_nonzero(dead))
    if not alive:
        drop_segments(connection, ws, unit, [segment])
        return
    connection.execute(
        "UPDATE findling.keyword_segments SET dead = %s, alive = %s WHERE ws = %s AND unit = %s AND segment = %s",
        (_bits(dead), alive, ws, unit, segment),
    )


def release_segments(connection: Connection, ws: int, unit: int, segments: Sequence[int]) -> None:
    """Have staged segments be read from now on, and delete others that a killed process has staged."""
    connection.execute(
        "UPDATE findling.keyword_segments SET is_staged = false WHERE ws = %s AND unit = %s AND segment = ANY(%s)",
        (ws, unit, [*segments]),
    )
    left = connection.execute(
        "SELECT segment FROM findling.keyword_segments WHERE ws = %s AND unit = %s AND is_staged", (ws, unit)
    ).fetchall()
    drop_segments(connection, ws, unit, [number for (number,) in left])


def drop_segments(connection: Connection, ws: int, unit: int, segments: Sequence[int] | None) -> None:
    """Delete segments and their postings; None for all of them."""
    if segments is not None and not segments:
        return
    which, values = ("", (ws, unit)) if segments is None else (" AND segment = ANY(%s)", (ws, unit, [*segments]))
    for table in ("keyword_blocks", "keyword_segments"):
        connection.execute(f"DELETE FROM findling.{table} WHERE ws = %s AND unit = %s{which}".encode(), values)


def _sum(columns: Iterable[bytes]) -> int:
    sum_ = 0
    for column in columns:
        sum_ = crc32(column, sum_)
    return sum_


def _bits(dead: NDArray[np.bool_] | None) -> bytes:
    return b"" if dead is None else np.packbits(dead).tobytes()


def _dead(bits: bytes, entries: int) -> NDArray[np.bool_] | None:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=entries).astype(np.bool_) if bits else None
