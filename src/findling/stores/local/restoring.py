"""Restore a snapshot: prepare a store beside the present one, then replace that in one step."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from findling.stores.filesystem import FileErrors, create_private, sync_folder
from findling.stores.keyword.merge import adopt_index
from findling.stores.local.identity import forget_identity
from findling.stores.local.layout import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, keyword_folder
from findling.stores.sqlite.backup import Lineage, put_back, read_lineage, stamp
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import fold_log

__all__ = ["Lineage", "present_lineage", "stage_store", "staging_folder", "take_over"]


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
    if (fresh := keyword_folder(staging, unit)).exists():
        adopt_index(fresh, keyword_folder(folder, unit))
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
    shutil.rmtree(staging, ignore_errors=True)
    with FileErrors(staging):
        staging.mkdir(mode=0o700)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
