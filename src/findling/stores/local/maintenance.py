"""The upkeep of a workspace's folder: measure its parts, find unused ones, rewrite them."""

from __future__ import annotations

import filecmp
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from findling.domain.backends import KEYWORD, VIEWS
from findling.domain.errors import CorruptError
from findling.domain.ports import LegIndex
from findling.stores.filesystem import discard, file_size, sync_folder
from findling.stores.keyword.class_segments import discard_classes
from findling.stores.keyword.segment_files import unsound_part
from findling.stores.local.legs import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, folder_legs
from findling.stores.sqlite.backup import copy_store
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import FREE_SHARE, count_pages, drop_idle, fold_log, rewrite_store, trim_log

__all__ = [
    "FREE_SHARE",
    "absorbed_by_all",
    "check_legs",
    "copy_folder",
    "drop_wishes",
    "is_worthwhile",
    "measure_parts",
    "remove_stale",
    "rewrite_parts",
    "scan_kernel",
    "trim_changes",
]

_LEAST_BYTES = 4 << 20
"""The least unused space that makes a rewrite worthwhile."""

_LOCKS = tuple(f"{name}.lock" for name in ("write", "refine", "upkeep", "waiting"))

_OTHER_FILES = frozenset({*_LOCKS, "snapshot.lock", "snapshots", "manifest.json", IDENTITY_FILE})

_UNUSED_S = 30 * 86_400.0
"""The age from which on a part without writes counts as unused."""


def is_worthwhile(folder: Path, unit: str) -> bool:
    """Whether a good part of a workspace is unused; a look at three headers, some 2 ms. Raises CorruptError."""
    if not (folder / STORE_FILE).exists():
        return False
    pages = count_pages(folder / STORE_FILE)
    if pages.free_share >= FREE_SHARE and pages.free * pages.size >= _LEAST_BYTES:
        return True
    return any(legs.is_worn(unit) for legs in folder_legs(folder).values())


def check_legs(folder: Path) -> None:
    """Check the files of legs that nobody has checked lately; the next one that opens a damaged leg rebuilds it."""
    for legs in folder_legs(folder).values():
        for place in legs.folders():
            unsound_part(place)


def trim_changes(folder: Path, store_id: str) -> int:
    """Forget changes that every leg has absorbed; return how many. The caller holds the write lock."""
    return trim_log(folder / STORE_FILE, absorbed_by_all(folder, store_id) or 0)


def drop_wishes(folder: Path, model: str) -> int:
    """Forget wishes for vectors of a model that has read everything; return how many."""
    return drop_idle(folder / STORE_FILE, model)


def rewrite_parts(
    folder: Path,
    store_id: str,
    unit: str,
    *,
    full: bool,
    fill: Callable[[LegIndex], object],
) -> Iterator[str]:
    """Rewrite the parts of which enough is unused, or all of them, and name each. The caller holds the write lock.

    `fill` has a new leg catch up, which then takes the place of the present one.
    """
    for legs in folder_legs(folder).values():
        yield from legs.rewritten(store_id, unit, full, fill)
    if full or count_pages(folder / STORE_FILE).free_share >= FREE_SHARE:
        rewrite_store(folder / STORE_FILE)
        yield "truth store"
    fold_log(folder / STORE_FILE)


def measure_parts(folder: Path) -> dict[str, int]:
    """The bytes of every part of a workspace, without its snapshots."""
    parts = dict.fromkeys(("truth store", "write-ahead log", *map(_part, folder_legs(folder)), "other"), 0)
    for path in folder.rglob("*"):
        top = path.relative_to(folder).parts[0]
        if top != "snapshots":
            parts[_part(top)] += file_size(path)
    return parts


def absorbed_by_all(folder: Path, store_id: str) -> int | None:
    """The number that every leg has absorbed which would catch up from the log; None when there is no such leg.

    The legs of callers with limited rights are not among them: they do not go by the log.
    """
    followers = [legs for name, legs in folder_legs(folder).items() if name != VIEWS]
    reached = chain.from_iterable(legs.reached(store_id) for legs in followers)
    # A leg that has absorbed nothing starts from nothing, with any log.
    return min(filter(None, reached), default=None)


def remove_stale(folder: Path, *, store_id: str, unit: str, models: frozenset[str]) -> list[str]:
    """Delete legs of other stores and models, and parts unused for 30 days; return their names.

    `models` are those with vectors. The caller holds the write lock.
    """
    gone = []
    for path in _stale(folder, store_id, unit, models):
        gone.append(path.name)
        discard(path)
    views = folder / VIEWS
    return gone + [f"{VIEWS}/{name}" for name in discard_classes(views, _unused(views.glob("*/")))]


def _stale(folder: Path, store_id: str, unit: str, models: frozenset[str]) -> Iterator[Path]:
    # Left by processes that were killed while they deleted a workspace, or made a leg aside.
    yield from (path for path in folder.parent.glob(".deleted-*") if _was_workspace(path))
    yield from folder.glob("*.fresh")
    for legs in folder_legs(folder).values():
        yield from legs.foreign(store_id, models)
    words = folder_legs(folder)[KEYWORD]
    others = (path for path in words.folders() if path != words.folder(unit))
    yield from _unused([*others, *folder.glob(f"{DAMAGED_FILE}*")])


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
    return next((legs.label for name, legs in folder_legs(Path()).items() if top.startswith(name)), "other")


_NOT_COPIED = (*_LOCKS, STORE_FILE, f"{STORE_FILE}-wal", f"{STORE_FILE}-shm")


def copy_folder(source: Path, target: Path) -> None:
    """Copy a workspace, durably, and compare. Raises CorruptError when the copy is not what it was made from."""
    target.mkdir(mode=0o700)
    # SQLite copies it: vectors are written without the write lock.
    copy_store(source / STORE_FILE, target / STORE_FILE)
    with SqliteStore.open(target / STORE_FILE, readonly=True) as store:
        if problems := store.integrity():
            raise CorruptError(f"{source / STORE_FILE} is damaged: {problems[0]}", hint="findling doctor")
    for file in sorted(source.rglob("*")):
        copy = target / file.relative_to(source)
        if file.is_dir():
            copy.mkdir(mode=0o700)
        elif file.relative_to(source).as_posix() not in _NOT_COPIED:
            with file.open("rb") as old_file, copy.open("xb") as new_file:
                shutil.copyfileobj(old_file, new_file)
                new_file.flush()
                os.fsync(new_file.fileno())
            shutil.copystat(file, copy)
            if not filecmp.cmp(file, copy, shallow=False):
                raise CorruptError(f"{file} changed while it was copied", hint="try again")
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        sync_folder(folder)


def scan_kernel() -> str:
    """The code that a search by meaning multiplies vectors with on this machine."""
    from findling.stores.vectors import vector_scan  # which needs numpy

    return vector_scan.scan_kernel()
