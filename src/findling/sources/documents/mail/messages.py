"""A mail, however it was stored: what it holds and how that is written as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from findling.sources.documents.extracted import Extracted, Source, TextBuilder
from findling.sources.documents.markup.embedding import embed, embed_html
from findling.sources.files.file_text import UnreadableError

__all__ = ["Attachment", "Body", "Message", "message_extracted", "write_message"]


class Body(NamedTuple):
    """One text of a mail."""

    text: str
    is_html: bool = False


class Attachment(NamedTuple):
    """A file in a mail."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, kw_only=True)
class Message:
    """A mail; `sent_at` is in seconds since the epoch, `parts` are what is attached to it."""

    subject: str = ""
    sender: str = ""
    to: str = ""
    cc: str = ""
    bcc: str = ""
    date: str = ""
    sent_at: float | None = None
    message_id: str = ""
    url: str = ""
    bodies: tuple[Body, ...] = ()
    parts: tuple[Attachment | Message, ...] = ()


def message_extracted(message: Message, source: Source) -> Extracted:
    """The text of a file that is one mail. Raises `UnreadableError`."""
    builder = TextBuilder(source.limit)
    write_message(builder, message, source)
    extracted = builder.extracted(
        title=message.subject,
        author=message.sender,
        created_at=message.sent_at,
        fields={
            "from": message.sender,
            "to": message.to,
            "cc": message.cc,
            "bcc": message.bcc,
            "subject": message.subject,
            "date": message.date,
            "message_id": message.message_id,
            "url": message.url,
        },
    )
    if not extracted.text:
        raise UnreadableError("no-text", "an empty mail")
    return extracted


def write_message(builder: TextBuilder, message: Message, source: Source, label: str = "", level: int = 1) -> None:
    """Write the subject as a heading of `level`, headers, text and attachments, whose places begin with `label`."""
    if message.subject.strip():
        builder.heading(message.subject, level)
    else:
        builder.section("(no subject)", level)
    _write_headers(builder, message)
    for body in message.bodies:
        if body.is_html:
            embed_html(builder, body.text, source, label, level)
        else:
            builder.paragraph(body.text)
    for part in message.parts:
        if builder.full:
            return
        place = f"{label} attachment {_name_of(part)}".strip()
        builder.place(place)
        if isinstance(part, Message):
            write_message(builder, part, source, place, level + 1)
        else:
            _write_attachment(builder, part, source, place, level + 1)


def _write_headers(builder: TextBuilder, message: Message) -> None:
    for name, value in (
        ("From", message.sender),
        ("To", message.to),
        ("Cc", message.cc),
        ("Bcc", message.bcc),
        ("Date", message.date),
    ):
        if value.strip():
            builder.line(f"{name}: {value}")
    for part in message.parts:
        kind = "a message" if isinstance(part, Message) else f"{part.media_type}, {_size(len(part.data))}"
        builder.line(f"Attachment: {_name_of(part)} ({kind})")


def _name_of(part: Attachment | Message) -> str:
    return (part.subject or "(no subject)") if isinstance(part, Message) else part.name


def _write_attachment(builder: TextBuilder, part: Attachment, source: Source, label: str, level: int) -> None:
    from findling.sources.documents.document_formats import extract

    try:
        inner = extract(Source(part.data, part.name, source.limit, source.depth + 1))
    except UnreadableError as error:
        if not part.media_type.startswith(_PICTURES_AND_SOUNDS):
            builder.paragraph(f"Attachment {part.name} was not read: {error}")
        return
    builder.heading(part.name, level)
    embed(builder, inner, label, level)


_PICTURES_AND_SOUNDS = ("image/", "audio/", "video/")  # that they hold no text goes without saying


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.0f} KB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MB"
