"""PowerPoint presentations of the years 1997 to 2006 (.ppt, .pps)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.documents.containers.ole import open_compound, read_stream, read_summary
from findling.sources.extracted import Extracted, Source, TextBuilder, labelled
from findling.sources.files.file_text import UnreadableError

_USER_EDIT, _PERSIST_DIRECTORY = 4085, 6002
_MOST_EDITS = 1000
_OUTLINE_REFERENCE, _TEXT_HEADER, _TEXT_CHARS, _TEXT_BYTES, _STRING = 3998, 3999, 4000, 4008, 4026
_PLACEHOLDER, _HEADERS_FOOTERS, _COMMENT, _TAG_DATA = 3011, 4057, 12000, 5003
_GROUP, _SHAPE, _SHAPE_TEXT, _SHAPE_OPTIONS, _SHAPE_ANCHOR = 0xF003, 0xF004, 0xF00D, 0xF122, 0xF00F
_IS_TABLE = 0x039F
_TITLES = (0, 6)
_DEEPEST = 40
_SLIDE, _NOTES_ATOM, _SLIDE_ENTRY, _SLIDE_LIST = 1006, 1009, 1011, 4080
_SLIDES, _MASTERS, _NOTES_PAGES = 0, 1, 2
_ENCRYPTED_TOKEN = 0xF3D1C4DF


class _PptRecord(NamedTuple):
    """One record: its kind, its instance number and its content; a container holds other records."""

    kind: int
    instance: int
    is_container: bool
    content: memoryview


def _read_record(stream: memoryview, at: int) -> _PptRecord | None:
    """The record at an offset, cut where the stream ends; `None` when there is none."""
    if at < 0 or at + 8 > len(stream):
        return None
    head, kind, size = struct.unpack_from("<HHI", stream, at)
    return _PptRecord(kind, head >> 4, head & 0xF == 0xF, stream[at + 8 : at + 8 + size])


def _children(content: memoryview) -> Iterator[_PptRecord]:
    """The records in a container, in order."""
    at = 0
    while record := _read_record(content, at):
        yield record
        at += 8 + len(record.content)


def _locate_objects(stream: memoryview, current_edit: int) -> tuple[dict[int, int], int]:
    """Offsets of slides and other objects by their numbers, and the number of the document.

    Every save adds a list of what it has changed; the last one counts. Both are empty when the lists are broken.
    """
    offsets: dict[int, int] = {}
    document = 0
    edit = current_edit
    visited: set[int] = set()
    while edit not in visited and len(visited) < _MOST_EDITS:
        visited.add(edit)
        record = _read_record(stream, edit)
        if record is None or record.kind != _USER_EDIT or len(record.content) < 20:
            break
        edit, directory, document_now = struct.unpack_from("<III", record.content, 8)
        document = document or document_now
        for number, offset in _directory(_read_record(stream, directory)):
            offsets.setdefault(number, offset)
        if not edit:
            break
    return offsets, document


def _directory(record: _PptRecord | None) -> Iterator[tuple[int, int]]:
    if record is None or record.kind != _PERSIST_DIRECTORY:
        return
    numbers = struct.unpack_from(f"<{len(record.content) // 4}I", record.content)
    at = 0
    while at < len(numbers):
        first, count = numbers[at] & 0xFFFFF, numbers[at] >> 20
        for index, offset in enumerate(numbers[at + 1 : at + 1 + count]):
            yield first + index, offset
        at += 1 + count


class _SlideText(NamedTuple):
    """The text of a shape. `is_placeholder`: the layout foresees it, so that on a master it is only an example."""

    text: str
    is_title: bool = False
    is_placeholder: bool = False


def _page_texts(page: _PptRecord, listed: list[_SlideText]) -> list[_SlideText]:
    """The texts on a page in drawing order, then footers and comments; shapes may refer to the `listed` texts."""
    texts: list[_SlideText] = []
    asides: list[_SlideText] = []
    for record in _descend(page, 0):
        if record.kind == _SHAPE:
            texts.extend(_shape_texts(record, listed))
        elif record.kind == _GROUP:
            texts.append(_SlideText(_table(record, listed)))
        else:
            asides.append(_SlideText(_strings(record)))
    shown = {text.text for text in texts}
    texts.extend(text for text in listed if text.text not in shown)
    return [text for text in [*texts, *asides] if text.text not in ("", "*")]  # a star stands for a number or a date


def _listed_texts(records: list[_PptRecord]) -> list[_SlideText]:
    """The texts among the records of a list: each has a header that says what it is."""
    texts: list[_SlideText] = []
    is_title = False
    for record in records:
        if record.kind == _TEXT_HEADER and len(record.content) >= 4:
            is_title = struct.unpack_from("<I", record.content)[0] in _TITLES
            texts.append(_SlideText("", is_title))
        elif record.kind in (_TEXT_CHARS, _TEXT_BYTES):
            text = _SlideText(_decoded(record), is_title)
            if texts and not texts[-1].text:
                texts[-1] = text
            else:
                texts.append(text)
    return texts


def _descend(page: _PptRecord, depth: int) -> Iterator[_PptRecord]:
    """The shapes, tables, footers and comments of a page, however deep they lie in groups."""
    for record in _children(page.content):
        if record.kind in (_SHAPE, _HEADERS_FOOTERS, _COMMENT) or (record.kind == _GROUP and _is_table(record)):
            yield record
        elif (record.is_container or record.kind == _TAG_DATA) and depth < _DEEPEST:
            yield from _descend(record, depth + 1)


def _shape_texts(shape: _PptRecord, listed: list[_SlideText]) -> Iterator[_SlideText]:
    parts = list(_children(shape.content))
    is_placeholder = any(atom.kind == _PLACEHOLDER for part in parts for atom in _children(part.content))
    for part in parts:
        if part.kind != _SHAPE_TEXT:
            continue
        records = list(_children(part.content))
        for text in _listed_texts(records):
            yield text._replace(is_placeholder=is_placeholder)
        for record in records:
            if record.kind == _OUTLINE_REFERENCE and len(record.content) >= 4:
                (index,) = struct.unpack_from("<I", record.content)
                if index < len(listed):
                    yield listed[index]


def _is_table(group: _PptRecord) -> bool:
    """A table is a group of shapes, whose first one is the group itself and says so."""
    first = next(_children(group.content), None)
    if first is None:
        return False
    for part in _children(first.content):
        if part.kind == _SHAPE_OPTIONS:
            count = min(part.instance, len(part.content) // 6)
            options = dict(struct.iter_unpack("<HI", part.content[: 6 * count]))
            return any(number & 0x3FFF == _IS_TABLE and value & 1 for number, value in options.items())
    return False


def _table(group: _PptRecord, listed: list[_SlideText]) -> str:
    """The rows of a table: cells whose upper edges are at the same height."""
    rows: dict[int, list[tuple[int, str]]] = {}
    for shape in _children(group.content):
        for part in _children(shape.content):
            if part.kind == _SHAPE_ANCHOR and len(part.content) >= 8:
                left, top = struct.unpack_from("<ii", part.content)
                cell = " ".join(" ".join(text.text for text in _shape_texts(shape, listed)).split())
                is_cell = any(inner.kind == _SHAPE_TEXT for inner in _children(shape.content))
                if is_cell:  # the others are its lines
                    rows.setdefault(top, []).append((left, cell))
    lines = (" | ".join(cell for _, cell in sorted(rows[top])) for top in sorted(rows))
    return "\n".join(" ".join(line.split()) for line in lines)


def _strings(record: _PptRecord) -> str:
    """The footer of a page, or the author and the text of a comment."""
    strings = {part.instance: _utf16(part) for part in _children(record.content) if part.kind == _STRING}
    return strings.get(2, "") if record.kind == _HEADERS_FOOTERS else labelled(strings.get(0, ""), strings.get(1, ""))


def _decoded(record: _PptRecord) -> str:
    text = _utf16(record) if record.kind == _TEXT_CHARS else bytes(record.content).decode("cp1252", "replace")
    return text.replace("\r", "\n").replace("\x0b", "\n").strip()


def _utf16(record: _PptRecord) -> str:
    return bytes(record.content).decode("utf-16-le", "replace").strip("\0 ")


def extract(source: Source) -> Extracted:
    """The slides in order, each with its title, text and notes. Raises `UnreadableError`."""
    compound = open_compound(source.data)
    stream = read_stream(compound, "PowerPoint Document")
    if stream is None:
        if read_stream(compound, "PP40") is not None:
            raise UnreadableError("unsupported", "a presentation of PowerPoint 95 or older")
        raise UnreadableError("damaged", "holds no presentation")
    # A number that tells whether the presentation is encrypted, and where its last save is described.
    user = read_stream(compound, "Current User") or b""
    token, current_edit = struct.unpack_from("<II", user, 12) if len(user) >= 20 else (0, 0)
    if token == _ENCRYPTED_TOKEN or read_stream(compound, "EncryptedSummary") is not None:
        raise UnreadableError("encrypted", "needs a password")
    builder = TextBuilder(source.limit)
    _write_deck(builder, memoryview(stream), current_edit)
    return builder.titled(read_summary(compound))


def _write_deck(builder: TextBuilder, stream: memoryview, current_edit: int) -> None:
    offsets, number = _locate_objects(stream, current_edit)
    lists: dict[int, list[tuple[_PptRecord, int, list[_SlideText]]]] = {_SLIDES: [], _MASTERS: [], _NOTES_PAGES: []}
    document = _read_record(stream, offsets.get(number, -1))
    for pages in () if document is None else _children(document.content):
        if pages.kind == _SLIDE_LIST and pages.instance in lists:
            for number, identity, texts in _listed_pages(pages):
                page = _read_record(stream, offsets.get(number, -1))
                if page is not None:
                    lists[pages.instance].append((page, identity, _listed_texts(texts)))
    if not lists[_SLIDES]:  # the lists are broken: the slides still stand in the stream, in the order of their saving
        loose = [record for record in _children(stream) if record.kind == _SLIDE]
        for number, page in enumerate(loose, start=1):
            _write_slide(builder, number, _page_texts(page, []), [])
        return
    notes: dict[int, list[_SlideText]] = {}
    for page, _, listed in lists[_NOTES_PAGES]:
        atoms = (record.content for record in _children(page.content) if record.kind == _NOTES_ATOM)
        slide = int.from_bytes(next(atoms, b"")[:4], "little")
        notes.setdefault(slide, []).extend(_page_texts(page, listed))
    for number, (page, identity, listed) in enumerate(lists[_SLIDES], start=1):
        _write_slide(builder, number, _page_texts(page, listed), notes.get(identity, []))
    masters = (text for page, _, _ in lists[_MASTERS] for text in _page_texts(page, []))
    if background := dict.fromkeys(text.text for text in masters if not text.is_placeholder):
        builder.place()
        builder.section("Slide master")
        for shown in background:
            builder.paragraph(shown)


def _listed_pages(pages: _PptRecord) -> Iterator[tuple[int, int, list[_PptRecord]]]:
    """Number, identity and text records of every page in a list."""
    current: tuple[int, int, list[_PptRecord]] | None = None
    for record in _children(pages.content):
        if record.kind == _SLIDE_ENTRY and len(record.content) >= 16:
            if current:
                yield current
            number, _, _, identity = struct.unpack_from("<4I", record.content)
            current = number, identity, []
        elif current:
            current[2].append(record)
    if current:
        yield current


def _write_slide(builder: TextBuilder, number: int, texts: list[_SlideText], notes: list[_SlideText]) -> None:
    if builder.full:
        return
    title = next((text for text in texts if text.is_title), None)
    builder.page(f"slide {number}", title.text if title else "")
    for text in texts:
        if text is not title:
            builder.paragraph(text.text)
    if notes:
        builder.place(f"slide {number} notes")
    for text in notes:
        builder.paragraph(text.text)
