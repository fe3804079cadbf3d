"""Rich Text Format: groups, control words and characters in many encodings, turned into paragraphs, rows and notes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from findling.sources.documents.charsets import decode_bytes
from findling.sources.documents.markup.html import embed_html
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, paired_surrogates, seconds_of
from findling.sources.files.file_text import UnreadableError

_SYMBOLS = {
    "bullet": "•", "emdash": "—", "emspace": " ", "endash": "–", "enspace": " ", "ldblquote": "“", "line": "\n",
    "lquote": "‘", "qmspace": " ", "rdblquote": "”", "rquote": "’", "tab": "\t",
}  # fmt: skip
_CHARACTERS = {b"~": "\u00a0", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}"}

# Texts beside the main one.
_ASIDES = frozenset("annotation footer footerf footerl footerr footnote header headerf headerl headerr shptxt".split())
# Groups whose text is not for readers.
_SKIPPED_DESTINATIONS = frozenset(
    "aftncn aftnsep aftnsepc atnauthor atndate atnicn atnid atnparent atnref atntime bkmkend bkmkstart colortbl"
    " datafield falt fldinst ftncn ftnsep ftnsepc generator listoverridetable listtable mmathPict nonesttables"
    " nonshppict objclass objdata objname panose pict pn pntxta pntxtb revtbl rsidtbl sn sp sv tc"
    " themedata upr xe".split()
)
# Groups marked as optional that hold text all the same.
_FLAGGED_DESTINATIONS = frozenset(
    "annotation htmltag moMath moMathPara nesttableprops shpinst shppict shptxt ud".split()
)
_INFO_TEXTS = frozenset("author keywords subject title".split())
_INFO_TIMES = ("creatim", "revtim")
_TIME_UNITS = {"yr": 1, "mo": 1, "dy": 1, "hr": 0, "min": 0, "sec": 0}  # units of a time, and their least values
# The encoding of a font's characters; a font of charset 1 takes that of the document.
_CODE_PAGES_OF_CHARSETS = {
    0: 1252, 2: 1252, 77: 10000, 78: 10001, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254,
    163: 1258, 177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 850,
}  # fmt: skip
_DEFAULT_CODE_PAGES = {"ansicpg": 0, "mac": 10000, "pc": 437, "pca": 850}
_MEANINGFUL = frozenset(
    "cell cpg deleted f fcharset fonttbl fromhtml htmlrtf info intbl nestcell nestrow outlinelevel page par pard plain"
    " row s sect stylesheet u uc ud v".split()
).union(_DEFAULT_CODE_PAGES, _ASIDES, _INFO_TEXTS, _INFO_TIMES, _SKIPPED_DESTINATIONS, _SYMBOLS, _TIME_UNITS)
_WORDS_EVERYWHERE = {"uc", "f", *_SYMBOLS}
_TOKEN = re.compile(
    rb"([^\\{}]+)|\\([a-zA-Z]{1,32})(-?\d{1,9})? ?|\\'([0-9a-fA-F]{2})|\\(['\r\n]|[^a-zA-Z'])|([{}])", re.DOTALL
)
_DEEPEST = 20_000
_RtfParagraph = tuple[str, int, bool]  # text, level of a heading from 1 on, whether it is a row of a table


def extract(source: Source) -> Extracted:
    """The text of an RTF file, then its notes and page headers. Raises `UnreadableError`."""
    data = source.data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")
    if not data.startswith(b"{\\rtf"):
        raise UnreadableError("damaged", "does not begin as RTF does")
    document = read_rtf(data, source.limit + 1)
    builder = TextBuilder(source.limit)
    if document.html:
        embed_html(builder, document.html, source)
    for text, level, is_row in (*document.paragraphs, *document.asides):
        if is_row:
            builder.line(text)
        elif level:
            builder.heading(text, level)
        else:
            builder.paragraph(text)
    info = document.info
    return builder.titled(
        Properties(
            title=info.get("title", ""),
            author=info.get("author", ""),
            created_at=_time(document.times.get("creatim", {})),
            updated_at=_time(document.times.get("revtim", {})),
            fields={"subject": info.get("subject", ""), "keywords": info.get("keywords", "")},
        )
    )


def _time(units: dict[str, int]) -> float | None:
    year, month, day, hour, minute, second = (units.get(unit, least) for unit, least in _TIME_UNITS.items())
    try:
        return seconds_of(datetime(year, month, day, hour, minute, second)) if units.get("yr") else None
    except (OverflowError, ValueError):
        return None


def read_rtf(data: bytes, limit: int) -> _RtfReader:
    """Read an RTF file up to about `limit` characters of text; whatever is broken is passed over."""
    reader = _RtfReader(limit)
    position = 0
    while position < len(data) and reader.room > 0:
        token = _TOKEN.match(data, position)
        if token is None:  # a lone backslash at the end
            break
        position = token.end()
        text, word, number, byte, symbol, brace = token.groups()
        if text:
            reader.characters(text.translate(None, b"\r\n\0"))
        elif word == b"bin":
            position += max(0, int(number or 0))
        elif word:
            reader.word(word.decode("ascii"), int(number) if number else None)
        elif byte:
            reader.characters(bytes((int(byte, 16),)))
        elif symbol:
            reader.symbol(symbol)
        elif brace == b"{":
            reader.open()
        else:
            reader.close()
    reader.finish()
    return reader


class _Flow:
    """One text under construction: the document, a note, a page header, a field of the document's information."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.cells: list[str] = []
        self.paragraphs: list[_RtfParagraph] = []

    def take(self) -> str:
        text = paired_surrogates("".join(self.parts))
        self.parts.clear()
        return text

    def end_paragraph(self, level: int = 0) -> None:
        self.end_row()
        if text := self.take().strip():
            self.paragraphs.append((text, level, False))

    def end_cell(self) -> None:
        self.cells.append(" ".join(self.take().split()))

    def end_row(self) -> None:
        while self.cells and not self.cells[-1]:
            self.cells.pop()
        if self.cells:
            self.paragraphs.append((" | ".join(self.cells), 0, True))
        self.cells.clear()


