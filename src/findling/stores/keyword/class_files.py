"""The files of segments that hold one class of visibility; several open as one index.

A folder holds a tantivy index, `held` (which resources at which changes) and `terms` (the resources in the words of
the index, so that another segment can adopt them). It gets its name when it is complete, and never changes then.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import time
import weakref
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import tantivy

from findling.domain.errors import CorruptError, PathNotFoundError, ReadOnlyError
from findling.domain.values import read_json
from findling.stores.filesystem import discard
from findling.stores.keyword.entries import PreparedResource, entries, schema
from findling.stores.keyword.segment_files import DamageGuard
from findling.stores.lock import WriteLock

SEGMENT = ".seg"
"""The end of the name of a segment's folder."""

_HELD, _TERMS, _META = "held", "terms", "meta.json"

_HEAP_BYTES = 15_000_000
"""The least that a writer takes."""

_HEAP_A_CHARACTER = 12
"""So that a segment is written in one piece; several would be as good, but slower."""

_BLOCK_CHARACTERS = 16_000
"""A block of terms. An edit packs one of them, and 17 others of the segment are copied: 0.5 ms of CPU instead of 5."""

_LENGTH_BYTES = 4

_DAY_S = 86_400


class Segment(NamedTuple):
    """A segment: the numbers of its resources, each with the change it was made at, and its characters."""

    folder: Path
    held: dict[int, int]
    weight: int

    @property
    def name(self) -> str:
        """Its name, which no other has."""
        return self.folder.name

    def exists(self) -> bool:
        """Whether nobody has deleted it."""
        return (self.folder / _HELD).exists()


class TermBlock(NamedTuple):
    """Some resources in the words of the index, their characters, and both as a segment keeps them."""

    resources: Sequence[PreparedResource]
    weight: int
    packed: bytes

    @property
    def is_small(self) -> bool:
        """Whether it had better be packed with others."""
        return self.weight < _BLOCK_CHARACTERS // 2


def pack_terms(resources: Iterable[PreparedResource]) -> Iterator[TermBlock]:
    """Resources in blocks of about one size; a large one has a block of its own."""
    batch, weight = list[PreparedResource](), 0
    for prepared in resources:
        batch.append(prepared)
        weight += prepared.weight
        if weight >= _BLOCK_CHARACTERS:
            yield _block(batch, weight)
            batch, weight = [], 0
    if batch:
        yield _block(batch, weight)


def _block(resources: list[PreparedResource], weight: int) -> TermBlock:
    content = json.dumps((weight, resources), ensure_ascii=False, separators=(",", ":"))
    return TermBlock(resources, weight, zlib.compress(content.encode("utf-8", "surrogatepass"), 1))


def write_segment(folder: Path, blocks: Sequence[TermBlock], held: dict[int, int], made_for: str) -> Segment:
    """Write a segment of resources; `held` may name some that have no text any more. Raises OSError."""
    name = os.urandom(8).hex() + SEGMENT
    draft = folder / f"{name}.new"
    weight = sum(block.weight for block in blocks)
    try:
        draft.mkdir(mode=0o700)
        writer = tantivy.Index(schema(), path=str(draft)).writer(
            max(_HEAP_BYTES, _HEAP_A_CHARACTER * weight), num_threads=1
        )
        for block in blocks:
            for prepared in block.resources:
                for entry in entries(prepared):
                    writer.add_json(entry)
        writer.commit()
        writer.wait_merging_threads()
        packed = [part for one in blocks for part in (len(one.packed).to_bytes(_LENGTH_BYTES, "little"), one.packed)]
        (draft / _TERMS).write_bytes(b"".join(packed))
        numbers = array("q", [weight, *(part for pair in held.items() for part in pair)]).tobytes()
        content = made_for.encode() + b"\n" + numbers
        (draft / _HELD).write_bytes(content + zlib.crc32(content).to_bytes(4, "little"))
        draft.rename(folder / name)
    except ValueError as error:  # what tantivy says when it cannot write
        raise OSError(f"{draft} cannot be written: {error}") from error
    finally:
        if draft.exists():
            discard(draft)
    return Segment(folder / name, held, weight)


def read_segment(folder: Path, made_for: str) -> Segment | None:
    """The segment in a folder; None when there is none that is complete and made for this."""
    try:
        data = (folder / _HELD).read_bytes()
    except OSError:
        return None
    content, written = data[:-4], data[-4:]
    owner, _, packed = content.partition(b"\n")
    if zlib.crc32(content).to_bytes(4, "little") != written or owner != made_for.encode():
        return None
    numbers = array("q")
    numbers.frombytes(packed)
    with suppress(OSError):  # one that cannot be touched is as good
        if time.time() - (folder / _HELD).stat().st_mtime > _DAY_S:
            os.utime(folder / _HELD)  # `compact` keeps what is in use
    return Segment(folder, dict(zip(numbers[1::2], numbers[2::2], strict=True)), numbers[0])


