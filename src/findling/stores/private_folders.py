"""Folders for their owner alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["HOME_NAME", "make_private"]

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
