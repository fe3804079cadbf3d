"""PowerPoint presentations of the years 1997 to 2006 (.ppt, .pps)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from findling.sources.extraction.document_properties import finished
from findling.sources.extraction.extracted import Extracted, Source, TextBuilder
from findling.sources.extraction.ole import open_compound, read_stream, read_summary
from findling.sources.extraction.powerpoint97_records import Record, children, locate_objects, read_record
from findling.sources.extraction.powerpoint97_slides import Text, listed_texts, page_texts
from findling.sources.reading import UnreadableError

__all__ = ["extract"]

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


class _Entry(NamedTuple):
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
    offsets, number = locate_objects(stream, current_edit)
    document = read_record(stream, offsets.get(number, -1))
    entries = {_SLIDES: [], _MASTERS: [], _NOTES_PAGES: []} if document is None else _entries(stream, offsets, document)
    if not entries[_SLIDES]:  # the lists are broken: the slides still stand in the stream, in the order of their saving
        loose = [record for record in children(stream) if record.kind == _SLIDE]
        return _Deck([(page_texts(page, []), []) for page in loose], [])
    notes: dict[int, list[Text]] = {}
    for entry in entries[_NOTES_PAGES]:
        notes.setdefault(_slide_of_notes(entry.page), []).extend(page_texts(entry.page, entry.listed))
    slides = [(page_texts(entry.page, entry.listed), notes.get(entry.identity, [])) for entry in entries[_SLIDES]]
    masters = [text for entry in entries[_MASTERS] for text in page_texts(entry.page, [])]
    return _Deck(slides, [text for text in masters if not text.is_placeholder])


def _entries(stream: memoryview, offsets: dict[int, int], document: Record) -> dict[int, list[_Entry]]:
    entries: dict[int, list[_Entry]] = {_SLIDES: [], _MASTERS: [], _NOTES_PAGES: []}
    for pages in children(document.content):
        if pages.kind == _SLIDE_LIST and pages.instance in entries:
            for number, identity, texts in _listed_pages(pages):
                page = read_record(stream, offsets.get(number, -1))
                if page is not None:
                    entries[pages.instance].append(_Entry(page, identity, listed_texts(texts)))
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
