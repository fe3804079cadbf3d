"""The JSON files of an export, in a folder or in a zip archive."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from findling.domain.errors import InvalidValueError, PathNotFoundError

_SUFFIXES = (".json", ".jsonl", ".ndjson")
# RuntimeError: the archive has a password. OSError: bzip2 is broken.
_DAMAGE = (EOFError, NotImplementedError, OSError, RuntimeError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


class ExportFiles(NamedTuple):
    """Files of an export: its name, the sorted paths of its JSON files, and a function to open one."""

    name: str
    names: list[str]
    opened: Callable[[str], AbstractContextManager[IO[bytes]]]


def folder_files(folder: Path) -> ExportFiles:
    """The files of a folder and of the folders in it."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    # A link in what a stranger has packed may lead to any file of this machine.
    names = sorted(path.relative_to(folder).as_posix() for path in found if not path.is_symlink())
    return ExportFiles(str(folder), names, lambda name: opened_file(folder / name))


def zip_files(path: Path) -> ExportFiles:
    """The files of a zip archive, without the folder that everything lies in, if there is one.

    Raises InvalidValueError for a broken archive, also when one of its files is read.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidValueError(f"{path}: no readable zip archive: {error}", hint="download it again") from error
    kept = [name for name in archive.namelist() if name.lower().endswith(_SUFFIXES)]
    kept = [name for name in kept if not name.startswith("__MACOSX/")]
    tops = {name.partition("/")[0] for name in kept}
    top = f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in kept) else ""

    @contextmanager
    def opened(name: str) -> Iterator[IO[bytes]]:
        def unpacked(read: Callable[[], Any]) -> Any:
            try:
                return read()
            except _DAMAGE as error:
                hint = "unpack the archive and name its folder"
                raise InvalidValueError(f"{path}: {name} cannot be unpacked: {error}", hint=hint) from error

        with unpacked(lambda: archive.open(top + name)) as stream:
            yield buffered(lambda size: unpacked(lambda: stream.read(size)))

    return ExportFiles(str(path), sorted(name.removeprefix(top) for name in kept), opened)


class _CalledStream(io.RawIOBase):
    """A stream that a function reads."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """As much as is there."""
        data = self._read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def buffered(read: Callable[[int], bytes]) -> IO[bytes]:
    """A stream of what a function gives, which is asked for a number of bytes."""
    return io.BufferedReader(_CalledStream(read))


@contextmanager
def opened_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to read. Raises PathNotFoundError when there is none."""
    try:
        stream = path.open("rb")
    except FileNotFoundError as error:
        raise PathNotFoundError(f"there is no {path}", hint="name an exported file or folder") from error
    with stream:
        yield stream
