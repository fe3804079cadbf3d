"""The files of a vector matrix: columns that only grow, and a header that says how much of them counts.

A row is one element of every column. Rows are written behind those that count, and become part of the matrix when the
header is replaced, in one step. Rows behind the header's numbers, left by a crash, are overwritten. Rows are never
changed: one that dies is listed in the column `dead`. Files of another generation than the header's are litter.
"""

from __future__ import annotations

import errno
import io
import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from findling.domain.errors import CorruptError, DiskFullError, FindlingError, ReadOnlyError
from findling.domain.values import read_json
from findling.stores.filesystem import sync_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LAYOUT = 4
"""Raised when header or columns change their meaning; a matrix of another layout is rebuilt."""

_HEADER = "header.json"

_FILLED_ROWS = 4_096
"""Rows of zeros written at once."""

_TYPES = {"codes": "<i1", "scales": "<f4", "rest": "<i1", "signs": "<u8"}
_TYPES |= dict.fromkeys(("cids", "numbers", "dead"), "<i8")
_PER_VALUE = {"codes": 1, "rest": 1, "signs": 64}
"""Columns that hold one element for so many values of a vector; the others hold one a row."""


class MatrixHeader(NamedTuple):
    """The part of the files that counts: generation, rows, checksums, and the numbers of the last commit.

    `rest` is the number of rows that column has: all, or none where codes hold every vector as it is.
    """

    made_for: str
    dimensions: int
    generation: int = 0
    rows: int = 0
    rest: int = 0
    dead: int = 0
    state: Mapping[str, int] = {}
    sums: Mapping[str, Sequence[int]] = {}


class Columns(NamedTuple):
    """The rows of a matrix, mapped into memory.

    `codes` times `scales` are the vectors in 8 bits. `rest` has 8 more bits a value, unless all of them are 0. `signs`
    has a bit a value; `dead` are row numbers.
    """

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    rest: NDArray[np.int8]
    signs: NDArray[np.uint64]
    cids: NDArray[np.int64]
    numbers: NDArray[np.int64]
    dead: NDArray[np.int64]


def read_header(folder: Path) -> MatrixHeader | None:
    """The header in `folder`; `None` when there is none, or one of another layout.

    Raises CorruptError when it cannot be read.
    """
    try:
        values = read_json((folder / _HEADER).read_bytes())
        if values.pop("layout") != LAYOUT:
            return None
        if values.pop("sum") != _sum_of(values):
            raise ValueError("its checksum is another one")
        header = MatrixHeader(**values)
        numbers = (*header[1:6], *header.state.values())
        if not isinstance(header.made_for, str) or not all(isinstance(n, int) and n >= 0 for n in numbers):
            raise ValueError("a value is not what it should be")
        if header.rest not in (0, header.rows):
            raise ValueError("some rows have a rest and others do not")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(folder, f"{_HEADER}: {error}") from error
    return header


def write_header(folder: Path, header: MatrixHeader) -> None:
    """Replace the header: whoever opens the matrix sees the old one or the new one, also after a power cut."""
    draft = folder / f"{_HEADER}.new"
    values = {**header._asdict(), "state": dict(header.state), "sums": {k: list(v) for k, v in header.sums.items()}}
    text = json.dumps({"layout": LAYOUT, **values, "sum": _sum_of(values)})
    with create_private(draft) as file:
        write_all(file, text.encode())
        os.fsync(file.fileno())
    draft.replace(folder / _HEADER)
    sync_folder(folder)


def map_columns(folder: Path, header: MatrixHeader) -> Columns:
    """Map what the header counts. Raises CorruptError when a file holds less, FileNotFoundError when one is gone."""
    columns = Columns(**{name: _map_column(folder, header, name) for name in _TYPES})
    if not _is_sample_right(columns._asdict(), header.sums):
        raise _damaged(folder, "a block of its vectors is not what was written")
    if len(columns.dead) and not (columns.dead.min() >= 0 and columns.dead.max() < header.rows):
        raise _damaged(folder, "a row that is not there is listed as dead")
    if len(columns.cids) and columns.cids.min() < 0:
        raise _damaged(folder, "it lists a chunk that cannot be")
    return columns


def check_columns(folder: Path, header: MatrixHeader) -> None:
    """Look at the size and at one block of each column, without numpy. Raises as `map_columns` does."""
    for name in _TYPES:
        if not (size := _size(header, name)):
            continue
        path = folder / _file_name(header, name)
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < size:
                raise _damaged(folder, f"{path.name} is shorter than {size:,} bytes")
            if listed := header.sums.get(name):
                number = _any_of(listed)
                file.seek(number * _SUMMED)
                if crc32(file.read(min(_SUMMED, size - number * _SUMMED))) != listed[number]:
                    raise _damaged(folder, "a block of its vectors is not what was written")


