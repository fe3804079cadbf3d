"""Result of every extractor: text with headings, places, properties and times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from findling.domain.resources import Place
from findling.sources.files.file_text import UnreadableError
from findling.text.chunking.outlines import Heading
from findling.text.chunking.windows import Span

__all__ = [
    "PARTIAL",
    "Extracted",
    "LineGroups",
    "Properties",
    "Source",
    "TextBuilder",
    "finished",
    "parse_iso_time",
    "parse_mail_time",
    "seconds_of",
    "windows_time",
    "with_properties",
]


def parse_iso_time(text: str) -> float | None:
    """The time of an ISO 8601 text, of which months, days and hours may be missing."""
    text = text.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        text = (text + "-01-01")[: len("2000-01-01")]
    try:
        return seconds_of(datetime.fromisoformat(text))
    except ValueError:
        return None


def parse_mail_time(text: str) -> float | None:
    """The time of a text such as `Fri, 01 Mar 2024 10:00:00 +0100`, as mails and web servers write it."""
    try:
        return seconds_of(parsedate_to_datetime(text))
    except (IndexError, OverflowError, TypeError, ValueError):
        return None


def windows_time(ticks: int) -> float | None:
    """The time that Windows counts in tenths of microseconds since 1601."""
    seconds = ticks / 10_000_000 - 11_644_473_600
    return seconds if 0 < seconds < _YEAR_2200 else None


def seconds_of(moment: datetime) -> float | None:
    """The time of a moment, which is in UTC unless it says otherwise."""
    if moment.year <= _LAST_PLACEHOLDER_YEAR:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-\d\d)?")
_LAST_PLACEHOLDER_YEAR = 1601  # an unset time is the year 101 in some e-books and 1601 on Windows
_YEAR_2200 = 7_258_118_400


_TEXT_LIMIT = 16 << 20
"""Characters of text that one document gives at most, unless the caller says otherwise."""


PARTIAL = ("damaged", "incomplete", "truncated")
"""Fields in which an extractor says that it has not read all of a document, and why."""

_LONGEST_TITLE = 120
"""Characters of a heading that stand above every chunk of its section; the text itself keeps all of them."""


class Source(NamedTuple):
    """A document to read: its bytes, its file name, how much text is wanted, how deep it lies in other documents."""

    data: bytes
    name: str
    limit: int = _TEXT_LIMIT
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

    def __init__(self, limit: int = _TEXT_LIMIT) -> None:
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


@dataclass(frozen=True, kw_only=True)
class Properties:
    """The metadata of a document; times are seconds since the epoch."""

    title: str = ""
    author: str = ""
    created_at: float | None = None
    updated_at: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


def finished(builder: TextBuilder, properties: Properties) -> Extracted:
    """The text that was built, under its real title or else its first top heading. Raises `UnreadableError`."""
    extracted = with_properties(builder, properties)
    if extracted.title:
        return extracted
    written = [each for each in extracted.headings if extracted.text.startswith(each.title, each.start)]
    return replace(extracted, title=min(written, key=lambda heading: heading.level).title if written else "")


def with_properties(builder: TextBuilder, properties: Properties) -> Extracted:
    """The text that was built, with what the document says about itself. Raises `UnreadableError`."""
    extracted = builder.extracted(
        title=_real_title(properties.title),
        author=properties.author,
        created_at=properties.created_at,
        updated_at=properties.updated_at,
        fields=properties.fields,
    )
    if not extracted.text:
        raise UnreadableError("no-text", "holds no text")
    return extracted


def _real_title(title: str) -> str:
    """The title, unless a program put in its own name or that of the file."""
    title = " ".join(title.split())
    return "" if _PLACEHOLDER_TITLE.fullmatch(title) else title


_PLACEHOLDER_TITLE = re.compile(
    r"microsoft (?:office )?(?:word|powerpoint|excel) - .*"
    r"|powerpoint[ -]?\w+|\w+(?: de| do)? powerpoint"  # "PowerPoint Presentation", in any language
    r"|(?:untitled|unbenannt)(?:[ -](?:document|presentation|page))?[ .-]?\d*"
    r"|(?:document|dokument|presentation|slide) ?\d*"
    r"|\S+\.(?:docx?|dvi|html?|indd|odp|ods|odt|pdf|pptx?|ps|qxd|qxp|rtf|tex|txt|xlsx?)",
    re.IGNORECASE,
)


class LineGroups:
    """Writes the items of lists and the rows of tables, with an empty line between one group and another."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._kind = ""

    def item(self, text: str) -> None:
        """Write an item of a list, unless it is empty."""
        if text.strip():
            self._write("item", f"- {text}")

    def row(self, cells: Iterable[str]) -> None:
        """Write a row of a table, unless all its cells are empty."""
        cells = list(cells)
        if any(cell.strip() for cell in cells):
            self._write("row", " | ".join(cells))

    def begin(self) -> None:
        """End the group, even if lines of the same kind follow."""
        self._kind = ""

    def _write(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self._builder.end_paragraph()
            self._kind = kind
        self._builder.line(text)
