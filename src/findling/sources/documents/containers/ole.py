"""Compound files (OLE): the container of Word 97, PowerPoint 97 and Outlook messages."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

from olefile import OleFileIO  # type: ignore[import-untyped]

from findling.sources.documents.charsets import decode_bytes
from findling.sources.documents.containers.zip_packages import PARSER_ERRORS
from findling.sources.extracted import Properties, windows_time
from findling.sources.files.file_text import UnreadableError

_STREAM = 2
_CODE_PAGE, _TITLE, _SUBJECT, _AUTHOR, _KEYWORDS, _CREATED, _SAVED = 1, 2, 3, 4, 5, 12, 13
_VT_I2, _VT_LPSTR, _VT_FILETIME = 2, 30, 64


def open_compound(data: bytes) -> OleFileIO:
    """Open a compound file. Raises `UnreadableError`."""
    try:
        compound = OleFileIO(io.BytesIO(data))
        locked = compound.exists("EncryptedPackage")
    except PARSER_ERRORS:
        raise UnreadableError("damaged", "the compound file is broken") from None
    if locked:
        raise UnreadableError("encrypted", "needs a password")
    return compound


def read_stream(compound: OleFileIO, *path: str) -> bytes | None:
    """The bytes of a stream, or `None` when it is missing or broken."""
    try:
        return None if compound.get_type(list(path)) != _STREAM else bytes(compound.openstream(list(path)).read())
    except PARSER_ERRORS:
        return None


def list_storages(compound: OleFileIO, path: tuple[str, ...] = ()) -> list[str]:
    """The names of the storages right below the one at `path`."""
    parent = list(path)
    return [entry[-1] for entry in compound.listdir(streams=False, storages=True) if entry[:-1] == parent]


def read_summary(compound: OleFileIO) -> Properties:
    """The document's own title, author and times; what is missing or broken stays empty."""
    values = dict(_properties(read_stream(compound, "\x05SummaryInformation") or b""))
    code_page = values.get(_CODE_PAGE)
    page = code_page if isinstance(code_page, int) else 1252

    def text(number: int) -> str:
        value = values.get(number)
        return decode_bytes(value, page).split("\0")[0].strip() if isinstance(value, bytes) else ""

    def time(number: int) -> float | None:
        value = values.get(number)
        return windows_time(value) if isinstance(value, int) else None

    return Properties(
        title=text(_TITLE),
        author=text(_AUTHOR),
        created_at=time(_CREATED),
        updated_at=time(_SAVED),
        fields={"subject": text(_SUBJECT), "keywords": text(_KEYWORDS)},
    )


def _properties(stream: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers, times and strings of the first property set in a stream, up to where it is broken."""
    try:
        (start,) = struct.unpack_from("<I", stream, 44)
        _, count = struct.unpack_from("<II", stream, start)
        for entry in range(count):
            number, offset = struct.unpack_from("<II", stream, start + 8 + 8 * entry)
            kind, first = struct.unpack_from("<II", stream, start + offset)
            value = start + offset + 4
            if kind == _VT_I2:
                yield number, first & 0xFFFF
            elif kind == _VT_LPSTR:
                yield number, stream[value + 4 : value + 4 + first]
            elif kind == _VT_FILETIME:
                yield number, struct.unpack_from("<Q", stream, value)[0]
    except struct.error:
        return
