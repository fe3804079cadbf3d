"""Snapshots of a workspace: made while others search and write, verified, restored, and let go in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import CorruptError, FormatError, InvalidValueError, LockedError, NotFoundError
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
    write_snapshot,
)
from findling.service.workspace import STORE_FILE
from findling.stores.lock import WriteLock
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
        self._files.let_go_if_replaced()
        self._files.store.seq()  # says what is wrong with a store that cannot be copied
        if to is not None:
            if name:
                raise InvalidValueError("a snapshot has a name or a file, not both", hint="leave one of them out")
            return self._write(to, on_step)
        if name:
            check_name(name)
        most = self._most(keep)
        with self._locked():
            made = self._write(self._folder / f"{name or default_name(self._folder)}{SUFFIX}", on_step)
            self._retain(most, spared={made.name})
        return made

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
        with self._locked():
            found = self._found(name)
            delete_snapshot(found.path)
        return found

    def _save_present(self) -> Snapshot:
        return self._write(self._folder / f"{default_name(self._folder, _SAFETY_PREFIX)}{SUFFIX}", None)

    def _write(self, path: Path, on_step: Callable[[int, int], None] | None) -> Snapshot:
        if path.exists():
            raise InvalidValueError(f"{path} is there already", hint="choose another name, or drop it first")
        return write_snapshot(self._files.folder / STORE_FILE, path, on_step=on_step)

    def _most(self, keep: int | None) -> int:
        most = int(self._settings.get("snapshot.keep", 7)) if keep is None else keep
        if most < 0:
            raise InvalidValueError(f"{most} snapshots cannot be kept", hint="a number from 0 on; 0 keeps all")
        return most

    def _retain(self, most: int, spared: set[str]) -> None:
        for snapshot in self.list()[most:] if most else ():
            if snapshot.name not in spared:
                delete_snapshot(snapshot.path)

    def _found(self, name: str | Path) -> Snapshot:
        path = name if isinstance(name, Path) else self._folder / f"{check_name(name)}{SUFFIX}"
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
            self._files.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        lock = WriteLock(self._files.folder / LOCK_FILE)
        if not lock.acquire(LOCK_PATIENCE_S):
            raise LockedError(f"another process is at the snapshots of {self._files.folder}", hint="try again later")
        try:
            sweep(self._folder)
            yield
        finally:
            lock.release()
