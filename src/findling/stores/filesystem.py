"""Private files and folders: written whole and durably, with errors that name the next step."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from findling.domain.errors import DiskFullError, FindlingError, InvalidValueError, PathNotFoundError, ReadOnlyError

HOME_NAME = "workspaces"
"""The usual name of the folder of all workspaces."""


def make_private(folder: Path, *, create: bool = True) -> None:
    """Make a folder and its missing parents with mode 0700; fine when it is there. Raises OSError.

    `Path.mkdir` gives its mode to the last folder alone, and a parent reveals the names in it.
    """
    if create:
        for missing in reversed([one for one in folder.parents if not one.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    if folder.parent.name == HOME_NAME:
        # Up to 0.6 the usual home of the workspaces could be listed by everybody.
        with suppress(OSError):
            if folder.parent.stat().st_mode & 0o077:
                folder.parent.chmod(0o700)


_SPARE_BYTES = 1 << 20
"""Bytes that must stay free besides."""


def check_room(folder: Path, needed: int, what: str, *, hint: str) -> None:
    """Raise DiskFullError when a folder has no room for so many bytes and a little more."""
    from shutil import disk_usage  # 2 ms to load, and a search needs no room

    wanted, free = needed + _SPARE_BYTES, disk_usage(folder).free
    if free < wanted:
        sizes = [f"{size / (1 << 20):,.1f} MB" for size in (wanted, free)]
        message = f"no space left for {what}: it takes {sizes[0]} at {folder}, where {sizes[1]} are free"
        raise DiskFullError(message, hint=hint)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system knows how."""
    if os.name != "nt":
        sync_file(folder, os.O_RDONLY)


def sync_file(path: Path, flags: int = os.O_RDWR) -> None:
    """Bring a file to the disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_private(path: Path) -> None:
    """Create a file of mode 0600 unless it is there. SQLite gives its side files the same mode."""
    # Never open a file that is there: closing it would drop every lock this process holds on it through SQLite.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def discard(path: Path) -> None:
    """Delete a folder, or whatever stands in its place, as far as the system lets it."""
    if path.is_dir() and not path.is_symlink():
        from shutil import rmtree

        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Replace a file in one step; a killed process leaves the old one. Two must not write one file at once.

    Raises ReadOnlyError, DiskFullError or PathNotFoundError when it cannot be written.
    """
    # One name for all drafts, so that those of killed processes never pile up.
    draft = path.with_name(f".{path.name}.new")
    with FileErrors(path):
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if mode != 0o600:
            draft.chmod(mode)
        draft.replace(path)
        if durable:
            sync_folder(path.parent)


def file_size(path: Path) -> int:
    """The bytes of a file; 0 for anything else and for a deleted one."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process is writing
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


class FileErrors:
    """A context that translates errors of the file system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        translated = translate_file_error(error, self._path)
        if translated is not None:
            raise translated from error


def translate_file_error(error: BaseException | None, path: Path) -> FindlingError | None:
    """The same error in findling's tree; None for an error of another kind."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidValueError(f"{error.object!r} is not valid Unicode", hint="decode it with errors='replace'")
    match error.errno if isinstance(error, OSError) else None:
        case errno.ENOSPC | errno.EDQUOT:
            return disk_full(path)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return read_only(path)
        case errno.ENOENT | errno.ENOTDIR:
            return PathNotFoundError(f"the folder of {path} is not there", hint="create it first")
    return None


def disk_full(path: Path) -> DiskFullError:
    """The error for a disk without space."""
    return DiskFullError(
        f"no space left for {path}; what was committed is kept", hint="free some space and run the command again"
    )


def read_only(path: Path) -> ReadOnlyError:
    """The error for a place that cannot be written."""
    return ReadOnlyError(f"{path} cannot be written", hint="check who owns it and its folder")
