"""Text of OpenDocument texts and presentations (.odt, .ott, .odp, .otp, and the flat .fodt and .fodp)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import (
    attribute_of,
    child_of,
    descendants,
    local_name,
    mixed_content,
    number_of,
    parse_xml,
)
from findling.sources.documents.containers.zip_packages import open_zip, read_side_xml, read_xml
from findling.sources.documents.extracted import (
    Extracted,
    LineGroups,
    Properties,
    Source,
    TextBuilder,
    finished,
    parse_iso_time,
)
from findling.sources.documents.office.sheet_rows import Row, Value
from findling.sources.files.file_text import UnreadableError

__all__ = ["extract", "meta_properties", "opendocument_sheets", "refuse_encrypted"]


def refuse_encrypted(archive: zipfile.ZipFile) -> None:
    """Raises `UnreadableError` for a document with a password."""
    manifest = read_side_xml(archive, "META-INF/manifest.xml")
    for entry in () if manifest is None else manifest:
        if child_of(entry, "encryption-data") is not None and attribute_of(entry, "full-path") in _MAIN_PARTS:
            raise UnreadableError("encrypted", "needs a password")


_MAIN_PARTS = frozenset({"content.xml", "encrypted-package"})


def meta_properties(root: Element | None) -> Properties:
    """Properties of a document, in `meta.xml` or in a flat file."""
    meta = None if root is None else next(descendants(root, "meta"), None)
    values: dict[str, str] = {}
    for element in () if meta is None else meta:
        name, text = local_name(element.tag), (element.text or "").strip()
        values[name] = f"{values[name]}, {text}" if values.get(name) and name == "keyword" else text
    return Properties(
        title=values.get("title", ""),
        author=values.get("initial-creator") or values.get("creator", ""),
        created_at=parse_iso_time(values.get("creation-date", "")),
        updated_at=parse_iso_time(values.get("date", "")),
        fields={
            "language": values.get("language", ""),
            "subject": values.get("subject", ""),
            "keywords": values.get("keyword", ""),
        },
    )


def opendocument_sheets(root: Element) -> Iterator[tuple[str, Iterator[Row]]]:
    """The names and rows of all sheets, in their order."""
    for element in root.iter():
        if local_name(element.tag) == "table":
            yield attribute_of(element, "name"), _rows(element)


_MAX_COPIES = 100
"""Number of repetitions of a cell or row; one element fills whole columns."""


def _rows(table: Element) -> Iterator[Row]:
    number = 0
    for element in _row_elements(table):
        count = _repeated(_attributes(element), "number-rows-repeated")
        cells = list(_cells(element))
        if cells:
            for copy in range(min(count, _MAX_COPIES)):
                yield number + copy, cells
        number += count


def _row_elements(parent: Element) -> Iterator[Element]:
    """The rows of a table; headers and groups lie around some of them, one in another."""
    waiting = [iter(parent)]
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
        elif (name := local_name(element.tag)) == "table-row":
            yield element
        elif name in _ROW_GROUPS:
            waiting.append(iter(element))


def _cells(row: Element) -> Iterator[tuple[int, Value]]:
    column = 0
    for element in row:
        if local_name(element.tag) in _CELLS:
            attributes = _attributes(element)
            count = _repeated(attributes, "number-columns-repeated")
            value = _value(element, attributes)
            if value != "":
                for copy in range(min(count, _MAX_COPIES)):
                    yield column + copy, value
            column += count


_ROW_GROUPS = frozenset({"table-header-rows", "table-row-group", "table-rows"})
_CELLS = frozenset({"table-cell", "covered-table-cell"})
_NUMBERS = frozenset({"float", "percentage", "currency"})
_SPACES = frozenset({"s", "tab", "line-break"})


def _attributes(element: Element) -> dict[str, str]:
    return {local_name(name): value for name, value in element.items()}


def _repeated(attributes: Mapping[str, str], name: str) -> int:
    count = attributes.get(name, "1")
    return int(count) if count.isdecimal() and count.isascii() else 1


def _value(cell: Element, attributes: Mapping[str, str]) -> Value:
    kind = attributes.get("value-type", "")
    if kind in _NUMBERS:
        try:
            return float(attributes.get("value", ""))
        except ValueError:
            return _shown(cell)
    if kind == "boolean":
        return attributes.get("boolean-value") == "true"
    if kind == "date":  # as the document shows it: that is what people remember
        return _shown(cell) or attributes.get("date-value", "").removesuffix("T00:00:00").replace("T", " ")
    return _shown(cell) or attributes.get("string-value", "")


def _shown(cell: Element) -> str:
    """The text that the cell shows, without the comment on it."""
    paragraphs = [element for element in cell if local_name(element.tag) == "p"]
    if len(paragraphs) == 1 and not len(paragraphs[0]):
        return (paragraphs[0].text or "").strip()
    for paragraph in paragraphs:
        for element in paragraph.iter():
            if local_name(element.tag) in _SPACES:
                element.text = " "
    return " ".join("".join(paragraph.itertext()) for paragraph in paragraphs).strip()


def extract(source: Source) -> Extracted:
    """The text of a document with its notes and comments, headers first and footers last. Raises `UnreadableError`."""
    parts = _open(source.data)
    body = next(descendants(parts.content, "body"), None)
    if body is None:
        raise UnreadableError("damaged", "holds no document")
    document = _OdfDocument(parts.archive, TextBuilder(source.limit), _parents_of_styles(parts))
    document.page_label = "slide" if child_of(body, "presentation") is not None else "p."
    is_text = child_of(body, "text") is not None
    if is_text:
        _write_margins(document, parts.styles, "header")
    _write_blocks(document, body)
    if is_text:
        _write_margins(document, parts.styles, "footer")
    return finished(document.builder, meta_properties(parts.meta))


class _OdfParts(NamedTuple):
    """The parts of a document; in a flat file all of them are the same element, and there is no archive."""

    content: Element
    styles: Element | None
    meta: Element | None
    archive: zipfile.ZipFile | None = None


@dataclass
class _OdfDocument:
    """State while a document is written."""

    archive: zipfile.ZipFile | None
    builder: TextBuilder
    parents_of_styles: Mapping[str, str]
    page_label: str = ""
    page: int = 0
    opened_objects: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lines = LineGroups(self.builder)


class _OdfContent(NamedTuple):
    """Text within a block, and the blocks that are anchored in it."""

    text: str
    blocks: list[Element]


_HEADING_STYLE = re.compile(r"Heading_20_([1-9])")
_MAX_HEADING_LENGTH = 250
_PLAIN_TEXTS = frozenset({"title", "desc", "header-decl", "footer-decl"})  # about a picture, and around slides
_MAX_LEVEL = 10
_MAX_SPACES = 100
_MARKS = {"tab": "\t", "line-break": "\n"}
_BLOCKS = frozenset({"annotation", "note", "table"})
# Deleted text, the number of a footnote, readings above other text, form controls and other things that are no text.
_LEFT_OUT = frozenset(
    {"tracked-changes", "note-citation", "ruby-text", "forms", "page-thumbnail", "binary-data", "script"}
)


def _open(data: bytes) -> _OdfParts:
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        root = parse_xml(data)
        return _OdfParts(root, root, root)
    archive = open_zip(data)
    refuse_encrypted(archive)
    content = read_xml(archive, "content.xml")
    if content is None:
        raise UnreadableError("damaged", "holds no content.xml")
    return _OdfParts(content, read_side_xml(archive, "styles.xml"), read_side_xml(archive, "meta.xml"), archive)


def _write_blocks(document: _OdfDocument, root: Element) -> None:
    stack = [(root, False)]
    while stack and not document.builder.full:
        element, is_item = stack.pop()
        name = local_name(element.tag)
        if name in ("h", "p"):
            blocks = _write_paragraph(document, element, is_item=is_item)
        elif name == "table-row":
            blocks = _write_row(document, element)
        elif name == "page":
            blocks = _begin_page(document, element)
        elif name == "annotation":
            blocks = _write_annotation(document, element)
        elif name == "object":
            blocks = _open_object(document, element)
        elif name in _PLAIN_TEXTS:
            document.builder.paragraph(element.text or "")
            blocks = []
        else:
            blocks = _begin_group(document, element, name)
            is_item = is_item or name == "list-item"
        stack.extend((block, is_item and name not in ("h", "p")) for block in reversed(blocks))


def _begin_group(document: _OdfDocument, element: Element, name: str) -> list[Element]:
    if name in _LEFT_OUT:
        return []
    if name == "table":
        document.lines.begin()
    if name == "notes" and _texts(element):
        document.builder.place(f"{document.page_label} {document.page} notes")
    return list(element)


def _write_paragraph(document: _OdfDocument, element: Element, *, is_item: bool) -> list[Element]:
    content = _content(element)
    level = _heading_level(document, element)
    if level and len(content.text) <= _MAX_HEADING_LENGTH:
        document.builder.heading(content.text, level)
    elif is_item:
        document.lines.item(content.text)
    else:
        document.builder.paragraph(content.text)
    return content.blocks


def _heading_level(document: _OdfDocument, element: Element) -> int:
    if local_name(element.tag) == "h":
        return min(number_of(element, "outline-level") or 1, _MAX_LEVEL)
    style, seen = attribute_of(element, "style-name"), set[str]()
    while style and style not in seen:
        if style == "Title":
            return 1
        if match := _HEADING_STYLE.fullmatch(style):
            return int(match[1])
        seen.add(style)
        style = document.parents_of_styles.get(style, "")
    return 0


def _write_row(document: _OdfDocument, row: Element) -> list[Element]:
    cells = [cell for cell in row if local_name(cell.tag) == "table-cell"]
    if len(cells) == 1 and len(cells[0]) > 1:
        return list(cells[0])  # a frame around text rather than the row of a table
    contents = [_content(cell, inside_cell=True) for cell in cells]
    document.lines.row(content.text for content in contents)
    return [block for content in contents for block in content.blocks]


def _begin_page(document: _OdfDocument, page: Element) -> list[Element]:
    document.page += 1
    document.builder.place(f"{document.page_label} {document.page}")
    shapes = list(page)
    title = next((shape for shape in shapes if attribute_of(shape, "class") == "title" and _texts(shape)), None)
    if title is None:
        # Without a section of its own it would belong to the page before.
        document.builder.section(f"{document.page_label} {document.page}".capitalize())
        return shapes
    document.builder.heading(" ".join(_texts(title)))
    shapes.remove(title)
    return shapes


def _write_annotation(document: _OdfDocument, annotation: Element) -> list[Element]:
    creator = next((each.text or "" for each in descendants(annotation, "creator")), "").strip()
    text = "\n".join(_texts(annotation))
    document.builder.paragraph(f"{creator}: {text}" if creator and text else text)
    return []


def _open_object(document: _OdfDocument, element: Element) -> list[Element]:
    """A chart or a document in the document: a part of its own, or inside the element."""
    name = attribute_of(element, "href").removeprefix("./")
    if document.archive is None or not name or name in document.opened_objects:
        return list(element)
    document.opened_objects.add(name)
    root = read_side_xml(document.archive, f"{name}/content.xml")
    return [] if root is None else [root]


def _write_margins(document: _OdfDocument, styles: Element | None, kind: str) -> None:
    """Headers or footers: a document has several for its kinds of pages, most of them with the same text."""
    masters = () if styles is None else descendants(styles, "master-page")
    margins = (child for master in masters for child in master if local_name(child.tag).startswith(kind))
    document.builder.paragraph("\n".join(dict.fromkeys(text for margin in margins for text in _texts(margin))))


def _content(element: Element, *, inside_cell: bool = False) -> _OdfContent:
    """Read an element; the paragraphs of a cell are its text, other blocks stand for themselves."""
    parts: list[str] = []
    blocks: list[Element] = []
    stack = mixed_content(element)
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(_SPACE.sub(" ", item))
            continue
        name = local_name(item.tag)
        if name == "s":
            parts.append(" " * min(number_of(item, "c") or 1, _MAX_SPACES))
        elif name in _MARKS:
            parts.append(_MARKS[name])
        elif name in _BLOCKS or ":drawing:" in item.tag:
            blocks.append(item)
        elif name not in _LEFT_OUT:
            parts.extend("\n" if inside_cell and name in ("h", "p") else "")
            stack.extend(mixed_content(item))
    return _OdfContent("".join(parts), blocks)


_SPACE = re.compile(r"[ \t\r\n]+")


def _texts(element: Element) -> list[str]:
    texts = (_content(each).text.strip() for each in element.iter() if local_name(each.tag) in ("h", "p"))
    return [text for text in texts if text]


def _parents_of_styles(parts: _OdfParts) -> dict[str, str]:
    roots = (root for root in (parts.styles, parts.content) if root is not None)
    styles = (style for root in roots for style in descendants(root, "style"))
    return {attribute_of(style, "name"): attribute_of(style, "parent-style-name") for style in styles}
