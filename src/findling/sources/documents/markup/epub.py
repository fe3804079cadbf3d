"""Text of e-books (.epub)."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from html.entities import html5
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import (
    attribute_of,
    descendants,
    local_name,
    mixed_content,
    parse_xml,
)
from findling.sources.documents.containers.zip_packages import open_zip, read_member, read_side_xml, read_xml
from findling.sources.documents.extracted import (
    Extracted,
    LineGroups,
    Properties,
    Source,
    TextBuilder,
    finished,
    parse_iso_time,
)
from findling.sources.documents.markup.html import embed
from findling.sources.files.file_text import UnreadableError

__all__ = ["extract"]


_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def _write_xhtml(root: Element, builder: TextBuilder, labels: Mapping[str, str]) -> None:
    """Write the text of a page; `labels` are the places that begin at elements, by their ids."""
    _EpubWriter(builder, labels).write(root)


_BREAK = "\v"  # a `<br>`: other white space is only space, and XML text cannot hold this character
_MAX_HEADING_LENGTH = 250
_BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer form "
    "header hr html li main nav ol p section summary table tbody td tfoot th thead tr ul".split()
)
_LEFT_OUT = frozenset("annotation annotation-xml desc head rp rt script style template title".split())


class _End(NamedTuple):
    """Stands on the stack where a block ends."""

    name: str


class _EpubWriter:
    def __init__(self, builder: TextBuilder, labels: Mapping[str, str]) -> None:
        self._builder = builder
        self._labels = labels
        self._lines = LineGroups(builder)
        self._run: list[str] = []
        self._begins_item = False

    def write(self, root: Element) -> None:
        stack: list[Element | str | _End] = [root]
        while stack and not self._builder.full:
            item = stack.pop()
            if isinstance(item, str):
                self._run.append(item)
            elif isinstance(item, _End):
                self._end_block()
                self._begins_item = self._begins_item and item.name != "li"
            elif (name := local_name(item.tag)) not in _LEFT_OUT:
                self._place(item.get("id"))
                stack.extend(self._begin(item, name))
        self._end_block()

    def _begin(self, element: Element, name: str) -> list[Element | str | _End]:
        """Begin an element; what it gives is left to be read, last one first."""
        if name in _HEADINGS:
            self._end_block()
            self._write_heading(element, _HEADINGS[name])
        elif name == "pre":
            self._end_block()
            self._builder.block("".join(element.itertext()))
        elif name == "tr" and len(element) != 1:
            self._end_block()
            self._place_all(element)
            self._lines.row(_text(cell) for cell in element)
        elif name == "br":
            self._run.append(_BREAK)
        elif name == "img":
            self._run.append(f" {element.get('alt', '')} ")
        elif name in _BLOCKS:
            self._end_block()
            self._begins_item = self._begins_item or name == "li"
            if name == "table":
                self._lines.begin()
            return [_End(name), *mixed_content(element)]
        else:
            return list(mixed_content(element))
        return []

    def _write_heading(self, element: Element, level: int) -> None:
        self._place_all(element)
        text = _text(element)
        if len(text) <= _MAX_HEADING_LENGTH:
            self._builder.heading(text, level)
        else:
            self._builder.paragraph(text)

    def _end_block(self) -> None:
        lines = "".join(self._run).split(_BREAK)
        text = "\n".join(line for raw in lines if (line := " ".join(raw.split())))
        self._run.clear()
        if text and self._begins_item:
            self._lines.item(text)
            self._begins_item = False
        else:
            self._builder.paragraph(text)

    def _place_all(self, element: Element) -> None:
        for each in element.iter():
            self._place(each.get("id"))

    def _place(self, name: str | None) -> None:
        if name and name in self._labels:
            self._end_block()
            self._builder.place(self._labels[name])


def _text(element: Element) -> str:
    """All text in an element, on one line."""
    parts: list[str] = []
    stack: list[Element | str] = [element]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif (name := local_name(item.tag)) not in _LEFT_OUT:
            if name in _BLOCKS or name == "br":
                parts.append(" ")
            parts.append(item.get("alt", "") if name == "img" else "")
            stack.extend(mixed_content(item))
    return " ".join("".join(parts).split())


def extract(source: Source) -> Extracted:
    """The text of an e-book, chapter by chapter in the order of reading. Raises `UnreadableError`."""
    archive = open_zip(source.data)
    part = _package_part(archive)
    package = read_xml(archive, part)
    if package is None:
        raise UnreadableError("damaged", "holds no e-book")
    items = _manifest(package, part)
    chapters = _spine(package, items)
    if not chapters:
        raise UnreadableError("damaged", "holds no chapters")
    _refuse_encrypted(archive, chapters)
    labels = _contents(archive, items)
    builder = TextBuilder(source.limit)
    outcomes = [
        _try_chapter(builder, archive, chapter, f"ch. {number}", labels.get(chapter, {}))
        for number, chapter in enumerate(chapters, 1)
    ]
    failures = [outcome for outcome in outcomes if outcome is not None]
    if len(failures) == len(chapters):
        raise failures[0]
    return finished(builder, _properties(package))


class _Item(NamedTuple):
    """A file of the book, as its manifest lists it."""

    path: str
    media_type: str
    properties: str

    @property
    def is_nav(self) -> bool:
        return "nav" in self.properties.split()


def _package_part(archive: zipfile.ZipFile) -> str:
    container = read_side_xml(archive, "META-INF/container.xml")
    named = (
        [] if container is None else [attribute_of(each, "full-path") for each in descendants(container, "rootfile")]
    )
    found = (name for name in archive.namelist() if name.lower().endswith(".opf"))
    return next((path for path in named if path), "") or next(found, "content.opf")


def _manifest(package: Element, part: str) -> dict[str, _Item]:
    return {
        attribute_of(item, "id"): _Item(
            _resolved(part, attribute_of(item, "href"))[0],
            attribute_of(item, "media-type"),
            attribute_of(item, "properties"),
        )
        for item in descendants(package, "item")
    }


def _spine(package: Element, items: Mapping[str, _Item]) -> list[str]:
    """The chapters in the order of reading, without the table of contents that readers show beside the text."""
    ids = [attribute_of(reference, "idref") for reference in descendants(package, "itemref")]
    listed = [items[each] for each in ids if each in items]
    chapters = listed or [item for item in items.values() if "html" in item.media_type]
    return [item.path for item in chapters if not item.media_type.startswith("image/") and not item.is_nav]


def _refuse_encrypted(archive: zipfile.ZipFile, chapters: list[str]) -> None:
    """Fonts are often encrypted, and may be; a book whose text is encrypted opens in its shop's reader only."""
    encryption = read_side_xml(archive, "META-INF/encryption.xml")
    references = () if encryption is None else descendants(encryption, "CipherReference")
    if {unquote(attribute_of(each, "URI")) for each in references} & set(chapters):
        raise UnreadableError("encrypted", "protected by its seller")


