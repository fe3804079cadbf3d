"""Small files that are written as a whole or not at all, for their owner's eyes alone."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from findling.stores.filesystem import sync_folder
from findling.stores.sqlite.files import StoreErrors

__all__ = ["file_size", "remove_drafts", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in the place of another one, durably; whoever is killed meanwhile leaves the old one.

    Two must not write one file at once. Raises ReadOnlyError, DiskFullError or PathNotFoundError when it cannot be
    written.
    """
    # One name for all drafts, so that what a killed process left is written over and never piles up.
    draft = path.with_name(f".{path.name}.new")
    with StoreErrors(path):
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_folder(path.parent)


def remove_drafts(folder: Path) -> None:
    """Delete the drafts that killed processes have left in a workspace. The caller holds its write lock."""
    for pattern in (".*.new", "keyword*/.tmp*", "keyword*/.*.new", "vectors-*/*.new"):
        for draft in folder.glob(pattern):
            with suppress(OSError):
                draft.unlink()


def file_size(path: Path) -> int:
    """The bytes of a file; none for what is no file, or is gone since it was listed."""
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process is writing
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
