"""The sheets of an OpenDocument spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, local_name
from findling.sources.documents.office.sheet_rows import Row, Value

__all__ = ["opendocument_sheets"]


def opendocument_sheets(root: Element) -> Iterator[tuple[str, Iterator[Row]]]:
    """The names and rows of all sheets, in their order."""
    for element in root.iter():
        if local_name(element.tag) == "table":
            yield attribute_of(element, "name"), _rows(element)


_MAX_COPIES = 100
"""How often a cell or row is written that says it is repeated; whole columns are filled with one element."""


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
