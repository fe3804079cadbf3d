"""Archives: the names and sizes of what is in them. Nothing is unpacked but what it takes to list a packed tar."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from itertools import islice

from findling.sources.documents.containers.zip_packages import Package
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder
from findling.sources.files.file_text import UnreadableError

_MAX_MEMBERS = 5000
_MAX_UNPACKED = 64 << 20
_PIECE = 1 << 20
_TAR_MAGIC_OFFSET = 257
_UNSUPPORTED = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "RAR", b"\x28\xb5\x2f\xfd": "Zstandard"}
_UNPACKERS: dict[bytes, Callable[[io.BytesIO], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda data: gzip.GzipFile(fileobj=data),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x5d\0\0": lzma.LZMAFile,
}


def extract(source: Source) -> Extracted:
    """The members of an archive, one on a line; a packed file is its only member. Raises `UnreadableError`."""
    for magic, kind in _UNSUPPORTED.items():
        if source.data.startswith(magic):
            raise UnreadableError("unsupported", f"{kind} archives cannot be listed")
    builder = TextBuilder(source.limit)
    unpack = next((unpack for magic, unpack in _UNPACKERS.items() if source.data.startswith(magic)), None)
    if unpack is not None:
        content, is_whole = _unpacked(unpack(io.BytesIO(source.data)))
        if content.startswith(b"ustar", _TAR_MAGIC_OFFSET) or _is_packed_tar(source.name):
            is_whole = _write_tar(builder, content, is_whole)
        else:
            name = source.name.rpartition("/")[2].rpartition(".")[0]
            builder.line(f"{name} ({'' if is_whole else 'more than '}{len(content):,} bytes)")
    elif source.name.lower().endswith(".tar") or source.data.startswith(b"ustar", _TAR_MAGIC_OFFSET):
        is_whole = _write_tar(builder, source.data, is_whole=True)
    else:
        is_whole = _write_zip(builder, source.data)
    note = "" if is_whole else "only the beginning of the archive is listed"
    return builder.extracted(Properties(fields={"incomplete": note}), empty=("no-text", "an empty archive"))


def _is_packed_tar(name: str) -> bool:
    """Whether a name says that a packed file is a tar: old ones have no mark inside."""
    name = name.lower()
    return name.endswith((".tgz", ".tbz2", ".txz")) or ".tar." in name


def _write_zip(builder: TextBuilder, data: bytes) -> bool:
    with Package(data) as archive:
        infos = archive.infolist()
        members = ((info.filename, None if info.is_dir() else info.file_size) for info in infos)
        is_whole = _write_members(builder, members, len(infos))
        builder.paragraph(archive.comment.decode("utf-8", "replace"))
        return is_whole


def _write_tar(builder: TextBuilder, data: bytes, is_whole: bool) -> bool:
    """List a tar as far as it is whole and was unpacked; whether that is its end."""
    try:
        archive = tarfile.TarFile(fileobj=io.BytesIO(data))
    except tarfile.TarError as error:
        raise UnreadableError("damaged", f"no tar archive: {error}") from error
    try:
        with archive:
            members = ((info.name, info.size if info.isreg() else None) for info in archive)
            return _write_members(builder, members) and is_whole
    except (tarfile.TarError, OSError, ValueError, RecursionError):  # a header that is broken or chained to thousands
        return False


def _write_members(builder: TextBuilder, members: Iterator[tuple[str, int | None]], count: int = 0) -> bool:
    """Write names with their sizes; whether that is all."""
    for name, size in islice(members, _MAX_MEMBERS):
        builder.line(name if size is None else f"{name} ({size:,} bytes)")
        if builder.full:
            return False
    if next(members, None) is None:
        return True
    builder.line(f"… {count - _MAX_MEMBERS:,} more" if count else "… more")
    return False


def _unpacked(packed: io.BufferedIOBase) -> tuple[bytes, bool]:
    """The content up to a bound, and whether that is all; a broken end costs only itself."""
    pieces: list[bytes] = []
    try:
        while len(pieces) * _PIECE < _MAX_UNPACKED:
            piece = packed.read(_PIECE)
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if not pieces:
            raise UnreadableError("damaged", f"cannot be unpacked: {error}") from error
    return b"".join(pieces), False
