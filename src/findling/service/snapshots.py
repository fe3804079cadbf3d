"""Snapshots of a workspace: made while others search and write, verified, restored, and let go in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError, FormatError, InvalidValueError, NotFoundError
from findling.service.auto_snapshots import is_automatic
from findling.service.opened import LOCK_PATIENCE_S, OpenedWorkspace
from findling.service.restoring import restore_file
from findling.service.settings import Settings
from findling.service.snapshot_files import (
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
    sweep,
    way_back,
    write_snapshot,
)
from findling.service.workspace import STORE_FILE
from findling.stores.lock import WriteLock
from findling.stores.private_folders import make_private
from findling.stores.schema import FORMAT
from findling.stores.sqlite_files import StoreErrors

__all__ = ["RestoreReport", "WorkspaceSnapshots"]

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
        with StoreErrors(self._folder):
            make_private(self._files.folder)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        with WriteLock(self._files.folder / LOCK_FILE, timeout_s=LOCK_PATIENCE_S):
            sweep(self._folder)
            yield
