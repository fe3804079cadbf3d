"""What a document says about itself, and the last step of the extractors that read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from findling.sources.documents.extracted import Extracted, TextBuilder
from findling.sources.files.file_text import UnreadableError

__all__ = ["Properties", "finished", "with_properties"]


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
    extracted = with_properties(builder, properties)
    if extracted.title:
        return extracted
    written = [each for each in extracted.headings if extracted.text.startswith(each.title, each.start)]
    return replace(extracted, title=min(written, key=lambda heading: heading.level).title if written else "")


def with_properties(builder: TextBuilder, properties: Properties) -> Extracted:
    """The text that was built, with what the document says about itself. Raises `UnreadableError`."""
    extracted = builder.extracted(
        title=_real_title(properties.title),
        author=properties.author,
        created_at=properties.created_at,
        updated_at=properties.updated_at,
        fields=properties.fields,
    )
    if not extracted.text:
        raise UnreadableError("no-text", "holds no text")
    return extracted


def _real_title(title: str) -> str:
    """The title, unless a program put its own name or that of the file where nobody gave one."""
    title = " ".join(title.split())
    return "" if _PLACEHOLDER_TITLE.fullmatch(title) else title


_PLACEHOLDER_TITLE = re.compile(
    r"microsoft (?:office )?(?:word|powerpoint|excel) - .*"
    r"|powerpoint[ -]?\w+|\w+(?: de| do)? powerpoint"  # "PowerPoint Presentation", in any language
    r"|(?:untitled|unbenannt)(?:[ -](?:document|presentation|page))?[ .-]?\d*"
    r"|(?:document|dokument|presentation|slide) ?\d*"
    r"|\S+\.(?:docx?|dvi|html?|indd|odp|ods|odt|pdf|pptx?|ps|qxd|qxp|rtf|tex|txt|xlsx?)",
    re.IGNORECASE,
)
