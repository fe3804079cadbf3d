"""Automatic snapshots of the resources that are no files: daily, and before a migration."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from findling.domain.errors import FindlingError
from findling.stores.local.layout import STORE_FILE
from findling.stores.local.snapshot_files import (
    FOLDER,
    LOCK_FILE,
    SUFFIX,
    default_name,
    delete_snapshot,
    sweep,
    write_snapshot,
)
from findling.stores.lock import WriteLock
from findling.stores.sqlite.backup import copy_made, made_bytes, made_state

__all__ = ["is_automatic", "save_before_migration", "save_daily"]

_PREFIX = "auto-"

_NAME = re.compile(r"auto-\d{8}-\d{6}(-\d+)?")

_DAY_S = 86_400.0

_MOST = 3
"""The number of kept snapshots: a loss that stays unnoticed for three days of work is rare."""


def is_automatic(name: str) -> bool:
    """Whether the name is that of an automatic snapshot."""
    return _NAME.fullmatch(name) is not None


def save_daily(folder: Path, most_bytes: int) -> None:
    """Make a snapshot when the latest is a day old and something has changed since; never fail.

    All of them together take `most_bytes` at most; a larger one is not made. The caller holds the write lock.
    """
    latest = max(_snapshots(folder), default=None)  # their names are times
    with suppress(FindlingError, OSError):
        if latest is not None and time.time() - latest.stat().st_mtime < _DAY_S:
            return
        store = folder / STORE_FILE
        if latest is not None and made_state(store) == made_state(latest, is_copy=True):
            os.utime(latest)  # asked again in a day
            return
        _save(folder, most_bytes)


def save_before_migration(folder: Path, most_bytes: int) -> None:
    """Make a snapshot of a store that is about to be migrated; never fail."""
    with suppress(FindlingError, OSError):
        if most_bytes:
            _save(folder, most_bytes)


def _save(folder: Path, most_bytes: int) -> None:
    store, target = folder / STORE_FILE, folder / FOLDER
    size = made_bytes(store)
    if not 0 < size <= most_bytes:
        return
    target.mkdir(mode=0o700, exist_ok=True)
    lock = WriteLock(folder / LOCK_FILE)
    if not lock.acquire(0.0):
        return  # another process is making nearly the same one
    try:
        sweep(target)
        write_snapshot(store, target / f"{default_name(target, _PREFIX)}{SUFFIX}", copy=copy_made, needed=size)
        _retain(folder, most_bytes)
    finally:
        lock.release()


def _retain(folder: Path, most_bytes: int) -> None:
    """Delete the oldest that are too many or too large; keep the latest."""
    total = 0
    for number, path in enumerate(sorted(_snapshots(folder), reverse=True)):
        total += path.stat().st_size
        if number and (number >= _MOST or total > most_bytes):
            delete_snapshot(path)


def _snapshots(folder: Path) -> list[Path]:
    found = (folder / FOLDER).glob(f"{_PREFIX}*{SUFFIX}")
    return [path for path in found if is_automatic(path.name.removesuffix(SUFFIX))]
