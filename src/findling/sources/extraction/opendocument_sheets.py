"""The sheets of an OpenDocument spreadsheet as XML: flat files, and those whose cells lie far apart."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from findling.sources.extraction.sheet_rows import Row, Value
from findling.sources.extraction.xml_tree import attribute_of, local_name

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
    for element in table.iter():
        if local_name(element.tag) != "table-row":
            continue
        count = _repeated(element, "number-rows-repeated")
        cells = list(_cells(element))
        if cells:
            for copy in range(min(count, _MAX_COPIES)):
                yield number + copy, cells
        number += count


def _cells(row: Element) -> Iterator[tuple[int, Value]]:
    column = 0
    for element in row:
        if local_name(element.tag) in _CELLS:
            count = _repeated(element, "number-columns-repeated")
            value = _value(element)
            if value != "":
                for copy in range(min(count, _MAX_COPIES)):
                    yield column + copy, value
            column += count


_CELLS = frozenset({"table-cell", "covered-table-cell"})
_NUMBERS = frozenset({"float", "percentage", "currency"})
_SPACES = frozenset({"s", "tab", "line-break"})


def _repeated(element: Element, attribute: str) -> int:
    count = attribute_of(element, attribute)
    return int(count) if count.isdecimal() and count.isascii() else 1


def _value(cell: Element) -> Value:
    kind = attribute_of(cell, "value-type")
    if kind in _NUMBERS:
        try:
            return float(attribute_of(cell, "value"))
        except ValueError:
            return _shown(cell)
    if kind == "boolean":
        return attribute_of(cell, "boolean-value") == "true"
    if kind == "date":
        return attribute_of(cell, "date-value").removesuffix("T00:00:00").replace("T", " ")
    return _shown(cell) or attribute_of(cell, "string-value")


def _shown(cell: Element) -> str:
    """The text that the cell shows, without the comment on it."""
    paragraphs = [element for element in cell if local_name(element.tag) == "p"]
    for paragraph in paragraphs:
        for element in paragraph.iter():
            if local_name(element.tag) in _SPACES:
                element.text = " "
    return " ".join("".join(paragraph.itertext()) for paragraph in paragraphs).strip()
