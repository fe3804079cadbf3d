"""HTML pages: their main text with headings, lists, tables and code, and what their head says about them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from html import escape
from itertools import accumulate
from xml.etree.ElementTree import Element

from selectolax.lexbor import LexborHTMLParser

from findling.sources.documents.charsets import decode_html
from findling.sources.documents.containers.xml_tree import local_name, mixed_content
from findling.sources.documents.markup.html_writer import HtmlWriter, with_line_marks, without_line_marks
from findling.sources.extracted import (
    Extracted,
    Properties,
    Source,
    TextBuilder,
    parse_iso_time,
    parse_mail_time,
)
from findling.sources.files.file_text import UnreadableError

_TAG = re.compile(r"<(/?[a-zA-Z][^\s>/]*)([^>]*)>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Here `title`, `desc` and `metadata` stand in drawings; a page's own title is in its head.
_SKIPPED = frozenset("script style noscript iframe noembed title desc metadata SCRIPT STYLE NOSCRIPT TITLE".split())
_BLOCKS = (
    "address article aside blockquote body caption center dd details dialog dir div fieldset figcaption figure footer "
    "form frameset header hgroup hr html legend main menu nav optgroup p search section summary svg tbody text "
    "textarea tfoot thead"
)
_ACTIONS: dict[str, Callable[[HtmlWriter, str, str], None]] = {
    tag: action
    for names, opening, closing in (
        (_BLOCKS, HtmlWriter.block, HtmlWriter.block),
        ("audio button canvas embed label object option select video", HtmlWriter.space, HtmlWriter.space),
        ("h1 h2 h3 h4 h5 h6", HtmlWriter.heading, HtmlWriter.end_heading),
        ("dl ol ul", HtmlWriter.item_list, HtmlWriter.end_item_list),
        ("pre listing", HtmlWriter.preformatted, HtmlWriter.end_preformatted),
        ("td th", HtmlWriter.cell, HtmlWriter.end_cell),
        ("dt", HtmlWriter.term, HtmlWriter.end_term),
        ("li", HtmlWriter.item, HtmlWriter.end_item),
        ("table", HtmlWriter.table, HtmlWriter.end_table),
        ("tr", HtmlWriter.row, HtmlWriter.row),
    )
    for name in names.split()
    for tag, action in ((name, opening), (f"/{name}", closing))
}
_ACTIONS |= {"br": HtmlWriter.break_line, "img": HtmlWriter.image, "input": HtmlWriter.form_input}
_ACTIONS |= {name.upper(): action for name, action in _ACTIONS.items()}  # markup that no parser has put in order
_ANCHORS = ("¶", "#", "§", "🔗")
"""Text of links from a heading to itself."""
_WHOLE = ("h1", "h2", "h3", "h4", "h5", "h6", "tr")
_UNREAD_XHTML = frozenset("annotation annotation-xml head rp rt template".split())
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


def _write_html(markup: str, builder: TextBuilder, last_line: int) -> None:
    """Write the text of markup, best as a parser serializes it, from a file of so many lines."""
    # A tag that opens after the last end is text. Without that cut, each search for an end would read all of it.
    if comments_end := markup.rfind("-->") + 3 if "<!--" in markup else 0:
        markup = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), markup[:comments_end]) + markup[comments_end:]
    tags_end = markup.rfind(">") + 1
    writer = HtmlWriter(builder, last_line)
    pieces = _TAG.split(markup[:tags_end])
    add_text = writer.run.append
    add_text(pieces[0])
    skipped = ""
    for name, attributes, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if skipped:
            if name != skipped:
                add_text("\n" * (attributes.count("\n") + text.count("\n")))
                continue
            skipped = ""
        elif action := _ACTIONS.get(name):
            action(writer, name, attributes)
            if builder.full:
                return
        elif name in _SKIPPED:
            skipped = f"/{name}"
            text = "\n" * text.count("\n")
        elif "-" in name:  # elements that the page defines itself: cells are likelier than letters
            add_text(" ")
        if text and not (name in ("a", "A") and text.strip() in _ANCHORS and 'href="#' in attributes):
            add_text(text)
    add_text(markup[tags_end:])
    writer.end()


def write_tree(root: Element, builder: TextBuilder, labels: Mapping[str, str]) -> None:
    """Write the text of an XHTML page; `labels` are the places that begin at elements, by their ids."""
    writer = HtmlWriter(builder)
    waiting = {name: label for name, label in labels.items() if name}
    stack: list[Element | str] = [root]
    while stack and not builder.full:
        item = stack.pop()
        if isinstance(item, str):
            if item.startswith("</"):
                _ACTIONS[item[1:]](writer, item[1:], "")
            else:
                writer.run.append(item.replace("&", "&amp;").replace("<", "&lt;"))
            continue
        name = local_name(item.tag)
        if name in _SKIPPED or name in _UNREAD_XHTML:
            continue
        # A heading or row is one piece, so a place that begins in it begins with it.
        for each in item.iter() if name in _WHOLE else (item,):
            if label := waiting.pop(each.get("id", ""), ""):
                writer.flush()
                builder.place(label)
        if action := _ACTIONS.get(name):
            action(writer, name, "".join(f' {key}="{escape(value)}"' for key, value in item.attrib.items()))
            stack.extend([f"</{name}"] if f"/{name}" in _ACTIONS else [])
        stack.extend(mixed_content(item))
    writer.end()


def extract(source: Source) -> Extracted:
    """The text of an HTML page. Raises `UnreadableError` when it has none."""
    text = decode_html(source.data)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    last_line = text.count("\n") + 1
    markup = with_line_marks(text)
    builder = TextBuilder(source.limit)
    if _nests_too_deep(markup):
        _write_html(markup, builder, last_line)
        return builder.titled(Properties())
    page = LexborHTMLParser(markup)
    properties = _properties(page)
    _write_html(_main_markup(page) or _markup(LexborHTMLParser(markup)), builder, last_line)
    try:
        return builder.titled(properties)
    except UnreadableError:
        builder.heading(properties.title)  # better than nothing
        return builder.titled(properties)


def _nests_too_deep(markup: str) -> bool:
    """Whether more elements are open at once than any page needs; counts rule that out for most pages."""
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
    in_main_part: set[int] = set()
    for part in main_parts:
        if part.mem_id not in in_main_part:  # nested parts are visited once
            in_main_part.update(node.mem_id for node in part.css(f"{_MAIN}, {_CHROME}"))
    for node in reversed(chrome):  # inner ones first: no node of one that is gone is touched
        if (has_main_part or node.tag == "nav") and node.mem_id not in in_main_part:
            node.decompose()
    return _markup(page) if body.text(skip_empty=True).strip() else ""


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
    """Metadata in the head of the page; of meta tags with the same name, the first one counts."""
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


def embed(builder: TextBuilder, inner: Extracted, label: str = "", level: int = 0) -> None:
    """Write the text of `inner`: its headings sink by `level`, and `label` is put before the labels of its places.

    Places that have only a line are left out: it is no line of the outer file.
    """
    places = {place.start: place.label for place in inner.places if place.label}
    headings: dict[int, list[tuple[str, int]]] = {}
    for heading in inner.headings:
        headings.setdefault(heading.start, []).append((heading.title, heading.level + level))
    blocks = dict(inner.blocks)
    starts = sorted({0, *places, *headings, *blocks, *blocks.values()})
    for start, end in zip(starts, [*starts[1:], len(inner.text)], strict=True):
        if builder.full:
            return
        if start in places:
            builder.place(f"{label} {places[start]}".strip())
        for title, depth in headings.get(start, ()):
            builder.section(title, depth)
        text = inner.text[start:end]
        # A single line stays one, so that rows with places of their own do not drift apart.
        is_row = text.endswith("\n") and not text.endswith("\n\n") and "\n" not in text.strip("\n")
        (builder.block if start in blocks else builder.line if is_row else builder.paragraph)(text)


def embed_html(builder: TextBuilder, page: str, source: Source, label: str = "", level: int = 0) -> None:
    """Write the text of an HTML page that has been decoded already, as `embed` does."""

    marked = codecs.BOM_UTF8 + page.encode("utf-8", "replace")  # outranks whatever the page says about its encoding
    try:
        inner = extract(Source(marked, "body.html", source.limit, source.depth))
    except UnreadableError as error:
        if error.reason != "no-text":
            builder.line(f"The HTML text was not read: {error}")
        return
    embed(builder, inner, label, level)
