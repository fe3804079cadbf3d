"""An append-only log of JSON lines, each with a checksum, so that a line torn by a crash is known for what it is.

["5c1f7a20",{"op":"meta","key":"root","value":"/home/ana/notes"}]
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from findling.domain.errors import CorruptError, FormatError
from findling.stores.bundle.jsonl_records import Record, create_file, encode, file_errors
from findling.stores.filesystem import sync_folder

__all__ = ["FORMAT", "LogWriter", "read_log", "write_log"]

FORMAT = 1

_KIND = "findling-log"

_HEADER: Record = {"op": "begin", "kind": _KIND, "format": FORMAT}


class LogWriter:
    """The end of a log, to append to. One at a time: the caller holds a lock."""

    def __init__(self, path: Path, end: int) -> None:
        """Open the log, whose last whole line ends at `end`; what follows is cut off. Raises ReadOnlyError."""
        self._path = path
        self.size = end
        with file_errors(path):
            self._file = os.open(path, os.O_RDWR)
            os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)

    def append(self, record: Record, *, durable: bool = True) -> None:
        """Write one line, and with `durable` wait until it is on disk.

        Raises DiskFullError; then nothing of the line is left.
        """
        line = _line(record)
        try:
            with file_errors(self._path):
                _write_whole(self._file, line)
                if durable:
                    os.fsync(self._file)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
                os.lseek(self._file, self.size, os.SEEK_SET)
            raise
        self.size += len(line)

    def close(self) -> None:
        """Release the file."""
        os.close(self._file)


def read_log(path: Path) -> Iterator[tuple[Record, int]]:
    """Every whole line, the header first, with the offset at which it ends.

    A last line that is not whole was never acknowledged, and is passed over. Raises CorruptError when a line before
    the last is damaged, FormatError for the log of a newer findling.
    """
    with path.open("rb") as file:
        end, number = 0, 0
        while line := file.readline():
            number += 1
            record = _record(line)
            if record is None:
                if file.read(1):
                    raise _corrupt(path, f"line {number} does not have its checksum")
                break
            end += len(line)
            if number == 1:
                _check_header(path, record)
            yield record, end
        if not end:
            raise _corrupt(path, "it has no first line")


def write_log(path: Path, records: Iterable[Record]) -> int:
    """Put a new log in the place of another one, or of none, as a whole or not at all; returns its size.

    Raises DiskFullError or ReadOnlyError; then the old one is still there.
    """
    draft = path.with_name(f".{path.name}.new")
    size = 0
    with file_errors(path):
        with os.fdopen(create_file(draft), "wb") as file:
            for record in (_HEADER, *records):
                size += file.write(_line(record))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)
    return size


def _line(record: Record) -> bytes:
    body = encode(record)
    return b'["%08x",%b]\n' % (crc32(body), body)


_BODY = len('["00000000",')


def _record(line: bytes) -> Record | None:
    """What a line holds; None when it is not whole."""
    body = line[_BODY:-2]
    if line != b'["%08x",%b]\n' % (crc32(body), body):
        return None
    record: Record = json.loads(body)
    return record


def _check_header(path: Path, header: Record) -> None:
    if header.get("kind") != _KIND or not isinstance(header.get("format"), int):
        raise _corrupt(path, "it does not begin as a log does")
    if header["format"] > FORMAT:
        raise FormatError(
            f"{path} has format {header['format']}, this findling knows formats up to {FORMAT}",
            hint="upgrade findling: `pip install --upgrade findling`",
        )


def _write_whole(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _corrupt(path: Path, why: str) -> CorruptError:
    return CorruptError(f"{path} is damaged: {why}", hint="restore it from a copy, or import a bundle")
