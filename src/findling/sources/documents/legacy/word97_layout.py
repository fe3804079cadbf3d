"""What the text of an old Word document is: headings, cells, ends of rows, what nobody sees ([MS-DOC])."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.documents.legacy.word97_pieces import Piece, WordFile

__all__ = ["Layout", "ParagraphKind", "read_layout", "visible_text"]


class ParagraphKind(NamedTuple):
    """Level of a heading (0: none), whether the paragraph lies in a table, whether it ends a row."""

    level: int = 0
    in_table: bool = False
    ends_row: bool = False


class Layout(NamedTuple):
    """Kinds of paragraphs by where their characters stand in the main stream, and the spans that are not shown."""

    starts: list[int]
    kinds: list[ParagraphKind]
    hidden: list[tuple[int, int]]

    def at(self, offset: int) -> ParagraphKind | None:
        """The kind of the paragraph with the character at `offset`; `None` when nothing is known about it."""
        index = bisect_right(self.starts, offset) - 1
        return self.kinds[index] if index >= 0 and offset >= 0 else None


def read_layout(word: WordFile) -> Layout:
    """The layout of a document; what is broken stays unknown. Word 95 keeps it in another form, which is not read."""
    if word.is_word95:
        return Layout([], [], [])
    known = sorted((pair for page in _pages(word, _PARAGRAPH_PAGES) for pair in _paragraphs(page)), key=_start)
    hidden = sorted(span for page in _pages(word, _CHARACTER_PAGES) for span in _hidden_spans(page))
    return Layout([start for start, _ in known], [kind for _, kind in known], hidden)


def visible_text(piece: Piece, layout: Layout) -> str:
    """The text of a piece with zeros for its characters that were deleted or hidden; marks and their places stay."""
    text = piece.text
    if not piece.width:
        return text
    index = max(0, bisect_right(layout.hidden, (piece.offset, 0)) - 1)
    parts: list[str] = []
    position = 0
    while index < len(layout.hidden) and position < len(text):
        first, last = (max(position, (at - piece.offset) // piece.width) for at in layout.hidden[index])
        if first >= len(text):
            break
        parts += text[position:first], _SHOWN.sub("\0", text[first:last])
        position = last
        index += 1
    return "".join([*parts, text[position:]])


_SHOWN = re.compile("[^\r\x07\x0c\x13\x14\x15]")


def _start(pair: tuple[int, ParagraphKind]) -> int:
    return pair[0]


_PAGE = 512
_CHARACTER_PAGES, _PARAGRAPH_PAGES = 0xFA, 0x102


def _pages(word: WordFile, field: int) -> Iterator[bytes]:
    """The pages that describe paragraphs or characters. Raises `struct.error` when the head is cut off."""
    at, size = struct.unpack_from("<II", word.main, field)
    table = word.table[at : at + size]
    count = (len(table) - 4) // 8
    if count > 0:
        for number in dict.fromkeys(struct.unpack_from(f"<{count}I", table, 4 * (count + 1))):
            page = word.main[(number & 0x3FFFFF) * _PAGE :][:_PAGE]
            if len(page) == _PAGE:
                yield page


def _paragraphs(page: bytes) -> Iterator[tuple[int, ParagraphKind]]:
    count = min(page[-1], _MOST_PARAGRAPHS)
    for index, start in enumerate(struct.unpack_from(f"<{count}I", page)):
        at = page[4 * (count + 1) + 13 * index] * 2
        yield start, _kind(page, at) if at else ParagraphKind()


def _hidden_spans(page: bytes) -> Iterator[tuple[int, int]]:
    count = min(page[-1], _MOST_RUNS)
    bounds = struct.unpack_from(f"<{count + 1}I", page)
    for index in range(count):
        at = page[4 * (count + 1) + index] * 2
        changes = dict(_changes(page[at + 1 : at + 1 + page[at]])) if at else {}
        if changes.get(_DELETED) in _ON or changes.get(_HIDDEN) in _ON:
            yield bounds[index], bounds[index + 1]


_MOST_PARAGRAPHS, _MOST_RUNS = 29, 101  # no more have room on a page


def _kind(page: bytes, at: int) -> ParagraphKind:
    size = page[at] * 2 - 1
    if size < 0:
        at += 1
        size = page[at] * 2
    properties = page[at + 1 : at + 1 + size]
    style = int.from_bytes(properties[:2], "little")
    level = style if style <= _LAST_HEADING_STYLE else 0
    in_table = ends_row = False
    for code, value in _changes(properties[2:]):
        if code == _OUTLINE_LEVEL:
            level = value + 1 if value < _LAST_HEADING_STYLE else 0
        elif code == _IN_TABLE:
            in_table = value != 0
        elif code == _ENDS_ROW:
            ends_row = value != 0
    return ParagraphKind(level, in_table, ends_row)


_LAST_HEADING_STYLE = 9  # the first styles are always the headings, whatever a language calls them
_IN_TABLE, _ENDS_ROW, _OUTLINE_LEVEL = 0x2416, 0x2417, 0x2640
_DELETED, _HIDDEN = 0x0800, 0x083C
_ON = (0x01, 0x81)  # the second one: not as in the style, which hides nothing
_SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}


def _changes(properties: bytes) -> Iterator[tuple[int, int]]:
    """The changes of formatting, each with the first byte of its value."""
    at = 0
    while at + 3 <= len(properties):
        (code,) = struct.unpack_from("<H", properties, at)
        yield code, properties[at + 2]
        at += 2 + (_SIZES.get(code >> 13) or properties[at + 2] + 1)
