"""Reading the files of a keyword leg, any of which may be damaged.

Each has a checksum at its end, which tantivy writes and does not look at when it reads.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import TracebackType
from zlib import crc32

import tantivy

from findling.domain.errors import CorruptError
from findling.stores.keyword_scoring import PAD

__all__ = ["Reading", "Statistics", "damaged_parts", "sampled_damage"]

_PART = re.compile(r"[0-9a-f]{32}\.(\d+\.)?[a-z]+")
_SEGMENT = re.compile(rb'"segment_id":\s*"([0-9a-f-]{36})"')
_CRC = re.compile(rb'"crc":(\d+)')
_MAGIC = (1337).to_bytes(4, "little")

_LARGEST_SAMPLE = 1 << 18
"""A file of so many bytes is looked at in 0.3 ms."""


class Reading:
    """Turns what tantivy says about damaged files into CorruptError: most are refused, some make it panic.

    Nothing but reading may stand inside it: a value that tantivy refuses looks like damage, too. It is a class since a
    query enters it hundreds of times, and a generator would take five times as long.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A panic arrives as an exception that is no Exception and whose class cannot be imported.
        if error is None or not (isinstance(error, ValueError) or type(error).__name__ == "PanicException"):
            return
        raise CorruptError(
            f"the keyword leg in {self._folder} cannot be read: {error}", hint="findling repair"
        ) from error


class Statistics:
    """What queries are built from: the words of one state of the index. Every question may raise CorruptError."""

    def __init__(self, searcher: tantivy.Searcher, reading: Reading) -> None:
        self._searcher = searcher
        self._reading = reading
        with reading:
            self.entries = searcher.num_docs

    def frequency(self, field: str, term: str) -> int:
        """In how many entries a term stands in a field; what was dropped counts until the index tidies itself up."""
        with self._reading:
            return self._searcher.doc_freq(field, term)

    def begun(self, field: str, prefix: str, limit: int | None = None) -> list[tuple[str, int]]:
        """The terms of a field that begin so, in order, each with its frequency."""
        with self._reading:
            found = self._searcher.terms_with_prefix(field, prefix, limit=limit)
        return found if prefix else [pair for pair in found if pair[0] != PAD]


def damaged_parts(folder: Path) -> list[str]:
    """The names of the files that are not what was written; every byte is looked at."""
    return [part.name for part in _parts(folder) if not _is_sound(part)]


def sampled_damage(folder: Path) -> str:
    """The name of one file, chosen at random among the small ones, if it is not what was written."""
    try:
        small = [part for part in _parts(folder) if part.stat().st_size <= _LARGEST_SAMPLE]
    except FileNotFoundError:  # merged away meanwhile
        return ""
    # The module `random` takes 2 ms to load.
    part = small[int.from_bytes(os.urandom(2), "big") % len(small)] if small else None
    return part.name if part is not None and not _is_sound(part) else ""


def _parts(folder: Path) -> list[Path]:
    """The files of the latest commit; what a killed process has left is none of them."""
    try:
        listed = _SEGMENT.findall((folder / "meta.json").read_bytes())
        names = {name.replace(b"-", b"").decode() for name in listed}
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [file for file in found if _PART.fullmatch(file.name) and file.name[:32] in names]


def _is_sound(part: Path) -> bool:
    try:
        data = part.read_bytes()
    except OSError:  # merged away meanwhile
        return True
    length = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != _MAGIC or length > len(data) - 8:
        return False
    end = len(data) - 8 - length
    noted = _CRC.search(data[end:-8])
    return noted is not None and crc32(memoryview(data)[:end]) == int(noted[1])
