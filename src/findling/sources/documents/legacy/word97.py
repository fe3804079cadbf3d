"""Word documents of the years 1993 to 2006 (.doc)."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from findling.sources.documents.charsets import decode_bytes
from findling.sources.documents.containers.ole import open_compound, read_stream, read_summary
from findling.sources.extracted import Extracted, Source, TextBuilder
from findling.sources.files.file_text import UnreadableError

# Languages by the code pages that write them.
_LANGUAGES = {
    874: (0x1E,), 932: (0x11,), 936: (0x04,), 949: (0x12,), 950: (0x404, 0xC04), 1250: (0x05, 0x0E, 0x15, 0x18, 0x1B),
    1251: (0x02, 0x19, 0x22, 0x23), 1253: (0x08,), 1254: (0x1F,), 1255: (0x0D,), 1256: (0x01,),
    1257: (0x25, 0x26, 0x27), 1258: (0x2A,),
}  # fmt: skip
_CODE_PAGES = {language: page for page, languages in _LANGUAGES.items() for language in languages}
_MAGIC = (0xA5EC, 0xA5DC)
_FIRST_WORD_6, _FIRST_WORD_97 = 101, 192
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
_ONE_BYTE = 1 << 30
_SHOWN = re.compile("[^\r\x07\x0c\x13\x14\x15]")
_PAGE = 512
_CHARACTER_PAGES, _PARAGRAPH_PAGES = 0xFA, 0x102
_MOST_PARAGRAPHS, _MOST_RUNS = 29, 101  # no more have room on a page
_LAST_HEADING_STYLE = 9  # the first styles are always the headings, whatever a language calls them
_IN_TABLE, _ENDS_ROW, _OUTLINE_LEVEL = 0x2416, 0x2417, 0x2640
_DELETED, _HIDDEN = 0x0800, 0x083C
_ON = (0x01, 0x81)  # the second one: not as in the style, which hides nothing
_SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
_PARAGRAPH, _CELL, _BREAK = "\r", "\x07", "\x0c"
_FIELD, _RESULT, _FIELD_END = "\x13", "\x14", "\x15"
_TOKEN = re.compile("[\r\x07\x0c\x13\x14\x15]|[^\r\x07\x0c\x13\x14\x15]+")
_EQUATION_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)|\\[a-z]+(?: ?-?\d+)?', re.IGNORECASE)
_READING = re.compile(r"\\o\\a[a-z]\(\\s\\up ?\d+\(([^()]*)\),(.*)\)$")
_SPECIAL = str.maketrans(
    {"\0": None, "\x0b": "\n", "\x0e": "\n", _RESULT: None, "\x1e": "\u2011", "\x1f": None, "\xa0": " "}
)
# Pictures, and fields that show nothing, such as a box to tick: words on both sides are two words.
_GAP = re.compile(r"(?<=\w)[\x01\x08\x15]+(?=\w)")


class _WordFile(NamedTuple):
    """The two streams of a document, and the lengths of its texts: first the main one, then those beside it."""

    main: bytes
    table: bytes
    lengths: tuple[int, ...]
    is_word95: bool = False


class _WordPiece(NamedTuple):
    """A run of text; its characters stand from `offset` on in the main stream, `width` bytes each."""

    text: str
    offset: int
    width: int


def _read_word_file(main: bytes, tables: dict[str, bytes]) -> _WordFile:
    """Read the head of the main stream. Raises `UnreadableError`, and `struct.error` when it is cut off."""
    magic, version, flags = struct.unpack_from("<HH6xH", main)
    if magic not in _MAGIC:
        raise UnreadableError("damaged", "does not begin as Word documents do")
    if flags & _ENCRYPTED:
        raise UnreadableError("encrypted", "needs a password")
    if version < _FIRST_WORD_6:
        raise UnreadableError("unsupported", "a document of Word 2 or older")
    if version < _FIRST_WORD_97:
        return _WordFile(main, main, struct.unpack_from("<8I", main, 0x34), is_word95=True)
    table = tables["1Table" if flags & _SECOND_TABLE else "0Table"]
    return _WordFile(main, table, struct.unpack_from("<8I", main, 0x4C))


def _read_pieces(word: _WordFile) -> list[_WordPiece]:
    """The pieces of all texts in order. Raises `struct.error` when their table is broken."""
    pieces = []
    room = len(word.main)  # every character has a byte of its own, unless the table lies
    for count, offset, width in list(_plan(word)):
        count = min(count, room)
        raw = word.main[offset : offset + count * width]
        text = raw.decode("utf-16-le", "replace") if width == 2 else decode_bytes(raw, _code_page(word))
        room -= count
        if len(text) == count:
            pieces.append(_WordPiece(text, offset, width))
        elif text:  # characters of several bytes: their offsets are unknown, and so is their layout
            pieces.append(_WordPiece(text, -1, 0))
        if room <= 0:
            break
    return pieces


def _plan(word: _WordFile) -> Iterator[tuple[int, int, int]]:
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


def _piece_table(clx: bytes) -> bytes:
    """The table of pieces, which comes after any number of formatting changes."""
    at = 0
    while clx[at : at + 1] == b"\x01":
        at += 3 + struct.unpack_from("<H", clx, at + 1)[0]
    kind, size = struct.unpack_from("<BI", clx, at)
    if kind != 2 or size < 16:
        raise struct.error("no table of pieces")
    return clx[at + 5 : at + 5 + size]


def _code_page(word: _WordFile) -> int:
    """Word 97 writes single bytes only for Western text; before, they meant what the document's language needs."""
    if not word.is_word95:
        return 1252
    (language,) = struct.unpack_from("<H", word.main, 6)
    return _CODE_PAGES.get(language) or _CODE_PAGES.get(language & 0x3FF, 1252)


