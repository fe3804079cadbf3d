"""Mails as they travel (.eml), mail folders in one file (.mbox) and web pages saved like mails (.mht)."""

from __future__ import annotations

import base64
import binascii
import email
import mimetypes
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message as Part
from itertools import chain
from typing import NamedTuple

from findling.sources.documents.charsets import codec_of_charset
from findling.sources.documents.markup.html import embed, embed_html
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, parse_mail_time
from findling.sources.files.file_text import UnreadableError, decode

# Fields of a document that is a mail, and the headers they come from.
_HEADERS = {
    "from": "from", "to": "to", "cc": "cc", "bcc": "bcc", "subject": "subject", "date": "date",
    "message_id": "message-id", "url": "snapshot-content-location",
}  # fmt: skip
_SHOWN_HEADERS = ("from", "to", "cc", "bcc", "date")
_PICTURES_AND_SOUNDS = ("image/", "audio/", "video/")  # that they hold no text goes without saying
_SAVED_PAGE = re.compile("<?Saved by ", re.IGNORECASE)  # how browsers sign the pages that they save
_LONGEST_ENCODED = 1 << 17  # the time to decode one grows with the square of its length
_FOLD = re.compile(r"\r?\n[ \t]+")
_DEEPEST = 50
_FILES_OF_A_PAGE = ("text/css", "text/javascript")
_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_FROM_LINE = re.compile(rb"^From [^\n]*\n", re.MULTILINE)
_CLOCK = re.compile(rb"\d:\d\d")
_MAIL_HEADER = re.compile(
    rb"^(?:bcc|cc|content-type|date|delivered-to|from|message-id|mime-version|received|reply-to|return-path|sender"
    rb"|status|subject|to|x-[a-z0-9-]+):",
    re.MULTILINE | re.IGNORECASE,
)
_LONGEST_HEADERS = 1024  # enough to find one that every mail has
_BLANK_LINE = re.compile(rb"\n\r?\n")


def extract(source: Source) -> Extracted:
    """The text of a mail or of every mail in a folder. Raises `UnreadableError`."""
    data = source.data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not data:
        raise UnreadableError("no-text", "an empty mail")
    if not data.startswith(b"From "):
        if not _HEADER.match(data):  # a mail may lack headers, but then it is at least a text
            try:
                decode(data)
            except UnreadableError as error:
                raise UnreadableError("damaged", "not a mail") from error
        return message_extracted(read_message(data), source)
    mails = _split(data)
    first = next(mails)
    second = next(mails, None)
    if second is None and not source.name.lower().endswith((".mbox", ".mbx")):
        return message_extracted(read_message(first), source)
    return _extract_folder(source, chain([first], [] if second is None else [second], mails))


def _extract_folder(source: Source, mails: Iterable[bytes]) -> Extracted:
    builder = TextBuilder(source.limit)
    for number, mail in enumerate(mails, start=1):
        if builder.full:
            break
        label = f"message {number}"
        builder.place(label)
        try:
            message = read_message(_QUOTED_FROM.sub(rb"\1", mail))
        except UnreadableError as error:
            builder.paragraph(f"{label.capitalize()} was not read: {error}")
            continue
        _write_message(builder, message, source, label)
    return builder.extracted(empty=("no-text", "no mail in it holds text"))


def _split(data: bytes) -> Iterator[bytes]:
    """The mails of a folder, each without the `From ` line before it."""
    start = data.find(b"\n") + 1 or len(data)
    for separator in _FROM_LINE.finditer(data, start):
        if _begins_a_mail(data, separator):
            yield data[start : separator.start()]
            start = separator.end()
    yield data[start:]


