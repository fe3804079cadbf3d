"""What a document says about itself, and the last step of every extractor that reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from findling.sources.extraction.extracted import Extracted, TextBuilder
from findling.sources.reading import UnreadableError

__all__ = ["Properties", "finished", "parse_time"]


@dataclass(frozen=True, kw_only=True)
class Properties:
    """The metadata of a document; times are seconds since the epoch."""

    title: str = ""
    author: str = ""
    created_at: float | None = None
    updated_at: float | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


def finished(builder: TextBuilder, properties: Properties) -> Extracted:
    """The text that was built, under its real title or else its first top heading. Raises `UnreadableError`."""
    extracted = builder.extracted(
        title=properties.title,
        author=properties.author,
        created_at=properties.created_at,
        updated_at=properties.updated_at,
        fields=properties.fields,
    )
    if not extracted.text:
        raise UnreadableError("no-text", "holds no text")
    if extracted.title and not _PLACEHOLDER_TITLE.fullmatch(extracted.title):
        return extracted
    written = [each for each in extracted.headings if extracted.text.startswith(each.title, each.start)]
    return replace(extracted, title=min(written, key=lambda heading: heading.level).title if written else "")


def parse_time(text: str) -> float | None:
    """Seconds since the epoch for an ISO 8601 time, of which months, days and hours may be missing."""
    text = text.strip()
    if _YEAR_OR_MONTH.fullmatch(text):
        text = (text + "-01-01")[: len("2000-01-01")]
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.year <= _LAST_PLACEHOLDER_YEAR:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


_YEAR_OR_MONTH = re.compile(r"\d{4}(?:-\d\d)?")
_LAST_PLACEHOLDER_YEAR = 1601  # an unset time is the year 101 in some e-books and 1601 on Windows
_PLACEHOLDER_TITLE = re.compile(
    r"microsoft (?:office )?(?:word|powerpoint) - .*"
    r"|powerpoint[ -]?\w+|\w+(?: de| do)? powerpoint"  # "PowerPoint Presentation", in any language
    r"|untitled(?: document| presentation)?[ .]?\d*"
    r"|(?:document|dokument|presentation|slide) ?\d*",
    re.IGNORECASE,
)
