"""The texts of one slide, notes page or master in an old PowerPoint presentation ([MS-PPT])."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.extraction.powerpoint97_records import Record, children

__all__ = ["Text", "listed_texts", "page_texts"]

_OUTLINE_REFERENCE, _TEXT_HEADER, _TEXT_CHARS, _TEXT_BYTES, _STRING = 3998, 3999, 4000, 4008, 4026
_PLACEHOLDER, _HEADERS_FOOTERS, _COMMENT, _TAG_DATA = 3011, 4057, 12000, 5003
_GROUP, _SHAPE, _SHAPE_TEXT, _SHAPE_OPTIONS, _SHAPE_ANCHOR = 0xF003, 0xF004, 0xF00D, 0xF122, 0xF00F
_IS_TABLE = 0x039F
_TITLES = (0, 6)
_DEEPEST = 40


class Text(NamedTuple):
    """The text of a shape. `is_placeholder`: the layout foresees it, so that on a master it is only an example."""

    text: str
    is_title: bool = False
    is_placeholder: bool = False


def page_texts(page: Record, listed: list[Text]) -> list[Text]:
    """The texts on a page in drawing order, then footers and comments; shapes may refer to the `listed` texts."""
    texts: list[Text] = []
    asides: list[Text] = []
    for record in _descend(page, 0):
        if record.kind == _SHAPE:
            texts.extend(_shape_texts(record, listed))
        elif record.kind == _GROUP:
            texts.append(Text(_table(record, listed)))
        else:
            asides.append(Text(_strings(record)))
    shown = {text.text for text in texts}
    texts.extend(text for text in listed if text.text not in shown)
    return [text for text in [*texts, *asides] if text.text not in ("", "*")]  # a star stands for a number or a date


def listed_texts(records: list[Record]) -> list[Text]:
    """The texts among the records of a list: each has a header that says what it is."""
    texts: list[Text] = []
    is_title = False
    for record in records:
        if record.kind == _TEXT_HEADER and len(record.content) >= 4:
            is_title = struct.unpack_from("<I", record.content)[0] in _TITLES
            texts.append(Text("", is_title))
        elif record.kind in (_TEXT_CHARS, _TEXT_BYTES):
            text = Text(_decoded(record), is_title)
            if texts and not texts[-1].text:
                texts[-1] = text
            else:
                texts.append(text)
    return texts


def _descend(page: Record, depth: int) -> Iterator[Record]:
    """The shapes, tables, footers and comments of a page, however deep they lie in groups."""
    for record in children(page.content):
        if record.kind in (_SHAPE, _HEADERS_FOOTERS, _COMMENT) or (record.kind == _GROUP and _is_table(record)):
            yield record
        elif (record.is_container or record.kind == _TAG_DATA) and depth < _DEEPEST:
            yield from _descend(record, depth + 1)


def _shape_texts(shape: Record, listed: list[Text]) -> Iterator[Text]:
    parts = list(children(shape.content))
    is_placeholder = any(atom.kind == _PLACEHOLDER for part in parts for atom in children(part.content))
    for part in parts:
        if part.kind != _SHAPE_TEXT:
            continue
        records = list(children(part.content))
        for text in listed_texts(records):
            yield text._replace(is_placeholder=is_placeholder)
        for record in records:
            if record.kind == _OUTLINE_REFERENCE and len(record.content) >= 4:
                (index,) = struct.unpack_from("<I", record.content)
                if index < len(listed):
                    yield listed[index]


def _is_table(group: Record) -> bool:
    """A table is a group of shapes, whose first one is the group itself and says so."""
    first = next(children(group.content), None)
    if first is None:
        return False
    for part in children(first.content):
        if part.kind == _SHAPE_OPTIONS:
            count = min(part.instance, len(part.content) // 6)
            options = dict(struct.iter_unpack("<HI", part.content[: 6 * count]))
            return any(number & 0x3FFF == _IS_TABLE and value & 1 for number, value in options.items())
    return False


def _table(group: Record, listed: list[Text]) -> str:
    """The rows of a table: cells whose upper edges are at the same height."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for shape in children(group.content):
        for part in children(shape.content):
            if part.kind == _SHAPE_ANCHOR and len(part.content) >= 8:
                left, top = struct.unpack_from("<ii", part.content)
                cell = " ".join(" ".join(text.text for text in _shape_texts(shape, listed)).split())
                is_cell = any(inner.kind == _SHAPE_TEXT for inner in children(shape.content))
                if is_cell:  # the others are its lines
                    rows.setdefault(top, []).append((left, cell))
    lines = (" | ".join(cell for _, cell in sorted(rows[top])) for top in sorted(rows))
    return "\n".join(" ".join(line.split()) for line in lines)


def _strings(record: Record) -> str:
    """The footer of a page, or the author and the text of a comment."""
    strings = {part.instance: _utf16(part) for part in children(record.content) if part.kind == _STRING}
    if record.kind == _HEADERS_FOOTERS:
        return strings.get(2, "")
    author, text = strings.get(0, ""), strings.get(1, "")
    return f"{author}: {text}" if author and text else text


def _decoded(record: Record) -> str:
    text = _utf16(record) if record.kind == _TEXT_CHARS else bytes(record.content).decode("cp1252", "replace")
    return text.replace("\r", "\n").replace("\x0b", "\n").strip()


def _utf16(record: Record) -> str:
    return bytes(record.content).decode("utf-16-le", "replace").strip("\0 ")
