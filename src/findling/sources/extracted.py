"""Result of every extractor: text with headings, places, properties and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple

from findling.domain.resources import Place
from findling.sources.files.file_text import UnreadableError
from findling.text.chunking.outlines import Heading
from findling.text.chunking.windows import Span

_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-\d\d)?")
_LAST_PLACEHOLDER_YEAR = 1601  # an unset time is the year 101 in some e-books and 1601 on Windows
_YEAR_2200 = 7_258_118_400
_TEXT_LIMIT = 16 << 20  # characters of text that one document gives at most, unless the caller says otherwise
PARTIAL = ("damaged", "incomplete", "truncated")
"""Fields in which an extractor says that it has not read all of a document, and why."""

# Characters of a heading that stand above every chunk of its section; the text itself keeps all of them.
_LONGEST_TITLE = 120
_LONGEST_HEADING = 250  # characters of a heading; whole paragraphs are sometimes set in the style of one
# Control characters, byte order marks and halves of surrogate pairs are no text; soft hyphens only split words.
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufeff\u00ad\ud800-\udfff]")
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\ufeff\u00ad\u2028\u2029\ud800-\udfff]")
_ODD_BYTES = bytes(set(range(32)) - set(b"\t\n")) + b"\x7f"
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER_TITLE = re.compile(
    r"microsoft (?:office )?(?:word|powerpoint|excel) - .*"
    r"|powerpoint[ -]?\w+|\w+(?: de| do)? powerpoint"  # "PowerPoint Presentation", in any language
    r"|(?:untitled|unbenannt)(?:[ -](?:document|presentation|page))?[ .-]?\d*"
    r"|(?:document|dokument|presentation|slide) ?\d*"
    r"|\S+\.(?:docx?|dvi|html?|indd|odp|ods|odt|pdf|pptx?|ps|qxd|qxp|rtf|tex|txt|xlsx?)",
    re.IGNORECASE,
)


def paired_surrogates(text: str) -> str:
    """The text with characters beyond 16 bits made whole from their two halves; a half alone is none."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


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
        from email.utils import parsedate_to_datetime  # 6 ms, and few documents write a date so

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


class Source(NamedTuple):
    """A document to read: its bytes, file name, wanted length of text, and depth in other documents."""

    data: bytes
    name: str
    limit: int = _TEXT_LIMIT
    depth: int = 0


@dataclass(frozen=True, kw_only=True)
class Properties:
    """Metadata of a document; times are seconds since the epoch.

    `fields` holds what else the document says about itself (`language`, `to`, `subject`, …), in lower-case names.
    """

    title: str = ""
    author: str = ""
    created_at: float | None = None
    updated_at: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Extracted(Properties):
    """Text of a document, with its metadata.

    `headings` and `places` are in the order of their starts, as offsets into `text`. A chunk should not tear `blocks`
    apart. `lang` names the language whose chunker cuts the text; without one, `headings` cut it.
    """

    text: str
    headings: tuple[Heading, ...] = ()
    places: tuple[Place, ...] = ()
    blocks: tuple[Span, ...] = ()
    lang: str = ""


_UNKNOWN = Properties()
_EMPTY = ("no-text", "holds no text")


