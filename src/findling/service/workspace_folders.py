"""The folders of workspaces as they come, change their place, and go, in a way that a kill cannot spoil."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from findling.domain.errors import InvalidValueError, LockedError
from findling.service.whole_files import sync_folder
from findling.service.workspace import STORE_FILE, pointer_of
from findling.stores.lock import WriteLock
from findling.stores.sqlite_files import StoreErrors

__all__ = [
    "changing",
    "discard",
    "draft_of",
    "holding",
    "let_go_on_windows",
    "make_room",
    "pointers",
    "put_in_place",
]

_PATIENCE_S = 30.0
"""How long one waits for whoever is writing the workspace."""


@contextmanager
def changing(home: Path) -> Iterator[None]:
    """Be the only one to change the set of workspaces; what killed processes have left is cleared away first.

    Raises LockedError when somebody else keeps at it, ReadOnlyError when the home cannot be written.
    """
    with StoreErrors(home):
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with WriteLock(home / ".workspaces.lock", timeout_s=_PATIENCE_S):
        _tidy(home)
        yield


@contextmanager
def holding(folder: Path) -> Iterator[WriteLock]:
    """Let nobody write a workspace meanwhile. Raises LockedError when another process is at it."""
    lock = WriteLock(folder / "write.lock")
    if not lock.acquire(_PATIENCE_S):
        raise LockedError(f"another process is writing {folder}", hint="try again when it has finished")
    try:
        yield lock
    finally:
        lock.release()


def let_go_on_windows(lock: WriteLock) -> None:
    """Windows renames no folder in which a file is open, so the lock goes first there."""
    if os.name == "nt":
        lock.release()


def put_in_place(draft: Path, target: Path) -> Path:
    """Give a finished folder its name, durably and at once. Raises InvalidValueError when the name is taken."""
    if target.exists():
        raise InvalidValueError(f"{target} is in the way", hint=f"move it elsewhere, or delete {target}")
    draft.rename(target)
    sync_folder(target.parent)
    return target


def make_room(target: Path) -> None:
    """Clear away a folder that holds nothing but what an index that is gone has left.

    Raises InvalidValueError when it holds an index, or files of others.
    """
    if not target.exists():
        return
    if (target / STORE_FILE).exists():
        raise InvalidValueError(f"{target} holds another index", hint=f"delete {target} if nobody needs it")
    strange = {entry.name for entry in target.iterdir()} - {".gitignore", "write.lock", "refine.lock"}
    if strange:
        raise InvalidValueError(f"{target} is in the way: it holds {min(strange)}", hint=f"delete {target}")
    shutil.rmtree(target)


def discard(folder: Path, home: Path) -> None:
    """Delete a folder: at once under its own name, then file by file. Raises ReadOnlyError when that is not allowed."""
    doomed = _aside(folder, home, "deleted")
    with StoreErrors(folder):
        if doomed.exists():
            shutil.rmtree(doomed)
        folder.rename(doomed)
        sync_folder(doomed.parent)
        shutil.rmtree(doomed)


def draft_of(folder: Path, home: Path) -> Path:
    """The name that a folder has until it is finished; nobody takes it for a workspace, and what is left is cleared."""
    return _aside(folder, home, "new")


def pointers(home: Path) -> list[Path]:
    """The notes of all workspaces that lie elsewhere."""
    folder = pointer_of("", home)
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def _tidy(home: Path) -> None:
    """Clear away what processes that were killed have left; nobody else is at it now."""
    left = [*home.glob(".new-*"), *home.glob(".deleted-*")]
    for pointer in pointers(home):
        folder = Path(os.fsdecode(pointer.read_bytes()))
        left += [_aside(folder, home, "new"), _aside(folder, home, "deleted")]
        # The index was deleted by hand; a root that is gone as well may have been moved, or be on another disk.
        if folder.parent.exists() and not folder.exists():
            pointer.unlink()
    for folder in left:
        if folder.exists():
            with StoreErrors(folder):
                shutil.rmtree(folder)


def _aside(folder: Path, home: Path, state: str) -> Path:
    # In the same folder, so that one renaming puts it into place; in the home no name can begin with a dot.
    return home / f".{state}-{folder.name}" if folder.parent == home else folder.with_name(f"{folder.name}-{state}")
