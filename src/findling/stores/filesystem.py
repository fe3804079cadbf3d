"""Having names in a folder outlive a power cut."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from findling.domain.errors import DiskFullError

__all__ = ["HOME_NAME", "check_room", "make_private", "sync_folder"]


HOME_NAME = "workspaces"
"""The name of the folder that holds all workspaces, unless somebody has chosen another one."""


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, with mode 0700; fine when it is there. Raises OSError.

    `Path.mkdir` gives its mode to the last folder alone, and the one above may tell the names of others in it.
    """
    for missing in reversed([one for one in folder.parents if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.parent.name == HOME_NAME:
        # Up to 0.6 the usual home of the workspaces could be listed by everybody.
        with suppress(OSError):
            if folder.parent.stat().st_mode & 0o077:
                folder.parent.chmod(0o700)


_SPARE_BYTES = 1 << 20
"""What must stay free besides."""


def check_room(folder: Path, needed: int, what: str, *, hint: str) -> None:
    """Raise DiskFullError when a folder has no room for so many bytes and a little more."""
    wanted, free = needed + _SPARE_BYTES, shutil.disk_usage(folder).free
    if free < wanted:
        raise DiskFullError(
            f"no space left for {what}: it takes {_told(wanted)} at {folder}, where {_told(free)} are free", hint=hint
        )


def _told(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MB"


def sync_folder(folder: Path) -> None:
    """Make names that were given in the folder last, where the system knows how."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