def rows_of(folder: Path, header: MatrixHeader, cids: AbstractSet[int]) -> list[int]:
    """The live rows of those chunks that have one, without numpy."""
    if not header.rows or not cids:
        return []
    columns = []
    for name in ("cids", "dead"):
        with (folder / _file_name(header, name)).open("rb") as file:
            data = file.read(_size(header, name))
        columns.append(struct.unpack(f"<{len(data) // 8}q", data))
    dead = set(columns[1])
    return [row for row, cid in enumerate(columns[0]) if cid in cids and row not in dead]


def damaged_files(folder: Path, header: MatrixHeader) -> list[str]:
    """The columns that are not what was written; every byte is looked at. Raises as `map_columns` does."""
    columns = {name: _map_column(folder, header, name) for name in _TYPES}
    return [_file_name(header, name) for name in _find_wrong(columns, header.sums)]


class RowWriter:
    """Writes rows behind those that count."""

    def __init__(self, folder: Path, header: MatrixHeader) -> None:
        self.rows = header.rows
        self.rest = header.rest
        self._dimensions = header.dimensions
        self._sums = dict(header.sums)
        self._dead_sums = header.sums.get("dead", ())
        self._touched: set[str] = set()
        self._files: dict[str, io.FileIO] = {}
        try:
            for name in _TYPES:
                self._files[name] = create_private(folder / _file_name(header, name))
        except OSError:
            self.close()
            raise

    def append(self, count: int, rows: Sequence[bytes | NDArray[Any]]) -> None:
        """Write whole rows, given as columns in the order of `Columns`, without `dead`; an empty `rest` is zeros.

        After an error none of them is there, and the next ones take their place.
        """
        columns = dict(zip(Columns._fields, rows, strict=False))
        rest = columns["rest"]
        has_rest = len(rest) > 0 and not isinstance(rest, bytes) and bool(rest.any())
        if not self.rest and not has_rest:
            del columns["rest"]
        elif self.rest < self.rows:
            self._fill_rest()
        if "rest" in columns and not has_rest:
            columns["rest"] = bytes(count * self._dimensions)
        written = {
            name: self._write(name, self.rows, values, self._sums.get(name, ())) for name, values in columns.items()
        }
        self._sums.update(written)
        self.rows += count
        self.rest = self.rows if "rest" in columns else 0

    def write_dead(self, rows: Sequence[int], position: int) -> None:
        """List rows as dead, behind the `position` that are listed already."""
        self._sums["dead"] = self._dead_sums
        if rows:
            self._sums["dead"] = self._write("dead", position, whole_numbers(rows), self._dead_sums)

    @property
    def sums(self) -> dict[str, Sequence[int]]:
        """The checksums of all columns."""
        return {name: sums for name, sums in self._sums.items() if sums}

    def sync(self) -> None:
        """Bring everything to the disk."""
        for name in sorted(self._touched):
            os.fsync(self._files[name].fileno())
        self._touched.clear()

    def close(self) -> None:
        """Close the files; closing twice is fine."""
        while self._files:
            self._files.popitem()[1].close()

    def _fill_rest(self) -> None:
        """Write the zeros of all rows so far, which had no rest."""
        sums: Sequence[int] = ()
        for start in range(0, self.rows, _FILLED_ROWS):
            rows = min(_FILLED_ROWS, self.rows - start)
            sums = self._write("rest", start, bytes(rows * self._dimensions), sums)
        self._sums["rest"] = sums
        self.rest = self.rows

    def _write(self, name: str, position: int, values: bytes | NDArray[Any], sums: Sequence[int]) -> Sequence[int]:
        file = self._files[name]
        self._touched.add(name)
        start = position * _width(name, self._dimensions)
        file.seek(start)
        data = values if isinstance(values, bytes) else values.astype(_TYPES[name]).tobytes()
        write_all(file, data)
        return _extended(sums, start, data)


def whole_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers as a column holds them."""
    return struct.pack(f"<{len(numbers)}q", *numbers)


def create_private(path: Path) -> io.FileIO:
    """Open a file for writing as it is, made readable by its owner alone if it is not there yet."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    return io.FileIO(os.open(path, flags | (os.O_TRUNC if path.suffix == ".new" else 0), 0o600), "r+b")