def _contents(archive: zipfile.ZipFile, items: Mapping[str, _Item]) -> dict[str, dict[str, str]]:
    """The titles in the table of contents, by file and by the id at which they begin (empty: its start)."""
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for item in items.values():
        if item.is_nav or "dtbncx" in item.media_type:
            root = read_side_xml(archive, item.path)
            for reference, title in () if root is None else (_nav_links if item.is_nav else _ncx_links)(root):
                path, fragment = _resolved(item.path, reference)
                if title := " ".join(title.split()):
                    labels[path].setdefault(fragment, title)
    return labels


def _nav_links(root: Element) -> Iterator[tuple[str, str]]:
    navs = list(descendants(root, "nav"))
    contents = [nav for nav in navs if "toc" in attribute_of(nav, "type").split()] or navs
    for nav in contents[:1]:
        yield from ((attribute_of(link, "href"), "".join(link.itertext())) for link in descendants(nav, "a"))


def _ncx_links(root: Element) -> Iterator[tuple[str, str]]:
    for point in descendants(root, "navPoint"):
        label = next((child for child in point if local_name(child.tag) == "navLabel"), None)
        content = next((child for child in point if local_name(child.tag) == "content"), None)
        if label is not None and content is not None:
            yield attribute_of(content, "src"), "".join(label.itertext())


def _try_chapter(
    builder: TextBuilder, archive: zipfile.ZipFile, part: str, usual_label: str, labels: Mapping[str, str]
) -> UnreadableError | None:
    """Write a chapter; one that is broken does not keep the others from being read."""
    if builder.full:
        return None
    try:
        data = read_member(archive, part)
    except UnreadableError as error:
        return error
    if data is None:
        return UnreadableError("damaged", f"{part} is missing")
    builder.place(labels.get("", usual_label))
    try:
        root = parse_xml(_without_named_entities(data))
    except UnreadableError:
        return _try_as_html(builder, data, part)
    if "" in labels and not any(local_name(each.tag) in _HEADINGS for each in root.iter()):
        builder.section(labels[""])
    _write_xhtml(root, builder, labels)
    return None


def _try_as_html(builder: TextBuilder, data: bytes, part: str) -> UnreadableError | None:
    from findling.sources.documents.markup import html  # only for chapters that are no XML

    try:
        page = html.extract(Source(data, part))
    except UnreadableError as error:
        return error
    embed(builder, page)
    return None


_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]*);")
_XML_ENTITIES = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})


def _without_named_entities(data: bytes) -> bytes:
    """XHTML has names for characters, which are declared in files that books do not carry."""

    def numbered(match: re.Match[bytes]) -> bytes:
        characters = "" if match[1] in _XML_ENTITIES else html5.get(f"{match[1].decode()};", "")
        return b"".join(b"&#%d;" % ord(character) for character in characters) or match[0]

    return _ENTITY.sub(numbered, data)


def _properties(package: Element) -> Properties:
    values: dict[str, list[str]] = defaultdict(list)
    for metadata in descendants(package, "metadata"):
        for element in metadata.iter():
            name = attribute_of(element, "property") or local_name(element.tag)
            values[name].append(" ".join((element.text or "").split()))
    return Properties(
        title=next(iter(values["title"]), ""),
        author=", ".join(dict.fromkeys(filter(None, values["creator"]))),
        created_at=_first_time(values["date"]),
        updated_at=next(
            (time for text in values["dcterms:modified"] if (time := parse_iso_time(text)) is not None), None
        ),
        fields={
            "language": next(iter(values["language"]), ""),
            "publisher": next(iter(values["publisher"]), ""),
            "keywords": ", ".join(values["subject"]),
        },
    )


def _first_time(texts: list[str]) -> float | None:
    return next((time for text in texts if (time := parse_iso_time(text)) is not None), None)


def _resolved(base: str, reference: str) -> tuple[str, str]:
    """The member that a link in another one leads to, and the id in it."""
    path, _, fragment = (unquote(part) for part in reference.partition("#"))
    if not path:
        return base, fragment
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(base), path)).lstrip("/"), fragment
