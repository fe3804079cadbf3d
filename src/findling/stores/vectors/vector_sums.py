"""Checksums of the columns of a vector matrix, one for every block: all are looked at by a check, a few by a reader."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

__all__ = ["extended", "file_sum", "find_wrong", "is_sample_right"]

_BLOCK = 1 << 18
"""Bytes of a block. A million rows of 256 numbers are some 3,000 of them, which a header can list."""


def extended(sums: Sequence[int], size: int, data: bytes | memoryview) -> list[int]:
    """The sums of a column of `size` bytes after more was written behind it."""
    result, rest = list(sums), memoryview(data)
    while rest:
        filled = size % _BLOCK
        part = rest[: _BLOCK - filled]
        result[len(result) - 1 if filled else len(result) :] = [crc32(part, result[-1] if filled else 0)]
        size, rest = size + len(part), rest[len(part) :]
    return result


def find_wrong(columns: Mapping[str, Any], sums: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """The names of the columns that are not what was written."""
    for name, column in columns.items():
        if extended((), 0, memoryview(column).cast("B") if column.size else b"") != list(sums.get(name, ())):
            yield name


def is_sample_right(columns: Mapping[str, Any], sums: Mapping[str, Sequence[int]]) -> bool:
    """Whether one block of each column, chosen at random, is what was written: 1 ms at most."""
    for name, listed in sums.items():
        number = random.randrange(len(listed))
        block = memoryview(columns[name]).cast("B")[number * _BLOCK : (number + 1) * _BLOCK]
        if crc32(block) != listed[number]:
            return False
    return True


def file_sum(*paths: Path) -> int:
    """The checksum of files, one after the other."""
    found = 0
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                found = crc32(block, found)
    return found
