"""The one way into the extractors: which of them reads a document, by its content and its name.

A file's name says which format it should have; its first bytes may know better. Exports named `.xls` are often HTML
or plain tables, and mail attachments are called anything.
"""

from __future__ import annotations

import importlib
import struct
import zipfile
import zlib
from io import BytesIO

from findling.sources.documents.table import FORMATS
from findling.sources.extracted import Extracted, Source
from findling.sources.files.file_text import UnreadableError, decode
from findling.sources.files.file_types import Exclusion, classify

_MAX_DEPTH = 3  # a mail in a mail in a mail: what lies deeper is listed, not read
_BINARY_FORMATS = frozenset(
    {"archive", "doc", "docx", "epub", "msg", "opendocument", "pdf", "ppt", "pptx", "rtf", "spreadsheet", "sqlite"}
)
_TEXT_FORMATS = frozenset({"csv", "html", "json", "mail", "notebook", "opendocument", "subtitles", "svg", "xml"})
_MAGIC = (
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"{\\rtf", "rtf"),
    (b"SQLite format 3\0", "sqlite"),
)
_HEAD = 1024  # PDF readers accept a header anywhere in the first kilobyte; other files may only be about PDF
_ZIP_PARTS = {"word/": "docx", "ppt/": "pptx", "xl/": "spreadsheet"}
_ZIP_TYPES = {
    b"application/epub+zip": "epub",
    b"application/vnd.oasis.opendocument.spreadsheet": "spreadsheet",
    b"application/vnd.oasis.opendocument.": "opendocument",
}
_OLE_STREAMS = {
    "WordDocument": "doc",
    "Workbook": "spreadsheet",
    "Book": "spreadsheet",
    "PowerPoint Document": "ppt",
    "__properties_version1.0": "msg",
}


def extract(source: Source) -> Extracted:
    """The text of a document, by its content and its name. Raises `UnreadableError` when it gives none."""
    if source.depth > _MAX_DEPTH:
        raise UnreadableError("unsupported", "lies too deep in other documents")
    lang = _format_of(source)
    if lang not in FORMATS:
        return Extracted(text=decode(source.data)[0][: source.limit], lang=lang)
    try:
        module = importlib.import_module(f"findling.sources.documents.{FORMATS[lang].module}")
    except ImportError as error:
        raise UnreadableError("missing-library", f"needs {error.name}: pip install {error.name}") from error
    extracted: Extracted = module.extract(source)
    return extracted


def _format_of(source: Source) -> str:
    """The format to read the source by: what its bytes say, where they say something, else what its name says."""
    type_ = classify(source.name)
    named = "" if isinstance(type_, Exclusion) else type_.lang
    found = _sniff(source.data)
    if not found and named == "pdf" and b"%PDF-" in source.data[:_HEAD]:
        return named
    if found in ("zip", "ole"):
        return _in_container(source.data, found, named)
    if found:
        return found if named not in _TEXT_FORMATS or found != "html" else named
    if named in _BINARY_FORMATS:
        return _text_instead(source.data, named)
    if not named and isinstance(type_, Exclusion) and type_.reason != "unknown-type":
        raise UnreadableError(type_.reason, type_.detail)
    return named or "text"


def _sniff(data: bytes) -> str:
    start = data[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n\0")
    for magic, format_ in _MAGIC:
        if start.startswith(magic):
            return format_
    return "html" if start[:15].lower().startswith((b"<!doctype html", b"<html")) else ""


def _in_container(data: bytes, container: str, named: str) -> str:
    """The format of a ZIP or OLE file by what it holds, else by its name."""
    try:
        guess = _in_zip(data) if container == "zip" else _in_ole(data)
    except (OSError, ValueError, LookupError, EOFError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error):
        guess = ""  # the extractor that its name asks for says what is wrong
    if guess:
        return guess if named != "archive" else named
    return named if named in _BINARY_FORMATS else "archive"


def _in_zip(data: bytes) -> str:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        if "mimetype" in names and archive.getinfo("mimetype").file_size < _HEAD:
            kind = archive.read("mimetype").strip()
            return next((format_ for prefix, format_ in _ZIP_TYPES.items() if kind.startswith(prefix)), "")
    return next((format_ for part, format_ in _ZIP_PARTS.items() if any(name.startswith(part) for name in names)), "")


def _in_ole(data: bytes) -> str:
    import olefile  # type: ignore[import-untyped]

    with olefile.OleFileIO(BytesIO(data)) as container:
        if container.exists("EncryptedPackage"):
            raise UnreadableError("encrypted", "needs a password")
        return next((format_ for stream, format_ in _OLE_STREAMS.items() if container.exists(stream)), "")


def _text_instead(data: bytes, named: str) -> str:
    """Format of a file that lacks the signature its name promises. Raises `UnreadableError` when it is no text."""
    if named == "opendocument" or (named == "spreadsheet" and data.lstrip()[:5] == b"<?xml"):
        return named
    try:
        decode(data)
    except UnreadableError:
        # Before Excel 5 a file was a bare stream; a tar begins with a name, and is packed in four ways.
        if named in ("archive", "spreadsheet"):
            return named  # the extractor knows these beginnings
        raise UnreadableError("damaged", f"does not begin as {FORMATS[named].title} does") from None
    return "csv" if named == "spreadsheet" else "text"