def _begins_a_mail(data: bytes, separator: re.Match[bytes]) -> bool:
    """Whether headers of a mail follow: a sentence may begin with "From " too, and must not get lost."""
    before = data[max(0, separator.start() - 3) : separator.start()]
    if not (before.endswith((b"\n\n", b"\n\r\n")) or _CLOCK.search(separator[0])):
        return False
    headers = data[separator.end() : separator.end() + _LONGEST_HEADERS]
    if not _HEADER.match(headers) and not headers.startswith(b">From "):
        return False
    end = _BLANK_LINE.search(headers)
    return _MAIL_HEADER.search(headers, 0, end.start() + 1 if end else len(headers)) is not None


class Body(NamedTuple):
    """One text of a mail."""

    text: str
    is_html: bool = False


class Attachment(NamedTuple):
    """A file in a mail."""

    name: str
    media_type: str
    data: bytes


@dataclass(kw_only=True)
class MailMessage:
    """A mail: `headers` have the names of `_HEADERS`, `sent_at` is in seconds since the epoch, `parts` are attached."""

    headers: dict[str, str]
    sent_at: float | None = None
    bodies: list[Body] = field(default_factory=list)
    parts: list[Attachment | MailMessage] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the mail among attachments."""
        return self.headers["subject"] or "(no subject)"


def message_extracted(message: MailMessage, source: Source) -> Extracted:
    """The text of a file that is one mail. Raises `UnreadableError`."""
    builder = TextBuilder(source.limit)
    _write_message(builder, message, source)
    title, author = message.headers["subject"], message.headers["from"]
    about = Properties(title=title, author=author, created_at=message.sent_at, fields=message.headers)
    return builder.extracted(about, empty=("no-text", "an empty mail"))


def _write_message(builder: TextBuilder, message: MailMessage, source: Source, label: str = "", level: int = 1) -> None:
    """Write the subject as a heading of `level`, headers, text and attachments, whose places begin with `label`."""
    if message.headers["subject"].strip():
        builder.heading(message.headers["subject"], level)
    else:
        builder.section("(no subject)", level)
    for name in _SHOWN_HEADERS:
        if message.headers[name].strip():
            builder.line(f"{name.capitalize()}: {message.headers[name]}")
    for part in message.parts:
        kind = "a message" if isinstance(part, MailMessage) else f"{part.media_type}, {_size(len(part.data))}"
        builder.line(f"Attachment: {part.name} ({kind})")
    for body in message.bodies:
        if body.is_html:
            embed_html(builder, body.text, source, label, level)
        else:
            builder.paragraph(body.text)
    for part in message.parts:
        if builder.full:
            return
        place = f"{label} attachment {part.name}".strip()
        builder.place(place)
        if isinstance(part, MailMessage):
            _write_message(builder, part, source, place, level + 1)
        else:
            _write_attachment(builder, part, source, place, level + 1)


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


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.0f} KB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MB"


def read_message(data: bytes) -> MailMessage:
    """The mail in `data`. Raises `UnreadableError`."""
    try:
        return _message(email.message_from_bytes(data), 0)
    except RecursionError:
        raise UnreadableError("damaged", "its parts are nested too deeply") from None


def decode_text(data: bytes, charset: str) -> str:
    """The text in `data`, in the encoding it says, or in the likely one when that is unknown or wrong."""
    codec = codec_of_charset(charset)
    if codec and codec != "cp1252":  # which many programs say, by one name or another, for everything they write
        try:
            return data.decode(codec)
        except (LookupError, ValueError):
            pass
    try:
        return decode(data)[0]
    except UnreadableError:
        return data.decode("cp1252", "replace")


def _message(root: Part, depth: int) -> MailMessage:
    _mend_headers(root)
    headers = {name: _header(root, header) for name, header in _HEADERS.items()}
    if _SAVED_PAGE.match(headers["from"]):
        headers["from"] = ""
    message = MailMessage(headers=headers, sent_at=parse_mail_time(headers["date"]))
    _collect(root, message, depth)
    return message


def _header(part: Part, name: str) -> str:
    values = [_decoded_words(str(value)) for value in part.get_all(name, [])]
    return ", ".join(" ".join(value.split()) for value in values if value.strip())


def _decoded_words(value: str) -> str:
    if "=?" not in value or len(value) > _LONGEST_ENCODED:
        return value
    try:
        words = decode_header(_FOLD.sub(" ", value))
    except (HeaderParseError, ValueError):
        return value
    return "".join(word if isinstance(word, str) else decode_text(word, charset or "utf-8") for word, charset in words)


def _mend_headers(part: Part) -> None:
    """Headers with raw bytes of some encoding become text, which the parser leaves to its callers."""
    for name, value in list(part.raw_items()):
        if isinstance(value, str) and not value.isascii():
            part.replace_header(name, decode_text(value.encode("utf-8", "surrogateescape"), "utf-8"))


def _collect(part: Part, found: MailMessage, depth: int) -> None:
    _mend_headers(part)
    kind = part.get_content_type()
    if depth > _DEEPEST:
        return
    if kind == "message/delivery-status" and part.is_multipart():
        found.bodies.extend(Body("\n".join(f"{k}: {v}" for k, v in block.items())) for block in _children(part))
    elif part.get_content_maintype() == "message" and part.is_multipart():
        found.parts.extend(_message(_unpacked(part, child), depth + 1) for child in _children(part)[:1])
    elif kind == "multipart/alternative" and part.is_multipart():
        _collect_alternatives(_children(part), found, depth)
    elif part.is_multipart():
        for child in _children(part):
            _collect(child, found, depth + 1)
    else:
        _collect_leaf(part, found)


def _children(part: Part) -> list[Part]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, Part)] if isinstance(payload, list) else []


def _unpacked(part: Part, child: Part) -> Part:
    """An attached mail may be in base64 against the rules; then the parser took the encoded lines for its text."""
    if str(part.get("content-transfer-encoding", "")).strip().lower() != "base64":
        return child
    try:
        return email.message_from_bytes(base64.b64decode(str(child.get_payload())))
    except (binascii.Error, ValueError):
        return child


def _collect_alternatives(children: list[Part], found: MailMessage, depth: int) -> None:
    """Only one of them counts as text; files that lie in the others still belong to the mail."""
    plain = (child for child in children if child.get_content_type() == "text/plain" and _payload(child).strip())
    chosen = next(plain, None)
    if chosen is None:
        readable = [child for child in children if child.is_multipart() or child.get_content_maintype() == "text"]
        html = [child for child in readable if child.get_content_type() == "text/html" or child.is_multipart()]
        chosen = next(reversed(html or readable or children), None)
    for child in children:
        if child is chosen:
            _collect(child, found, depth + 1)
        elif child.is_multipart():
            other = MailMessage(headers={})
            _collect(child, other, depth + 1)
            found.parts.extend(other.parts)


def _collect_leaf(part: Part, found: MailMessage) -> None:
    kind = part.get_content_type()
    name = " ".join(_decoded_words(part.get_filename("")).split())
    disposition = str(part.get("content-disposition", "")).strip().lower()
    is_text = part.get_content_maintype() in ("text", "multipart")  # a multipart without parts lost its boundary
    if is_text and not name and not disposition.startswith("attachment") and kind not in _FILES_OF_A_PAGE:
        text = decode_text(_payload(part), part.get_content_charset("") or "")
        if text.strip():
            found.bodies.append(Body(text, is_html=kind == "text/html"))
    elif name or not ("content-id" in part or "content-location" in part):
        data = _payload(part)
        if data:
            # An instance of its own knows only the types built into Python, the same on every machine.
            name = name or "unnamed" + (mimetypes.MimeTypes().guess_extension(kind) or "")
            found.parts.append(Attachment(name, kind, _as_utf8(part, data)))


def _payload(part: Part) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _as_utf8(part: Part, data: bytes) -> bytes:
    """A text file whose encoding only its mail knows."""
    charset = part.get_content_charset("") or ""
    if part.get_content_maintype() != "text" or charset in ("", "utf-8", "us-ascii"):
        return data
    return b"\xef\xbb\xbf" + decode_text(data, charset).encode("utf-8", "replace")
