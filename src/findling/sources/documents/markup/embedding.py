"""Writing a document that lies in another one, such as the attachment of a mail."""

from __future__ import annotations

from findling.sources.documents.extracted import Extracted, Source, TextBuilder
from findling.sources.files.file_text import UnreadableError

__all__ = ["embed", "embed_html"]


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
        if start in blocks:
            builder.block(inner.text[start:end])
        else:
            _write(builder, inner.text[start:end])


def embed_html(builder: TextBuilder, page: str, source: Source, label: str = "", level: int = 0) -> None:
    """Write the text of an HTML page that has been decoded already, as `embed` does."""
    from findling.sources.documents.markup.html import extract  # few documents hold one

    marked = _BYTE_ORDER_MARK + page.encode("utf-8", "replace")  # outranks whatever the page says about its encoding
    try:
        inner = extract(Source(marked, "body.html", source.limit, source.depth))
    except UnreadableError as error:
        if error.reason != "no-text":
            builder.line(f"The HTML text was not read: {error}")
        return
    embed(builder, inner, label, level)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _write(builder: TextBuilder, text: str) -> None:
    """A single line stays one, so that rows with places of their own do not drift apart."""
    is_row = text.endswith("\n") and not text.endswith("\n\n") and "\n" not in text.strip("\n")
    if is_row:
        builder.line(text)
    else:
        builder.paragraph(text)