class _ParagraphKind(NamedTuple):
    """Level of a heading (0: none), whether the paragraph lies in a table, whether it ends a row."""

    level: int = 0
    in_table: bool = False
    ends_row: bool = False


_Marked = tuple[str, str, _ParagraphKind | None, bool]
"""Text, mark and kind of a paragraph, and whether it is of the main text."""


class _Layout(NamedTuple):
    """Kinds of paragraphs by where their characters stand in the main stream, and the spans that are not shown."""

    starts: list[int]
    kinds: list[_ParagraphKind]
    hidden: list[tuple[int, int]]

    def at(self, offset: int) -> _ParagraphKind | None:
        """The kind of the paragraph with the character at `offset`; `None` when nothing is known about it."""
        index = bisect_right(self.starts, offset) - 1
        return self.kinds[index] if index >= 0 and offset >= 0 else None


def _read_layout(word: _WordFile) -> _Layout:
    """The layout of a document; what is broken stays unknown. Word 95 keeps it in another form, which is not read."""
    if word.is_word95:
        return _Layout([], [], [])
    pairs = (pair for page in _pages(word, _PARAGRAPH_PAGES) for pair in _paragraph_kinds(page))
    known = sorted(pairs, key=itemgetter(0))
    hidden = sorted(span for page in _pages(word, _CHARACTER_PAGES) for span in _hidden_spans(page))
    return _Layout([start for start, _ in known], [kind for _, kind in known], hidden)


def _visible_text(piece: _WordPiece, layout: _Layout) -> str:
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


def _pages(word: _WordFile, field: int) -> Iterator[bytes]:
    """The pages that describe paragraphs or characters. Raises `struct.error` when the head is cut off."""
    at, size = struct.unpack_from("<II", word.main, field)
    table = word.table[at : at + size]
    count = (len(table) - 4) // 8
    if count > 0:
        for number in dict.fromkeys(struct.unpack_from(f"<{count}I", table, 4 * (count + 1))):
            page = word.main[(number & 0x3FFFFF) * _PAGE :][:_PAGE]
            if len(page) == _PAGE:
                yield page


def _paragraph_kinds(page: bytes) -> Iterator[tuple[int, _ParagraphKind]]:
    count = min(page[-1], _MOST_PARAGRAPHS)
    for index, start in enumerate(struct.unpack_from(f"<{count}I", page)):
        at = page[4 * (count + 1) + 13 * index] * 2
        yield start, _kind(page, at) if at else _ParagraphKind()


def _hidden_spans(page: bytes) -> Iterator[tuple[int, int]]:
    count = min(page[-1], _MOST_RUNS)
    bounds = struct.unpack_from(f"<{count + 1}I", page)
    for index in range(count):
        at = page[4 * (count + 1) + index] * 2
        changes = dict(_changes(page[at + 1 : at + 1 + page[at]])) if at else {}
        if changes.get(_DELETED) in _ON or changes.get(_HIDDEN) in _ON:
            yield bounds[index], bounds[index + 1]


