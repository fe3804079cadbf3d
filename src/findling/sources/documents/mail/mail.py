"""Mails as they travel (.eml), mail folders in one file (.mbox) and web pages saved like mails (.mht)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from findling.sources.documents.extracted import Extracted, Source, TextBuilder
from findling.sources.documents.mail.mime import message_extracted, read_message, write_message
from findling.sources.files.file_text import UnreadableError, decode

__all__ = ["extract"]

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
        write_message(builder, message, source, label)
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
