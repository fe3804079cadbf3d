"""An append-only log of JSON lines, each with a checksum that tells a line torn by a crash.

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
from findling.stores.bundle.jsonl_records import Record, create_file, encode
from findling.stores.filesystem import FileErrors, sync_folder

__all__ = ["FORMAT", "LogWriter", "read_log", "write_log"]

FORMAT = 1

_KIND = "findling-log"

_HEADER: Record = {"op": "begin", "kind": _KIND, "format": FORMAT}


class LogWriter:
    """The end of a log, to append to. The caller holds a lock."""

    def __init__(self, path: Path, end: int) -> None:
        """Open the log and cut it off at `end`, where its last whole line ends. Raises ReadOnlyError."""
        self._path = path
        self.size = end
        with FileErrors(path):
            self._file = os.open(path, os.O_RDWR)
            os.ftruncate(self._file, end)
            os.lseek(self._file, end, os.SEEK_SET)

    def append(self, record: Record, *, durable: bool = True) -> None:
        """Write one line, and with `durable` wait until it is on disk. Raises DiskFullError; no part is left."""
        line = _line(record)
        try:
            with FileErrors(self._path):
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
    """Yield every whole line, the header first, with the offset of its end; skip a torn last line.

    Raises CorruptError for damage before the last line, FormatError for the log of a newer findling.
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
    """Write a log in one step and return its size. Raises DiskFullError or ReadOnlyError and keeps the old one."""
    draft = path.with_name(f".{path.name}.new")
    size = 0
    with FileErrors(path):
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
    """The record of a line; None when it is not whole."""
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
