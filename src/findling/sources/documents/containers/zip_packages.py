"""Opening documents that are zip files of parts, most of them XML, whatever was put into them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import parse_xml
from findling.sources.files.file_text import UnreadableError

__all__ = [
    "MAX_MEMBER_BYTES",
    "MAX_UNPACKED_BYTES",
    "OLE_MAGIC",
    "has_member",
    "open_zip",
    "read_member",
    "read_side_xml",
    "read_xml",
]

MAX_MEMBER_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 256 << 20
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def open_zip(data: bytes) -> zipfile.ZipFile:
    """The zip file in `data`. Raises `UnreadableError`: `damaged`, or `encrypted` for an encrypted office package."""
    if data.startswith(OLE_MAGIC):
        if _ENCRYPTED_PACKAGE in data:
            raise UnreadableError("encrypted", "needs a password")
        raise UnreadableError("damaged", "an OLE file, not a zip file")
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except _ZIP_ERRORS as error:
        raise UnreadableError("damaged", f"not a readable zip file: {_first_line(error)}") from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """The content of a member, found without regard to case; `None` when there is none. Raises `UnreadableError`.

    What was read from one archive counts together, so that no document unpacks without bound.
    """
    ledger = _ledger_of(archive)
    info = ledger.members.get(_member_key(name))
    if info is None:
        return None
    if info.flag_bits & _ENCRYPTED_FLAG:
        raise UnreadableError("encrypted", "needs a password")
    if info.compress_type not in _BOUNDED_METHODS:
        raise UnreadableError("unsupported", f"packed with zip method {info.compress_type}")
    if info.file_size > MAX_MEMBER_BYTES:
        raise UnreadableError("too-large", f"unpacks to more than {MAX_MEMBER_BYTES >> 20} MB")
    ledger.unpacked += info.file_size
    if ledger.unpacked > MAX_UNPACKED_BYTES:
        raise UnreadableError("too-large", f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB")
    try:
        with archive.open(info) as member:
            # One byte more than promised reaches the end, where the checksum is compared; a bare `read()` would
            # first unpack everything, however much more that is than the promise.
            return member.read(info.file_size + 1)
    except _ZIP_ERRORS as error:
        raise UnreadableError("damaged", f"cannot unpack {info.filename}: {_first_line(error)}") from error


def has_member(archive: zipfile.ZipFile, name: str) -> bool:
    """Whether there is such a member, readable or not."""
    return _member_key(name) in _ledger_of(archive).members


def read_xml(archive: zipfile.ZipFile, name: str) -> Element | None:
    """The root of a member that is XML; `None` when there is none. Raises `UnreadableError`."""
    data = read_member(archive, name)
    return None if data is None else parse_xml(data)


def read_side_xml(archive: zipfile.ZipFile, name: str) -> Element | None:
    """The root of a member without which the rest can be read; `None` when there is none or it is broken."""
    try:
        return read_xml(archive, name)
    except UnreadableError:
        return None


_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED_FLAG = 0x1
# Python unpacks bzip2 and LZMA without a bound on the output, and no office format uses them.
_BOUNDED_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    ValueError,
)


@dataclass
class _Ledger:
    """State of an open archive."""

    members: dict[str, zipfile.ZipInfo] = field(default_factory=dict)
    unpacked: int = 0


_ledgers: WeakKeyDictionary[zipfile.ZipFile, _Ledger] = WeakKeyDictionary()


def _ledger_of(archive: zipfile.ZipFile) -> _Ledger:
    ledger = _ledgers.get(archive)
    if ledger is None:
        ledger = _Ledger({_member_key(info.filename): info for info in archive.infolist()})
        _ledgers[archive] = ledger
    return ledger


def _member_key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").casefold()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
