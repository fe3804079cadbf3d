"""Documents that are zip files of parts, most of them XML, whatever was put into them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import parse_xml
from findling.sources.files.file_text import UnreadableError

MAX_MEMBER_BYTES = 64 << 20
MAX_UNPACKED_BYTES = 256 << 20
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

PARSER_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError,
    ValueError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Errors of libraries that trust the numbers in a broken file; a lack of memory is none of them."""

_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_ENCRYPTED_FLAG = 0x1
# Python unpacks bzip2 and LZMA without a bound on the output, and no office format uses them.
_BOUNDED_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Package(zipfile.ZipFile):
    """A zip file whose members are found without regard to case.

    Bytes read from one package count together, so that no document unpacks without bound. Raises `UnreadableError`:
    `damaged`, or `encrypted` for an encrypted office package.
    """

    def __init__(self, data: bytes) -> None:
        if data.startswith(OLE_MAGIC):
            if _ENCRYPTED_PACKAGE in data:
                raise UnreadableError("encrypted", "needs a password")
            raise UnreadableError("damaged", "an OLE file, not a zip file")
        try:
            super().__init__(io.BytesIO(data))
        except PARSER_ERRORS as error:
            raise UnreadableError("damaged", f"not a readable zip file: {_first_line(error)}") from error
        self._members = {_member_key(info.filename): info for info in self.infolist()}
        self._unpacked = 0

    def has(self, name: str) -> bool:
        """Whether there is such a member, readable or not."""
        return _member_key(name) in self._members

    def part(self, name: str, limit: int | None = None) -> bytes | None:
        """Content of a member, of a long one only so many bytes; `None` for an absent one. Raises `UnreadableError`."""
        info = self._members.get(_member_key(name))
        if info is None:
            return None
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise UnreadableError("encrypted", "needs a password")
        if info.compress_type not in _BOUNDED_METHODS:
            raise UnreadableError("unsupported", f"packed with zip method {info.compress_type}")
        # One byte more than promised reaches the end, where zipfile compares the checksum. A bare `read()` would first
        # unpack everything, however much that is.
        wanted = info.file_size + 1 if limit is None else min(info.file_size + 1, limit)
        if wanted > MAX_MEMBER_BYTES + 1:
            raise UnreadableError("too-large", f"unpacks to more than {MAX_MEMBER_BYTES >> 20} MB")
        self._unpacked += wanted - 1
        if self._unpacked > MAX_UNPACKED_BYTES:
            raise UnreadableError("too-large", f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB")
        try:
            with self.open(info) as member:
                return member.read(wanted)
        except PARSER_ERRORS as error:
            raise UnreadableError("damaged", f"cannot unpack {info.filename}: {_first_line(error)}") from error

    def xml(self, name: str) -> Element | None:
        """Root of a member that is XML; `None` for an absent one. Raises `UnreadableError`."""
        data = self.part(name)
        return None if data is None else parse_xml(data)

    def side_xml(self, name: str) -> Element:
        """Root of a member without which the rest can be read; an empty element for an absent or broken one."""
        try:
            root = self.xml(name)
        except UnreadableError:
            root = None
        return Element("") if root is None else root


def _member_key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").casefold()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
