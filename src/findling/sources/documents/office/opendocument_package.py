"""What OpenDocument texts, slides and sheets have in common: their encryption and their properties."""

from __future__ import annotations

import zipfile
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, child_of, descendants, local_name
from findling.sources.documents.containers.zip_packages import read_side_xml
from findling.sources.documents.document_properties import Properties
from findling.sources.documents.times import parse_iso_time
from findling.sources.files.file_text import UnreadableError

__all__ = ["meta_properties", "refuse_encrypted"]


def refuse_encrypted(archive: zipfile.ZipFile) -> None:
    """Raises `UnreadableError` for a document with a password."""
    manifest = read_side_xml(archive, "META-INF/manifest.xml")
    for entry in () if manifest is None else manifest:
        if child_of(entry, "encryption-data") is not None and attribute_of(entry, "full-path") in _MAIN_PARTS:
            raise UnreadableError("encrypted", "needs a password")


_MAIN_PARTS = frozenset({"content.xml", "encrypted-package"})


def meta_properties(root: Element | None) -> Properties:
    """What a document says about itself, in `meta.xml` or in a flat file."""
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
