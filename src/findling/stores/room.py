"""Whether a disk has room for what is about to be written to it."""

from __future__ import annotations

import shutil
from pathlib import Path

from findling.domain.errors import DiskFullError

__all__ = ["check_room"]

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
