"""The package around an Office Open XML document: its parts, how they refer to each other, and its properties."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants, local_name, number_of
from findling.sources.documents.containers.zip_packages import has_member, read_side_xml
from findling.sources.documents.extracted import Properties, parse_iso_time

__all__ = [
    "DRAWING_REFERENCES",
    "Relationship",
    "chart_lines",
    "chosen_alternative",
    "described",
    "frame_lines",
    "main_part",
    "properties_of",
    "referenced_lines",
    "relationship_id",
    "relationships_of",
    "table_lines",
]


class Relationship(NamedTuple):
    """A reference from one part to another; `kind` is the last word of its type, `target` a member of the zip file."""

    kind: str
    target: str


def main_part(archive: zipfile.ZipFile, usual: str) -> str:
    """The member that holds the document itself; the usual one if the package does not say."""
    for relationship in relationships_of(archive, "").values():
        if relationship.kind == "officeDocument" and has_member(archive, relationship.target):
            return relationship.target
    return usual


def relationships_of(archive: zipfile.ZipFile, part: str) -> dict[str, Relationship]:
    """Targets by id of a part, or of the package when the name is empty."""
    folder, name = posixpath.split(part)
    root = read_side_xml(archive, posixpath.join(folder, "_rels", name + ".rels"))
    relationships: dict[str, Relationship] = {}
    for element in () if root is None else root:
        if attribute_of(element, "TargetMode").lower() != "external":
            kind = attribute_of(element, "Type").rpartition("/")[2]
            target = unquote(attribute_of(element, "Target").partition("#")[0])
            path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            relationships[attribute_of(element, "Id")] = Relationship(kind, path)
    return relationships


def relationship_id(element: Element, name: str = "id") -> str:
    """The relationship that an element names: `r:id`, next to which there may be an `id` of its own."""
    ending = "}" + name
    return next((value for key, value in element.attrib.items() if key.endswith(ending)), "")


def chosen_alternative(element: Element) -> Element | None:
    """The branch of an `AlternateContent` to read: the first with text, as all branches show the same."""
    return next((branch for branch in element if any(_is_text(node) for node in branch.iter())), None)


def described(element: Element) -> str:
    """Description of a picture by its author; programs put in the name of the picture's file."""
    text = _MADE_BY_PROGRAM.sub("", attribute_of(element, "descr").strip())
    return "" if _FILE_NAME.search(text) else text


def properties_of(archive: zipfile.ZipFile) -> Properties:
    """The core properties of the package, as far as it has them."""
    relationships = relationships_of(archive, "").values()
    part = next((each.target for each in relationships if each.kind == "core-properties"), "docProps/core.xml")
    root = read_side_xml(archive, part)
    values = {} if root is None else {local_name(element.tag): element.text or "" for element in root}
    return Properties(
        title=values.get("title", ""),
        author=values.get("creator", ""),
        created_at=parse_iso_time(values.get("created", "")),
        updated_at=parse_iso_time(values.get("modified", "")),
        fields={name: values[name] for name in ("language", "subject", "keywords") if name in values},
    )


def _is_text(element: Element) -> bool:
    name = local_name(element.tag)
    return bool(element.text) if name == "t" else name in _REFERENCES or "descr" in element.attrib


_MADE_BY_PROGRAM = re.compile(r"\s*(?:Description automatically generated|AI-generated content may be incorrect\.)$")
_FILE_NAME = re.compile(r"\.(?:bmp|emf|gif|jpe?g|png|svg|tiff?|webp|wmf)$|://", re.IGNORECASE)
_REFERENCES = frozenset({"chart", "relIds", "textpath"})


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
    """Cells that a chart keeps; points may be missing, each one has its index."""
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
