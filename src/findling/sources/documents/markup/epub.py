"""Text of e-books (.epub)."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from html.entities import html5
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, child_of, descendants, local_name, parse_xml
from findling.sources.documents.containers.zip_packages import Package
from findling.sources.documents.markup import html
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, parse_iso_time, write_parts
from findling.sources.files.file_text import UnreadableError

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]*);")
_XML_ENTITIES = (b"amp", b"lt", b"gt", b"quot", b"apos")


def extract(source: Source) -> Extracted:
    """The text of an e-book, chapter by chapter in the order of reading. Raises `UnreadableError`."""
    package = Package(source.data)
    part = _root_part(package)
    root = package.xml(part)
    if root is None:
        raise UnreadableError("damaged", "holds no e-book")
    items = {
        attribute_of(item, "id"): _ManifestItem(
            _resolved(part, attribute_of(item, "href"))[0],
            attribute_of(item, "media-type"),
            "nav" in attribute_of(item, "properties").split(),
        )
        for item in descendants(root, "item")
    }
    chapters = _spine(root, items)
    if not chapters:
        raise UnreadableError("damaged", "holds no chapters")
    _refuse_encrypted(package, chapters)
    labels = _contents(package, items)
    builder = TextBuilder(source.limit)
    write_parts(
        [
            partial(_write_chapter, builder, package, chapter, f"ch. {number}", labels.get(chapter, {}))
            for number, chapter in enumerate(chapters, 1)
        ]
    )
    return builder.titled(_properties(root))


class _ManifestItem(NamedTuple):
    """A file of the book, as its manifest lists it."""

    path: str
    media_type: str
    is_nav: bool


def _root_part(package: Package) -> str:
    container = package.side_xml("META-INF/container.xml")
    named = (attribute_of(each, "full-path") for each in descendants(container, "rootfile"))
    found = (name for name in package.namelist() if name.lower().endswith(".opf"))
    return next(filter(None, named), "") or next(found, "content.opf")


def _spine(root: Element, items: Mapping[str, _ManifestItem]) -> list[str]:
    """The chapters in the order of reading, without the table of contents that readers show beside the text."""
    ids = [attribute_of(reference, "idref") for reference in descendants(root, "itemref")]
    listed = [items[each] for each in ids if each in items]
    chapters = listed or [item for item in items.values() if "html" in item.media_type]
    return [item.path for item in chapters if not item.media_type.startswith("image/") and not item.is_nav]


def _refuse_encrypted(package: Package, chapters: list[str]) -> None:
    """Fonts are often encrypted, and may be; a book whose text is encrypted opens in its shop's reader only."""
    references = descendants(package.side_xml("META-INF/encryption.xml"), "CipherReference")
    if {unquote(attribute_of(each, "URI")) for each in references} & set(chapters):
        raise UnreadableError("encrypted", "protected by its seller")


def _contents(package: Package, items: Mapping[str, _ManifestItem]) -> dict[str, dict[str, str]]:
    """The titles in the table of contents, by file and by the id at which they begin (empty: its start)."""
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for path, media_type, is_nav in items.values():
        if is_nav or "dtbncx" in media_type:
            for reference, title in (_nav_links if is_nav else _ncx_links)(package.side_xml(path)):
                target, fragment = _resolved(path, reference)
                if title := " ".join(title.split()):
                    labels[target].setdefault(fragment, title)
    return labels


def _nav_links(root: Element) -> Iterator[tuple[str, str]]:
    navs = list(descendants(root, "nav"))
    contents = [nav for nav in navs if "toc" in attribute_of(nav, "type").split()] or navs
    for nav in contents[:1]:
        yield from ((attribute_of(link, "href"), "".join(link.itertext())) for link in descendants(nav, "a"))


def _ncx_links(root: Element) -> Iterator[tuple[str, str]]:
    for point in descendants(root, "navPoint"):
        label, content = child_of(point, "navLabel"), child_of(point, "content")
        if label is not None and content is not None:
            yield attribute_of(content, "src"), "".join(label.itertext())


def _write_chapter(
    builder: TextBuilder, package: Package, part: str, usual_label: str, labels: Mapping[str, str]
) -> None:
    """Write a chapter. Raises `UnreadableError`."""
    if builder.full:
        return
    data = package.part(part)
    if data is None:
        raise UnreadableError("damaged", f"{part} is missing")
    builder.place(labels.get("", usual_label))
    try:
        root = parse_xml(_without_named_entities(data))
    except UnreadableError:
        html.embed(builder, html.extract(Source(data, part)))
        return
    if "" in labels and not any(local_name(each.tag) in _HEADINGS for each in root.iter()):
        builder.section(labels[""])
    html.write_tree(root, builder, labels)


def _without_named_entities(data: bytes) -> bytes:
    """XHTML has names for characters, which are declared in files that books do not carry."""

    def numbered(match: re.Match[bytes]) -> bytes:
        characters = "" if match[1] in _XML_ENTITIES else html5.get(f"{match[1].decode()};", "")
        return b"".join(b"&#%d;" % ord(character) for character in characters) or match[0]

    return _ENTITY.sub(numbered, data)


def _properties(root: Element) -> Properties:
    values: dict[str, list[str]] = defaultdict(list)
    for metadata in descendants(root, "metadata"):
        for element in metadata.iter():
            name = attribute_of(element, "property") or local_name(element.tag)
            values[name].append(" ".join((element.text or "").split()))

    def first_time(name: str) -> float | None:
        return next((time for text in values[name] if (time := parse_iso_time(text)) is not None), None)

    return Properties(
        title=next(iter(values["title"]), ""),
        author=", ".join(dict.fromkeys(filter(None, values["creator"]))),
        created_at=first_time("date"),
        updated_at=first_time("dcterms:modified"),
        fields={
            "language": next(iter(values["language"]), ""),
            "publisher": next(iter(values["publisher"]), ""),
            "keywords": ", ".join(values["subject"]),
        },
    )


def _resolved(base: str, reference: str) -> tuple[str, str]:
    """The member that a link in another one leads to, and the id in it."""
    path, _, fragment = (unquote(part) for part in reference.partition("#"))
    if not path:
        return base, fragment
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(base), path)).lstrip("/"), fragment
