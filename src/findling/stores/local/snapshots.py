"""Snapshots of a local workspace: automatic ones, daily and before a migration, and the restoring of any."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from findling.domain.errors import FindlingError
from findling.stores.filesystem import FileErrors, create_private, discard, sync_folder
from findling.stores.keyword.merge import adopt_index
from findling.stores.local.legs import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, KeywordLegs, forget_identity
from findling.stores.local.snapshot_files import (
    FOLDER,
    LOCK_FILE,
    SUFFIX,
    default_name,
    delete_snapshot,
    sweep,
    write_snapshot,
)
from findling.stores.lock import WriteLock, taken
from findling.stores.sqlite.backup import Lineage, copy_made, made_bytes, made_state, put_back, read_lineage, stamp
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import fold_log

__all__ = [
    "Lineage",
    "is_automatic",
    "present_lineage",
    "save_before_migration",
    "save_daily",
    "stage_store",
    "staging_folder",
    "take_over",
]


def present_lineage(folder: Path) -> Lineage:
    """The numbers that the store of a workspace has reached. Raises CorruptError, NotIndexedError."""
    return read_lineage(folder / STORE_FILE)


def stage_store(snapshot: Path, staging: Path, meta: Mapping[str, str | None], present: Lineage | None) -> None:
    """Copy a snapshot into a folder of its own, as a store of our format that continues the `present` numbers."""
    store = staging / STORE_FILE
    with FileErrors(store):
        create_private(store)
        shutil.copyfile(snapshot, store)
    SqliteStore.open(store).close()  # brings it to our format
    stamp(store, meta, present)


def take_over(staging: Path, folder: Path, unit: str, *, in_place: bool) -> Path | None:
    """Replace the store and the legs of a workspace by the staged ones; return the path of a damaged store.

    A process killed here leaves a store without its legs, and the next search rebuilds them.
    """
    fold_log(staging / STORE_FILE)
    forget_identity(folder)
    aside = _replace_store(staging / STORE_FILE, folder / STORE_FILE, in_place=in_place)
    if (fresh := KeywordLegs(staging)).exists(unit):
        adopt_index(fresh.folder(unit), KeywordLegs(folder).folder(unit))
    for matrix in staging.glob("vectors-*"):
        target = folder / matrix.name
        with suppress(FileNotFoundError):
            target.replace(staging / f"old-{matrix.name}")
        matrix.replace(target)
    sync_folder(folder)
    with FileErrors(folder):
        (staging / IDENTITY_FILE).replace(folder / IDENTITY_FILE)
    return aside


def _replace_store(prepared: Path, store: Path, *, in_place: bool) -> Path | None:
    if in_place:
        put_back(prepared, store)
        fold_log(store)
        return None
    aside = store.with_name(DAMAGED_FILE) if store.exists() else None
    with FileErrors(store):
        for suffix in ("-wal", "-shm"):
            # Before the store: a log of the old one must never be taken for one of the new.
            log = store.with_name(store.name + suffix)
            with suppress(FileNotFoundError):
                log.replace(store.with_name(DAMAGED_FILE + suffix))
        if aside is not None:
            aside.unlink(missing_ok=True)
            _link(store, aside)
        prepared.replace(store)
        sync_folder(store.parent)
    return aside


def _link(store: Path, aside: Path) -> None:
    try:
        aside.hardlink_to(store)
    except OSError:  # a file system without links
        shutil.copyfile(store, aside)
        aside.chmod(0o600)


@contextmanager
def staging_folder(snapshots: Path) -> Iterator[Path]:
    """A folder among the snapshots to prepare a store in; it is deleted in the end."""
    staging = snapshots / ".restoring"
    discard(staging)
    with FileErrors(staging):
        staging.mkdir(mode=0o700)
    try:
        yield staging
    finally:
        discard(staging)


_PREFIX = "auto-"

_NAME = re.compile(r"auto-\d{8}-\d{6}(-\d+)?")

_DAY_S = 86_400.0

_MOST = 3
"""The number of kept snapshots: a loss that stays unnoticed for three days of work is rare."""


def is_automatic(name: str) -> bool:
    """Whether the name is that of an automatic snapshot."""
    return _NAME.fullmatch(name) is not None


def save_daily(folder: Path, most_bytes: int) -> None:
    """Make a snapshot when the latest is a day old and something has changed since; never fail.

    All of them together take `most_bytes` at most; a larger one is not made. The caller holds the write lock.
    """
    latest = max(_snapshots(folder), default=None)  # their names are times
    with suppress(FindlingError, OSError):
        if latest is not None and time.time() - latest.stat().st_mtime < _DAY_S:
            return
        store = folder / STORE_FILE
        if latest is not None and made_state(store) == made_state(latest, is_copy=True):
            os.utime(latest)  # asked again in a day
            return
        _save(folder, most_bytes)


def save_before_migration(folder: Path, most_bytes: int) -> None:
    """Make a snapshot of a store that is about to be migrated; never fail."""
    with suppress(FindlingError, OSError):
        if most_bytes:
            _save(folder, most_bytes)


def _save(folder: Path, most_bytes: int) -> None:
    store, target = folder / STORE_FILE, folder / FOLDER
    size = made_bytes(store)
    if not 0 < size <= most_bytes:
        return
    target.mkdir(mode=0o700, exist_ok=True)
    with taken(WriteLock(folder / LOCK_FILE), 0.0) as is_ours:
        if is_ours:  # else another process is making nearly the same one
            sweep(target)
            write_snapshot(store, target / f"{default_name(target, _PREFIX)}{SUFFIX}", copy=copy_made, needed=size)
            _retain(folder, most_bytes)


def _retain(folder: Path, most_bytes: int) -> None:
    """Delete the oldest that are too many or too large; keep the latest."""
    total = 0
    for number, path in enumerate(sorted(_snapshots(folder), reverse=True)):
        total += path.stat().st_size
        if number and (number >= _MOST or total > most_bytes):
            delete_snapshot(path)


def _snapshots(folder: Path) -> list[Path]:
    found = (folder / FOLDER).glob(f"{_PREFIX}*{SUFFIX}")
    return [path for path in found if is_automatic(path.name.removesuffix(SUFFIX))]
