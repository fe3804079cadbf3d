"""Rich Text Format."""

from __future__ import annotations

from datetime import datetime

from findling.sources.documents.extracted import Extracted, Properties, Source, TextBuilder, finished, seconds_of
from findling.sources.documents.legacy.rtf_reader import Paragraph, RtfDocument, read_rtf
from findling.sources.documents.markup.html import embed_html
from findling.sources.files.file_text import UnreadableError

__all__ = ["extract"]


def extract(source: Source) -> Extracted:
    """The text of an RTF file, then its notes and page headers. Raises `UnreadableError`."""
    data = source.data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")
    if not data.startswith(b"{\\rtf"):
        raise UnreadableError("damaged", "does not begin as RTF does")
    document = read_rtf(data, source.limit + 1)
    builder = TextBuilder(source.limit)
    if document.html:
        embed_html(builder, document.html, source)
    for paragraph in document.paragraphs:
        _write(builder, paragraph)
    # Pages of different kinds often bear the same header; every text is wanted once.
    for paragraph in dict.fromkeys(document.asides):
        _write(builder, paragraph)
    return finished(builder, _properties(document))


def _write(builder: TextBuilder, paragraph: Paragraph) -> None:
    if paragraph.is_row:
        builder.line(paragraph.text)
    elif paragraph.level:
        builder.heading(paragraph.text, paragraph.level)
    else:
        builder.paragraph(paragraph.text)


def _properties(document: RtfDocument) -> Properties:
    info = document.info
    return Properties(
        title=info.get("title", ""),
        author=info.get("author", ""),
        created_at=_time(document.times.get("creatim")),
        updated_at=_time(document.times.get("revtim")),
        fields={"subject": info.get("subject", ""), "keywords": info.get("keywords", "")},
    )


_FIRST_MOMENT = {"yr": 1, "mo": 1, "dy": 1, "hr": 0, "min": 0, "sec": 0}


def _time(units: dict[str, int] | None) -> float | None:
    if not units or not units.get("yr"):
        return None
    year, month, day, hour, minute, second = (units.get(unit, least) for unit, least in _FIRST_MOMENT.items())
    try:
        return seconds_of(datetime(year, month, day, hour, minute, second))
    except (OverflowError, ValueError):
        return None
