"""PowerPoint presentations of the years 1997 to 2006 (.ppt, .pps)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.documents.containers.ole import open_compound, read_stream, read_summary
from findling.sources.documents.extracted import Extracted, Source, TextBuilder, finished
from findling.sources.files.file_text import UnreadableError

__all__ = ["Record", "Text", "children", "extract", "read_record"]


class Record(NamedTuple):
    """One record: its kind, its instance number and its content; a container holds other records."""

    kind: int
    instance: int
    is_container: bool
    content: memoryview


def read_record(stream: memoryview, at: int) -> Record | None:
    """The record at an offset, cut where the stream ends; `None` when there is none."""
    if at < 0 or at + 8 > len(stream):
        return None
    head, kind, size = struct.unpack_from("<HHI", stream, at)
    return Record(kind, head >> 4, head & 0xF == 0xF, stream[at + 8 : at + 8 + size])


def children(content: memoryview) -> Iterator[Record]:
    """The records in a container, in order."""
    at = 0
    while record := read_record(content, at):
        yield record
        at += 8 + len(record.content)


_USER_EDIT, _PERSIST_DIRECTORY = 4085, 6002
_MOST_EDITS = 1000


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
        record = read_record(stream, edit)
        if record is None or record.kind != _USER_EDIT or len(record.content) < 20:
            break
        edit, directory, document_now = struct.unpack_from("<III", record.content, 8)
        document = document or document_now
        for number, offset in _directory(read_record(stream, directory)):
            offsets.setdefault(number, offset)
        if not edit:
            break
    return offsets, document


def _directory(record: Record | None) -> Iterator[tuple[int, int]]:
    if record is None or record.kind != _PERSIST_DIRECTORY:
        return
    numbers = struct.unpack_from(f"<{len(record.content) // 4}I", record.content)
    at = 0
    while at < len(numbers):
        first, count = numbers[at] & 0xFFFFF, numbers[at] >> 20
        for index, offset in enumerate(numbers[at + 1 : at + 1 + count]):
            yield first + index, offset
        at += 1 + count


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


def _page_texts(page: Record, listed: list[Text]) -> list[Text]:
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


def _listed_texts(records: list[Record]) -> list[Text]:
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
        for text in _listed_texts(records):
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


_SLIDE, _NOTES_ATOM, _SLIDE_ENTRY, _SLIDE_LIST = 1006, 1009, 1011, 4080
_SLIDES, _MASTERS, _NOTES_PAGES = 0, 1, 2
_ENCRYPTED_TOKEN = 0xF3D1C4DF


def extract(source: Source) -> Extracted:
    """The slides in order, each with its title, text and notes. Raises `UnreadableError`."""
    compound = open_compound(source.data)
    stream = read_stream(compound, "PowerPoint Document")
    if stream is None:
        if read_stream(compound, "PP40") is not None:
            raise UnreadableError("unsupported", "a presentation of PowerPoint 95 or older")
        raise UnreadableError("damaged", "holds no presentation")
    token, current_edit = _current_user(read_stream(compound, "Current User") or b"")
    if token == _ENCRYPTED_TOKEN or read_stream(compound, "EncryptedSummary") is not None:
        raise UnreadableError("encrypted", "needs a password")
    builder = TextBuilder(source.limit)
    _write(builder, _read(memoryview(stream), current_edit))
    return finished(builder, read_summary(compound))


class _Deck(NamedTuple):
    slides: list[tuple[list[Text], list[Text]]]
    """The texts of every slide and those of its notes."""
    background: list[Text]


class _ListedPage(NamedTuple):
    """A page in a list of pages, with the texts that the list holds for it."""

    page: Record
    identity: int
    listed: list[Text]


def _current_user(stream: bytes) -> tuple[int, int]:
    """A number that tells whether the presentation is encrypted, and where its last save is described."""
    try:
        token, edit = struct.unpack_from("<II", stream, 12)
    except struct.error:
        return 0, 0
    return token, edit


def _read(stream: memoryview, current_edit: int) -> _Deck:
    offsets, number = _locate_objects(stream, current_edit)
    document = read_record(stream, offsets.get(number, -1))
    entries = {_SLIDES: [], _MASTERS: [], _NOTES_PAGES: []} if document is None else _entries(stream, offsets, document)
    if not entries[_SLIDES]:  # the lists are broken: the slides still stand in the stream, in the order of their saving
        loose = [record for record in children(stream) if record.kind == _SLIDE]
        return _Deck([(_page_texts(page, []), []) for page in loose], [])
    notes: dict[int, list[Text]] = {}
    for entry in entries[_NOTES_PAGES]:
        notes.setdefault(_slide_of_notes(entry.page), []).extend(_page_texts(entry.page, entry.listed))
    slides = [(_page_texts(entry.page, entry.listed), notes.get(entry.identity, [])) for entry in entries[_SLIDES]]
    masters = [text for entry in entries[_MASTERS] for text in _page_texts(entry.page, [])]
    return _Deck(slides, [text for text in masters if not text.is_placeholder])


def _entries(stream: memoryview, offsets: dict[int, int], document: Record) -> dict[int, list[_ListedPage]]:
    entries: dict[int, list[_ListedPage]] = {_SLIDES: [], _MASTERS: [], _NOTES_PAGES: []}
    for pages in children(document.content):
        if pages.kind == _SLIDE_LIST and pages.instance in entries:
            for number, identity, texts in _listed_pages(pages):
                page = read_record(stream, offsets.get(number, -1))
                if page is not None:
                    entries[pages.instance].append(_ListedPage(page, identity, _listed_texts(texts)))
    return entries


def _listed_pages(pages: Record) -> Iterator[tuple[int, int, list[Record]]]:
    """Number, identity and text records of every page in a list."""
    current: tuple[int, int, list[Record]] | None = None
    for record in children(pages.content):
        if record.kind == _SLIDE_ENTRY and len(record.content) >= 16:
            if current:
                yield current
            number, _, _, identity = struct.unpack_from("<4I", record.content)
            current = number, identity, []
        elif current:
            current[2].append(record)
    if current:
        yield current


def _slide_of_notes(page: Record) -> int:
    atom = next((record for record in children(page.content) if record.kind == _NOTES_ATOM), None)
    return struct.unpack_from("<I", atom.content)[0] if atom and len(atom.content) >= 4 else 0


def _write(builder: TextBuilder, deck: _Deck) -> None:
    for number, (texts, notes) in enumerate(deck.slides, start=1):
        if builder.full:
            return
        builder.place(f"slide {number}")
        title = next((text for text in texts if text.is_title), None)
        if title:
            builder.heading(title.text)
        else:
            builder.section(f"Slide {number}")  # or it would belong to the slide before
        for text in texts:
            if text is not title:
                builder.paragraph(text.text)
        if notes:
            builder.place(f"slide {number} notes")
        for text in notes:
            builder.paragraph(text.text)
    if background := dict.fromkeys(text.text for text in deck.background):
        builder.place()
        builder.section("Slide master")
        for shown in background:
            builder.paragraph(shown)
