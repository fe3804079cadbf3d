"""What every extractor takes and gives: bytes with a name in, text with its headings and places out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from findling.domain.resources import Place
from findling.text.chunking.outlines import Heading
from findling.text.chunking.windows import Span

__all__ = ["PARTIAL", "TEXT_LIMIT", "Extracted", "Source", "TextBuilder"]

TEXT_LIMIT = 16 << 20
"""Characters of text that one document gives at most, unless the caller says otherwise."""


PARTIAL = ("damaged", "incomplete", "truncated")
"""Fields in which an extractor says that it has not read all of a document, and why."""

_LONGEST_TITLE = 120
"""Characters of a heading that stand above every chunk of its section; the text itself keeps all of them."""


class Source(NamedTuple):
    """A document to read: its bytes, its file name, how much text is wanted, how deep it lies in other documents."""

    data: bytes
    name: str
    limit: int = TEXT_LIMIT
    depth: int = 0


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """The text of a document and what is known about it.

    `headings` and `places` are in the order of their starts, as offsets into `text`; `blocks` are spans that a chunk
    should not tear apart. `lang` names the language whose chunker cuts the text (a notebook becomes `markdown`); empty:
    it is cut along `headings`. Times are seconds since the epoch. `fields` holds what else the document says about
    itself (`language`, `to`, `cc`, `subject`, …), in lower-case names.
    """

    text: str
    headings: tuple[Heading, ...] = ()
    places: tuple[Place, ...] = ()
    blocks: tuple[Span, ...] = ()
    lang: str = ""
    title: str = ""
    author: str = ""
    created_at: float | None = None
    updated_at: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


class TextBuilder:
    """Puts the text of a document together, and remembers where its headings, places and blocks begin.

    What is written after the limit is left out; `full` tells an extractor that it may stop.
    """

    def __init__(self, limit: int = TEXT_LIMIT) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._tail = ""
        self._length = 0
        self._headings: list[Heading] = []
        self._places: list[Place] = []
        self._blocks: list[Span] = []
        self.full = False

    def place(self, label: str = "", line: int = 0) -> None:
        """Say where in the file everything comes from that is written from here on."""
        if self._places and self._places[-1].start == self._length:
            self._places.pop()
        self._places.append(Place(self._length, _one_line(label), line))

    def heading(self, title: str, level: int = 1) -> None:
        """Write a section title as a paragraph of its own; levels count from 1."""
        title = _one_line(title)
        if title and not self.full:
            self.end_paragraph()
            self._headings.append(Heading(self._length, level, _shortened(title)))
            self._write(title + "\n\n")

    def section(self, title: str, level: int = 1) -> None:
        """Begin a section whose title is not part of the text, such as the name of a sheet."""
        title = _one_line(title)
        if title and not self.full:
            self.end_paragraph()
            self._headings.append(Heading(self._length, level, _shortened(title)))

    def paragraph(self, text: str) -> None:
        """Write a paragraph, with an empty line after it; line breaks in it stay."""
        text = _clean(text).strip()
        if text:
            self.end_paragraph()
            self._write(text + "\n\n")

    def line(self, text: str) -> None:
        """Write one line, such as the row of a table; line breaks in it become spaces."""
        text = _one_line(text)
        if text:
            self._write(text + "\n")

    def block(self, text: str) -> None:
        """Write text that stays as it is and in one piece, such as code."""
        text = _clean(text).rstrip().lstrip("\n")
        if text:
            self.end_paragraph()
            start = self._length
            self._write(text + "\n\n")
            self._blocks.append((start, min(start + len(text), self._length)))
            self._number_lines(start, text)

    def end_paragraph(self) -> None:
        """An empty line after lines that were written one by one, unless there is one."""
        if self._parts and not self._tail.endswith("\n\n"):
            self._write("\n")

    def extracted(
        self,
        *,
        lang: str = "",
        title: str = "",
        author: str = "",
        created_at: float | None = None,
        updated_at: float | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Extracted:
        """Everything written so far, and what is known about it."""
        text = "".join(self._parts).rstrip()
        notes = {name: cleaned for name, value in (fields or {}).items() if (cleaned := _one_line(value))}
        if self.full:
            notes["truncated"] = f"text beyond {self._limit} characters was left out"
        return Extracted(
            text=text,
            headings=tuple(heading for heading in self._headings if heading.start < len(text)),
            places=tuple(place for place in self._places if place.start < len(text)),
            blocks=tuple((start, min(end, len(text))) for start, end in self._blocks if start < len(text)),
            lang=lang,
            title=_one_line(title),
            author=_one_line(author),
            created_at=created_at,
            updated_at=updated_at,
            fields=notes,
        )

    def _number_lines(self, start: int, text: str) -> None:
        """Lines that stay as they are stand on lines of their own in the file, too."""
        place = self._places[-1] if self._places else Place(0)
        if place.line:
            starts = (match.end() for match in _LINE_BREAK.finditer(text))
            self._places += [Place(start + at, place.label, place.line + n) for n, at in enumerate(starts, start=1)]

    def _write(self, text: str) -> None:
        room = self._limit - self._length
        if len(text) > room:
            self.full = True
            text = text[:room]
        if text:
            self._parts.append(text)
            self._tail = (self._tail + text)[-2:] if len(text) < 2 else text[-2:]
            self._length += len(text)


# Control characters, byte order marks and halves of surrogate pairs are no text; soft hyphens only split words.
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufeff\u00ad\ud800-\udfff]")
_LINE_BREAK = re.compile("\n")
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\ufeff\u00ad\u2028\u2029\ud800-\udfff]")


_ODD_BYTES = bytes(set(range(32)) - set(b"\t\n")) + b"\x7f"


def _clean(text: str) -> str:
    # Nearly every text is clean, and one look costs less than two rounds of substitution.
    if text.isascii():
        if text.isprintable() or len(text.encode().translate(None, _ODD_BYTES)) == len(text):
            return text
    elif not _ODD.search(text):
        return text
    return _NO_TEXT.sub("", _BREAKS.sub("\n", text))


def _shortened(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())
