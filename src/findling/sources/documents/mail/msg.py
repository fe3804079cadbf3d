"""Outlook messages (.msg): properties of a mail in a compound file ([MS-OXMSG])."""

from __future__ import annotations

import mimetypes
import struct
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import NamedTuple

from olefile import OleFileIO  # type: ignore[import-untyped]

from findling.sources.documents.charsets import codec_of_code_page, decode_bytes
from findling.sources.documents.containers.ole import list_storages, open_compound, read_stream
from findling.sources.documents.legacy.rtf import read_rtf
from findling.sources.documents.mail.mail import (
    Attachment,
    Body,
    MailMessage,
    decode_text,
    message_extracted,
    read_message,
)
from findling.sources.extracted import Extracted, Source, windows_time
from findling.sources.files.file_text import UnreadableError

_COMPRESSED, _PLAIN = b"LZFu", b"MELA"
_DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4096
_LARGEST = 16 << 20

_PROPERTIES = "__properties_version1.0"
_TOP_HEAD, _EMBEDDED_HEAD, _PART_HEAD = 32, 24, 8
_DEEPEST = 4

_SUBJECT, _HEADERS, _SUBMITTED, _DELIVERED, _CREATED = 0x0037, 0x007D, 0x0039, 0x0E06, 0x3007
_SENDER_NAME, _SENDER_ADDRESS, _SENDER_SMTP, _MESSAGE_ID = 0x0C1A, 0x0C1F, 0x5D01, 0x1035
_TEXT, _RTF, _HTML = 0x1000, 0x1009, 0x1013
_DISPLAYED = {1: ("to", 0x0E04), 2: ("cc", 0x0E03), 3: ("bcc", 0x0E02)}
_RECIPIENT_KIND, _DISPLAY_NAME, _ADDRESS, _SMTP = 0x0C15, 0x3001, 0x3003, 0x39FE
_DATA, _SHORT_NAME, _LONG_NAME, _MEDIA_TYPE = 0x3701, 0x3704, 0x3707, 0x370E
_MESSAGE_CODE_PAGE, _INTERNET_CODE_PAGE = 0x3FFD, 0x3FDE


def decompress_rtf(data: bytes) -> bytes:
    """The RTF in a compressed stream, as far as it can be unpacked; empty when it is none."""
    if len(data) < 16:
        return b""
    _, size, kind, _ = struct.unpack_from("<II4sI", data)
    if kind == _PLAIN:
        return data[16 : 16 + size]
    if kind != _COMPRESSED:
        return b""
    output = bytearray(_DICTIONARY)
    end = len(_DICTIONARY) + min(size, _LARGEST)
    _decompress(data, output, end)
    return bytes(output[len(_DICTIONARY) : end])


def _decompress(data: bytes, output: bytearray, end: int) -> None:
    at = 16
    while at < len(data) and len(output) < end:
        control = data[at]
        at += 1
        for bit in range(8):
            if not control >> bit & 1:
                output += data[at : at + 1]
                at += 1
                continue
            reference = int.from_bytes(data[at : at + 2], "big")
            back = (len(output) - (reference >> 4)) % _WINDOW
            if at + 2 > len(data) or not back:  # a reference to the place of writing is the end
                return
            at += 2
            for _ in range((reference & 0xF) + 2):  # a copy may reach into itself; before the start there are zeros
                output.append(output[-back] if back <= len(output) else 0)


def extract(source: Source) -> Extracted:
    """The text of an Outlook message, written as other mails are. Raises `UnreadableError`."""
    compound = open_compound(source.data)
    if read_stream(compound, _PROPERTIES) is None:
        raise UnreadableError("damaged", "holds no message")
    return message_extracted(_message(_Storage(compound, (), _TOP_HEAD), source.limit, 0), source)


