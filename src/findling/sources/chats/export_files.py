"""The JSON files of an export, in a folder or in a zip archive, under the names that they have in it."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from findling.domain.errors import FindlingError, InvalidValueError, PathNotFoundError

__all__ = ["ExportFiles", "FolderFiles", "ZipFiles", "opened_file"]

_SUFFIXES = (".json", ".jsonl", ".ndjson")


class ExportFiles(Protocol):
    """Files of an export; `name` is that of the whole."""

    name: str

    def names(self) -> list[str]:
        """The paths of its JSON files in order, with slashes."""

    def opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """One of them, to read."""


class FolderFiles:
    """The files of a folder and of the folders in it."""

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder

    def names(self) -> list[str]:
        """The paths of its JSON files in order, with slashes."""
        found = (path for path in self._folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
        # A link in what a stranger has packed may lead to any file of this machine.
        found = (path for path in found if not path.is_symlink())
        return sorted(path.relative_to(self._folder).as_posix() for path in found)

    def opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """One of them, to read."""
        return opened_file(self._folder / name)


class ZipFiles:
    """The files of a zip archive. Raises InvalidValueError when it is none, or one that cannot be unpacked."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            self._archive = zipfile.ZipFile(path)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise InvalidValueError(f"{path}: no readable zip archive: {error}", hint="download it again") from error
        self._members = _members(self._archive.namelist())

    def names(self) -> list[str]:
        """The paths of its JSON files in order; without the folder that everything lies in, if there is one."""
        return sorted(self._members)

    @contextmanager
    def opened(self, name: str) -> Iterator[IO[bytes]]:
        """One of them, to read."""
        try:
            stream = self._archive.open(self._members[name])
        except (NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:  # RuntimeError: it has a password
            raise self._damage(name, error) from error
        with stream, io.BufferedReader(_UnpackedExport(stream, lambda error: self._damage(name, error))) as reader:
            yield reader

    def _damage(self, name: str, error: Exception) -> InvalidValueError:
        return InvalidValueError(
            f"{self.name}: {name} cannot be unpacked: {error}", hint="unpack the archive and name its folder"
        )


class _UnpackedExport(io.RawIOBase):
    """A file of an archive. Messages are read long after it was opened, so it raises the errors itself."""

    def __init__(self, stream: IO[bytes], damage: Callable[[Exception], FindlingError]) -> None:
        self._stream = stream
        self._damage = damage

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """As much as is there."""
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, OSError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:  # OSError: of bzip2
            raise self._damage(error) from error
        buffer[: len(data)] = data
        return len(data)


def _members(paths: list[str]) -> dict[str, str]:
    """The name of each JSON file in the export → its path in the archive."""
    kept = [path for path in paths if path.lower().endswith(_SUFFIXES) and not path.startswith("__MACOSX/")]
    tops = {path.partition("/")[0] for path in kept}
    top = f"{tops.pop()}/" if len(tops) == 1 and all("/" in path for path in kept) else ""
    return {path.removeprefix(top): path for path in kept}


@contextmanager
def opened_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to read. Raises PathNotFoundError when there is none."""
    try:
        stream = path.open("rb")
    except FileNotFoundError as error:
        raise PathNotFoundError(f"there is no {path}", hint="name an exported file or folder") from error
    with stream:
        yield stream
