"""The package around an Office Open XML document: its parts, how they refer to each other, and its properties."""

from __future__ import annotations

import posixpath
import re
import zipfile
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, local_name
from findling.sources.documents.containers.zip_packages import has_member, read_side_xml
from findling.sources.documents.document_properties import Properties
from findling.sources.documents.times import parse_iso_time

__all__ = [
    "Relationship",
    "chosen_alternative",
    "described",
    "main_part",
    "properties_of",
    "relationship_id",
    "relationships_of",
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
    """What a part (or, with an empty name, the package) refers to inside the package, by id."""
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
    """What a picture shows, in the words of its author; programs put in the name of the picture's file."""
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
