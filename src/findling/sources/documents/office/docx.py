"""Text of Word documents (.docx, .docm, .dotx)."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, child_of, local_name, number_of
from findling.sources.documents.containers.zip_packages import open_zip, read_member, read_side_xml, read_xml
from findling.sources.documents.document_formats import extract as extract_any
from findling.sources.documents.extracted import Extracted, LineGroups, Source, TextBuilder, finished
from findling.sources.documents.markup.html import embed
from findling.sources.documents.office.ooxml import (
    DRAWING_REFERENCES,
    Relationship,
    chosen_alternative,
    described,
    main_part,
    properties_of,
    referenced_lines,
    relationship_id,
    relationships_of,
)
from findling.sources.files.file_text import UnreadableError

__all__ = ["extract", "outline_level"]


class _ParagraphStyle(NamedTuple):
    """`level` is that of a heading, counted from 1, or 0 for anything else."""

    level: int = 0
    is_list: bool = False


def _read_styles(root: Element | None) -> dict[str, _ParagraphStyle]:
    """The paragraph styles by id, with what they inherit."""
    elements = () if root is None else root
    styles = {attribute_of(element, "styleId"): element for element in elements if local_name(element.tag) == "style"}
    return {name: _resolved(name, styles) for name in styles}


def outline_level(properties: Element | None) -> int | None:
    """The heading level in a `pPr`: 0 for body text, `None` when it says nothing."""
    element = child_of(properties, "outlineLvl")
    value = None if element is None else number_of(element, "val")
    if value is None:
        return None
    return value + 1 if value < _BODY_TEXT else 0


def _is_numbered(properties: Element | None) -> bool | None:
    """Whether a `pPr` makes its paragraph an item of a list; `None` when it says nothing."""
    number = child_of(child_of(properties, "numPr"), "numId")
    return None if number is None else attribute_of(number, "val") != "0"


_BODY_TEXT = 9
_HEADING_NAME = re.compile(r"heading ?([1-9])")


def _level_of_name(name: str) -> int:
    name = name.strip().lower()
    match = _HEADING_NAME.fullmatch(name)
    return int(match[1]) if match else int(name == "title")


def _resolved(name: str, styles: dict[str, Element]) -> _ParagraphStyle:
    level: int | None = None
    is_list: bool | None = None
    seen: set[str] = set()
    while name in styles and name not in seen and level is None:
        seen.add(name)
        style = styles[name]
        properties = child_of(style, "pPr")
        is_list = _is_numbered(properties) if is_list is None else is_list
        level = outline_level(properties)
        if level is None:
            level = max(_level_of_name(name), _level_of_name(_value(style, "name"))) or None
        name = _value(style, "basedOn")
    return _ParagraphStyle(level or 0, bool(is_list))


def _value(element: Element, name: str) -> str:
    child = child_of(element, name)
    return "" if child is None else attribute_of(child, "val")


def extract(source: Source) -> Extracted:
    """The text of a Word document: headers, body with notes and comments where they are made, footers.

    Raises `UnreadableError`.
    """
    archive = open_zip(source.data)
    part = main_part(archive, "word/document.xml")
    root = read_xml(archive, part)
    if root is None or local_name(root.tag) != "document":
        raise UnreadableError("damaged", "holds no Word document")
    document = _Document(source, archive, TextBuilder(source.limit), relationships_of(archive, part))
    document.styles = _read_styles(_related(document, "styles"))
    document.remarks = _remarks(document)
    _write_margins(document, "header")
    if any(local_name(element.tag) == _PAGE_BREAK for element in root.iter()):
        document.page = 1
        document.builder.place("p. 1")
    _write_blocks(document, root)
    _write_blocks(document, list(document.remarks.values()))  # those that nothing in the text refers to
    _write_margins(document, "footer")
    return finished(document.builder, properties_of(archive))


_PAGE_BREAK = "lastRenderedPageBreak"
_MAX_HEADING_LENGTH = 250  # whole paragraphs are sometimes set in the style of a heading
_REMARKS = {"footnoteReference": "footnote", "endnoteReference": "endnote", "commentReference": "comment"}
_MARKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_BLOCKS = frozenset({"p", "tbl", "txbxContent", "docPr", *DRAWING_REFERENCES, *_REMARKS})
# Properties hold tab stops and the like; the rest was deleted, or moved elsewhere, or is the reading of other text.
_LEFT_OUT = frozenset({"pPr", "rPr", "sdtPr", "tblPr", "trPr", "tcPr", "sectPr", "del", "moveFrom", "rt"})


@dataclass
class _Document:
    """State while a document is written; `page` is 0 when the file does not mark its pages."""

    source: Source
    archive: zipfile.ZipFile
    builder: TextBuilder
    relationships: Mapping[str, Relationship]
    styles: Mapping[str, _ParagraphStyle] = field(default_factory=dict)
    remarks: dict[tuple[str, str], Element] = field(default_factory=dict)
    page: int = 0

    def __post_init__(self) -> None:
        self.lines = LineGroups(self.builder)


class _Content(NamedTuple):
    """Text within a block, the blocks that are anchored in it, and the page breaks before and inside the text."""

    text: str
    blocks: list[Element]
    breaks_before: int
    breaks_inside: int


def _write_blocks(document: _Document, elements: Iterable[Element]) -> None:
    stack = list(elements)[::-1]
    while stack and not document.builder.full:
        element = stack.pop()
        name = local_name(element.tag)
        if name == "p":
            stack.extend(reversed(_write_paragraph(document, element)))
        elif name == "tr":
            stack.extend(reversed(_write_row(document, element)))
        elif name in _REMARKS:
            remark = document.remarks.pop((_REMARKS[name], attribute_of(element, "id")), None)
            stack.extend(() if remark is None else (remark,))
        elif name == "comment":
            author = attribute_of(element, "author")
            text = "\n".join(_paragraph_texts(element))
            document.builder.paragraph(f"{author}: {text}" if author and text else text)
        elif name in DRAWING_REFERENCES:
            lines = referenced_lines(element, document.archive, document.relationships)
            document.builder.paragraph("\n".join(lines))
        elif name == "docPr":
            document.builder.paragraph(described(element))
        elif name == "altChunk":
            _write_chunk(document, element)
        else:
            if name == "tbl":
                document.lines.begin()
            stack.extend(_children(element))


def _children(element: Element) -> list[Element]:
    """The parts of an element to read, last one first."""
    name = local_name(element.tag)
    if name in _LEFT_OUT or (name == "sdt" and child_of(child_of(element, "sdtPr"), "showingPlcHdr") is not None):
        return []
    if name == "AlternateContent":
        chosen = chosen_alternative(element)
        return [] if chosen is None else [chosen]
    return list(reversed(element))


def _write_paragraph(document: _Document, paragraph: Element) -> list[Element]:
    content = _content(_children(paragraph))
    properties = child_of(paragraph, "pPr")
    style = _style_of(document, properties)
    _turn_pages(document, content.breaks_before)
    if style.level and len(content.text) <= _MAX_HEADING_LENGTH:
        document.builder.heading(content.text, style.level)
    elif style.is_list:
        document.lines.item(content.text)
    else:
        document.builder.paragraph(content.text)
    _turn_pages(document, content.breaks_inside)
    return content.blocks


def _style_of(document: _Document, properties: Element | None) -> _ParagraphStyle:
    reference = child_of(properties, "pStyle")
    name = "" if reference is None else attribute_of(reference, "val")
    style = document.styles.get(name) or _ParagraphStyle(
        _level_of_name(name)
    )  # the ids of built-in styles are their names
    level, is_list = outline_level(properties), _is_numbered(properties)
    return _ParagraphStyle(style.level if level is None else level, style.is_list if is_list is None else is_list)


def _write_row(document: _Document, row: Element) -> list[Element]:
    if child_of(child_of(row, "trPr"), "del") is not None:
        return []
    cells = _cells(row)
    if len(cells) == 1 and sum(local_name(child.tag) != "tcPr" for child in cells[0]) > 1:
        return list(cells[0])  # a frame around text rather than the row of a table
    contents = [_content(_children(cell), inside_cell=True) for cell in cells]
    _turn_pages(document, max((content.breaks_before for content in contents), default=0))
    document.lines.row(content.text for content in contents)
    _turn_pages(document, max((content.breaks_inside for content in contents), default=0))
    return [block for content in contents for block in content.blocks]


def _cells(row: Element) -> list[Element]:
    cells: list[Element] = []
    stack = _children(row)
    while stack:
        element = stack.pop()
        if local_name(element.tag) == "tc":
            cells.append(element)
        else:
            stack.extend(_children(element))
    return cells


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


def _turn_pages(document: _Document, count: int) -> None:
    if document.page and count:
        document.page += count
        document.builder.place(f"p. {document.page}")


def _write_chunk(document: _Document, element: Element) -> None:
    """A document in another format that the reader is to insert here; converters put everything into one of HTML."""
    relationship = document.relationships.get(relationship_id(element))
    data = None if relationship is None else read_member(document.archive, relationship.target)
    if relationship is None or data is None:
        return
    inner = Source(data, posixpath.basename(relationship.target), document.source.limit, document.source.depth + 1)
    try:
        embed(document.builder, extract_any(inner))
    except UnreadableError:
        return  # the rest of the document can be read


def _write_margins(document: _Document, kind: str) -> None:
    """Headers or footers: a document has several for its sections, most of them with the same text."""
    parts = [each.target for each in document.relationships.values() if each.kind == kind]
    roots = [root for part in parts if (root := read_side_xml(document.archive, part)) is not None]
    lines = dict.fromkeys(line for root in roots for line in _paragraph_texts(root))
    document.builder.paragraph("\n".join(lines))


def _remarks(document: _Document) -> dict[tuple[str, str], Element]:
    """Footnotes, endnotes and comments by kind and id, without the lines that separate notes from the text."""
    roots = (_related(document, kind) for kind in ("footnotes", "endnotes", "comments"))
    return {
        (local_name(element.tag), attribute_of(element, "id")): element
        for root in roots
        for element in (() if root is None else root)
        if attribute_of(element, "type") in ("", "normal")
    }


def _related(document: _Document, kind: str) -> Element | None:
    part = next((each.target for each in document.relationships.values() if each.kind == kind), f"word/{kind}.xml")
    return read_side_xml(document.archive, part)
