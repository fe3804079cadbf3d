"""Putting a snapshot in the place of the store: prepared aside with all its legs, then taken over in one step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError, ManifestError, NotIndexedError
from findling.service.identity import forget_identity
from findling.service.manifest import read_manifest
from findling.service.opened import LOCK_PATIENCE_S, OpenedWorkspace
from findling.service.options import scoring
from findling.service.settings import Settings
from findling.service.snapshot_files import Snapshot, require_room
from findling.service.workspace import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, keyword_folder
from findling.stores.keyword_tidying import adopt_index
from findling.stores.lock import WriteLock
from findling.stores.sqlite import SqliteStore
from findling.stores.sqlite_backup import Lineage, put_back, read_lineage, stamp
from findling.stores.sqlite_compacting import fold_log
from findling.stores.sqlite_files import StoreErrors, create_private
from findling.stores.syncing import sync_folder

__all__ = ["Restored", "restore_file"]

_COPIES = 4
"""What a restore may take, in sizes of the snapshot: a copy with its legs, the log, and the store that grows."""


class Restored(NamedTuple):
    """The snapshot of what was there before, and where a damaged store was put aside, if any."""

    safety: Snapshot | None
    put_aside: Path | None


def restore_file(
    files: OpenedWorkspace,
    settings: Settings,
    snapshot: Path,
    folder: Path,
    save_present: Callable[[], Snapshot] | None,
) -> Restored:
    """Give a workspace the content of a sound snapshot; `folder` is that of the snapshots, whose lock is held.

    Raises LockedError, DiskFullError, ReadOnlyError; then all is as it was.
    """
    require_room(folder, _COPIES * snapshot.stat().st_size, f"what is made of {snapshot.name}", files.folder)
    # Not `files.writing`, which needs a store that can be opened.
    with WriteLock(files.folder / "write.lock", timeout_s=LOCK_PATIENCE_S):
        present, meta = _present_state(files), _meta_of_place(files)
        safety = None
        if present is not None and save_present is not None:
            try:
                safety = save_present()
            except CorruptError:
                present = None  # it opens, and cannot be read
        with _staging(folder) as staging:
            _prepare(staging, settings, snapshot, meta, present)
            files.close()
            forget_identity(files.folder)
            put_aside = _take_over(staging / STORE_FILE, files.folder / STORE_FILE, in_place=present is not None)
            _move_legs(staging, files.folder, settings)
            with StoreErrors(files.folder):
                (staging / IDENTITY_FILE).replace(files.folder / IDENTITY_FILE)
    return Restored(safety, put_aside)


def _present_state(files: OpenedWorkspace) -> Lineage | None:
    """The numbers that the store has reached; None when there is no store, or none that can be read."""
    files.let_go_if_replaced()
    try:
        files.store.counts()  # brings a store of an older format to ours
        return read_lineage(files.folder / STORE_FILE)
    except (CorruptError, NotIndexedError):
        files.close()
        return None


def _meta_of_place(files: OpenedWorkspace) -> dict[str, str | None]:
    """Small values that belong to the workspace and not to what it holds, whatever the snapshot says of them."""
    # Another folder may be indexed by now, and more may fit: the next look at the files tries again what did not.
    meta: dict[str, str | None] = {"store_id": os.urandom(8).hex(), "limits": ""}
    try:
        return {**meta, "root": files.store.get_meta("root")}
    except (CorruptError, NotIndexedError):
        files.close()
    with suppress(ManifestError):
        manifest = read_manifest(files.folder)
        if manifest is not None:
            return {**meta, "root": manifest.root or ""}
    # A new workspace that nobody has named a folder for follows that of the snapshot.
    return {**meta, "root": files.subject} if files.subject else meta


def _prepare(
    staging: Path, settings: Settings, snapshot: Path, meta: Mapping[str, str | None], present: Lineage | None
) -> None:
    """A workspace of its own with the snapshot as its store, and every leg in step."""
    from findling.service.vectors import WorkspaceVectors

    store = staging / STORE_FILE
    with StoreErrors(store):
        create_private(store)
        shutil.copyfile(snapshot, store)
    SqliteStore.open(store).close()  # brings it to our format
    stamp(store, meta, present)
    staged = OpenedWorkspace(staging, scoring=scoring(settings), unit=settings["keyword.unit"])
    vectors = WorkspaceVectors(staged, settings)
    try:
        with staged.writing():
            staged.sound_leg()
            vectors.writable()
        vectors.meaning()  # lets the leg of the model catch up, which takes the lock by itself
    finally:
        vectors.close()
        staged.close()
    fold_log(store)


def _take_over(prepared: Path, store: Path, *, in_place: bool) -> Path | None:
    """Let the prepared store be the store; where a damaged one was put aside."""
    if in_place:
        put_back(prepared, store)
        fold_log(store)
        return None
    aside = store.with_name(DAMAGED_FILE) if store.exists() else None
    with StoreErrors(store):
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


def _move_legs(staging: Path, folder: Path, settings: Settings) -> None:
    """Whoever is killed here leaves a store without its legs, and the next search makes them from it."""
    place = keyword_folder(folder, settings["keyword.unit"])
    fresh = keyword_folder(staging, settings["keyword.unit"])
    if fresh.exists():
        adopt_index(fresh, place)
    for matrix in staging.glob("vectors-*"):
        target = folder / matrix.name
        with suppress(FileNotFoundError):
            target.replace(staging / f"old-{matrix.name}")
        matrix.replace(target)
    sync_folder(folder)


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    staging = folder / ".restoring"
    shutil.rmtree(staging, ignore_errors=True)
    with StoreErrors(staging):
        staging.mkdir(mode=0o700)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