def read_terms(segment: Segment) -> Iterator[TermBlock]:
    """The resources of a segment, for another one; none when they cannot be read, for the truth has them, too."""
    with suppress(OSError, ValueError, TypeError, zlib.error):
        data, start = (segment.folder / _TERMS).read_bytes(), 0
        while start < len(data):
            end = start + _LENGTH_BYTES + int.from_bytes(data[start : start + _LENGTH_BYTES], "little")
            packed, start = data[start + _LENGTH_BYTES : end], end
            weight, rows = read_json(zlib.decompress(packed))
            yield TermBlock([PreparedResource(*row) for row in rows], weight, packed)


def discard_segment(folder: Path) -> None:
    """Delete a segment; it is none as soon as the first of its files has gone."""
    with suppress(OSError):
        (folder / _HELD).unlink(missing_ok=True)
    discard(folder)


class Links:
    """A folder of this process alone, in which the files of segments are linked and so opened as one index.

    Files are mapped into memory when they are opened: links can go then, and so can the files.
    """

    def __init__(self) -> None:
        self._folder, lock = _own_folder()
        self.close = weakref.finalize(self, _let_go, self._folder, lock)
        """Deletes the folder, at the latest when the process ends."""
        self._linked: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[str, list[Path]] = {}
        self._index: tantivy.Index | None = None
        self.own = self._folder / "own"
        """Segments that this process cannot keep beside the others."""
        self.own.mkdir()

    def open(self, segments: Sequence[Segment], known: Collection[str]) -> tantivy.Searcher:
        """The segments as one index. Raises CorruptError, or OSError when one of them has gone."""
        for name in self._linked.keys() - known:
            self.forget(name)
        for segment in segments:
            if segment.name not in self._linked:
                self._link(segment)
        try:
            if self._index is None:
                # Opened empty first: it would open every file twice, once for a reader that nobody asks for.
                self._write_meta([])
                self._index = tantivy.Index.open(str(self._folder))
                self._index.config_reader("manual")
            self._write_meta([part for segment in segments for part in self._linked[segment.name]])
            # One index for all legs: files that another leg has open are not mapped again.
            self._index.reload()
            return self._index.searcher()
        except ValueError as error:
            raise CorruptError(f"a segment of {segments[0].folder.parent} cannot be read: {error}") from error

    def forget(self, name: str) -> None:
        """Release a segment."""
        self._linked.pop(name, None)
        for link in self._files.pop(name, ()):
            link.unlink(missing_ok=True)

    def _link(self, segment: Segment) -> None:
        DamageGuard(segment.folder, "segment").check(inf)
        meta = _read_meta(segment.folder)
        parts: list[dict[str, Any]] = meta["segments"]
        names = tuple(str(part["segment_id"]).replace("-", "") for part in parts)
        links = self._files.setdefault(segment.name, [])
        for file in os.scandir(segment.folder):
            if file.name.startswith(names):
                link = self._folder / file.name
                links.append(link)
                _link_file(Path(file.path), link)
        self._linked[segment.name] = parts
        self._template = {**meta, "segments": []}

    def _write_meta(self, parts: list[dict[str, Any]]) -> None:
        (self._folder / _META).write_text(json.dumps({**self._template, "segments": parts}))


_PREFIX, _LOCK = "findling-view-", "lock"
"""The name of a folder of links begins so. Its owner holds the lock in it, whose end tells others that it is dead."""


def _own_folder() -> tuple[Path, WriteLock]:
    """A new folder in the one for temporary files and its lock, which is held; those of killed processes go."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = WriteLock(folder / _LOCK)
        try:
            is_ours = lock.acquire(0.0)
        except PathNotFoundError:  # another process has swept it, before it was locked
            continue
        except OSError:  # without locks in this file system nobody sweeps
            return folder, lock
        if is_ours:
            _sweep(folder.parent, folder.stat().st_uid)
            return folder, lock


def _sweep(place: Path, user: int) -> None:
    """Delete what killed processes of a user have left: 128 folders in three hours of kills.

    A lock tells who lives in other namespaces of processes, too. A folder without one is about to get it.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        lock = WriteLock(folder / _LOCK)
        with suppress(OSError, PathNotFoundError, ReadOnlyError):  # its owner has just deleted it
            status = folder.lstat()
            is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == user
            if is_own and (folder / _LOCK).exists() and lock.acquire(0.0):
                _let_go(folder, lock)


def _let_go(folder: Path, lock: WriteLock) -> None:
    lock.release()  # first, for Windows
    discard(folder)


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = read_json((folder / _META).read_bytes())
        _ = [part["segment_id"] for part in meta["segments"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptError(f"{folder / _META} is damaged", hint="findling repair") from error
    return meta


def _link_file(file: Path, link: Path) -> None:
    try:
        link.symlink_to(file)
    except FileExistsError:
        pass
    except OSError:  # where links need a right that few have
        import shutil

        shutil.copyfile(file, link)
