"""Text of OpenDocument texts and presentations (.odt, .ott, .odp, .otp, and the flat .fodt and .fodp)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import (
    attribute_of,
    child_of,
    descendants,
    local_name,
    mixed_content,
    number_of,
    opened,
    parse_xml,
)
from findling.sources.documents.containers.zip_packages import Package
from findling.sources.documents.office.sheet_rows import Row, Value
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, labelled, parse_iso_time
from findling.sources.files.file_text import UnreadableError

_MAIN_PARTS = ("content.xml", "encrypted-package")
_MAX_COPIES = 100  # number of repetitions of a cell or row; one element fills whole columns
_ROW_GROUPS = ("table-header-rows", "table-row-group", "table-rows")
_NUMBERS = ("float", "percentage", "currency")
_SPACES = ("s", "tab", "line-break")
_HEADING_STYLE = re.compile(r"Heading_20_([1-9])")
_PLAIN_TEXTS = frozenset({"title", "desc", "header-decl", "footer-decl"})  # about a picture, and around slides
_MAX_LEVEL = 10
_MAX_SPACES = 100
_MARKS = {"tab": "\t", "line-break": "\n"}
_BLOCKS = frozenset({"annotation", "note", "table"})
# Deleted text, the number of a footnote, readings above other text, form controls and other things that are no text.
_LEFT_OUT = frozenset("tracked-changes note-citation ruby-text forms page-thumbnail binary-data script".split())
_SPACE = re.compile(r"[ \t\r\n]+")


def extract(source: Source) -> Extracted:
    """The text of a document with its notes and comments, headers first and footers last. Raises `UnreadableError`."""
    package = None
    if source.data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):  # a flat file: all parts are one
        content = styles = meta = parse_xml(source.data)
    else:
        package = Package(source.data)
        refuse_encrypted(package)
        root = package.xml("content.xml")
        if root is None:
            raise UnreadableError("damaged", "holds no content.xml")
        content, styles, meta = root, package.side_xml("styles.xml"), package.side_xml("meta.xml")
    body = next(descendants(content, "body"), None)
    if body is None:
        raise UnreadableError("damaged", "holds no document")
    parents = {
        attribute_of(style, "name"): attribute_of(style, "parent-style-name")
        for part in (styles, content)
        for style in descendants(part, "style")
    }
    page_label = "slide" if child_of(body, "presentation") is not None else "p."
    writer = _OdfWriter(package, TextBuilder(source.limit), parents, page_label)
    is_text = child_of(body, "text") is not None
    if is_text:
        writer.write_margins(styles, "header")
    writer.write_blocks(body)
    if is_text:
        writer.write_margins(styles, "footer")
    return writer.builder.titled(meta_properties(meta))


def refuse_encrypted(package: Package) -> None:
    """Raises `UnreadableError` for a document with a password."""
    for entry in package.side_xml("META-INF/manifest.xml"):
        if child_of(entry, "encryption-data") is not None and attribute_of(entry, "full-path") in _MAIN_PARTS:
            raise UnreadableError("encrypted", "needs a password")


def meta_properties(root: Element) -> Properties:
    """Properties of a document, in `meta.xml` or in a flat file."""
    values: dict[str, str] = {}
    for element in next(descendants(root, "meta"), ()):
        name, text = local_name(element.tag), (element.text or "").strip()
        values[name] = f"{values[name]}, {text}" if values.get(name) and name == "keyword" else text
    fields = {"language": "language", "subject": "subject", "keywords": "keyword"}
    return Properties(
        title=values.get("title", ""),
        author=values.get("initial-creator") or values.get("creator", ""),
        created_at=parse_iso_time(values.get("creation-date", "")),
        updated_at=parse_iso_time(values.get("date", "")),
        fields={field: values.get(name, "") for field, name in fields.items()},
    )


def opendocument_sheets(root: Element) -> Iterator[tuple[str, Iterator[Row]]]:
    """The names and rows of all sheets, in their order."""
    for element in root.iter():
        if local_name(element.tag) == "table":
            yield attribute_of(element, "name"), _rows(element)


def _rows(table: Element) -> Iterator[Row]:
    number = 0
    for element in _row_elements(table):
        count = number_of(element, "number-rows-repeated") or 1
        cells = list(_cells(element))
        if cells:
            for copy in range(min(count, _MAX_COPIES)):
                yield number + copy, cells
        number += count


def _row_elements(parent: Element) -> Iterator[Element]:
    """The rows of a table; headers and groups lie around some of them, one in another."""

    def inside(element: Element) -> list[Element] | None:
        name = local_name(element.tag)
        return None if name == "table-row" else list(reversed(element)) if name in _ROW_GROUPS else []

    return opened(list(reversed(parent)), inside)


def _cells(row: Element) -> Iterator[tuple[int, Value]]:
    column = 0
    for element in row:
        if local_name(element.tag) in ("table-cell", "covered-table-cell"):
            count = number_of(element, "number-columns-repeated") or 1
            value = _value(element)
            if value != "":
                for copy in range(min(count, _MAX_COPIES)):
                    yield column + copy, value
            column += count


def _value(cell: Element) -> Value:
    kind = attribute_of(cell, "value-type")
    if kind in _NUMBERS:
        try:
            return float(attribute_of(cell, "value"))
        except ValueError:
            return _shown(cell)
    if kind == "boolean":
        return attribute_of(cell, "boolean-value") == "true"
    if kind == "date":  # as the document shows it: that is what people remember
        return _shown(cell) or attribute_of(cell, "date-value").removesuffix("T00:00:00").replace("T", " ")
    return _shown(cell) or attribute_of(cell, "string-value")


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


class _OdfWriter:
    """State while a document is written; a flat file has no package."""

    def __init__(
        self, package: Package | None, builder: TextBuilder, parents_of_styles: Mapping[str, str], page_label: str
    ) -> None:
        self.builder = builder
        self._package = package
        self._parents_of_styles = parents_of_styles
        self._page_label = page_label
        self._page = 0
        self._opened_objects: set[str] = set()

    def write_blocks(self, root: Element) -> None:
        stack = [(root, False)]
        while stack and not self.builder.full:
            element, is_item = stack.pop()
            name = local_name(element.tag)
            if name in ("h", "p"):
                text, blocks = _content(element)
                self.builder.styled(text, self._heading_level(element), is_item=is_item)
                is_item = False
            else:
                blocks = self._begin(element, name)
                is_item = is_item or name == "list-item"
            stack.extend((block, is_item) for block in reversed(blocks))

    def write_margins(self, styles: Element, kind: str) -> None:
        """Write headers or footers: a document has several for its kinds of pages, most of them with the same text."""
        masters = descendants(styles, "master-page")
        margins = (child for master in masters for child in master if local_name(child.tag).startswith(kind))
        self.builder.paragraph("\n".join(dict.fromkeys(text for margin in margins for text in _texts(margin))))

    def _begin(self, element: Element, name: str) -> list[Element]:
        """Begin a block that is no paragraph; what it gives is left to be read."""
        if name == "table-row":
            return self._write_row(element)
        if name == "page":
            return self._begin_page(element)
        if name == "object":
            return self._open_object(element)
        if name == "annotation":
            creator = next((each.text or "" for each in descendants(element, "creator")), "").strip()
            self.builder.paragraph(labelled(creator, "\n".join(_texts(element))))
            return []
        if name in _PLAIN_TEXTS:
            self.builder.paragraph(element.text or "")
            return []
        if name == "table":
            self.builder.begin_group()
        elif name == "notes" and _texts(element):
            self.builder.place(f"{self._page_label} {self._page} notes")
        return [] if name in _LEFT_OUT else list(element)

    def _heading_level(self, element: Element) -> int:
        if local_name(element.tag) == "h":
            return min(number_of(element, "outline-level") or 1, _MAX_LEVEL)
        style, seen = attribute_of(element, "style-name"), set[str]()
        while style and style not in seen:
            if style == "Title":
                return 1
            if match := _HEADING_STYLE.fullmatch(style):
                return int(match[1])
            seen.add(style)
            style = self._parents_of_styles.get(style, "")
        return 0

    def _write_row(self, row: Element) -> list[Element]:
        cells = [cell for cell in row if local_name(cell.tag) == "table-cell"]
        if len(cells) == 1 and len(cells[0]) > 1:
            return list(cells[0])  # a frame around text rather than the row of a table
        contents = [_content(cell, inside_cell=True) for cell in cells]
        self.builder.row(text for text, _ in contents)
        return [block for _, blocks in contents for block in blocks]

    def _begin_page(self, page: Element) -> list[Element]:
        self._page += 1
        shapes = list(page)
        title = next((shape for shape in shapes if attribute_of(shape, "class") == "title" and _texts(shape)), None)
        self.builder.page(f"{self._page_label} {self._page}", "" if title is None else " ".join(_texts(title)))
        return [shape for shape in shapes if shape is not title]

    def _open_object(self, element: Element) -> list[Element]:
        """A chart or a document in the document: a part of its own, or inside the element."""
        name = attribute_of(element, "href").removeprefix("./")
        if self._package is None or not name or name in self._opened_objects:
            return list(element)
        self._opened_objects.add(name)
        return [self._package.side_xml(f"{name}/content.xml")]


def _content(element: Element, *, inside_cell: bool = False) -> tuple[str, list[Element]]:
    """Text of an element and the blocks anchored in it; the paragraphs of a cell are its text."""
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
    return "".join(parts), blocks


def _texts(element: Element) -> list[str]:
    texts = (_content(each)[0].strip() for each in element.iter() if local_name(each.tag) in ("h", "p"))
    return [text for text in texts if text]
