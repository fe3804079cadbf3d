"""The text of parsed HTML: one pass over its tags, no tree and no recursion, so that depth costs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

from findling.sources.extraction.extracted import TextBuilder
from findling.sources.extraction.html_writer import HtmlWriter

__all__ = ["write_html"]

_TAG = re.compile(r"<(/?[a-zA-Z][^\s>/]*)([^>]*)>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def write_html(markup: str, builder: TextBuilder, last_line: int) -> None:
    """Write the text of markup, best as a parser serializes it, from a file of so many lines."""
    # Whatever opens after the last end is text. Without that cut, a search for each end would go through all of it.
    if comments_end := markup.rfind("-->") + 3 if "<!--" in markup else 0:
        markup = _COMMENT.sub(_line_ends_only, markup[:comments_end]) + markup[comments_end:]
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
        if text:
            add_text(text)
    add_text(markup[tags_end:])
    writer.end()


def _line_ends_only(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


# Besides what no reader sees: `title`, `desc` and `metadata` stand in drawings here, a page's own title is in its head.
_SKIPPED = frozenset("script style noscript iframe noembed title desc metadata SCRIPT STYLE NOSCRIPT TITLE".split())

_Action = Callable[[HtmlWriter, str, str], None]
_BLOCKS = (
    "address article aside blockquote body caption center dd details dialog dir div fieldset figcaption figure footer "
    "form frameset header hgroup hr html legend main menu nav optgroup p search section summary svg tbody text "
    "textarea tfoot thead"
).split()
_SEPARATED = "audio button canvas embed label object option select video".split()
_HEADINGS = "h1 h2 h3 h4 h5 h6".split()
_ACTIONS: dict[str, _Action] = {
    **dict.fromkeys((*_BLOCKS, *(f"/{name}" for name in _BLOCKS)), HtmlWriter.block),
    **dict.fromkeys((*_SEPARATED, *(f"/{name}" for name in _SEPARATED)), HtmlWriter.space),
    **dict.fromkeys(_HEADINGS, HtmlWriter.heading),
    **dict.fromkeys((f"/{name}" for name in _HEADINGS), HtmlWriter.end_heading),
    **dict.fromkeys(("dl", "ol", "ul"), HtmlWriter.item_list),
    **dict.fromkeys(("/dl", "/ol", "/ul"), HtmlWriter.end_item_list),
    **dict.fromkeys(("pre", "listing"), HtmlWriter.preformatted),
    **dict.fromkeys(("/pre", "/listing"), HtmlWriter.end_preformatted),
    **dict.fromkeys(("td", "th"), HtmlWriter.cell),
    **dict.fromkeys(("/td", "/th"), HtmlWriter.end_cell),
    "br": HtmlWriter.break_line,
    "img": HtmlWriter.image,
    "input": HtmlWriter.form_input,
    "dt": HtmlWriter.term,
    "/dt": HtmlWriter.end_term,
    "li": HtmlWriter.item,
    "/li": HtmlWriter.end_item,
    "table": HtmlWriter.table,
    "/table": HtmlWriter.end_table,
    "tr": HtmlWriter.row,
    "/tr": HtmlWriter.row,
}
_ACTIONS |= {name.upper(): action for name, action in _ACTIONS.items()}  # markup that no parser has put in order
