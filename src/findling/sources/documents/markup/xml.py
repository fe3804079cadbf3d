"""XML files: the text and the attributes of every element; of drawings the words, of feeds the articles."""

from __future__ import annotations

import re
from collections.abc import Sequence

from findling.sources.documents.charsets import decode_html
from findling.sources.documents.markup import html
from findling.sources.documents.markup.xml_events import Element, StopReadingError, read_elements
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, labelled
from findling.sources.files.file_text import UnreadableError

# The first tag after declarations and comments; possessive, because it meets files that are not XML at all.
_ROOT = re.compile(
    r"(?>\s|\ufeff|<\?[^>]*>|<!--.*?-->|<![^\[>]*(?:\[.*?\]\s*)?>)*+<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)",
    re.DOTALL,
)
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
_LONG = 400
_SECTIONS = frozenset(
    "appendix article book chapter concept div glossary part preface reference refsect1 refsect2 sec sect1 sect2 sect3 "
    "sect4 sect5 section simplesect task topic".split()
)
_NO_TEXT_ATTRIBUTES = re.compile(r"xmlns|xml:|xsi:|.*:(?:schemaLocation|rsid\w*)$")


def extract(source: Source) -> Extracted:
    """The text of an XML file. Raises `UnreadableError` when it has none."""
    document = decode_html(source.data)
    root = _ROOT.match(document)
    root_name = root[1] if root else ""
    if root_name == "html":
        return html.extract(source)
    writer = _WRITERS.get(root_name, _XmlWriter)(source)
    read_elements(document, writer.receive)
    return writer.builder.extracted(Properties(title=writer.title, fields=writer.fields))


class _XmlWriter:
    """Writes each element as `name attribute=value attribute=value: text`; titles of sections are headings."""

    def __init__(self, source: Source) -> None:
        self.builder = TextBuilder(source.limit)
        self._limit = source.limit
        self.title = ""
        self.fields: dict[str, str] = {}
        self._key = ""

    def receive(self, element: Element, around: Sequence[Element]) -> None:
        if self.builder.full:
            raise StopReadingError
        if not around and (language := element.attributes.get("xml:lang")):
            self.fields["language"] = language
        self.builder.place("", element.line)
        self._write(element, around)

    def _write(self, element: Element, around: Sequence[Element]) -> None:
        text = _readable(element.text)
        level = sum(outer.name in _SECTIONS for outer in around)
        if element.name in ("title", "head") and level and around[-1].name in (*_SECTIONS, "info", "title-group"):
            self.title = self.title or text
            self.builder.heading(text, level)
            return
        if element.name == "key" and around and around[-1].name == "dict":
            self._key = text
            return
        name, self._key = self._key or element.name, ""
        attributes = _attributes(element)
        label = " ".join((name, *attributes))
        if text:
            self.builder.line(labelled(label, text))
        elif attributes:
            self.builder.line(label)


class _DrawingWriter(_XmlWriter):
    """Writes the words of an SVG drawing."""

    def _write(self, element: Element, around: Sequence[Element]) -> None:
        names = {element.name, *(outer.name for outer in around)}
        if names & {"", "style", "script", "metadata", "namedview"}:
            return
        text = element.text
        if element.name == "title" and len(around) == 1:
            self.title = self.title or text
        self.builder.line(text)


class _FeedWriter(_XmlWriter):
    """Writes an RSS or Atom feed: the title of each article as a heading, what it says without its markup."""

    def _write(self, element: Element, around: Sequence[Element]) -> None:
        text = element.text
        if element.name == "title" and text:
            in_article = any(outer.name in ("item", "entry") for outer in around)
            self.title = self.title or text
            self.builder.heading(_without_markup(text, self._limit), 2 if in_article else 1)
        elif element.name in ("description", "encoded", "content", "summary", "subtitle") and text:
            self.builder.paragraph(_without_markup(text, self._limit))
        else:
            if element.name == "language":
                self.fields["language"] = text
            super()._write(element, around)


_WRITERS: dict[str, type[_XmlWriter]] = {
    "svg": _DrawingWriter,
    "rss": _FeedWriter,
    "feed": _FeedWriter,
    "RDF": _FeedWriter,
}


def _attributes(element: Element) -> list[str]:
    return [
        f"{name.rpartition(':')[2]}={readable}"
        for name, value in element.attributes.items()
        if not _NO_TEXT_ATTRIBUTES.match(name) and (readable := _readable(value))
    ]


def _readable(text: str) -> str:
    """The text, unless it is a file in disguise."""
    is_encoded = len(text) > _LONG and _BASE64.fullmatch(text) and text.count(" ") < len(text) / 50
    return "" if is_encoded else text


def _without_markup(text: str, limit: int) -> str:
    """The text of the HTML that an element of a feed holds."""
    if "<" not in text and "&" not in text:
        return text
    try:
        return html.extract(Source(text.encode(), "article.html", limit)).text
    except UnreadableError:
        return ""
