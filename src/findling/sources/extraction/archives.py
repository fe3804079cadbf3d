"""Opening documents that are zip files full of XML, whatever was put into them."""

from __future__ import annotations

import codecs
import io
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from weakref import WeakKeyDictionary
from xml.etree import ElementTree
from xml.parsers import expat

from findling.sources.reading import UnreadableError

__all__ = [
    "MAX_MEMBER_BYTES",
    "MAX_UNPACKED_BYTES",
    "attribute_of",
    "has_member",
    "local_name",
    "number_of",
    "open_zip",
    "parse_xml",
    "read_member",
    "read_side_xml",
    "read_xml",
]

MAX_MEMBER_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 256 << 20


def open_zip(data: bytes) -> zipfile.ZipFile:
    """The zip file in `data`. Raises `UnreadableError`: `damaged`, or `encrypted` for an encrypted office package."""
    if data.startswith(_OLE_MAGIC):
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
        raise UnreadableError("damaged", f"unpacks to more than {MAX_MEMBER_BYTES >> 20} MB")
    ledger.unpacked += info.file_size
    if ledger.unpacked > MAX_UNPACKED_BYTES:
        raise UnreadableError("damaged", f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB")
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


def parse_xml(data: bytes) -> ElementTree.Element:
    """The root of an XML document without entities of its own. Raises `UnreadableError`.

    Characters that XML forbids are left out: many producers write control characters that users pasted.
    """
    data = data.lstrip(b" \t\r\n")
    try:
        if any(mark in data for mark in _ENTITY_MARKS):
            _refuse_entities(data)
        try:
            return ElementTree.fromstring(data)
        except ElementTree.ParseError:
            repaired = _without_forbidden_characters(data)
            if repaired == data:
                raise
            return ElementTree.fromstring(repaired)
    except _XML_ERRORS as error:
        raise UnreadableError("damaged", f"malformed XML: {_first_line(error)}") from error


def read_xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element | None:
    """The root of a member that is XML; `None` when there is none. Raises `UnreadableError`."""
    data = read_member(archive, name)
    return None if data is None else parse_xml(data)


def read_side_xml(archive: zipfile.ZipFile, name: str) -> ElementTree.Element | None:
    """The root of a member without which the rest can be read; `None` when there is none or it is broken."""
    try:
        return read_xml(archive, name)
    except UnreadableError:
        return None


@lru_cache(maxsize=4096)  # asked for every element, of a few names
def local_name(tag: str) -> str:
    """`p` for `{http://…}p`: producers use several namespaces for the same thing."""
    return tag[tag.rfind("}") + 1 :]


def attribute_of(element: ElementTree.Element, name: str) -> str:
    """The attribute of that local name, in any namespace; empty when there is none."""
    value = element.get(name)
    if value is not None:
        return value
    ending = "}" + name
    return next((value for key, value in element.attrib.items() if key.endswith(ending)), "")


def number_of(element: ElementTree.Element, name: str) -> int | None:
    """The attribute of that local name as a number below a billion; `None` when it is no such number."""
    value = attribute_of(element, name)
    return int(value) if value.isdecimal() and len(value) < len("1000000000") else None


_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
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
# Expat reads UTF-16 and encodings that agree with ASCII, so a declaration looks like one of these.
_ENTITY_MARKS = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
_XML_ERRORS = (
    ElementTree.ParseError,
    expat.ExpatError,
    LookupError,  # an encoding that does not exist
    ValueError,  # an encoding that expat cannot read
)
_FORBIDDEN_REFERENCE = re.compile(
    rb"&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]|d[89a-f]..));", re.IGNORECASE
)
_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)""")
_FORBIDDEN_BYTES = bytes(set(range(32)) - set(b"\t\n\r"))


@dataclass
class _Ledger:
    """What is remembered about an open archive."""

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


def _refuse_entities(data: bytes) -> None:
    def refuse(*_: object) -> None:
        raise UnreadableError("damaged", "declares XML entities")

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    parser.Parse(data, True)


def _without_forbidden_characters(data: bytes) -> bytes:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data
    data = _FORBIDDEN_REFERENCE.sub(b"", data).translate(None, _FORBIDDEN_BYTES)
    declaration = _ENCODING.match(data)
    if declaration and declaration[1].lower() not in (b"utf-8", b"utf8"):
        return data
    return data.decode("utf-8", "replace").encode()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