@dataclass(slots=True)
class _Group:
    """State that a group inherits from the one around it and that its end restores."""

    flow: _Flow | None
    place: str = ""  # fonttbl, stylesheet, info or a time in it, where words mean something of their own
    code_page: int = 0
    fallback_length: int = 1
    hidden: bool = False
    rtf_only: bool = False
    level: int = 0
    in_table: bool = False
    number: int = 0  # of the font or style that is being described

    def copy(self) -> _Group:
        """A tenth of the time of `copy.copy`, and there are as many groups as words."""
        one = (self.flow, self.place, self.code_page, self.fallback_length, self.hidden)
        return _Group(*one, self.rtf_only, self.level, self.in_table, self.number)


class _RtfReader:
    """Reader of an RTF file, and its content: the text, then notes and page headers, then its properties.

    `html` is the page that a mail program has wrapped into RTF; then there are no paragraphs.
    """

    def __init__(self, limit: int) -> None:
        self.paragraphs: list[_RtfParagraph] = []
        self.asides: list[_RtfParagraph] = []
        self.info: dict[str, str] = {}
        self.times: dict[str, dict[str, int]] = {}
        self.html = ""
        self.room = limit
        self.main = _Flow()
        self.flows_beside: list[_Flow] = []
        self.info_flows: dict[str, _Flow] = {}
        self.fonts: dict[int, int] = {}
        self.styles: dict[int, int] = {}
        self.default_code_page = 1252
        self.is_html = False
        self.group = _Group(self.main)
        self.groups: list[_Group] = []
        self.pending = bytearray()  # a character may take bytes of several tokens
        self.to_skip = 0
        self.is_flagged = False
        self.is_group_start = False  # only there `\*` speaks of the group

    def open(self) -> None:
        self._flush()
        self.to_skip = 0
        self.is_group_start = True
        if len(self.groups) < _DEEPEST:
            self.groups.append(self.group.copy())

    def close(self) -> None:
        self._flush()
        self.to_skip = 0
        self.is_flagged = self.is_group_start = False
        if self.groups:
            self.group = self.groups.pop()

    def characters(self, data: bytes) -> None:
        if data:
            self.is_group_start = False
        if self.to_skip:
            skipped = min(self.to_skip, len(data))
            self.to_skip -= skipped
            data = data[skipped:]
        if self.group.flow is not None:
            self.pending += data

    def symbol(self, symbol: bytes) -> None:
        starts, self.is_group_start = self.is_group_start, False
        if symbol == b"*":
            self.is_flagged = starts
        elif symbol in b"\r\n":
            self.word("par", None)
        elif self.to_skip:
            self.to_skip -= 1
        else:
            self._emit(_CHARACTERS.get(symbol, ""))

    def word(self, word: str, number: int | None) -> None:
        flagged, self.is_flagged = self.is_flagged, False
        self.is_group_start = False
        if word not in _MEANINGFUL and not flagged:  # most words are about looks
            self.to_skip = 0
            return
        self._flush()
        if word == "u":
            self._unicode(number or 0)
            return
        self.to_skip = 0
        if self._enter(word, flagged) or self._describe(word, number) or self._set(word, number):
            return
        if word in _SYMBOLS:
            self._emit(_SYMBOLS[word])
        elif not self.is_html:
            self._structure(word)
        elif word in ("par", "line"):
            self._emit("\n")

    def finish(self) -> None:
        self._flush()
        if self.is_html:
            self.html = self.main.take()
            return
        self.main.end_paragraph(self.group.level)
        self.paragraphs = self.main.paragraphs
        for flow in self.flows_beside:
            flow.end_paragraph()
        # Pages of different kinds often bear the same header; every text beside the main one is wanted once.
        self.asides = list(dict.fromkeys(each for flow in self.flows_beside for each in flow.paragraphs))
        self.info = {name: flow.take().strip() for name, flow in self.info_flows.items()}

    def _enter(self, word: str, flagged: bool) -> bool:
        """Whether the word says where the text of its group goes."""
        group = self.group
        if word in ("fonttbl", "stylesheet", "info"):
            group.place, group.flow = word, None
        elif word in _SKIPPED_DESTINATIONS or (flagged and word not in _FLAGGED_DESTINATIONS):
            group.flow = None
            group.place = "skipped"
        elif word in _ASIDES and group.flow is not None:
            group.flow = _Flow()
            group.in_table, group.level = False, 0
            self.flows_beside.append(group.flow)
        elif word == "ud":  # the same text as before, now in Unicode
            group.flow = self.groups[-2].flow if len(self.groups) > 1 else self.main
        else:
            return False
        return True

    def _describe(self, word: str, number: int | None) -> bool:
        """Whether the word belongs to the tables at the start of the document."""
        group = self.group
        if group.place == "fonttbl":
            if word == "f":
                group.number = number or 0
            elif word == "fcharset" and number in _CODE_PAGES_OF_CHARSETS:
                self.fonts.setdefault(group.number, _CODE_PAGES_OF_CHARSETS[number])
            elif word == "cpg" and number:
                self.fonts[group.number] = number
        elif group.place == "stylesheet":
            if word == "s":
                group.number = number or 0
            elif word == "outlinelevel" and number is not None:
                self.styles[group.number] = _level(number)
        elif group.place == "info" and word in _INFO_TEXTS:
            group.flow = self.info_flows[word] = _Flow()  # once more in Unicode, perhaps
        elif group.place == "info" and word in _INFO_TIMES:
            group.place = word
        elif group.place in _INFO_TIMES and word in _TIME_UNITS:
            self.times.setdefault(group.place, {})[word] = number or 0
        return group.place != "" and word not in _WORDS_EVERYWHERE

    def _set(self, word: str, number: int | None) -> bool:
        """Whether the word changes how the text after it is read."""
        group = self.group
        is_on = number != 0
        if word == "f":
            group.code_page = self.fonts.get(number or 0, 0)
        elif word == "plain":
            group.code_page, group.hidden = 0, False
        elif word == "pard":
            group.in_table, group.level = False, 0
        elif word == "intbl":
            group.in_table = is_on
        elif word == "s":
            group.level = self.styles.get(number or 0, 0)
        elif word == "outlinelevel":
            group.level = _level(number or 0)
        elif word in ("v", "deleted"):
            group.hidden = is_on
        elif word == "uc":
            group.fallback_length = max(0, number or 0)
        elif word == "htmlrtf":
            group.rtf_only = is_on
        elif word == "fromhtml":
            self.is_html = is_on
        elif word in _DEFAULT_CODE_PAGES:
            self.default_code_page = _DEFAULT_CODE_PAGES[word] or number or 1252
        else:
            return False
        return True

    def _structure(self, word: str) -> None:
        group = self.group
        flow = group.flow
        if flow is None:
            return
        if word == "cell":
            flow.end_cell()
        elif word == "row":
            flow.end_row()
        elif word in ("nestcell", "nestrow") or (word == "par" and group.in_table):
            self._emit("\n")
        elif word in ("par", "sect", "page"):
            flow.end_paragraph(group.level)

    def _unicode(self, number: int) -> None:
        code = number & 0xFFFF if number < 0 else number
        if code < 0x110000:
            self._emit(chr(code))
        self.to_skip = self.group.fallback_length

    def _flush(self) -> None:
        if self.pending:
            text = decode_bytes(bytes(self.pending), self.group.code_page or self.default_code_page)
            self.pending.clear()
            self._emit(text)

    def _emit(self, text: str) -> None:
        group = self.group
        self._flush()
        if group.flow is not None and not group.hidden and not (group.rtf_only and self.is_html):
            group.flow.parts.append(text)
            self.room -= len(text)


def _level(outline_level: int) -> int:
    return outline_level + 1 if 0 <= outline_level < 9 else 0
