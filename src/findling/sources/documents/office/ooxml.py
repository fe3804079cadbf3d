"""The package around an Office Open XML document: its parts, their relationships, its properties and drawings."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants, local_name, number_of, opened
from findling.sources.documents.containers.zip_packages import Package
from findling.sources.extracted import Properties, parse_iso_time

DRAWING_REFERENCES = {"chart": "id", "relIds": "dm"}
"""Elements that stand for a chart or a diagram in another part, and the attributes that refer to it."""

_MADE_BY_PROGRAM = re.compile(r"\s*(?:Description automatically generated|AI-generated content may be incorrect\.)$")
_FILE_NAME = re.compile(r"\.(?:bmp|emf|gif|jpe?g|png|svg|tiff?|webp|wmf)$|://", re.IGNORECASE)
_MARKS = {"br": "\n", "tab": "\t"}
_TEXTS = ("t", *_MARKS)
_LEFT_OUT = ("pPr", "rPr", "endParaRPr")
_MAX_POINTS = 10_000  # an index is a number in the file, and may be any


class _Relationship(NamedTuple):
    """A reference to another part; `kind` is the last word of its type, `target` a member of the zip file."""

    kind: str
    target: str


Relationships = Mapping[str, _Relationship]


def main_part(package: Package, usual: str) -> str:
    """The member that holds the document itself; the usual one if the package does not say."""
    named = relationships_of(package, "").values()
    return next((to for kind, to in named if kind == "officeDocument" and package.has(to)), usual)


def relationships_of(package: Package, part: str) -> Relationships:
    """Targets by id of a part, or of the package when the name is empty."""
    folder, name = posixpath.split(part)
    relationships = {}
    for element in package.side_xml(posixpath.join(folder, "_rels", name + ".rels")):
        if attribute_of(element, "TargetMode").lower() != "external":
            kind = attribute_of(element, "Type").rpartition("/")[2]
            target = unquote(attribute_of(element, "Target").partition("#")[0])
            path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            relationships[attribute_of(element, "Id")] = _Relationship(kind, path)
    return relationships


def related(package: Package, relationships: Relationships, *kinds: str) -> list[Element]:
    """Roots of the parts of some kinds, the first kind first."""
    return [package.side_xml(to) for kind in kinds for each, to in relationships.values() if each == kind]


def relationship_id(element: Element, name: str = "id") -> str:
    """The relationship that an element names: `r:id`, next to which there may be an `id` of its own."""
    ending = "}" + name
    return next((value for key, value in element.attrib.items() if key.endswith(ending)), "")


def children_of(element: Element) -> list[Element]:
    """The parts of an element to read, last one first; of an `AlternateContent`, whose branches show the same, one."""
    if local_name(element.tag) != "AlternateContent":
        return list(reversed(element))
    return next(([branch] for branch in element if any(map(_is_text, branch.iter()))), [])


def _is_text(element: Element) -> bool:
    name = local_name(element.tag)
    return bool(element.text) if name == "t" else name in ("chart", "relIds", "textpath") or "descr" in element.attrib


def described(element: Element) -> str:
    """Description of a picture by its author; programs put in the name of the picture's file."""
    text = _MADE_BY_PROGRAM.sub("", attribute_of(element, "descr").strip())
    return "" if _FILE_NAME.search(text) else text


def properties_of(package: Package) -> Properties:
    """The core properties of the package, as far as it has them."""
    relationships = relationships_of(package, "").values()
    part = next((to for kind, to in relationships if kind == "core-properties"), "docProps/core.xml")
    values = {local_name(element.tag): element.text or "" for element in package.side_xml(part)}
    return Properties(
        title=values.get("title", ""),
        author=values.get("creator", ""),
        created_at=parse_iso_time(values.get("created", "")),
        updated_at=parse_iso_time(values.get("modified", "")),
        fields={name: values[name] for name in ("language", "subject", "keywords") if name in values},
    )


def frame_lines(frame: Element) -> list[str]:
    """The paragraphs of a text frame that are not empty."""
    lines = (_paragraph_text(child) for child in frame if local_name(child.tag) == "p")
    return [line for line in lines if line.strip()]


def table_lines(table: Element) -> list[str]:
    """The rows of a table, their cells joined; a cell that is merged into another is empty."""
    rows = ([*descendants(row, "txBody")] for row in table if local_name(row.tag) == "tr")
    lines = ([" ".join(frame_lines(frame)) for frame in row] for row in rows)
    return [" | ".join(cells) for cells in lines if any(cells)]


def referenced_lines(element: Element, package: Package, relationships: Relationships) -> list[str]:
    """The text of the chart or diagram that an element of `DRAWING_REFERENCES` stands for, if it can be read."""
    name = local_name(element.tag)
    relationship = relationships.get(relationship_id(element, DRAWING_REFERENCES[name]))
    root = Element("") if relationship is None else package.side_xml(relationship.target)
    if name == "chart":
        return chart_lines(root)
    # The texts of a SmartArt diagram, in the order in which they were made.
    return [line for frame in descendants(root, "t") if len(frame) for line in frame_lines(frame)]


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


def _paragraph_text(paragraph: Element) -> str:
    def inside(element: Element) -> list[Element] | None:
        name = local_name(element.tag)
        return None if name in _TEXTS else [] if name in _LEFT_OUT else children_of(element)

    found = opened(list(reversed(paragraph)), inside)
    return "".join(_MARKS.get(local_name(each.tag)) or each.text or "" for each in found)


def _cached_values(series: Element, *names: str) -> list[str]:
    """Cells that a chart keeps; points may be missing, each one has its index."""
    holder = next((child for child in series if local_name(child.tag) in names), Element(""))
    values: dict[int, str] = {}
    for point in descendants(holder, "pt"):
        index = number_of(point, "idx")
        text = " ".join(value.text or "" for value in descendants(point, "v"))
        values[len(values) if index is None else index] = text
    if not values:
        return [value.text or "" for value in descendants(holder, "v")]
    return [values.get(index, "") for index in range(min(max(values) + 1, _MAX_POINTS))]
