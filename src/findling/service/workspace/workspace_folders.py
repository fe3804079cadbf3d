"""Folders of workspaces: created, moved and deleted so that a kill cannot spoil them, and the notes of their places."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from findling.domain.backends import BackendLock
from findling.domain.errors import InvalidValueError
from findling.domain.results import Degradation
from findling.service.workspace.workspace import (
    PROJECT_FOLDER,
    Workspace,
    folder_name,
    has_store,
    is_formerly_named,
    is_name,
    place_of,
    pointer_of,
    refuse_link,
)
from findling.stores import filesystem
from findling.stores.filesystem import FileErrors, make_private, sync_folder, write_whole
from findling.stores.lock import WriteLock

_REMAINS = frozenset({".gitignore", "write.lock", "refine.lock", "snapshot.lock", "upkeep.lock", "waiting.lock"})
"""Files of a workspace that are worth nothing without its store."""

_PATIENCE_S = 30.0
"""Longest wait for a writer of the workspace."""

_SERVICES = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "google drive": "Google Drive",
    "icloud drive": "iCloud Drive",
    "iclouddrive": "iCloud Drive",
    "mobile documents": "iCloud Drive",
    "synology drive": "Synology Drive",
}
"""Names of folders that a service syncs with other machines, whole or up to ` - COMPANY`."""

_MARKS = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".nextcloudsync.log": "Nextcloud",
    ".owncloudsync.log": "ownCloud",
}
"""Files that such services leave at the top of a folder of any name."""


# The set of workspaces


@contextmanager
def changing(home: Path) -> Iterator[None]:
    """Exclude other changes of the set of workspaces; the remains of killed processes are deleted first.

    Raises LockedError when somebody else keeps the lock, ReadOnlyError when the home cannot be written.
    """
    with FileErrors(home):
        make_private(home)
    with WriteLock(home / ".workspaces.lock", timeout_s=_PATIENCE_S):
        _tidy(home)
        yield


@contextmanager
def holding(folder: Path, *, only_here: bool = False) -> Iterator[BackendLock]:
    """Exclude writers of a workspace, or those of this host. Raises LockedError when another process keeps writing."""
    if only_here and place_of(folder):
        with WriteLock(folder / "write.lock", timeout_s=_PATIENCE_S) as own:
            yield own
        return
    from findling.service.workspace.writer_queue import WriterQueue

    with WriterQueue.of(folder).locked(_PATIENCE_S) as lock:
        yield lock


def release_on_windows(lock: BackendLock) -> None:
    """Release the lock on Windows, which renames no folder with an open file."""
    if os.name == "nt":
        lock.release()


def put_in_place(draft: Path, target: Path) -> Path:
    """Rename a finished folder, durably and at once. Raises InvalidValueError when the name is taken."""
    if target.exists():
        raise InvalidValueError(f"{target} is in the way", hint=f"move it elsewhere, or delete {target}")
    draft.rename(target)
    sync_folder(target.parent)
    return target


def make_room(target: Path) -> None:
    """Delete a folder that holds only the remains of an index. Raises InvalidValueError or UntrustedSettingError."""
    refuse_link(target)
    if not target.exists():
        return
    if has_store(target):
        raise InvalidValueError(f"{target} holds another index", hint=f"delete {target} if nobody needs it")
    if not target.is_dir():
        raise InvalidValueError(f"{target} is in the way", hint=f"delete {target}")
    if strange := {entry.name for entry in target.iterdir()} - _REMAINS:
        raise InvalidValueError(f"{target} is in the way: it holds {min(strange)}", hint=f"delete {target}")
    shutil.rmtree(target)


def discard(folder: Path, home: Path) -> None:
    """Delete a folder: at once under its own name, then file by file. Raises ReadOnlyError when that is not allowed."""
    doomed = _aside(folder, home, "deleted")
    with FileErrors(folder):
        filesystem.discard(doomed)  # as far as possible: another process may be deleting it, too
        folder.rename(doomed)
        sync_folder(doomed.parent)
        if doomed.is_symlink():
            doomed.unlink()
        else:
            shutil.rmtree(doomed)


def draft_of(folder: Path, home: Path) -> Path:
    """The name of an unfinished folder, which is no name of a workspace; remains of it are deleted."""
    return _aside(folder, home, "new")


@contextmanager
def drafted(target: Path, home: Path) -> Iterator[Path]:
    """A new folder to be filled, which is put in place when the block ends; nothing is left after a failure."""
    draft = draft_of(target, home)
    try:
        with FileErrors(target):
            draft.mkdir(mode=0o700)
            yield draft
            put_in_place(draft, target)
    finally:
        filesystem.discard(draft)


def _tidy(home: Path) -> None:
    left = [path for state in ("new", "deleted") for path in home.glob(f".{state}-*") if not is_formerly_named(path)]
    for pointer in pointers(home):
        folder = Path(os.fsdecode(pointer.read_bytes()))
        # The note itself stays: its folder may be on a disk that is absent for a moment.
        left += [_aside(folder, home, "new"), _aside(folder, home, "deleted")]
    for folder in left:
        filesystem.discard(folder)


def _aside(folder: Path, home: Path, state: str) -> Path:
    # In the same folder, so that one renaming puts it into place; in the home no name can begin with a dot.
    return home / f".{state}-{folder.name}" if folder.parent == home else folder.with_name(f"{folder.name}-{state}")


# Places outside the home


def settle(workspace: Workspace, home: Path) -> list[Degradation]:
    """Prepare the first write of a workspace; returns warnings about its place.

    Raises ReadOnlyError, DiskFullError or UntrustedSettingError.
    """
    folder, root = workspace.folder, workspace.root
    inside = root / PROJECT_FOLDER
    if folder != inside:
        if is_name(folder.name) or not has_store(inside):
            return []
        what = f"{inside} holds an index that is not used: it was not made here, or has moved with {root}"
        fix = f"findling workspaces drop {root}, then findling workspaces set {root} --to project; or delete it"
        return [Degradation(what=what, fix=fix)]
    if has_store(folder):
        return []
    refuse_link(folder)
    # The note comes before the index, which would be lost without it.
    keep_out_of_git(folder)
    note_place(folder_name(root), home, folder)
    warning = sync_warning(folder, str(root))
    return [warning] if warning is not None else []


def pointers(home: Path) -> list[Path]:
    """The notes of all workspaces that lie elsewhere."""
    folder = pointer_of("", home)
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def note_place(key: str, home: Path, folder: Path) -> None:
    """Note that a workspace lies, or will lie, in a folder outside the home."""
    pointer, place = pointer_of(key, home), os.fsencode(folder)
    with FileErrors(pointer):
        make_private(pointer.parent)
        is_known = pointer.exists() and pointer.read_bytes() == place
    if not is_known:
        write_whole(pointer, place)


def forget_place(key: str, home: Path) -> None:
    """Delete the note; fine when there is none."""
    pointer_of(key, home).unlink(missing_ok=True)


def keep_out_of_git(folder: Path) -> None:
    """Have git ignore the folder, which is created if need be."""
    with FileErrors(folder):
        folder.mkdir(exist_ok=True, mode=0o700)
        rules = folder / ".gitignore"
        if not rules.exists():
            rules.write_text("*\n", encoding="ascii")


def sync_warning(folder: Path, called: str) -> Degradation | None:
    """The warning about an index in a synced folder; `called` is the name or path of its workspace."""
    service = synced_by(folder)
    if not service:
        return None
    return Degradation(
        what=f"{folder} lies in a folder that {service} keeps in step; an index there may be damaged",
        fix=f"findling workspaces set {called} --to home",
    )


def synced_by(path: Path) -> str:
    """The service that syncs a path with other machines, judged by names and marks; empty for none.

    A sync may change an index during a write, and sends every write over the network.
    """
    for folder in (path, *path.parents):
        name = folder.name.lower()
        for known, service in _SERVICES.items():
            if name == known or name.startswith((f"{known} - ", f"{known}-")):
                return service
        # macOS: ~/Library/CloudStorage/OneDrive-Personal, GoogleDrive-me@example.com
        if folder.parent.name == "CloudStorage" and folder.parent.parent.name == "Library":
            return folder.name.partition("-")[0]
        for mark, service in _MARKS.items():
            if (folder / mark).exists():
                return service
    return ""
