"""The encoding of a browser index: small numbers in few bytes, deflated texts, all of it as letters of a page."""

from __future__ import annotations

import base64
import zlib
from array import array
from collections.abc import Iterable, Mapping

__all__ = ["DeflatedTexts", "as_letters", "deflated", "length_code", "numbers", "postings", "signed", "units"]

_LEVEL = 9
_FREE_LENGTHS = 24  # lengths below it are their own code


class DeflatedTexts:
    """Texts one after the other, deflated as they come, so that their `size` is known at any time."""

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL)
        self._parts: list[bytes] = []
        self.size = 0
        self.units = 0

    def add(self, text: str) -> int:
        """Add a text; returns its beginning in the units of a browser."""
        start = self.units
        self._keep(self._stream.compress(text.encode("utf-8", "replace")))
        self.units += units(text)
        return start

    def finished(self) -> bytes:
        """All texts, deflated; nothing can be added any more."""
        self._keep(self._stream.flush())
        return b"".join(self._parts)

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)


def units(text: str) -> int:
    """The length of a text in a browser, which counts characters beyond the first 65,536 as two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "replace")) // 2


def deflated(data: bytes) -> bytes:
    """The bytes in a form that browsers inflate by themselves."""
    return zlib.compress(data, _LEVEL)


def as_letters(data: bytes) -> str:
    """The bytes as text that may stand anywhere in a page."""
    return base64.b64encode(data).decode("ascii")


def numbers(values: Iterable[int]) -> bytearray:
    """Numbers from 0 up, seven bits a byte, the lowest first; the top bit says that more follow."""
    written = bytearray()
    for value in values:
        while value > 127:
            written.append(value & 127 | 128)
            value >>= 7
        written.append(value)
    return written


def signed(value: int) -> int:
    """A number that may be negative as one that is not: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def postings(places: Mapping[int, array[int]]) -> bytearray:
    """The postings of a term: the set of its fields, then for each field its entries and counts.

    `places` holds pairs of an entry and a count, in order. A field is the number of its entries, then each entry as
    its distance from the one before, doubled; plus one before a count other than 1.
    """
    written = numbers([sum(1 << field for field in places)])
    for field in sorted(places):
        pairs = places[field]
        values = [len(pairs) // 2]
        before = 0
        for entry, count in zip(pairs[::2], pairs[1::2], strict=True):
            gap, before = entry - before, entry
            values += [gap << 1] if count == 1 else [gap << 1 | 1, count]
        written += numbers(values)
    return written


def length_code(length: int) -> int:
    """The length of a field in one byte: three bits and a shift, rounded down as the keyword leg does."""
    beyond = length - _FREE_LENGTHS
    if beyond < 0:
        return length
    shift = max(beyond.bit_length() - 4, 0)
    bits = beyond >> shift
    return _FREE_LENGTHS + (bits if bits < 8 else (shift + 1 << 3) + (bits & 7))