def _kind(page: bytes, at: int) -> _ParagraphKind:
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
    return _ParagraphKind(level, in_table, ends_row)


def _changes(properties: bytes) -> Iterator[tuple[int, int]]:
    """The changes of formatting, each with the first byte of its value."""
    at = 0
    while at + 3 <= len(properties):
        (code,) = struct.unpack_from("<H", properties, at)
        yield code, properties[at + 2]
        at += 2 + (_SIZES.get(code >> 13) or properties[at + 2] + 1)


def extract(source: Source) -> Extracted:
    """The text of a Word document, then its notes, page headers and text boxes. Raises `UnreadableError`."""
    compound = open_compound(source.data)
    main = read_stream(compound, "WordDocument")
    if main is None:
        raise UnreadableError("damaged", "holds no Word document")
    tables = {name: read_stream(compound, name) or b"" for name in ("0Table", "1Table")}
    try:
        word = _read_word_file(main, tables)
        pieces = _read_pieces(word)
        layout = _read_layout(word)
    except struct.error:
        raise UnreadableError("damaged", "the table of its text is broken") from None
    builder = TextBuilder(source.limit)
    _write(builder, _paragraphs(pieces, word.lengths[0], layout))
    return builder.titled(read_summary(compound))


def _write(builder: TextBuilder, paragraphs: Iterator[_Marked]) -> None:
    """Every text in order; of those beside the main one, each paragraph once: page headers repeat themselves."""
    seen: set[str] = set()
    cell: list[str] = []
    row: list[str] = []
    last_mark = ""
    for text, mark, kind, is_main in paragraphs:
        if mark == _CELL:
            ends_row = kind.ends_row if kind else not text.strip() and last_mark == _CELL
            if ends_row:
                _write_row(builder, row)
            else:
                row.append(" ".join([*cell, text]))
                cell.clear()
        elif kind and kind.in_table:
            cell.append(text)
        else:
            _write_row(builder, row)
            if is_main and kind and kind.level:
                builder.heading(text, kind.level)
            elif is_main or text not in seen:
                builder.paragraph(text)
                seen.update(() if is_main else (text,))
        last_mark = mark
        if builder.full:
            return
    _write_row(builder, [*row, *cell])


def _write_row(builder: TextBuilder, row: list[str]) -> None:
    cells = [" ".join(cell.split()) for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    builder.line(" | ".join(cells))
    row.clear()


def _paragraphs(pieces: list[_WordPiece], main_length: int, layout: _Layout) -> Iterator[_Marked]:
    """The paragraphs of all texts; of a field only the result, unless it has none."""
    text: list[str] = []
    sinks = [text]  # the innermost last: where characters go, which is the code of a field or what lies around it
    position = 0
    for piece in pieces:
        for token in _TOKEN.finditer(_visible_text(piece, layout)):
            value = token[0]
            if value == _FIELD:
                sinks.append([])
            elif value == _RESULT and len(sinks) > 1:
                sinks[-1] = sinks[-2]
                sinks[-1].append(_RESULT)
            elif value == _FIELD_END and len(sinks) > 1:
                code = sinks.pop()
                if code is not sinks[-1]:
                    sinks[-1].append(_shown("".join(code)) or _FIELD_END)
                elif code[-1:] == [_RESULT]:
                    code.append(_FIELD_END)
            elif value not in (_PARAGRAPH, _CELL, _BREAK):
                sinks[-1].append(value)
            elif sinks[-1] is text:
                kind = layout.at(piece.offset + token.start() * piece.width)
                yield _clean(text), value, kind, position + token.start() < main_length
                text.clear()
            else:
                sinks[-1].append(" ")
        position += len(piece.text)
    # A field that never ends is damage: its characters may as well be text.
    rest = [part for sink in {id(sink): sink for sink in sinks}.values() for part in sink]
    yield _clean(rest), _PARAGRAPH, None, position <= main_length


def _shown(code: str) -> str:
    """Text of a field without a result: only equations and words with their reading above them have one."""
    code = code.strip()
    if reading := _READING.search(code):
        return f"{reading[2]} ({reading[1]})"
    return " ".join(_EQUATION_SWITCH.sub(" ", code[2:]).split()) if code[:2].upper() == "EQ" else ""


def _clean(parts: list[str]) -> str:
    return _GAP.sub(" ", "".join(parts).translate(_SPECIAL)).replace(_FIELD_END, "").strip()
