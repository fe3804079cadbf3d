"""Opening the truth of a workspace: as the store it was, to be written where that can be, else to be read."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from findling.domain.errors import DiskFullError, StoreDamagedError
from findling.service.identity import describe_loss
from findling.service.workspace import STORE_FILE
from findling.stores.sqlite import SqliteStore

__all__ = ["NO_WAY_BACK", "find_way_back", "open_store", "store_bytes"]

NO_WAY_BACK = "findling index --rebuild"
"""What is left to do when a store is damaged and no snapshot was made."""


def open_store(folder: Path, *, accepts_older: bool, auto_bytes: int) -> tuple[SqliteStore, DiskFullError | None]:
    """The store, read-only where it cannot be written, and what a full disk says about writing it.

    Raises StoreDamagedError for one that is damaged or not what it was.
    """
    path, way_back = folder / STORE_FILE, partial(find_way_back, folder)
    readonly = not (os.access(path, os.W_OK) and os.access(folder, os.W_OK))
    before = partial(_save_before_migration, folder, auto_bytes)
    no_room: DiskFullError | None = None
    try:
        store = SqliteStore.open(path, readonly=readonly, way_back=way_back, before_migration=before)
    except DiskFullError as error:
        # What tells about its log takes 32 kB; without a log it can be read all the same.
        no_room = error
        store = SqliteStore.open(path, readonly=True, way_back=way_back)
    if loss := describe_loss(folder, store, accepts_older=accepts_older):
        store.close()
        raise StoreDamagedError(loss, hint=way_back())
    return store, no_room


def store_bytes(folder: Path) -> int | None:
    """The size of the file; None when it is not there."""
    try:
        return (folder / STORE_FILE).stat().st_size
    except OSError:
        return None


def find_way_back(folder: Path) -> str:
    """What to run when the store is damaged: the latest snapshot is the first choice."""
    if not (folder / "snapshots").is_dir():
        return NO_WAY_BACK
    from findling.service.snapshot_files import way_back

    return way_back(folder)


def _save_before_migration(folder: Path, auto_bytes: int) -> None:
    from findling.service.auto_snapshots import save_before_migration

    save_before_migration(folder, auto_bytes)
