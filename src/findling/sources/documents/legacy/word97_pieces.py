"""The pieces of text in an old Word document, in the order of reading ([MS-DOC])."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.documents.charsets import decode_bytes
from findling.sources.files.file_text import UnreadableError

__all__ = ["Piece", "WordFile", "read_pieces", "read_word_file"]


class WordFile(NamedTuple):
    """The two streams of a document, and the lengths of its texts: first the main one, then those beside it."""

    main: bytes
    table: bytes
    lengths: tuple[int, ...]
    is_word95: bool = False


class Piece(NamedTuple):
    """A run of text; its characters stand from `offset` on in the main stream, `width` bytes each."""

    text: str
    offset: int
    width: int


_MAGIC = (0xA5EC, 0xA5DC)
_FIRST_WORD_6, _FIRST_WORD_97 = 101, 192
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200


def read_word_file(main: bytes, tables: dict[str, bytes]) -> WordFile:
    """Read the head of the main stream. Raises `UnreadableError`, and `struct.error` when it is cut off."""
    magic, version = struct.unpack_from("<HH", main)
    (flags,) = struct.unpack_from("<H", main, 10)
    if magic not in _MAGIC:
        raise UnreadableError("damaged", "does not begin as Word documents do")
    if flags & _ENCRYPTED:
        raise UnreadableError("encrypted", "needs a password")
    if version < _FIRST_WORD_6:
        raise UnreadableError("unsupported", "a document of Word 2 or older")
    if version < _FIRST_WORD_97:
        return WordFile(main, main, struct.unpack_from("<8I", main, 0x34), is_word95=True)
    table = tables["1Table" if flags & _SECOND_TABLE else "0Table"]
    return WordFile(main, table, struct.unpack_from("<8I", main, 0x4C))


def read_pieces(word: WordFile) -> list[Piece]:
    """The pieces of all texts in order. Raises `struct.error` when their table is broken."""
    plan = list(_plan(word))
    pieces = []
    room = len(word.main)  # every character has a byte of its own, unless the table lies
    for count, offset, width in plan:
        count = min(count, room)
        raw = word.main[offset : offset + count * width]
        text = raw.decode("utf-16-le", "replace") if width == 2 else decode_bytes(raw, _code_page(word))
        room -= count
        if len(text) == count:
            pieces.append(Piece(text, offset, width))
        elif text:  # characters of several bytes: their offsets are unknown, and so is their layout
            pieces.append(Piece(text, -1, 0))
        if room <= 0:
            break
    return pieces


def _plan(word: WordFile) -> Iterator[tuple[int, int, int]]:
    """Count of characters, offset and bytes for each character of every piece."""
    at, size = struct.unpack_from("<II", word.main, 0x160 if word.is_word95 else 0x1A2)
    if word.is_word95 and not size:
        (first,) = struct.unpack_from("<I", word.main, 0x18)
        yield sum(word.lengths), first, 1
        return
    pieces = _piece_table(word.table[at : at + size])
    count = (len(pieces) - 4) // 12
    starts = struct.unpack_from(f"<{count + 1}I", pieces)
    for index in range(count):
        (place,) = struct.unpack_from("<I", pieces, 4 * (count + 1) + 8 * index + 2)
        length = max(0, starts[index + 1] - starts[index])
        if word.is_word95:
            yield length, place, 1
        elif place & _ONE_BYTE:
            yield length, (place & ~_ONE_BYTE) // 2, 1
        else:
            yield length, place, 2


_ONE_BYTE = 1 << 30


def _piece_table(clx: bytes) -> bytes:
    """The table of pieces, which comes after any number of formatting changes."""
    at = 0
    while clx[at : at + 1] == b"\x01":
        at += 3 + struct.unpack_from("<H", clx, at + 1)[0]
    kind, size = struct.unpack_from("<BI", clx, at)
    if kind != 2 or size < 16:
        raise struct.error("no table of pieces")
    return clx[at + 5 : at + 5 + size]


def _code_page(word: WordFile) -> int:
    """Word 97 writes single bytes only for Western text; before, they meant what the document's language needs."""
    if not word.is_word95:
        return 1252
    (language,) = struct.unpack_from("<H", word.main, 6)
    return _CODE_PAGES.get(language) or _CODE_PAGES.get(language & 0x3FF, 1252)


_CODE_PAGES = {
    0x0404: 950,
    0x0C04: 950,
    0x01: 1256,
    0x02: 1251,
    0x04: 936,
    0x05: 1250,
    0x08: 1253,
    0x0D: 1255,
    0x0E: 1250,
    0x11: 932,
    0x12: 949,
    0x15: 1250,
    0x18: 1250,
    0x19: 1251,
    0x1B: 1250,
    0x1E: 874,
    0x1F: 1254,
    0x22: 1251,
    0x23: 1251,
    0x25: 1257,
    0x26: 1257,
    0x27: 1257,
    0x2A: 1258,
}
