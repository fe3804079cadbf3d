"""Snapshots of a workspace: made while others search and write, verified, restored, and let go in time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import (
    CorruptError,
    FormatError,
    InvalidValueError,
    ManifestError,
    NotFoundError,
    NotIndexedError,
)
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S
from findling.stores.filesystem import FileErrors, create_private, make_private, sync_folder
from findling.stores.keyword.merge import adopt_index
from findling.stores.local.auto_snapshots import is_automatic
from findling.stores.local.identity import forget_identity
from findling.stores.local.layout import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, keyword_folder
from findling.stores.local.snapshot_files import (
    FOLDER,
    LOCK_FILE,
    SUFFIX,
    Snapshot,
    check_name,
    default_name,
    delete_snapshot,
    examine,
    find_snapshots,
    read_snapshot,
    require_room,
    sweep,
    way_back,
    write_snapshot,
)
from findling.stores.lock import WriteLock
from findling.stores.sqlite.backup import Lineage, put_back, read_lineage, stamp
from findling.stores.sqlite.schema import FORMAT
from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import fold_log

__all__ = ["RestoreReport", "Restored", "WorkspaceSnapshots", "restore_file"]


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
    with files.queue.locked(LOCK_PATIENCE_S):
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
            with FileErrors(files.folder):
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
    from findling.service.index.embeddings import WorkspaceVectors

    store = staging / STORE_FILE
    with FileErrors(store):
        create_private(store)
        shutil.copyfile(snapshot, store)
    SqliteStore.open(store).close()  # brings it to our format
    stamp(store, meta, present)
    staged = OpenedWorkspace(staging, unit=settings["keyword.unit"])
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
    with FileErrors(staging):
        staging.mkdir(mode=0o700)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


_SAFETY_PREFIX = "before-restore-"


class RestoreReport(NamedTuple):
    """What was restored, the snapshot of what was there before, and where a damaged store was put aside, if any."""

    snapshot: Snapshot
    safety: Snapshot | None
    put_aside: Path | None


class WorkspaceSnapshots:
    """The snapshots of one workspace, in its folder `snapshots`. A name is one of them, a path any file."""

    def __init__(self, files: OpenedWorkspace, settings: Settings) -> None:
        self._files = files
        self._settings = settings
        self._folder = files.folder / FOLDER

    def create(
        self,
        name: str = "",
        *,
        to: Path | None = None,
        keep: int | None = None,
        on_step: Callable[[int, int], None] | None = None,
    ) -> Snapshot:
        """Copy the present state of the store, under a name or to a file, while others read and write it.

        Of the named ones the latest `keep` stay (0: all of them; None: as the settings say). Raises NotIndexedError,
        CorruptError, DiskFullError, ReadOnlyError, InvalidValueError for a name that is none or is taken.
        """
        if to is not None and name:
            raise InvalidValueError("a snapshot has a name or a file, not both", hint="leave one of them out")
        if name:
            check_name(name)
        most = self._most(keep)
        self._files.let_go_if_replaced()
        try:
            self._files.store.seq()  # says what is wrong with a store that cannot be copied
            if to is not None:
                return self._write(to, on_step)
            with self._locked():
                made = self._write(self._folder / f"{name or default_name(self._folder)}{SUFFIX}", on_step)
                self._retain(most, spared={made.name})
            return made
        except CorruptError as error:
            raise CorruptError(error.message, hint=way_back(self._files.folder)) from error

    def list(self) -> list[Snapshot]:
        """All snapshots, the latest first."""
        return find_snapshots(self._folder)

    def verify(self, name: str | Path) -> tuple[str, ...]:
        """What is wrong with a snapshot, one sentence each; empty when it can be restored. Raises NotFoundError."""
        return tuple(examine(self._found(name).path))

    def restore(self, name: str | Path, *, safety: bool = True) -> RestoreReport:
        """Give the workspace the content of a snapshot, after a snapshot of what is there now.

        Others search on: what was there, and then what is there. Raises NotFoundError, CorruptError for a damaged
        snapshot, FormatError for one of a newer findling, LockedError, DiskFullError and ReadOnlyError; then all is as
        it was.
        """
        self._found(name)  # before anything is made for what is not there
        with self._locked():
            found = self._found(name)
            self._refuse_damaged(found)
            restored = restore_file(
                self._files, self._settings, found.path, self._folder, self._save_present if safety else None
            )
            if restored.safety is not None:
                self._retain(self._most(None), spared={found.name, restored.safety.name})
        return RestoreReport(found, restored.safety, restored.put_aside)

    def drop(self, name: str) -> Snapshot:
        """Delete a snapshot. Raises NotFoundError when there is none of that name."""
        self._found(name)
        with self._locked():
            found = self._found(name)
            delete_snapshot(found.path)
        return found

    def _save_present(self) -> Snapshot:
        try:
            return self._write(self._folder / f"{default_name(self._folder, _SAFETY_PREFIX)}{SUFFIX}")
        except CorruptError:
            # Something may still be read from it by hand. It cannot be restored, and takes the place of none that can.
            name = default_name(self._folder, f"damaged-{_SAFETY_PREFIX}")
            return self._write(self._folder / f"{name}{SUFFIX}", keeps_damage=True)

    def _write(
        self, path: Path, on_step: Callable[[int, int], None] | None = None, *, keeps_damage: bool = False
    ) -> Snapshot:
        return write_snapshot(self._files.folder / STORE_FILE, path, on_step=on_step, keeps_damage=keeps_damage)

    def _most(self, keep: int | None) -> int:
        most = int(self._settings.get("snapshot.keep", 7)) if keep is None else keep
        if most < 0:
            raise InvalidValueError(f"{most} snapshots cannot be kept", hint="a number from 0 on; 0 keeps all")
        return most

    def _retain(self, most: int, spared: set[str]) -> None:
        """Let the oldest go, but none that was made by itself.

        What cannot be restored is counted apart, so that it never drives out what can.
        """
        every = [one for one in self.list() if not is_automatic(one.name)] if most else []
        sound = [snapshot for snapshot in every if not snapshot.problem]
        damaged = [snapshot for snapshot in every if snapshot.problem]
        for snapshot in (*sound[most:], *damaged[most:]):
            if snapshot.name not in spared:
                delete_snapshot(snapshot.path)

    def _found(self, name: str | Path) -> Snapshot:
        path = name if isinstance(name, Path) else self._folder / f"{check_name(name)}{SUFFIX}"
        if not isinstance(name, Path) and not self._files.folder.is_dir():
            raise NotFoundError(f"there is no workspace at {self._files.folder}", hint="findling workspaces list")
        try:
            return read_snapshot(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            what = str(path) if isinstance(name, Path) else f"called {name} in {self._folder}"
            raise NotFoundError(f"there is no snapshot {what}", hint="findling snapshot list") from error

    def _refuse_damaged(self, found: Snapshot) -> None:
        if found.format > FORMAT:
            raise FormatError(
                f"the snapshot {found.name} has format {found.format}, this findling knows formats up to {FORMAT}",
                hint="upgrade findling: `pip install --upgrade findling`",
            )
        if problems := examine(found.path):
            raise CorruptError(
                f"the snapshot {found.name} is damaged: {'; '.join(problems)}; nothing was changed",
                hint="findling snapshot list, and restore another one",
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with FileErrors(self._folder):
            make_private(self._files.folder)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        with WriteLock(self._files.folder / LOCK_FILE, timeout_s=LOCK_PATIENCE_S):
            sweep(self._folder)
            yield
