"""Text of Word documents (.docx, .docm, .dotx)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, child_of, local_name, number_of, opened
from findling.sources.documents.containers.zip_packages import Package
from findling.sources.documents.document_formats import extract as extract_any
from findling.sources.documents.markup.html import embed
from findling.sources.documents.office import ooxml
from findling.sources.extracted import Extracted, Source, TextBuilder, labelled
from findling.sources.files.file_text import UnreadableError

_BODY_TEXT = 9
_HEADING_NAME = re.compile(r"heading ?([1-9])")
_PAGE_BREAK = "lastRenderedPageBreak"
_REMARKS = {"footnoteReference": "footnote", "endnoteReference": "endnote", "commentReference": "comment"}
_MARKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_BLOCKS = frozenset({"p", "tbl", "txbxContent", "docPr", *ooxml.DRAWING_REFERENCES, *_REMARKS})
# Properties hold tab stops and the like; the rest was deleted or moved, or is the reading of other text.
_LEFT_OUT = frozenset({"pPr", "rPr", "sdtPr", "tblPr", "trPr", "tcPr", "sectPr", "del", "moveFrom", "rt"})


def extract(source: Source) -> Extracted:
    """The text of a Word document: headers, body with notes and comments where they are made, footers.

    Raises `UnreadableError`.
    """
    package = Package(source.data)
    part = ooxml.main_part(package, "word/document.xml")
    root = package.xml(part)
    if root is None or local_name(root.tag) != "document":
        raise UnreadableError("damaged", "holds no Word document")
    writer = _DocxWriter(source, package, part)
    writer.write_margins("header")
    if any(local_name(element.tag) == _PAGE_BREAK for element in root.iter()):
        writer.turn_pages(1)
    writer.write_blocks(root)
    writer.write_blocks(list(writer.remarks.values()))  # those that nothing in the text refers to
    writer.write_margins("footer")
    return writer.builder.titled(ooxml.properties_of(package))


class _Content(NamedTuple):
    """Text within a block, the blocks that are anchored in it, and the page breaks before and inside the text."""

    text: str
    blocks: list[Element]
    breaks_before: int
    breaks_inside: int


class _DocxWriter:
    """State while a document is written; `page` is 0 when the file does not mark its pages."""

    def __init__(self, source: Source, package: Package, part: str) -> None:
        self.builder = TextBuilder(source.limit)
        self._source, self._package = source, package
        self._relationships = ooxml.relationships_of(package, part)
        styles = [element for element in self._part("styles") if local_name(element.tag) == "style"]
        self._styles = {attribute_of(style, "styleId"): style for style in styles}
        self._resolved = {name: self._resolve(name) for name in self._styles}
        # Footnotes, endnotes and comments, without the lines that separate notes from the text.
        self.remarks = {
            (local_name(element.tag), attribute_of(element, "id")): element
            for kind in ("footnotes", "endnotes", "comments")
            for element in self._part(kind)
            if attribute_of(element, "type") in ("", "normal")
        }
        self._page = 0

    def write_blocks(self, elements: Iterable[Element]) -> None:
        stack = list(elements)[::-1]
        while stack and not self.builder.full:
            element = stack.pop()
            name = local_name(element.tag)
            if name == "p":
                stack.extend(reversed(self._write_paragraph(element)))
            elif name == "tr":
                stack.extend(reversed(self._write_row(element)))
            elif name in _REMARKS:
                remark = self.remarks.pop((_REMARKS[name], attribute_of(element, "id")), None)
                stack.extend(() if remark is None else (remark,))
            elif name == "comment":
                text = "\n".join(_paragraph_texts(element))
                self.builder.paragraph(labelled(attribute_of(element, "author"), text))
            elif name in ooxml.DRAWING_REFERENCES:
                self.builder.paragraph("\n".join(ooxml.referenced_lines(element, self._package, self._relationships)))
            elif name == "docPr":
                self.builder.paragraph(ooxml.described(element))
            elif name == "altChunk":
                self._write_chunk(element)
            else:
                if name == "tbl":
                    self.builder.begin_group()
                stack.extend(_children(element))

    def write_margins(self, kind: str) -> None:
        """Write headers or footers: a document has several for its sections, most of them with the same text."""
        roots = ooxml.related(self._package, self._relationships, kind)
        self.builder.paragraph("\n".join(dict.fromkeys(line for root in roots for line in _paragraph_texts(root))))

    def turn_pages(self, count: int) -> None:
        self._page += count
        self.builder.place(f"p. {self._page}")

    def _write_paragraph(self, paragraph: Element) -> list[Element]:
        content = _content(_children(paragraph))
        level, is_list = self._style_of(child_of(paragraph, "pPr"))
        self._pass(content.breaks_before)
        self.builder.styled(content.text, level, is_item=is_list)
        self._pass(content.breaks_inside)
        return content.blocks

    def _write_row(self, row: Element) -> list[Element]:
        if child_of(child_of(row, "trPr"), "del") is not None:
            return []
        cells = _cells(row)
        if len(cells) == 1 and sum(local_name(child.tag) != "tcPr" for child in cells[0]) > 1:
            return list(cells[0])  # a frame around text rather than the row of a table
        contents = [_content(_children(cell), inside_cell=True) for cell in cells]
        self._pass(max((content.breaks_before for content in contents), default=0))
        self.builder.row(content.text for content in contents)
        self._pass(max((content.breaks_inside for content in contents), default=0))
        return [block for content in contents for block in content.blocks]

    def _write_chunk(self, element: Element) -> None:
        """Write a document in another format; converters put everything into one of HTML."""
        relationship = self._relationships.get(ooxml.relationship_id(element))
        data = None if relationship is None else self._package.part(relationship.target)
        if relationship is not None and data is not None:
            name = posixpath.basename(relationship.target)
            with suppress(UnreadableError):  # the rest of the document can be read
                embed(self.builder, extract_any(Source(data, name, self._source.limit, self._source.depth + 1)))

    def _pass(self, breaks: int) -> None:
        if self._page and breaks:
            self.turn_pages(breaks)

    def _part(self, kind: str) -> Element:
        roots = ooxml.related(self._package, self._relationships, kind)
        return roots[0] if roots else self._package.side_xml(f"word/{kind}.xml")

    def _style_of(self, properties: Element | None) -> tuple[int, bool]:
        """Level of a heading (0: none) and whether the paragraph is an item of a list."""
        name = attribute_of(child_of(properties, "pStyle"), "val")
        # The ids of built-in styles are their names.
        style_level, style_is_list = self._resolved.get(name) or (_level_of_name(name), False)
        level, is_list = _outline_level(properties), _is_numbered(properties)
        return style_level if level is None else level, style_is_list if is_list is None else is_list

    def _resolve(self, name: str) -> tuple[int, bool]:
        """Level and list of a style, with what it inherits."""
        level: int | None = None
        is_list: bool | None = None
        seen: set[str] = set()
        while name in self._styles and name not in seen and level is None:
            seen.add(name)
            style = self._styles[name]
            properties = child_of(style, "pPr")
            is_list = _is_numbered(properties) if is_list is None else is_list
            level = _outline_level(properties)
            if level is None:
                shown = attribute_of(child_of(style, "name"), "val")
                level = max(_level_of_name(name), _level_of_name(shown)) or None
            name = attribute_of(child_of(style, "basedOn"), "val")
        return level or 0, bool(is_list)


def _outline_level(properties: Element | None) -> int | None:
    """The heading level in a `pPr`: 0 for body text, `None` when it says nothing."""
    value = number_of(child_of(properties, "outlineLvl"), "val")
    return None if value is None else value + 1 if value < _BODY_TEXT else 0


def _is_numbered(properties: Element | None) -> bool | None:
    """Whether a `pPr` makes its paragraph an item of a list; `None` when it says nothing."""
    number = child_of(child_of(properties, "numPr"), "numId")
    return None if number is None else attribute_of(number, "val") != "0"


def _level_of_name(name: str) -> int:
    name = name.strip().lower()
    match = _HEADING_NAME.fullmatch(name)
    return int(match[1]) if match else int(name == "title")


def _children(element: Element) -> list[Element]:
    """The parts of an element to read, last one first."""
    name = local_name(element.tag)
    if name in _LEFT_OUT or (name == "sdt" and child_of(child_of(element, "sdtPr"), "showingPlcHdr") is not None):
        return []
    return ooxml.children_of(element)


def _cells(row: Element) -> list[Element]:
    return list(opened(_children(row), lambda each: None if local_name(each.tag) == "tc" else _children(each)))


def _content(stack: list[Element], *, inside_cell: bool = False) -> _Content:
    """Read the elements on the stack; the paragraphs of a cell are its text, other blocks stand for themselves."""
    parts: list[str] = []
    blocks: list[Element] = []
    has_text = False
    breaks_before = breaks_inside = 0
    while stack:
        element = stack.pop()
        name = local_name(element.tag)
        if name == "t":
            text = element.text or ""
            if not has_text and text.strip():
                has_text, breaks_before, breaks_inside = True, breaks_inside, 0
            parts.append(text)
        elif name in _MARKS:
            parts.append(_MARKS[name])
        elif name == "p" and inside_cell:
            parts.append("\n")
            stack.extend(_children(element))
        elif name in _BLOCKS:
            blocks.append(element)
        elif name == _PAGE_BREAK:
            breaks_inside += 1
        elif name == "textpath":  # WordArt of old
            parts.append(attribute_of(element, "string"))
        else:
            stack.extend(_children(element))
    return _Content("".join(parts), blocks, breaks_before, breaks_inside)


def _paragraph_texts(element: Element) -> list[str]:
    texts = (_content(_children(each)).text.strip() for each in element.iter() if local_name(each.tag) == "p")
    return [text for text in texts if text]
