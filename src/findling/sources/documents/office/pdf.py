"""PDF: the text of every page, with bookmarks as headings, notes and filled-in forms."""

from __future__ import annotations

import ctypes
import logging
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as pdfium_c  # type: ignore[import-untyped]

from findling.domain.values import counted
from findling.sources.documents.markup.xml_events import Element, StopReadingError, read_elements
from findling.sources.documents.office.pdf_tables import Place, TableRows
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, labelled, seconds_of
from findling.sources.files.file_text import UnreadableError

# pdfium writes U+FFFE for a hyphen that ends a line, and leaves the line break out.
_PDFIUM_HYPHEN = "\ufffe"
_LINE_END_HYPHEN = re.compile("(?<=\\w)(?:\ufffe\n?|[-\u00ad\u2010][ \t]*\n)(?=\\w)")
_PROSE_WIDTH = 40  # pages with shorter lines are lists, tables, slides: their lines mean something
_FULL = 0.7
_SENTENCE_ENDS = tuple('.!?:;…。！？”"»)')
_CHOICES = frozenset({pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON})
_DATA_PACKETS = (b"datasets", b"")  # the packet with the values; a form in one piece has a packet without a name
_MAX_BOOKMARKS = 20_000
_MAX_TITLE_LINES = 3
_SHORTEST_NUMBERED_TITLE = 3
_NUMBERING = re.compile("(?:chapter|section|part|appendix|kapitel|abschnitt|teil|anhang|§)?(?:[0-9]*|[ivxlc]+|[a-z])")
_UNREAD_ANNOTATIONS = frozenset({pdfium_c.FPDF_ANNOT_LINK, pdfium_c.FPDF_ANNOT_POPUP})
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?\s*(?:Z|([+-])(\d\d)'?(\d\d)?)?", re.ASCII)


def split_lines(text: str) -> list[str]:
    """The lines of a page, no word hyphenated at an end; an empty line stands before each indented one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _LINE_END_HYPHEN.sub(_mended, text).replace(_PDFIUM_HYPHEN, "-")
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and line[0].isspace():
            lines.append("")
        lines.append(stripped)
    return lines


def usual_width(lines: Sequence[str]) -> int:
    """Length of a full line of the page: the longest tenth may be something else, such as a wide table."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[len(lengths) * 9 // 10] if lengths else 0


def join_lines(lines: Sequence[str], width: int) -> str:
    """The text of lines: where a sentence runs on they become one, and an empty line ends a paragraph."""
    parts: list[str] = []
    previous = ""
    for line in lines:
        if line:
            if parts:
                parts.append(_joint(previous, line, width))
            parts.append(line)
        previous = line
    return "".join(parts)


def _mended(hyphen: re.Match[str]) -> str:
    before, after = hyphen.string[hyphen.start() - 1], hyphen.string[hyphen.end()]
    return "" if before.isalpha() and after.islower() else "-"


def _joint(line: str, following: str, width: int) -> str:
    """Separator of two lines of a page: a space, a line break or an empty line."""
    if not line:
        return "\n\n"
    if width < _PROSE_WIDTH or "|" in line or "|" in following:
        return "\n"
    is_full = len(line) >= _FULL * width
    if line.endswith(_SENTENCE_ENDS) and not following[0].islower():
        return "\n" if is_full else "\n\n"
    if not is_full or not following[0].isalpha() or not (line[-1].isalpha() or following[0].islower()):
        return "\n"
    return "" if _is_unspaced(line[-1]) and _is_unspaced(following[0]) else " "


def _is_unspaced(character: str) -> bool:
    """Whether the character belongs to Chinese or Japanese, which put no spaces between words."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or "\uff00" <= character <= "\uff9f"


def _field_line(form: Any, widget: Any) -> str:
    """`name: value` of a form field; empty when nothing was filled in.

    Half-merged files have fields without a form around them; those say their name and value themselves.
    """
    if not form:
        name, value = (_pdf_string(pdfium_c.FPDFAnnot_GetStringValue, widget, key).strip() for key in (b"T", b"V"))
        return labelled(name, value)
    if pdfium_c.FPDFAnnot_GetFormFieldType(form, widget) in _CHOICES and not pdfium_c.FPDFAnnot_IsChecked(form, widget):
        return ""
    value = _pdf_string(pdfium_c.FPDFAnnot_GetFormFieldValue, form, widget).strip()
    names = pdfium_c.FPDFAnnot_GetFormFieldAlternateName, pdfium_c.FPDFAnnot_GetFormFieldName
    return labelled(next(filter(None, (_pdf_string(name, form, widget) for name in names)), ""), value)


def _write_form_data(builder: TextBuilder, document: Any) -> None:
    """Write the values of an XFA form; the pages of such a file often only ask to wait for Acrobat."""
    is_first = True

    def receive(element: Element, around: Sequence[Element]) -> None:
        nonlocal is_first
        if builder.full:
            raise StopReadingError
        if not element.text or not any(outer.name == "data" for outer in around):
            return
        if is_first:
            builder.place("form")
            builder.section("Form")
            is_first = False
        builder.line(labelled(element.name, element.text))

    for index in range(max(0, pdfium_c.FPDF_GetXFAPacketCount(document))):
        if _packet_name(document, index) in _DATA_PACKETS:
            read_elements(_packet(document, index).decode("utf-8", "replace"), receive)
    builder.end_paragraph()


def _pdf_string(read: Callable[..., int], *of: Any) -> str:
    """A string that pdfium hands out in UTF-16, after telling how many bytes it takes."""
    size = read(*of, None, 0)
    buffer = (ctypes.c_ushort * ((size + 1) // 2))()
    read(*of, buffer, size)
    return _decode_utf16(memoryview(buffer)).rstrip("\0")


def _decode_utf16(utf16: memoryview) -> str:
    """The text in 16-bit units; halves of pairs are left out."""
    return utf16.tobytes().decode("utf-16-le", "ignore")


def _packet_name(document: Any, index: int) -> bytes:
    size = pdfium_c.FPDF_GetXFAPacketName(document, index, None, 0)
    buffer = ctypes.create_string_buffer(max(size, 1))
    pdfium_c.FPDF_GetXFAPacketName(document, index, buffer, size)
    return buffer.value


def _packet(document: Any, index: int) -> bytes:
    size = ctypes.c_ulong()
    pdfium_c.FPDF_GetXFAPacketContent(document, index, None, 0, size)
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    pdfium_c.FPDF_GetXFAPacketContent(document, index, buffer, size.value, size)
    return buffer.raw[: size.value]


logging.getLogger("pypdfium2").setLevel(logging.ERROR)  # it warns of XFA forms, whose values are read another way


def extract(source: Source) -> Extracted:
    """The text of a PDF, page by page. Raises `UnreadableError`."""
    with _open(source.data) as document:
        builder = TextBuilder(source.limit)
        broken = _write_pages(builder, document)
        _write_form_data(builder, document)
        _list_attachments(builder, document)
        damage = f"{broken} of {counted(len(document), 'page')} cannot be read" if broken else ""
        properties = Properties(
            title=_metadata(document, "Title"),
            author=_metadata(document, "Author"),
            created_at=_seconds(_metadata(document, "CreationDate")),
            updated_at=_seconds(_metadata(document, "ModDate")),
            fields={"language": _pdf_string(pdfium_c.FPDFCatalog_GetLanguage, document).strip(), "damaged": damage},
        )
    empty = ("damaged", damage) if damage else ("no-text", "scanned pages? no text layer")
    return builder.titled(properties, by_headings=False, empty=empty)


def _open(data: bytes) -> Any:
    try:
        return pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
            raise UnreadableError("encrypted", "needs a password") from error
        if error.err_code == pdfium_c.FPDF_ERR_SECURITY:
            raise UnreadableError("encrypted", "protected in an unknown way") from error
        raise UnreadableError("damaged", "the structure of the PDF is broken") from error


def _write_pages(builder: TextBuilder, document: Any) -> int:
    """Write all pages that can be read; how many cannot."""
    bookmarks = _bookmarks(document)
    if document.get_formtype() != pdfium_c.FORMTYPE_NONE:
        document.init_forms()
    broken = 0
    tables = TableRows()
    for index in range(len(document)):
        builder.place(f"p. {_pdf_string(pdfium_c.FPDF_GetPageLabel, document, index).strip() or index + 1}")
        try:
            with closing(document[index]) as page:
                _write_text(builder, _page_text(page, tables), bookmarks.get(index, ()))
                _write_annotations(builder, page, document.formenv)
        except pdfium.PdfiumError:
            broken += 1
        if builder.full:
            break
    return broken


def _page_text(page: Any, tables: TableRows) -> str:
    with closing(page.get_textpage()) as text_page:
        count = text_page.count_chars()
        buffer = (ctypes.c_ushort * (count + 1))()
        written = pdfium_c.FPDFText_GetText(text_page, 0, count, buffer)
        text = _decode_utf16(memoryview(buffer)[: max(written - 1, 0)])
        # Without all characters, and with halves of some, the text tells nothing of where its words stand.
        return (
            tables.written(text, _placed(text_page, pdfium_c.FPDFPage_GetRotation(page)))
            if len(text) == count
            else text
        )


def _placed(text_page: Any, turns: int) -> Callable[[int, int], Place]:
    """A function that tells where a word stands on the page as it is shown."""
    rectangle = pdfium_c.FS_RECTF()

    def corners(at: int) -> Place:
        pdfium_c.FPDFText_GetLooseCharBox(text_page, at, rectangle)
        left, bottom, right, top = rectangle.left, rectangle.bottom, rectangle.right, rectangle.top
        for _ in range(turns):
            left, bottom, right, top = bottom, -right, top, -left
        return left, bottom, right, top

    def place(start: int, end: int) -> Place:
        left, bottom, _, top = corners(start)
        return left, corners(end - 1)[2], (bottom + top) / 2, top - bottom

    return place


def _write_text(builder: TextBuilder, text: str, bookmarks: Sequence[tuple[str, int]]) -> None:
    """Write a page: a bookmark whose title fills whole lines is a heading, another one a section without text."""
    lines = split_lines(text)
    width = usual_width(lines)
    keys = [_title_key(line) for line in lines] if bookmarks else []
    done = 0
    for title, level in bookmarks:
        start, end = _find_title(keys, _title_key(title), done)
        if start == end:
            builder.section(title, level)
        else:
            builder.paragraph(join_lines(lines[done:start], width))
            builder.heading(" ".join(lines[start:end]), level)
            done = end
    builder.paragraph(join_lines(lines[done:], width))


def _bookmarks(document: Any) -> Mapping[int, Sequence[tuple[str, int]]]:
    """The bookmarks by the index of the page they lead to, in their order."""
    by_page: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for bookmark in islice(document.get_toc(), _MAX_BOOKMARKS):
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        if index is not None:
            title = _pdf_string(pdfium_c.FPDFBookmark_GetTitle, bookmark)
            by_page[index].append((title, bookmark.level + 1))
    return by_page


def _find_title(keys: Sequence[str], title: str, start: int) -> tuple[int, int]:
    """The lines that are the title and nothing else, from `start` on; an empty range when there are none."""
    for first in range(start, len(keys)):
        joined = ""
        for end in range(first + 1, min(first + _MAX_TITLE_LINES, len(keys)) + 1):
            joined += keys[end - 1]
            if keys[first] and keys[end - 1] and _is_same_title(joined, title):
                return first, end
    return start, start


def _is_same_title(line: str, title: str) -> bool:
    """Titles are numbered on the page, in the bookmark, in both or in neither."""
    if line == title:
        return True
    shorter, longer = sorted((line, title), key=len)
    return (
        len(shorter) >= _SHORTEST_NUMBERED_TITLE
        and longer.endswith(shorter)
        and bool(_NUMBERING.fullmatch(longer.removesuffix(shorter)))
    )


def _title_key(text: str) -> str:
    """Form of a title that ignores spacing and case."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum() or char == "§")


def _write_annotations(builder: TextBuilder, page: Any, form: Any) -> None:
    """Write the notes on a page and the fields of its form that are filled in."""
    for index in range(pdfium_c.FPDFPage_GetAnnotCount(page)):
        if builder.full:
            return
        annotation = pdfium_c.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            subtype = pdfium_c.FPDFAnnot_GetSubtype(annotation)
            if subtype == pdfium_c.FPDF_ANNOT_WIDGET:
                builder.line(_field_line(form, annotation))
            elif subtype not in _UNREAD_ANNOTATIONS:
                builder.paragraph(_pdf_string(pdfium_c.FPDFAnnot_GetStringValue, annotation, b"Contents"))
        finally:
            pdfium_c.FPDFPage_CloseAnnot(annotation)
    builder.end_paragraph()


def _list_attachments(builder: TextBuilder, document: Any) -> None:
    count = document.count_attachments()
    if count > 0:
        builder.place("attachments")
        builder.section("Attachments")
    for index in range(count):
        attachment = pdfium_c.FPDFDoc_GetAttachment(document, index)
        if attachment and not builder.full:
            builder.line(_pdf_string(pdfium_c.FPDFAttachment_GetName, attachment))


def _metadata(document: Any, key: str) -> str:
    return _pdf_string(pdfium_c.FPDF_GetMetaText, document, key.encode() + b"\0").strip()


def _seconds(date: str) -> float | None:
    """Seconds since the epoch of a PDF date such as `D:20240131235959+01'00'`; without a zone it is taken as UTC."""
    match = _DATE.match(date)
    if not match:
        return None
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(match.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)
    )
    sign, hours, minutes = match.groups()[6:]
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset) if offset else UTC
        return seconds_of(datetime(year, month, day, hour, minute, second, tzinfo=zone))
    except (ValueError, OverflowError):  # the 31st of February, a zone of 99 hours
        return None
