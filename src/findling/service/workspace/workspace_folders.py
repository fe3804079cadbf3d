"""The folders of workspaces as they come, change their place, and go, in a way that a kill cannot spoil."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from findling.domain.backends import BackendLock
from findling.domain.errors import InvalidValueError
from findling.service.workspace.backends import has_store
from findling.service.workspace.workspace import is_formerly_named, pointer_of, refuse_link
from findling.stores.filesystem import FileErrors, sync_folder
from findling.stores.lock import WriteLock

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

_REMAINS = frozenset({".gitignore", "write.lock", "refine.lock", "snapshot.lock"})
"""Files of a workspace that are worth nothing without its store."""

_PATIENCE_S = 30.0
"""How long one waits for whoever is writing the workspace."""


@contextmanager
def changing(home: Path) -> Iterator[None]:
    """Be the only one to change the set of workspaces; what killed processes have left is cleared away first.

    Raises LockedError when somebody else keeps at it, ReadOnlyError when the home cannot be written.
    """
    from findling.stores.filesystem import make_private

    with FileErrors(home):
        make_private(home)
    with WriteLock(home / ".workspaces.lock", timeout_s=_PATIENCE_S):
        _tidy(home)
        yield


@contextmanager
def holding(folder: Path) -> Iterator[BackendLock]:
    """Let nobody write a workspace meanwhile. Raises LockedError when another process is at it."""
    from findling.service.workspace.writer_queue import WriterQueue

    with WriterQueue.of(folder).locked(_PATIENCE_S) as lock:
        yield lock


def let_go_on_windows(lock: BackendLock) -> None:
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

    Raises InvalidValueError when it holds an index, or files of others, UntrustedSettingError when it is a link.
    """
    refuse_link(target)
    if not target.exists():
        return
    if has_store(target):
        raise InvalidValueError(f"{target} holds another index", hint=f"delete {target} if nobody needs it")
    if not target.is_dir():
        raise InvalidValueError(f"{target} is in the way", hint=f"delete {target}")
    strange = {entry.name for entry in target.iterdir()} - _REMAINS
    if strange:
        raise InvalidValueError(f"{target} is in the way: it holds {min(strange)}", hint=f"delete {target}")
    shutil.rmtree(target)


def discard(folder: Path, home: Path) -> None:
    """Delete a folder: at once under its own name, then file by file. Raises ReadOnlyError when that is not allowed."""
    doomed = _aside(folder, home, "deleted")
    with FileErrors(folder):
        _delete(doomed)
        folder.rename(doomed)
        sync_folder(doomed.parent)
        if doomed.is_symlink():
            doomed.unlink()
        else:
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
    left = [path for state in ("new", "deleted") for path in home.glob(f".{state}-*") if not is_formerly_named(path)]
    for pointer in pointers(home):
        folder = Path(os.fsdecode(pointer.read_bytes()))
        # The note itself stays, whatever is there now: the folder may be on a disk that is away for a moment.
        left += [_aside(folder, home, "new"), _aside(folder, home, "deleted")]
    for folder in left:
        _delete(folder)


def _delete(path: Path) -> None:
    """Delete what nobody needs as far as that goes: its owner may be at it as well. A link goes, not where it leads."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _aside(folder: Path, home: Path, state: str) -> Path:
    # In the same folder, so that one renaming puts it into place; in the home no name can begin with a dot.
    return home / f".{state}-{folder.name}" if folder.parent == home else folder.with_name(f"{folder.name}-{state}")