class _Storage(NamedTuple):
    """A message, a recipient or an attachment in the file; its fixed properties come after a head of some size."""

    compound: OleFileIO
    path: tuple[str, ...]
    head: int
    code_page: int = 0

    def stream(self, number: int, kind: int) -> bytes | None:
        return read_stream(self.compound, *self.path, f"__substg1.0_{number:04X}{kind:04X}")

    def text(self, number: int) -> str:
        """A property that is text; empty when there is none."""
        if data := self.stream(number, 0x001F):
            return data.decode("utf-16-le", "replace").rstrip("\0").strip()
        data = self.stream(number, 0x001E) or b""
        return decode_bytes(data, self.code_page or 1252).rstrip("\0").strip()

    def fixed(self) -> dict[int, bytes]:
        """The eight bytes of every property that has a fixed size."""
        data = read_stream(self.compound, *self.path, _PROPERTIES) or b""
        entries = struct.iter_unpack("<HHI8s", data[self.head :][: (len(data) - self.head) // 16 * 16])
        return {number: value for _, number, _, value in entries}

    def inner(self, prefix: str, head: int) -> list[_Storage]:
        names = sorted(name for name in list_storages(self.compound, self.path) if name.startswith(prefix))
        return [self._replace(path=(*self.path, name), head=head) for name in names]


def _message(storage: _Storage, limit: int, depth: int) -> MailMessage:
    fixed = storage.fixed()
    internet_page = _integer(fixed.get(_INTERNET_CODE_PAGE))
    storage = storage._replace(code_page=_integer(fixed.get(_MESSAGE_CODE_PAGE)) or internet_page)
    message = read_message(storage.text(_HEADERS).encode("utf-8", "replace"))
    sent_at = next((time for key in (_SUBMITTED, _DELIVERED, _CREATED) if (time := _time(fixed.get(key)))), None)
    own = _recipients(storage)
    own["subject"] = storage.text(_SUBJECT)
    own["from"] = _person(storage.text(_SENDER_NAME), storage.text(_SENDER_SMTP) or storage.text(_SENDER_ADDRESS))
    own["message_id"] = storage.text(_MESSAGE_ID)
    if sent_at and not message.headers["date"]:
        own["date"] = format_datetime(datetime.fromtimestamp(sent_at, UTC))
    headers = {name: own.get(name) or value for name, value in message.headers.items()} | {"url": ""}
    return MailMessage(
        headers=headers,
        sent_at=message.sent_at or sent_at,
        bodies=_bodies(storage, internet_page, limit),
        parts=_parts(storage, limit, depth),
    )


def _recipients(storage: _Storage) -> dict[str, str]:
    """The people that a message went to, by the header that names them."""
    people: dict[int, list[str]] = {kind: [] for kind in _DISPLAYED}
    for recipient in storage.inner("__recip_version1.0_", _PART_HEAD):
        kind = _integer(recipient.fixed().get(_RECIPIENT_KIND)) & 0xF
        address = recipient.text(_SMTP) or recipient.text(_ADDRESS)
        if kind in people:
            people[kind].append(_person(recipient.text(_DISPLAY_NAME), address))
    return {
        header: ", ".join(filter(None, people[kind])) or storage.text(shown)
        for kind, (header, shown) in _DISPLAYED.items()
    }


def _person(name: str, address: str) -> str:
    if "@" not in address or address in name:  # an address of Exchange says nothing to people
        return name
    return f"{name} <{address}>" if name else address


def _bodies(storage: _Storage, internet_page: int, limit: int) -> list[Body]:
    """One of the forms that the text comes in: plain, HTML, RTF."""
    if text := storage.text(_TEXT):
        return [Body(text)]
    if html := storage.stream(_HTML, 0x0102):
        return [Body(decode_text(html, codec_of_code_page(internet_page) if internet_page else ""), is_html=True)]
    if page := storage.text(_HTML):
        return [Body(page, is_html=True)]
    document = read_rtf(decompress_rtf(storage.stream(_RTF, 0x0102) or b""), limit)
    if document.html:
        return [Body(document.html, is_html=True)]
    return [Body("\n\n".join(text for text, _, _ in document.paragraphs))]


def _parts(storage: _Storage, limit: int, depth: int) -> list[Attachment | MailMessage]:
    parts: list[Attachment | MailMessage] = []
    for item in storage.inner("__attach_version1.0_", _PART_HEAD):
        embedded = item._replace(path=(*item.path, f"__substg1.0_{_DATA:04X}000D"), head=_EMBEDDED_HEAD)
        is_message = read_stream(storage.compound, *embedded.path, _PROPERTIES) is not None
        if is_message and depth < _DEEPEST:
            parts.append(_message(embedded, limit, depth + 1))
        elif data := item.stream(_DATA, 0x0102):
            name = item.text(_LONG_NAME) or item.text(_SHORT_NAME) or item.text(_DISPLAY_NAME) or "unnamed"
            parts.append(Attachment(name, item.text(_MEDIA_TYPE) or _media_type(name), data))
    return parts


def _media_type(name: str) -> str:
    # An instance of its own knows only the types built into Python, the same on every machine.
    return mimetypes.MimeTypes().guess_type(name)[0] or "application/octet-stream"


def _integer(value: bytes | None) -> int:
    return int.from_bytes(value[:4], "little") if value else 0


def _time(value: bytes | None) -> float | None:
    return windows_time(int.from_bytes(value, "little")) if value else None
