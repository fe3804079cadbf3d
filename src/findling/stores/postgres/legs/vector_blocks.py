"""Blocks of vector rows: the columns of a vector file for up to 4,096 rows, each column one value of a table.

A commit adds blocks and notes dead rows. It writes small blocks, and those with many dead rows, again with what comes.
So their number stays near the number of rows divided by 4,096.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from findling.domain.errors import CorruptError
from findling.stores.postgres.server.parts_cache import PARTS
from findling.stores.vectors.vector_files import Columns
from findling.stores.vectors.vector_signs import COARSE_FROM, signs_of

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

__all__ = [
    "BLOCK_ROWS",
    "ListedBlock",
    "LivingRows",
    "VectorBlock",
    "columns_of",
    "fetch_blocks",
    "joined",
    "list_blocks",
    "mark_rows",
    "share",
    "sum_of",
]

BLOCK_ROWS = 4_096
"""Rows of a block at most: 1 MB of codes of 256 values."""

_NAMES = ("cids", "numbers", "scales", "codes", "rest")


class VectorBlock(NamedTuple):
    """Rows as columns. `rest` is empty where codes hold every vector as it is."""

    cids: NDArray[np.int64]
    numbers: NDArray[np.int64]
    scales: NDArray[np.float32]
    codes: NDArray[np.int8]
    rest: NDArray[np.int8]

    def taken(self, rows: NDArray[Any] | slice) -> VectorBlock:
        """The same with these rows alone."""
        rest = self.rest[rows] if len(self.rest) else self.rest
        return VectorBlock(self.cids[rows], self.numbers[rows], self.scales[rows], self.codes[rows], rest)

    def packed(self) -> tuple[bytes, ...]:
        """The columns as the table holds them."""
        columns: Iterable[NDArray[Any]] = self
        return tuple(column.astype(column.dtype.newbyteorder("<")).tobytes() for column in columns)


class ListedBlock(NamedTuple):
    """A block of a table, without its rows: its number, its checksum and the places of its dead rows."""

    block: int
    sum: int
    dead: NDArray[np.uint16]


def list_blocks(connection: Connection, table: tuple[int, int]) -> list[ListedBlock]:
    """The blocks of a table, given by workspace and id, in order."""
    found = connection.cursor(binary=True).execute(
        "SELECT block, sum, dead FROM findling.vector_blocks WHERE ws = %s AND id = %s ORDER BY block", table
    )
    return [ListedBlock(block, sum_, np.frombuffer(dead, "<u2")) for block, sum_, dead in found]


class LivingRows(NamedTuple):
    """The chunks of a block, and the places of those that live."""

    cids: NDArray[np.int64]
    live: NDArray[np.intp]


def mark_rows(
    connection: Connection, table: tuple[int, int], touched: Collection[int] = ()
) -> tuple[dict[int, LivingRows], dict[int, NDArray[np.intp]]]:
    """Block → its rows that live on without the touched chunks; and of each block that loses some, all dead places."""
    chunks = np.fromiter(touched, np.int64, len(touched))
    living, dying = {}, {}
    found = connection.cursor(binary=True).execute(
        "SELECT block, dead, cids FROM findling.vector_blocks WHERE ws = %s AND id = %s", table
    )
    for block, dead, data in found:
        cids = np.frombuffer(data, "<i8")
        is_dead = np.zeros(len(cids), np.bool_)
        is_dead[np.frombuffer(dead, "<u2")] = True
        before = np.count_nonzero(is_dead)
        is_dead |= np.isin(cids, chunks)
        living[block] = LivingRows(cids, np.flatnonzero(~is_dead))
        if np.count_nonzero(is_dead) > before:
            dying[block] = np.flatnonzero(is_dead)
    return living, dying


def fetch_blocks(
    connection: Connection,
    key: tuple[object, ...] | None,
    table: tuple[int, int],
    listed: Iterable[ListedBlock],
    size: int,
) -> dict[int, VectorBlock]:
    """Blocks of rows of `size` values by their numbers; those with a `key` are kept in the memory of this process.

    Raises CorruptError when a block is not what was written.
    """
    sums = {one.block: one.sum for one in listed}
    blocks = {block: PARTS.get((key, block, sum_)) for block, sum_ in sums.items()}
    lacking = [block for block, known in blocks.items() if known is None]
    if lacking:
        found = connection.cursor(binary=True).execute(
            f"SELECT block, {', '.join(_NAMES)} FROM findling.vector_blocks"
            " WHERE ws = %s AND id = %s AND block = ANY(%s)",
            (*table, lacking),
        )
        for block, *packed in found:
            if sum_of(packed) != sums[block]:  # 0.3 ms a MB, a tenth of the time of a fetch
                raise _damaged(block)
            blocks[block] = _unpacked(block, packed, size)
            if key is not None:
                PARTS.put((key, block, sums[block]), blocks[block], sum(map(len, packed)))
    return {block: rows for block, rows in blocks.items() if rows is not None}


def sum_of(packed: Sequence[bytes]) -> int:
    """The checksum of packed columns."""
    sum_ = 0
    for column in packed:
        sum_ = crc32(column, sum_)
    return sum_


def _unpacked(block: int, packed: Sequence[bytes], size: int) -> VectorBlock:
    cids, numbers, scales, codes, rest = packed
    try:
        rows = VectorBlock(
            np.frombuffer(cids, "<i8"),
            np.frombuffer(numbers, "<i8"),
            np.frombuffer(scales, "<f4"),
            np.frombuffer(codes, "<i1").reshape(-1, size),
            np.frombuffer(rest, "<i1").reshape(-1, size),
        )
    except ValueError as error:
        raise _damaged(block) from error
    if {len(column) for column in rows} - {0} != {len(rows.cids)}:
        raise _damaged(block)
    return rows


def _damaged(block: int) -> CorruptError:
    return CorruptError(f"block {block} of the vectors is not what was written", hint="findling doctor --repair")


def joined(blocks: Sequence[VectorBlock], size: int) -> VectorBlock:
    """The rows of blocks one after the other."""
    blocks = [_no_rows(size), *blocks]
    has_rest = any(len(one.rest) for one in blocks)
    rests = [one.rest if len(one.rest) or not has_rest else np.zeros_like(one.codes) for one in blocks]
    return VectorBlock(
        np.concatenate([one.cids for one in blocks]),
        np.concatenate([one.numbers for one in blocks]),
        np.concatenate([one.scales for one in blocks]),
        np.concatenate([one.codes for one in blocks]),
        np.concatenate(rests),
    )


def columns_of(listed: Sequence[ListedBlock], blocks: Mapping[int, VectorBlock], size: int) -> Columns:
    """The columns of a table as a search looks at them; many rows get their signs, by which it chooses first."""
    for one in listed:
        if one.dead.max(initial=0) >= max(len(blocks[one.block].cids), 1):
            raise _damaged(one.block)
    rows = joined([blocks[one.block] for one in listed], size)
    starts = np.cumsum([0, *(len(blocks[one.block].cids) for one in listed)])
    dead = [one.dead.astype(np.int64) + start for one, start in zip(listed, starts.tolist(), strict=False)]
    signs = signs_of(rows.codes) if len(rows.cids) >= COARSE_FROM else np.empty((0, 0), np.uint64)
    return Columns(
        codes=rows.codes,
        scales=rows.scales,
        rest=rows.rest,
        signs=signs,
        cids=rows.cids,
        numbers=rows.numbers,
        dead=np.concatenate([np.empty(0, np.int64), *dead]),
    )


def share(
    key: tuple[object, ...], listed: Iterable[ListedBlock], blocks: Mapping[int, VectorBlock], columns: Columns
) -> None:
    """Let the memory of this process hold the rows of blocks once: as parts of the columns that they make up."""
    start = 0
    for one in listed:
        rows = slice(start, start + len(blocks[one.block].cids))
        start = rows.stop
        part = VectorBlock(
            columns.cids[rows], columns.numbers[rows], columns.scales[rows], columns.codes[rows], columns.rest[rows]
        )
        size = part.codes.nbytes + part.rest.nbytes + 20 * len(part.cids)
        PARTS.put((key, one.block, one.sum), part, size)


def _no_rows(size: int) -> VectorBlock:
    empty, codes = np.empty(0, np.int64), np.empty((0, size), np.int8)
    return VectorBlock(empty, empty, np.empty(0, np.float32), codes, codes)
