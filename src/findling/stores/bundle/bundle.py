"""A bundle: one workspace as plain files in a folder or a zip archive, with checksums in a manifest."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Self, TypeVar, cast

from findling.domain.errors import CorruptError, FormatError, InvalidValueError, PathNotFoundError
from findling.stores.bundle.jsonl_records import Record

KIND = "findling-bundle"

SCHEMA_VERSION = "1.0"
"""A reader that knows a major number reads every bundle with it."""

MANIFEST = "manifest.json"

FILES = (
    "resources.jsonl",
    "bm25.jsonl",
    "vectors.jsonl",
    "glossary.jsonl",
    "relations.jsonl",
    "accesses.jsonl",
    "meta.json",
)
"""Every file besides the manifest, in the order in which they are written."""

_BLOCK = 1 << 20

_LONGEST_LINE = 1 << 28
"""No resource makes a longer line: its text has at most 16 million characters."""

_LONGEST_LINES = {"manifest.json": 1 << 20, "vectors.jsonl": 1 << 18, "meta.json": 1 << 26}
"""Bytes of a line elsewhere: `meta.json` lists every folder and what was left out."""

_LONGEST_SMALL_LINE = 1 << 16
"""Bytes of a line of any other file: a term, a right, an access."""

_MOST_PACKED = 200
"""The most that an archive shrinks a file of more than `_SURELY_FINE` bytes; plain text shrinks 3 to 20 times."""

_SURELY_FINE = 1 << 26

_HINT = "export it again, or copy it again"

_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
"""Errors of a member that is damaged, encrypted, or packed in an unknown way."""

_SENSELESS = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, InvalidValueError)
"""Errors of a line that makes no sense."""

_T = TypeVar("_T")

_Opener = Callable[[str], BinaryIO]
"""Opens a file of a bundle. Raises KeyError or FileNotFoundError when there is none."""


class Bundle(AbstractContextManager["Bundle"]):
    """A bundle to read: `open` reads the manifest alone, `verify` reads all of it."""

    def __init__(self, path: Path, open_member: _Opener, files: ExitStack, manifest: Record) -> None:
        self.path = path
        self.manifest = manifest
        self._open = open_member
        self._files = files

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the folder or archive at `path`.

        Raises PathNotFoundError for a missing path, InvalidValueError for another file, FormatError for a bundle of a
        newer findling, and CorruptError for an unreadable manifest.
        """
        path = Path(path)
        with ExitStack() as files:
            open_member = _opener(path, files)
            manifest = _read_manifest(path, open_member)
            return cls(path, open_member, files.pop_all(), manifest)

    @property
    def identity(self) -> str:
        """A digest of the content."""
        return sha256("".join(self.manifest["files"][name]["sha256"] for name in FILES).encode()).hexdigest()

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of resources, chunks, vectors and the rest."""
        return cast(Mapping[str, int], self.manifest["counts"])

    def verify(self) -> None:
        """Compare every file with its checksum. Raises CorruptError for the first one that differs."""
        for name in FILES:
            digest = sha256()
            with self._opened(name) as file:
                left = self.manifest["files"][name].get("bytes")
                try:
                    while block := file.read(_BLOCK):
                        digest.update(block)
                        left = left - len(block) if isinstance(left, int) else None
                        if left is not None and left < 0:
                            raise _corrupt(self.path, name, "it is larger than the manifest says")
                except (*_BAD_ARCHIVE, OSError, EOFError) as error:
                    raise _corrupt(self.path, name, str(error)) from error
            if digest.hexdigest() != self.manifest["files"][name]["sha256"]:
                raise _corrupt(self.path, name, "its checksum is not that of the manifest")

    def read(self, name: str, parse: Callable[[Record], _T]) -> Iterator[_T]:
        """Parse a file line by line.

        Raises CorruptError with the file and the number of the line that is no JSON or that `parse` refuses by a
        KeyError, TypeError, ValueError or InvalidValueError.
        """
        longest = _LONGEST_LINE if name == FILES[0] else _LONGEST_LINES.get(name, _LONGEST_SMALL_LINE)
        with self._opened(name) as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                try:
                    if len(line) > longest:
                        raise ValueError(f"it has more than {longest:,} bytes")
                    value = parse(json.loads(line, parse_constant=_no_number))
                except _SENSELESS as error:
                    problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                    problem = "it nests too deeply" if isinstance(error, RecursionError) else problem
                    raise _corrupt(self.path, f"line {number} of {name}", problem) from error
                yield value

    def meta(self) -> Record:
        """The content of `meta.json`. Raises CorruptError when it is no JSON object."""
        documents = list(self.read("meta.json", dict))
        if len(documents) != 1:
            raise _corrupt(self.path, "meta.json", f"it holds {len(documents)} documents")
        return documents[0]

    def close(self) -> None:
        """Release files; closing twice is fine."""
        self._files.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _opened(self, name: str) -> BinaryIO:
        try:
            return self._open(name)
        except (KeyError, FileNotFoundError) as error:
            raise _corrupt(self.path, name, "it is missing") from error
        except (*_BAD_ARCHIVE, OSError) as error:
            raise _corrupt(self.path, name, str(error)) from error


def is_bundle(path: Path) -> bool:
    """Whether a bundle at the path can be opened."""
    try:
        Bundle.open(path).close()
    except (CorruptError, InvalidValueError, PathNotFoundError):
        return False
    return True


def _open_in_folder(folder: Path, name: str) -> BinaryIO:
    # A link would lead out of the bundle, and nobody writes into a pipe.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(folder / name, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise IsADirectoryError(errno.EISDIR, "it is no file")
    return file


def _open_in_archive(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    """Read a member in place: no path that the archive names is ever written."""
    info = archive.getinfo(name)
    if info.file_size > max(_SURELY_FINE, _MOST_PACKED * info.compress_size):
        raise zipfile.BadZipFile(f"it unpacks to {info.file_size:,} bytes")
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, archive.open(name)), _BLOCK))


def _opener(path: Path, files: ExitStack) -> _Opener:
    if path.is_dir():
        return partial(_open_in_folder, path)
    if not path.exists():
        raise PathNotFoundError(f"there is no {path}", hint="findling export TARGET writes a bundle")
    if not zipfile.is_zipfile(path):
        raise _no_bundle(path, "it is neither a folder nor a whole zip archive")
    try:
        return partial(_open_in_archive, files.enter_context(zipfile.ZipFile(path)))
    except _BAD_ARCHIVE as error:
        raise _no_bundle(path, str(error)) from error


def _read_manifest(path: Path, open_member: _Opener) -> Record:
    try:
        with open_member(MANIFEST) as file:
            data = file.read(_LONGEST_LINES[MANIFEST] + 1)
        if len(data) > _LONGEST_LINES[MANIFEST]:
            raise ValueError(f"it has more than {_LONGEST_LINES[MANIFEST]:,} bytes")
        manifest = json.loads(data, parse_constant=_no_number)
    except (KeyError, FileNotFoundError) as error:
        raise _no_bundle(path, f"it has no {MANIFEST}") from error
    except RecursionError as error:
        raise _corrupt(path, MANIFEST, "it nests too deeply") from error
    except (ValueError, OSError, *_BAD_ARCHIVE) as error:  # no JSON, no UTF-8, no file, or a damaged archive
        raise _corrupt(path, MANIFEST, str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise _no_bundle(path, f"its {MANIFEST} is not that of one")
    _check_version(path, manifest.get("schemaVersion"))
    _check_manifest(path, manifest)
    return manifest


def _check_version(path: Path, version: object) -> None:
    if not isinstance(version, str) or not re.fullmatch(r"\d+\.\d+", version):
        raise _corrupt(path, MANIFEST, f"its schemaVersion is {version!r}")
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise FormatError(
            f"{path} has schemaVersion {version}, this findling knows {SCHEMA_VERSION}",
            hint="upgrade findling: `pip install --upgrade findling`",
        )


def _check_manifest(path: Path, manifest: Record) -> None:
    files, counts = manifest.get("files"), manifest.get("counts")
    if not isinstance(files, dict) or not isinstance(counts, dict):
        raise _corrupt(path, MANIFEST, "it does not list the files and what they hold")
    for name in FILES:
        known = files.get(name)
        if not isinstance(known, dict) or not isinstance(known.get("sha256"), str):
            raise _corrupt(path, MANIFEST, f"it has no checksum of {name}")
    if not all(_is_count(counts.get(name)) for name in ("resources", "chunks", "files", "characters")):
        raise _corrupt(path, MANIFEST, "its counts are no numbers")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _corrupt(path: Path, what: str, why: str) -> CorruptError:
    return CorruptError(f"{what} in the bundle {path} is damaged: {why}", hint=_HINT)


def _no_bundle(path: Path, why: str) -> InvalidValueError:
    return InvalidValueError(f"{path} is no bundle: {why}", hint="findling export TARGET writes one")
