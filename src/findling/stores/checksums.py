"""Checksums of rows: a bit that a disk has turned over is noticed by whoever reads the row next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from findling.domain.errors import StoreDamagedError

__all__ = ["check_row", "check_text", "resource_sum", "row_sum", "stored_time", "text_sum", "vector_sum"]

_TIMES = slice(8, 10)
"""Where a row of a resource has its times."""


def row_sum(row: Sequence[Any]) -> int:
    """The checksum of a row of numbers, bytes and texts."""
    return crc32(repr(tuple(row)).encode("utf-8", "surrogatepass"))


def resource_sum(row: Sequence[Any]) -> int:
    """The checksum of the row of a resource."""
    return row_sum((*row[: _TIMES.start], *map(stored_time, row[_TIMES]), *row[_TIMES.stop :]))


def stored_time(time: float | None) -> float | None:
    """A time as a table hands it back: a float whatever was put in, without the sign of a zero, nothing for NaN."""
    return None if time is None or time != time else time + 0.0


def text_sum(text: str) -> int:
    """The checksum of a text."""
    return crc32(text.encode("utf-8", "surrogatepass"))


def vector_sum(digest: bytes, vector: bytes) -> int:
    """The checksum of a vector with the digest of what it was made from."""
    return crc32(vector, crc32(digest))


def check_row(what: str, row: Sequence[Any], noted: int | None) -> None:
    """Raise StoreDamagedError for a row that is not what was written; nothing is noted of rows of older formats."""
    if noted is not None and row_sum(row) != noted:
        raise _other(what)


def check_text(what: str, text: str, noted: int | None) -> None:
    """The same for a text."""
    if noted is not None and text_sum(text) != noted:
        raise _other(what)


def _other(what: str) -> StoreDamagedError:
    return StoreDamagedError(f"{what} is not what was written", hint="findling doctor")
