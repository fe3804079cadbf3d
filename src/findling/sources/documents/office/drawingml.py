"""Text in the drawings of Office Open XML: text frames, tables, charts and diagrams."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from itertools import zip_longest
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import descendants, local_name, number_of
from findling.sources.documents.containers.zip_packages import read_side_xml
from findling.sources.documents.office.ooxml import Relationship, chosen_alternative, relationship_id

__all__ = ["DRAWING_REFERENCES", "chart_lines", "frame_lines", "referenced_lines", "table_lines"]

DRAWING_REFERENCES = {"chart": "id", "relIds": "dm"}
"""Elements that stand for a chart or a diagram in another part, and the attributes that refer to it."""


def frame_lines(frame: Element) -> list[str]:
    """The paragraphs of a text frame that are not empty."""
    lines = (_paragraph_text(child) for child in frame if local_name(child.tag) == "p")
    return [line for line in lines if line.strip()]


def table_lines(table: Element) -> list[str]:
    """The rows of a table, their cells joined; a cell that is merged into another is empty."""
    rows = (
        [" ".join(frame_lines(frame)) for frame in descendants(row, "txBody")]
        for row in table
        if local_name(row.tag) == "tr"
    )
    return [" | ".join(cells) for cells in rows if any(cells)]


def referenced_lines(
    element: Element, archive: zipfile.ZipFile, relationships: Mapping[str, Relationship]
) -> list[str]:
    """The text of the chart or diagram that an element of `DRAWING_REFERENCES` stands for, if it can be read."""
    name = local_name(element.tag)
    relationship = relationships.get(relationship_id(element, DRAWING_REFERENCES[name]))
    root = None if relationship is None else read_side_xml(archive, relationship.target)
    if root is None:
        return []
    return chart_lines(root) if name == "chart" else _diagram_lines(root)


def chart_lines(root: Element) -> list[str]:
    """The titles of a chart, then its data: the names of the series, and a row for each category."""
    titles = [" ".join(lines) for frame in descendants(root, "rich") if (lines := frame_lines(frame))]
    series = list(descendants(root, "ser"))
    names = [" ".join(_cached_values(each, "tx")) for each in series]
    # The x values of a scatter chart are its categories.
    categories = next((values for each in series if (values := _cached_values(each, "cat", "xVal"))), [])
    columns = [categories, *(_cached_values(each, "val", "yVal") for each in series)]
    rows = [["", *names], *(list(row) for row in zip_longest(*columns, fillvalue=""))]
    return titles + [" | ".join(row).removeprefix(" | ") for row in rows if any(row)]


def _diagram_lines(root: Element) -> list[str]:
    """The texts of a SmartArt diagram's data part, in the order in which they were made."""
    return [line for frame in descendants(root, "t") if len(frame) for line in frame_lines(frame)]


_MARKS = {"br": "\n", "tab": "\t"}
_LEFT_OUT = frozenset({"pPr", "rPr", "endParaRPr"})


def _paragraph_text(paragraph: Element) -> str:
    parts: list[str] = []
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        name = local_name(element.tag)
        if name == "t":
            parts.append(element.text or "")
        elif name in _MARKS:
            parts.append(_MARKS[name])
        elif name == "AlternateContent":
            chosen = chosen_alternative(element)
            stack.extend(() if chosen is None else (chosen,))
        elif name not in _LEFT_OUT:
            stack.extend(reversed(element))
    return "".join(parts)


def _cached_values(series: Element, *names: str) -> list[str]:
    """What a chart keeps of the cells that it shows; points may be missing, each one says its index."""
    holder = next((child for child in series if local_name(child.tag) in names), None)
    if holder is None:
        return []
    values: dict[int, str] = {}
    for point in descendants(holder, "pt"):
        index = number_of(point, "idx")
        text = " ".join(value.text or "" for value in descendants(point, "v"))
        values[len(values) if index is None else index] = text
    if not values:
        return [value.text or "" for value in descendants(holder, "v")]
    return [values.get(index, "") for index in range(min(max(values) + 1, _MAX_POINTS))]


_MAX_POINTS = 10_000  # an index is a number in the file, and may be any
