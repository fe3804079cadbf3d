"""The file of a graph leg: columns behind a header that lists them with their checksums.

A writer replaces it as a whole, so a reader has the old file or the new one, also after a crash. No numpy is needed to
open it, nor to look up a chunk or a name.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from findling.domain.errors import CorruptError
from findling.stores.filesystem import make_private, write_whole

LAYOUT = 1
"""Raised when columns or the names of a passage change their meaning; a file of another layout is rebuilt."""

FILE = "graph.bin"
_MAGIC = b"findling graph\n"
_SUMMED = 1 << 18
"""Bytes that share a checksum: opening the file checks one of them for each column."""

COLUMNS = ("cids", "numbers", "counts", "hashes", "degrees", "spreads", "links", "rows", "singles")
"""Columns of a file.

Rows, in the order of their chunk ids: `cids`, `numbers` of their resources, `counts` of links (high half) and singles.
Things, in the order of their hashes: `hashes`, `degrees`, the number of rows that name each, and `spreads`, that of
their resources. `links` are the things
of each row, shifted by the level of the mention; `rows` are the rows of each thing. `singles` are things that one row
alone names, by rows: hash and level.
"""


class GraphFile(NamedTuple):
    """An opened file: the change it has reached, its columns as numbers, its stamp, its sums and whose it is."""

    seq: int
    columns: Mapping[str, memoryview]
    stamp: tuple[int, ...]
    sums: Mapping[str, Sequence[int]]
    owner: str


def read_graph(folder: Path, owner: str = "") -> GraphFile | None:
    """Open the file, that of this owner if one is named; None without one of this layout. Raises CorruptError."""
    path = folder / FILE
    try:
        with path.open("rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))
            size = stamp[-1]
            data = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)) if size else memoryview(b"")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(path, str(error)) from error
    try:
        return _parsed(data, owner, stamp)
    except (ValueError, TypeError, IndexError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error


def _parsed(data: memoryview, owner: str, stamp: tuple[int, ...]) -> GraphFile | None:
    start = len(_MAGIC)
    if bytes(data[:start]) != _MAGIC:
        raise ValueError("it does not begin like one")
    length = int(bytes(data[start : start + 10]))
    head, _, noted = bytes(data[start + 10 : start + 10 + length]).rpartition(b"sum\t")
    if crc32(head) != int(noted):
        raise ValueError("its header is not what was written")
    lines = [line.split("\t") for line in head.decode().splitlines()]
    (_, layout), (_, made_for), (_, seq), *listed = lines
    if int(layout) != LAYOUT or owner not in ("", made_for):
        return None
    columns: dict[str, memoryview] = {}
    sums: dict[str, list[int]] = {}
    at = start + 10 + length
    name: str
    code: Any
    for name, code, count, checks in listed:
        size = int(count) * _WIDTHS[code]
        part = data[at : at + size]
        sums[name] = [int(one) for one in checks.split(",")] if checks else []
        if len(part) != size or len(sums[name]) != -(-size // _SUMMED):
            raise ValueError(f"its column {name} is cut off")
        if sums[name]:
            block = int.from_bytes(os.urandom(4), "big") % len(sums[name])
            if crc32(part[block * _SUMMED : (block + 1) * _SUMMED]) != sums[name][block]:
                raise ValueError(f"a block of its column {name} is not what was written")
        columns[name] = part.cast(code) if size else memoryview(b"").cast(code)
        at += -(-size // 8) * 8
    if tuple(columns) != COLUMNS:
        raise ValueError("its columns are others")
    return GraphFile(int(seq), columns, stamp, sums, made_for)


_WIDTHS: Mapping[Any, int] = {"B": 1, "H": 2, "I": 4, "q": 8}


def write_graph(folder: Path, owner: str, seq: int, columns: Mapping[str, tuple[str, bytes]]) -> None:
    """Replace the file, durably; columns come as a type code and little-endian bytes. Raises DiskFullError."""
    lines = [f"layout\t{LAYOUT}", f"owner\t{owner}", f"seq\t{seq}"]
    parts: list[bytes] = []
    for name in COLUMNS:
        code, data = columns[name]
        checks = ",".join(str(crc32(data[at : at + _SUMMED])) for at in range(0, len(data), _SUMMED))
        lines.append(f"{name}\t{code}\t{len(data) // _WIDTHS[code]}\t{checks}")
        parts += [data, bytes(-len(data) % 8)]
    head = "".join(f"{line}\n" for line in lines).encode()
    head += b"sum\t%d" % crc32(head)
    head += b" " * (-(len(_MAGIC) + 10 + len(head)) % 8)
    make_private(folder)
    write_whole(folder / FILE, b"".join((_MAGIC, b"%10d" % len(head), head, *parts)))


def is_foreign(folder: Path, owner: str) -> bool:
    """Whether the file is one of another store or version; a damaged one is not, which is rebuilt."""
    with suppress(CorruptError):
        return read_graph(folder, owner) is None
    return False


def damaged_columns(folder: Path) -> list[str]:
    """The columns that are not what was written; every byte is read."""
    try:
        opened = read_graph(folder)
    except CorruptError as error:
        return [error.message]
    if opened is None:
        return []
    wrong = []
    for name, column in opened.columns.items():
        data = column.cast("B") if len(column) else memoryview(b"")
        if [crc32(data[at : at + _SUMMED]) for at in range(0, len(data), _SUMMED)] != opened.sums[name]:
            wrong.append(name)
    return wrong


def stamp_of(folder: Path) -> tuple[int, ...]:
    """The marks of the file that lies there now; none without one."""
    with suppress(FileNotFoundError):
        return _stamp((folder / FILE).stat())
    return ()


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _damaged(path: Path, what: str) -> CorruptError:
    return CorruptError(f"the graph leg {path} cannot be read: {what}", hint="findling doctor --repair")
