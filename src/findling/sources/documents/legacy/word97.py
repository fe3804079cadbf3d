"""Word documents of the years 1993 to 2006 (.doc)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.documents.containers.ole import open_compound, read_stream, read_summary
from findling.sources.documents.document_properties import finished
from findling.sources.documents.extracted import Extracted, Source, TextBuilder
from findling.sources.documents.legacy.word97_layout import Layout, ParagraphKind, read_layout, visible_text
from findling.sources.documents.legacy.word97_pieces import Piece, read_pieces, read_word_file
from findling.sources.files.file_text import UnreadableError

__all__ = ["extract"]


def extract(source: Source) -> Extracted:
    """The text of a Word document, then its notes, page headers and text boxes. Raises `UnreadableError`."""
    compound = open_compound(source.data)
    main = read_stream(compound, "WordDocument")
    if main is None:
        raise UnreadableError("damaged", "holds no Word document")
    tables = {name: read_stream(compound, name) or b"" for name in ("0Table", "1Table")}
    try:
        word = read_word_file(main, tables)
        pieces = read_pieces(word)
        layout = read_layout(word)
    except struct.error:
        raise UnreadableError("damaged", "the table of its text is broken") from None
    builder = TextBuilder(source.limit)
    _write(builder, _paragraphs(pieces, word.lengths[0], layout))
    return finished(builder, read_summary(compound))


class _Paragraph(NamedTuple):
    text: str
    mark: str
    kind: ParagraphKind | None
    is_main: bool


def _write(builder: TextBuilder, paragraphs: Iterator[_Paragraph]) -> None:
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


_PARAGRAPH, _CELL, _BREAK = "\r", "\x07", "\x0c"
_FIELD, _RESULT, _FIELD_END = "\x13", "\x14", "\x15"
_TOKEN = re.compile("[\r\x07\x0c\x13\x14\x15]|[^\r\x07\x0c\x13\x14\x15]+")


def _paragraphs(pieces: list[Piece], main_length: int, layout: Layout) -> Iterator[_Paragraph]:
    """The paragraphs of all texts; of a field only the result, unless it has none."""
    text: list[str] = []
    sinks = [text]  # the innermost last: where characters go, which is the code of a field or what lies around it
    position = 0
    for piece in pieces:
        for token in _TOKEN.finditer(visible_text(piece, layout)):
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
                yield _Paragraph(_clean(text), value, kind, position + token.start() < main_length)
                text.clear()
            else:
                sinks[-1].append(" ")
        position += len(piece.text)
    # A field that never ends is damage: its characters may as well be text.
    rest = [part for sink in {id(sink): sink for sink in sinks}.values() for part in sink]
    yield _Paragraph(_clean(rest), _PARAGRAPH, None, position <= main_length)


def _shown(code: str) -> str:
    """What a field without a result shows: equations and words with their reading above them, nothing else."""
    code = code.strip()
    if reading := _READING.search(code):
        return f"{reading[2]} ({reading[1]})"
    return " ".join(_EQUATION_SWITCH.sub(" ", code[2:]).split()) if code[:2].upper() == "EQ" else ""


_EQUATION_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)|\\[a-z]+(?: ?-?\d+)?', re.IGNORECASE)
_READING = re.compile(r"\\o\\a[a-z]\(\\s\\up ?\d+\(([^()]*)\),(.*)\)$")
_SPECIAL = str.maketrans(
    {"\0": None, "\x0b": "\n", "\x0e": "\n", _RESULT: None, "\x1e": "\u2011", "\x1f": None, "\xa0": " "}
)
_GAP = re.compile(r"(?<=\w)[\x01\x08\x15]+(?=\w)")
"""Pictures, and fields that show nothing, such as a box to tick: words on both sides are two words."""


def _clean(parts: list[str]) -> str:
    return _GAP.sub(" ", "".join(parts).translate(_SPECIAL)).replace(_FIELD_END, "").strip()
