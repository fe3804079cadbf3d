"""HTML pages: their main text with headings, lists, tables and code, and what their head says about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import accumulate

from selectolax.lexbor import LexborHTMLParser, LexborNode

from findling.sources.extraction.document_properties import Properties, finished
from findling.sources.extraction.extracted import Extracted, Source, TextBuilder
from findling.sources.extraction.html_encoding import decode_html
from findling.sources.extraction.html_lines import with_line_marks, without_line_marks
from findling.sources.extraction.html_text import write_html
from findling.sources.extraction.times import parse_iso_time, parse_mail_time
from findling.sources.reading import UnreadableError

__all__ = ["extract"]


def extract(source: Source) -> Extracted:
    """The text of an HTML page. Raises `UnreadableError` when it has none."""
    text = decode_html(source.data)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    last_line = text.count("\n") + 1
    markup = with_line_marks(text)
    builder = TextBuilder(source.limit)
    if _nests_too_deep(markup):
        write_html(markup, builder, last_line)
        return finished(builder, Properties())
    page = LexborHTMLParser(markup)
    properties = _properties(page)
    write_html(_main_markup(page) or _markup(LexborHTMLParser(markup)), builder, last_line)
    try:
        return finished(builder, properties)
    except UnreadableError:
        builder.heading(properties.title)  # better than nothing
        return finished(builder, properties)


_MAIN = "main, article, [role=main]"
_CHROME = "nav, footer, aside, [role=navigation], [role=contentinfo], [role=complementary]"

# A parser looks through all open elements for each block that begins: 100,000 nested ones take half a minute. Browsers
# stop at 512.
_MAX_DEPTH = 1000
_WINDOW = 1 << 16
_NESTING_TAG = re.compile(
    r"<(/?)(?:div|[duo]l|font|span|blockquote|center|[abiu]|em|strong|address|article|aside|details|dialog|dir|fieldset"
    r"|figcaption|figure|footer|header|hgroup|listing|main|menu|nav|search|section|summary)\b",
    re.IGNORECASE,
)


def _nests_too_deep(markup: str) -> bool:
    """Whether more elements are open at once than any page needs; counts tell of most pages that they cannot be."""
    tags = closing = counted = 0
    for end in range(_WINDOW, len(markup) + _WINDOW, _WINDOW):
        tags += markup.count("<", end - _WINDOW, end)
        if tags - 2 * closing > _MAX_DEPTH:
            closing += markup.count("</", counted, end)
            counted = end
        if tags - 2 * closing > _MAX_DEPTH:
            depths = accumulate(-1 if slash else 1 for slash in _NESTING_TAG.findall(markup))
            return max(depths, default=0) > _MAX_DEPTH
    return False


def _main_markup(page: LexborHTMLParser) -> str:
    """The markup of the page without navigation and what else surrounds its main part; empty when that is all."""
    body = page.body
    chrome = body.css(_CHROME) if body else []
    if body is None or not chrome:
        return _markup(page)
    main_parts = body.css(_MAIN)
    has_main_part = any(node.text(skip_empty=True).strip() for node in main_parts)
    in_main_part = _inside(main_parts)
    for node in reversed(chrome):  # inner ones first: no node of one that is gone is touched
        if (has_main_part or node.tag == "nav") and node.mem_id not in in_main_part:
            node.decompose()
    return _markup(page) if body.text(skip_empty=True).strip() else ""


def _inside(main_parts: Iterable[LexborNode]) -> set[int]:
    """The ids of what lies in the main parts, each of which is looked at once, however they nest."""
    inside: set[int] = set()
    for part in main_parts:
        if part.mem_id not in inside:
            inside.update(node.mem_id for node in part.css(f"{_MAIN}, {_CHROME}"))
    return inside


def _markup(page: LexborHTMLParser) -> str:
    """The markup of the page's body; for a page of frames, what it says to readers that show none."""
    if page.body is None:
        page = LexborHTMLParser("".join(node.text() for node in page.tags("noframes")))
    for node in reversed(page.tags("template")):
        node.decompose()
    for name in ("xmp", "plaintext", "noframes"):
        for node in page.tags(name):
            node.replace_with(node.text())  # their markup is text, which only a text node keeps apart
    return (page.body.html if page.body else "") or ""


def _properties(page: LexborHTMLParser) -> Properties:
    """What the head of the page says; of meta tags with the same name, the first one counts."""
    about: dict[str, str] = {}
    for node in page.tags("meta"):
        attributes = node.attributes
        name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").lower()
        about.setdefault(name, without_line_marks(attributes.get("content") or ""))
    title = next((text for node in page.tags("title") if (text := node.text().strip())), "")
    attributes = page.root.attributes if page.root else {}
    return Properties(
        title=without_line_marks(title) or about.get("og:title", ""),
        author=about.get("author", ""),
        created_at=_time(about, "article:published_time", "date", "dc.date", "dcterms.created"),
        updated_at=_time(about, "article:modified_time", "last-modified", "dcterms.modified"),
        fields={
            "language": attributes.get("lang") or attributes.get("xml:lang") or "",
            "description": about.get("description", ""),
            "keywords": about.get("keywords", ""),
        },
    )


def _time(about: Mapping[str, str], *names: str) -> float | None:
    """The first of the named times that can be read."""
    values = (about.get(name, "") for name in names)
    return next((time for value in values if value and (time := parse_iso_time(value) or parse_mail_time(value))), None)