def write_all(file: io.FileIO, data: bytes) -> None:
    """Write all of it; the system may take it in parts."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def next_generation(folder: Path) -> int:
    """A generation that no file in the folder has: readers may still hold those of any other."""
    taken = [file.name.partition("-")[0] for file in folder.iterdir()]
    return 1 + max((int(prefix) for prefix in taken if prefix.isdecimal()), default=0)


def remove_generation(folder: Path, header: MatrixHeader) -> None:
    """Delete the columns of a generation that will never count."""
    for name in _TYPES:
        (folder / _file_name(header, name)).unlink(missing_ok=True)


def remove_litter(folder: Path, header: MatrixHeader) -> None:
    """Delete what belongs to another generation, and drafts."""
    kept = {_HEADER, *(_file_name(header, name) for name in _TYPES)}
    for file in folder.iterdir():
        if file.name not in kept:
            # Some systems refuse while a reader has the file open; the next commit tries again.
            with suppress(OSError):
                file.unlink()


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the file system says to a writer into our errors."""
    try:
        yield
    except OSError as error:
        raise _write_error(error, folder) from error


def _map_column(folder: Path, header: MatrixHeader, name: str) -> NDArray[Any]:
    import numpy as np

    count = _count(header, name)
    shape = (count, _elements(name, header.dimensions)) if name in _PER_VALUE else (count,)
    size = _size(header, name)
    if size == 0:
        return np.empty(shape, _TYPES[name])
    path = folder / _file_name(header, name)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < size:
            raise _damaged(folder, f"{path.name} is shorter than {size:,} bytes")
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, _TYPES[name]).reshape(shape)


def _sum_of(values: Mapping[str, Any]) -> int:
    return crc32(json.dumps(values, sort_keys=True).encode())


def _file_name(header: MatrixHeader, name: str) -> str:
    return f"{header.generation}-{name}"


def _size(header: MatrixHeader, name: str) -> int:
    """The bytes of a column that count."""
    return _count(header, name) * _width(name, header.dimensions)


def _count(header: MatrixHeader, name: str) -> int:
    """The rows of a column."""
    return {"dead": header.dead, "rest": header.rest}.get(name, header.rows)


def _width(name: str, dimensions: int) -> int:
    return int(_TYPES[name][-1]) * _elements(name, dimensions)


def _elements(name: str, dimensions: int) -> int:
    """The elements of one row of a column."""
    return -(-dimensions // _PER_VALUE[name]) if name in _PER_VALUE else 1


def _damaged(folder: Path, what: str) -> CorruptError:
    return CorruptError(f"the vector matrix in {folder} cannot be read: {what}", hint="findling doctor --repair")


def _write_error(error: OSError, folder: Path) -> FindlingError:
    # A file that may not grow any further (EFBIG) is as full as a disk.
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFullError(f"no space left to write {folder}", hint="free some space, then findling index")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ReadOnlyError(f"{folder} cannot be written", hint="check the permissions of the workspace folder")
    return CorruptError(f"the vector matrix in {folder} cannot be written: {error}", hint="findling doctor --repair")


_SUMMED = 1 << 18
"""Bytes of a block. A million rows of 256 numbers are some 3,000 of them, which a header can list."""


def _extended(sums: Sequence[int], size: int, data: bytes | memoryview) -> list[int]:
    """The sums of a column of `size` bytes after more was written behind it."""
    result, rest = list(sums), memoryview(data)
    while rest:
        filled = size % _SUMMED
        part = rest[: _SUMMED - filled]
        result[len(result) - 1 if filled else len(result) :] = [crc32(part, result[-1] if filled else 0)]
        size, rest = size + len(part), rest[len(part) :]
    return result


def _find_wrong(columns: Mapping[str, Any], sums: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The names of the columns that are not what was written."""
    for name, column in columns.items():
        if _extended((), 0, memoryview(column).cast("B") if column.size else b"") != list(sums.get(name, ())):
            yield name


def _is_sample_right(columns: Mapping[str, Any], sums: Mapping[str, Sequence[int]]) -> bool:
    """Whether one block of each column, chosen at random, is what was written: 1 ms at most."""
    for name, listed in sums.items():
        number = _any_of(listed)
        block = memoryview(columns[name]).cast("B")[number * _SUMMED : (number + 1) * _SUMMED]
        if crc32(block) != listed[number]:
            return False
    return True


def _any_of(listed: Sequence[int]) -> int:
    """A place in a list, chosen at random. The generator of `random` is the program's, which may have seeded it."""
    return int.from_bytes(os.urandom(4), "big") % len(listed)