class TextBuilder:
    """Builder of a document's text, which notes where headings, places and blocks begin.

    Text beyond the limit is left out; `full` then tells an extractor to stop.
    """

    def __init__(self, limit: int = _TEXT_LIMIT) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._tail = ""
        self._length = 0
        self._headings: list[Heading] = []
        self._places: list[Place] = []
        self._blocks: list[Span] = []
        self._group = ""
        self.full = False

    def place(self, label: str = "", line: int = 0) -> None:
        """Say where in the file everything comes from that is written from here on."""
        label = label and one_line(label)
        if self._places:
            last = self._places[-1]
            if last.line == line and last.label == label:
                return
            if last.start == self._length:
                self._places.pop()
        self._places.append(Place(self._length, label, line))

    def page(self, label: str, title: str = "") -> None:
        """Begin a page or slide under its title; without one under its label, or it would belong to the one before."""
        self.place(label)
        if title:
            self.heading(title)
        else:
            self.section(label.capitalize())

    def heading(self, title: str, level: int = 1) -> None:
        """Write a section title as a paragraph of its own; levels count from 1."""
        if title := self.section(title, level):
            self._write(title + "\n\n")

    def section(self, title: str, level: int = 1) -> str:
        """Begin a section whose title is not part of the text, such as the name of a sheet."""
        title = one_line(title)
        if not title or self.full:
            return ""
        self.end_paragraph()
        short = title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"
        self._headings.append(Heading(self._length, level, short))
        return title

    def paragraph(self, text: str) -> None:
        """Write a paragraph, with an empty line after it; line breaks in it stay."""
        text = _clean(text).strip()
        if text:
            self.end_paragraph()
            self._write(text + "\n\n")

    def styled(self, text: str, level: int = 0, *, is_item: bool = False) -> None:
        """Write a heading (level from 1 on), an item of a list or a paragraph; a long heading becomes a paragraph."""
        if level and len(text) <= _LONGEST_HEADING:
            self.heading(text, level)
        elif is_item:
            self._grouped("item", f"- {text}" if text.strip() else "")
        else:
            self.paragraph(text)

    def row(self, cells: Iterable[str]) -> None:
        """Write a row of a table, unless all its cells are empty."""
        cells = list(cells)
        self._grouped("row", " | ".join(cells) if any(map(str.strip, cells)) else "")

    def begin_group(self) -> None:
        """Part the items or rows that follow from those before, even if they are of the same kind."""
        self._group = ""

    def line(self, text: str) -> None:
        """Write one line, such as the row of a table; line breaks in it become spaces."""
        text = one_line(text)
        if text:
            self._write(text + "\n")

    def block(self, text: str) -> None:
        """Write text that stays as it is and in one piece, such as code; the file has the same lines."""
        text = _clean(text).rstrip().lstrip("\n")
        if not text:
            return
        self.end_paragraph()
        start = self._length
        self._write(text + "\n\n")
        self._blocks.append((start, min(start + len(text), self._length)))
        if self._places and (place := self._places[-1]).line:
            starts = enumerate(re.finditer("\n", text), start=1)
            self._places += [Place(start + at.end(), place.label, place.line + number) for number, at in starts]

    def end_paragraph(self) -> None:
        """Write an empty line after lines that were written one by one, unless there is one."""
        if self._parts and not self._tail.endswith("\n\n"):
            self._write("\n")

    def extracted(self, about: Properties = _UNKNOWN, *, lang: str = "", empty: tuple[str, str] = _EMPTY) -> Extracted:
        """Everything written so far, with its metadata. Raises `UnreadableError` of `empty` when that is nothing."""
        text = "".join(self._parts).rstrip()
        if not text:
            raise UnreadableError(*empty)
        fields = {name: cleaned for name, value in about.fields.items() if (cleaned := one_line(value))}
        if self.full:
            fields["truncated"] = f"text beyond {self._limit} characters was left out"
        return Extracted(
            text=text,
            headings=tuple(heading for heading in self._headings if heading.start < len(text)),
            places=tuple(place for place in self._places if place.start < len(text)),
            blocks=tuple((start, min(end, len(text))) for start, end in self._blocks if start < len(text)),
            lang=lang,
            title=one_line(about.title),
            author=one_line(about.author),
            created_at=about.created_at,
            updated_at=about.updated_at,
            fields=fields,
        )

    def titled(self, about: Properties, *, by_headings: bool = True, empty: tuple[str, str] = _EMPTY) -> Extracted:
        """As `extracted`, under the title that no program has put in, or else the first top heading."""
        title = " ".join(about.title.split())
        about = replace(about, title="" if _PLACEHOLDER_TITLE.fullmatch(title) else title)
        extracted = self.extracted(about, empty=empty)
        if extracted.title or not by_headings:
            return extracted
        written = [each for each in extracted.headings if extracted.text.startswith(each.title, each.start)]
        return replace(extracted, title=min(written, key=lambda heading: heading.level).title if written else "")

    def _grouped(self, kind: str, text: str) -> None:
        if not text:
            return
        if kind != self._group:
            self.end_paragraph()
            self._group = kind
        self.line(text)

    def _write(self, text: str) -> None:
        room = self._limit - self._length
        if len(text) > room:
            self.full = True
            text = text[:room]
        if text:
            self._parts.append(text)
            self._tail = (self._tail + text)[-2:] if len(text) < 2 else text[-2:]
            self._length += len(text)


def write_parts(writes: Sequence[Callable[[], object]]) -> None:
    """Write all parts that can be read. Raises the `UnreadableError` of the first one when none can."""
    failures = []
    for write in writes:
        try:
            write()
        except UnreadableError as error:
            failures.append(error)
    if failures and len(failures) == len(writes):
        raise failures[0]


def labelled(name: str, text: str) -> str:
    """`name: text`, or the text alone when one of them is empty."""
    return f"{name}: {text}" if name and text else text


def one_line(text: str) -> str:
    """The text without control characters, its white space single spaces."""
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    # Nearly every text is clean, and one look costs less than two rounds of substitution.
    if text.isascii():
        if text.isprintable() or len(text.encode().translate(None, _ODD_BYTES)) == len(text):
            return text
    elif not _ODD.search(text):
        return text
    return _NO_TEXT.sub("", _BREAKS.sub("\n", text))
