"""Snapshots of a workspace: created while others search and write, verified, restored, and deleted in time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError, InvalidValueError, ManifestError, NotFoundError, NotIndexedError
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings
from findling.service.workspace.backends import require
from findling.service.workspace.manifest import read_manifest
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S
from findling.stores.filesystem import FileErrors, make_private
from findling.stores.local import snapshot_files
from findling.stores.local.legs import STORE_FILE
from findling.stores.local.snapshot_files import FOLDER, SUFFIX, Snapshot, check_name, default_name, examine
from findling.stores.local.snapshots import (
    Lineage,
    is_automatic,
    present_lineage,
    stage_store,
    staging_folder,
    take_over,
)
from findling.stores.lock import WriteLock

_COPIES = 4
"""Room for a restore, in sizes of the snapshot: a copy with its legs, the log, and the store that grows."""

_SAFETY_PREFIX = "before-restore-"


class RestoreReport(NamedTuple):
    """The restored snapshot, the one of the state before, and the path of a damaged store, if any."""

    snapshot: Snapshot
    safety: Snapshot | None
    put_aside: Path | None


class WorkspaceSnapshots:
    """The snapshots of one workspace, in its folder `snapshots`. A name is one of them, a path any file."""

    def __init__(self, files: OpenedWorkspace, settings: Settings) -> None:
        require(files.backend, "snapshots")
        self._files = files
        self._settings = settings
        self._folder = files.folder / FOLDER
        self._write = partial(snapshot_files.write_snapshot, files.folder / STORE_FILE)

    def create(
        self,
        name: str = "",
        *,
        to: Path | None = None,
        keep: int | None = None,
        on_step: Callable[[int, int], None] | None = None,
    ) -> Snapshot:
        """Copy the present state of the store, under a name or to a file, while others read and write it.

        The latest `keep` of the named ones stay (0: all; None: as the settings say). Raises NotIndexedError,
        CorruptError, DiskFullError, ReadOnlyError, InvalidValueError for a name that is none or is taken.
        """
        if to is not None and name:
            raise InvalidValueError("a snapshot has a name or a file, not both", hint="leave one of them out")
        if name:
            check_name(name)
        most = self._most(keep)
        self._files.let_go_if_replaced()
        try:
            self._files.store.seq()  # raises for a store that cannot be copied
            if to is not None:
                return self._write(to, on_step=on_step)
            with self._locked():
                made = self._write(self._folder / f"{name or default_name(self._folder)}{SUFFIX}", on_step=on_step)
                self._retain(most, spared={made.name})
            return made
        except CorruptError as error:
            raise CorruptError(error.message, hint=snapshot_files.way_back(self._files.folder)) from error

    def list(self) -> list[Snapshot]:
        """All snapshots, the latest first."""
        return snapshot_files.find_snapshots(self._folder)

    def verify(self, name: str | Path) -> tuple[str, ...]:
        """The problems of a snapshot, one sentence each; empty when it can be restored. Raises NotFoundError."""
        return tuple(examine(self._found(name).path))

    def restore(self, name: str | Path, *, safety: bool = True) -> RestoreReport:
        """Give the workspace the content of a snapshot, after a snapshot of what is there now.

        Searches continue meanwhile. Raises NotFoundError, CorruptError for a damaged snapshot, FormatError for one of
        a newer findling, LockedError, DiskFullError and ReadOnlyError; then nothing has changed.
        """
        self._found(name)  # before any folder is created
        with self._locked():
            found = self._found(name)
            snapshot_files.check_format(found)
            if problems := examine(found.path):
                message = f"the snapshot {found.name} is damaged: {'; '.join(problems)}; nothing was changed"
                raise CorruptError(message, hint="findling snapshot list, and restore another one")
            report = self._restore(found, safety)
            if report.safety is not None:
                self._retain(self._most(None), spared={found.name, report.safety.name})
        return report

    def drop(self, name: str) -> Snapshot:
        """Delete a snapshot. Raises NotFoundError when there is none of that name."""
        self._found(name)
        with self._locked():
            found = self._found(name)
            snapshot_files.delete_snapshot(found.path)
        return found

    def _restore(self, snapshot: Snapshot, is_safe: bool) -> RestoreReport:
        """Replace the content of the workspace. The caller holds the lock of the snapshots."""
        files, unit = self._files, self._settings["keyword.unit"]
        size = snapshot.path.stat().st_size
        snapshot_files.require_room(self._folder, _COPIES * size, f"what is made of {snapshot.path.name}", files.folder)
        # Not `files.writing`, which needs a store that can be opened.
        with files.queue.locked(LOCK_PATIENCE_S):
            present, meta, safety = _present_state(files), _meta_of_place(files), None
            if present is not None and is_safe:
                try:
                    safety = self._save_present()
                except CorruptError:
                    present = None  # it opens, and cannot be read
            with staging_folder(self._folder) as staging:
                stage_store(snapshot.path, staging, meta, present)
                _make_legs(staging, self._settings)
                files.close()
                put_aside = take_over(staging, files.folder, unit, in_place=present is not None)
        return RestoreReport(snapshot, safety, put_aside)

    def _save_present(self) -> Snapshot:
        try:
            return self._write(self._folder / f"{default_name(self._folder, _SAFETY_PREFIX)}{SUFFIX}")
        except CorruptError:
            # People may still read something from it. It counts apart from snapshots that can be restored.
            name = default_name(self._folder, f"damaged-{_SAFETY_PREFIX}")
            return self._write(self._folder / f"{name}{SUFFIX}", keeps_damage=True)

    def _most(self, keep: int | None) -> int:
        most = int(self._settings.get("snapshot.keep", 7)) if keep is None else keep
        if most < 0:
            raise InvalidValueError(f"{most} snapshots cannot be kept", hint="a number from 0 on; 0 keeps all")
        return most

    def _retain(self, most: int, spared: set[str]) -> None:
        """Delete the oldest, but no automatic ones; damaged ones are counted apart."""
        every = [one for one in self.list() if not is_automatic(one.name)] if most else []
        sound, damaged = [one for one in every if not one.problem], [one for one in every if one.problem]
        for snapshot in (*sound[most:], *damaged[most:]):
            if snapshot.name not in spared:
                snapshot_files.delete_snapshot(snapshot.path)

    def _found(self, name: str | Path) -> Snapshot:
        path = name if isinstance(name, Path) else self._folder / f"{check_name(name)}{SUFFIX}"
        if not isinstance(name, Path) and not self._files.folder.is_dir():
            raise NotFoundError(f"there is no workspace at {self._files.folder}", hint="findling workspaces list")
        try:
            return snapshot_files.read_snapshot(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            what = str(path) if isinstance(name, Path) else f"called {name} in {self._folder}"
            raise NotFoundError(f"there is no snapshot {what}", hint="findling snapshot list") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with FileErrors(self._folder):
            make_private(self._files.folder)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        with WriteLock(self._files.folder / snapshot_files.LOCK_FILE, timeout_s=LOCK_PATIENCE_S):
            snapshot_files.sweep(self._folder)
            yield


def _present_state(files: OpenedWorkspace) -> Lineage | None:
    """The change numbers of the store; None without a readable store."""
    files.let_go_if_replaced()
    try:
        files.store.counts()  # migrates a store of an older format
        return present_lineage(files.folder)
    except (CorruptError, NotIndexedError):
        files.close()
        return None


def _meta_of_place(files: OpenedWorkspace) -> dict[str, str | None]:
    """Meta values of the workspace itself, which replace those of the snapshot."""
    # The root and the quota may have changed: the next refresh retries the files that did not fit.
    meta: dict[str, str | None] = {"store_id": os.urandom(8).hex(), "limits": ""}
    try:
        return {**meta, "root": files.store.get_meta("root")}
    except (CorruptError, NotIndexedError):
        files.close()
    with suppress(ManifestError):
        manifest = read_manifest(files.folder)
        if manifest is not None:
            return {**meta, "root": manifest.root or ""}
    # A new workspace without a root takes that of the snapshot.
    return {**meta, "root": files.subject} if files.subject else meta


def _make_legs(staging: Path, settings: Settings) -> None:
    """Let every leg of a staged store catch up."""
    from findling.service.index.embeddings import WorkspaceVectors

    staged = OpenedWorkspace(staging, unit=settings["keyword.unit"])
    vectors = WorkspaceVectors(staged, settings)
    try:
        with staged.writing():
            staged.sound_leg()
            vectors.writable()
        vectors.level_all()  # takes the lock by itself
    finally:
        vectors.close()
        staged.close()
