"""Giving back what a store no longer needs: its change log, idle rows, free pages and the write-ahead log."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from findling.stores.filesystem import check_room
from findling.stores.sqlite.files import StoreErrors, connect, connect_readonly, transaction

__all__ = ["FREE_SHARE", "Pages", "compact_store", "count_pages", "drop_idle", "fold_log", "rewrite_store", "trim_log"]

FREE_SHARE = 0.25
"""The share of free pages from which on a store is rewritten, unless somebody says otherwise."""

_FOLDING_PATIENCE_MS = 2_000
"""How long to wait for readers of the write-ahead log: what cannot be cut off now is cut off the next time."""


class Pages(NamedTuple):
    """How many pages a store has, how many of them are free, and the bytes of each."""

    all: int
    free: int
    size: int

    @property
    def free_share(self) -> float:
        """The free ones of all."""
        return self.free / self.all if self.all else 0.0

    @property
    def used_bytes(self) -> int:
        """What a store without free pages would take."""
        return (self.all - self.free) * self.size


def compact_store(path: Path, absorbed: int) -> None:
    """Forget the changes up to `absorbed` and give space back. Raises DiskFullError when a rewrite finds no room."""
    trim_log(path, absorbed)
    if count_pages(path).free_share > FREE_SHARE:
        rewrite_store(path)
    fold_log(path)


def count_pages(path: Path) -> Pages:
    """The pages of a store, without reading them."""
    with StoreErrors(path), closing(connect_readonly(path)) as connection:
        names = ("page_count", "freelist_count", "page_size")
        return Pages(*(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names))


def trim_log(path: Path, absorbed: int) -> int:
    """Forget the changes up to `absorbed`; tells how many entries went. The caller holds the write lock.

    A leg that has absorbed less starts from nothing the next time.
    """
    with StoreErrors(path), closing(connect(path)) as connection, transaction(connection, "BEGIN IMMEDIATE"):
        (seq,) = connection.execute("SELECT seq FROM header").fetchone()
        floor = min(absorbed, seq)
        gone = connection.execute("DELETE FROM dropped WHERE seq <= ?", (floor,)).rowcount
        gone += connection.execute("DELETE FROM deleted WHERE seq <= ?", (floor,)).rowcount
        connection.execute("UPDATE header SET log_floor = max(log_floor, ?)", (floor,))
    return gone


def drop_idle(path: Path, model: str) -> int:
    """Drop wishes that `model` has fulfilled, and wishes for and accesses to what is gone; tells how many."""
    with StoreErrors(path), closing(connect(path)) as connection, transaction(connection, "BEGIN IMMEDIATE"):
        gone = connection.execute(
            "DELETE FROM wanted WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.cid = wanted.cid) OR EXISTS ("
            " SELECT 1 FROM chunks c JOIN vectors v ON v.digest = c.digest JOIN models m ON m.id = v.model"
            " WHERE c.cid = wanted.cid AND m.fingerprint = ?)",
            (model,),
        ).rowcount
        # What starts with `log:` is no resource: it tells how far a log of accesses was counted.
        gone += connection.execute(
            "DELETE FROM accesses WHERE rid NOT LIKE 'log:%' AND rid NOT IN (SELECT rid FROM resources)"
        ).rowcount
    return gone


def rewrite_store(path: Path) -> None:
    """Write the store once more, without free pages; others read on meanwhile and wait with writing.

    Raises DiskFullError when there is no room for that.
    """
    _check_room(path, count_pages(path).used_bytes)
    with StoreErrors(path), closing(connect(path)) as connection:
        connection.execute("VACUUM")


def fold_log(path: Path) -> None:
    """Take the write-ahead log into the store and cut it off, as far as readers allow."""
    with StoreErrors(path), closing(connect(path)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {_FOLDING_PATIENCE_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _check_room(path: Path, needed: int) -> None:
    """A rewrite is made in a temporary file first, and then goes through the write-ahead log."""
    scratch = _scratch_folder()
    places = {path.parent: needed, scratch: needed}
    if path.parent.stat().st_dev == scratch.stat().st_dev:
        places = {path.parent: 2 * needed}
    for folder, size in places.items():
        hint = "free some space and run the command again; nothing is lost"
        check_room(folder, size, f"rewriting {path}", hint=hint)


def _scratch_folder() -> Path:
    """Where SQLite puts temporary files."""
    if os.name == "nt":
        import tempfile

        return Path(tempfile.gettempdir())
    named = [os.environ[name] for name in ("SQLITE_TMPDIR", "TMPDIR") if os.environ.get(name)]
    for folder in map(Path, [*named, "/var/tmp", "/usr/tmp", "/tmp"]):
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return Path()
