"""What lies beside the truth in the folder of a workspace, and which of it nobody needs any more."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError
from findling.stores.filesystem import file_size
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.local.layout import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, keyword_folder
from findling.stores.lock import WriteLock
from findling.stores.vectors.vector_files import Header, read_header

__all__ = ["Matrix", "absorbed_by_all", "matrices", "measure_parts", "remove_stale"]

_OTHER_FILES = frozenset({"write.lock", "refine.lock", "snapshot.lock", "snapshots", "manifest.json", IDENTITY_FILE})

_UNUSED_S = 30 * 86_400.0
"""What nobody has written to for so long is not in use."""


class Matrix(NamedTuple):
    """A folder with vectors, and what it says about itself."""

    folder: Path
    header: Header

    @property
    def dead_share(self) -> float:
        """The dead rows of all."""
        return self.header.dead / self.header.rows if self.header.rows else 0.0


def matrices(folder: Path) -> Iterator[Matrix]:
    """The vectors of a workspace; what cannot be read is left to those who search it."""
    for place in sorted(folder.glob("vectors-*")):
        with suppress(CorruptError):
            header = read_header(place)
            if header is not None:
                yield Matrix(place, header)


def measure_parts(folder: Path) -> dict[str, int]:
    """The bytes of every part of a workspace, without its snapshots."""
    parts = {"truth store": 0, "write-ahead log": 0, "keyword leg": 0, "vectors": 0, "views": 0, "other": 0}
    for path in folder.rglob("*"):
        top = path.relative_to(folder).parts[0]
        if top != "snapshots":
            parts[_part(top)] += file_size(path)
    return parts


def absorbed_by_all(folder: Path, store_id: str) -> int | None:
    """The number that every leg has absorbed which would catch up from the log; None when there is no such leg.

    The legs of callers with limited rights are not among them: they do not go by the log.
    """
    reached = [matrix.header.state.get("seq", 0) for matrix in _belonging(folder, store_id)]
    for place in folder.glob("keyword*"):
        unit = place.name.removeprefix("keyword").removeprefix("-") or "chunk"
        with suppress(CorruptError):
            reached.append(TantivyLeg.open(place, store_id=store_id, unit=unit).seq())
    # A leg that has absorbed nothing starts from nothing, whatever the log holds.
    return min(filter(None, reached), default=None)


def remove_stale(folder: Path, *, store_id: str, unit: str, models: frozenset[str]) -> list[str]:
    """Delete legs of other stores and models, and what nobody has used for 30 days; tells what went.

    `models` are those of which there are vectors. The caller holds the write lock.
    """
    gone = []
    for path in _stale(folder, store_id, unit, models):
        gone.append(path.name)
        _delete(path)
    for view in _unused(path for path in folder.glob("views/*") if path.is_dir()):
        lock = WriteLock(guard := view.with_suffix(".lock"))
        if lock.acquire(0.0):
            gone.append(f"views/{view.name}")
            _delete(view)
            guard.unlink(missing_ok=True)
            lock.release()
    return gone


def _stale(folder: Path, store_id: str, unit: str, models: frozenset[str]) -> Iterator[Path]:
    # Left by processes that were killed while they deleted a workspace, or made a leg aside.
    yield from (path for path in folder.parent.glob(".deleted-*") if _was_workspace(path))
    yield from folder.glob("keyword*.fresh")
    for matrix in matrices(folder):
        owner, _, model = matrix.header.made_for.partition("|")
        if owner != store_id or model not in models:
            yield matrix.folder
    own = keyword_folder(folder, unit)
    others = (path for path in folder.glob("keyword*") if path != own and path.suffix != ".fresh")
    yield from _unused([*others, *folder.glob(f"{DAMAGED_FILE}*")])


def _belonging(folder: Path, store_id: str) -> Iterator[Matrix]:
    return (matrix for matrix in matrices(folder) if matrix.header.made_for.partition("|")[0] == store_id)


def _unused(paths: Iterable[Path]) -> Iterator[Path]:
    then = time.time() - _UNUSED_S
    for path in paths:
        try:
            latest = max(file.lstat().st_mtime for file in (path, *path.glob("*")))
        except FileNotFoundError:
            continue  # another process is writing it
        if latest < then:
            yield path


def _was_workspace(path: Path) -> bool:
    """Whether a folder of that name is one of ours: a workspace may lie among the files of a project."""
    if not path.name.removeprefix(".deleted-").isdecimal() or not path.is_dir():
        return False
    return all(_part(file.name) != "other" or _is_own(file.name) for file in path.iterdir())


def _is_own(name: str) -> bool:
    return name in _OTHER_FILES or (name.startswith("accesses-") and name.endswith(".log"))


def _part(top: str) -> str:
    if top == STORE_FILE:
        return "truth store"
    if top.startswith(f"{STORE_FILE}-"):
        return "write-ahead log"
    for start, part in (("keyword", "keyword leg"), ("vectors-", "vectors"), ("views", "views")):
        if top.startswith(start):
            return part
    return "other"


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
