"""Give back space of a store: its change log, idle rows, free pages and the write-ahead log."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from findling.stores.filesystem import check_room
from findling.stores.sqlite.connections import StoreErrors, connect, connect_readonly, transaction

FREE_SHARE = 0.25
"""The share of free pages from which on a store is rewritten."""

_FOLDING_PATIENCE_MS = 2_000
"""The patience with readers of the write-ahead log; the next time cuts off the rest."""


class PageCounts(NamedTuple):
    """The number of pages of a store, the free ones among them, and the bytes of each."""

    all: int
    free: int
    size: int

    @property
    def free_share(self) -> float:
        """The free pages as a share of all."""
        return self.free / self.all if self.all else 0.0


def count_pages(path: Path) -> PageCounts:
    """The pages of a store, without reading them."""
    with StoreErrors(path), closing(connect_readonly(path)) as connection:
        names = ("page_count", "freelist_count", "page_size")
        return PageCounts(*(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names))


def trim_log(path: Path, absorbed: int) -> int:
    """Forget the changes up to `absorbed`; return how many entries went. The caller holds the write lock.

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
    """Drop wishes that `model` has fulfilled, and wishes and accesses of deleted things; return how many."""
    with StoreErrors(path), closing(connect(path)) as connection, transaction(connection, "BEGIN IMMEDIATE"):
        gone = connection.execute(
            "DELETE FROM wanted WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.cid = wanted.cid) OR EXISTS ("
            " SELECT 1 FROM chunks c JOIN vectors v ON v.digest = c.digest JOIN models m ON m.id = v.model"
            " WHERE c.cid = wanted.cid AND m.fingerprint = ?)",
            (model,),
        ).rowcount
        # `log:…` is no resource: it notes how far a log of accesses was counted.
        gone += connection.execute(
            "DELETE FROM accesses WHERE rid NOT LIKE 'log:%' AND rid NOT IN (SELECT rid FROM resources)"
        ).rowcount
    return gone


def rewrite_store(path: Path) -> None:
    """Rewrite the store without free pages; others read meanwhile, and writers wait.

    Raises DiskFullError when there is no room for that.
    """
    pages = count_pages(path)
    _check_room(path, (pages.all - pages.free) * pages.size)
    with StoreErrors(path), closing(connect(path)) as connection:
        connection.execute("VACUUM")


def fold_log(path: Path) -> None:
    """Merge the write-ahead log into the store and cut it off, as far as readers allow."""
    with StoreErrors(path), closing(connect(path)) as connection:
        connection.execute(f"PRAGMA busy_timeout = {_FOLDING_PATIENCE_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _check_room(path: Path, needed: int) -> None:
    """Raise DiskFullError without room for a rewrite: a temporary file, then the write-ahead log."""
    scratch = _scratch_folder()
    places = {path.parent: needed, scratch: needed}
    if path.parent.stat().st_dev == scratch.stat().st_dev:
        places = {path.parent: 2 * needed}
    for folder, size in places.items():
        hint = "free some space and run the command again; nothing is lost"
        check_room(folder, size, f"rewriting {path}", hint=hint)


def _scratch_folder() -> Path:
    """The folder of SQLite's temporary files."""
    if os.name == "nt":
        import tempfile

        return Path(tempfile.gettempdir())
    named = [os.environ[name] for name in ("SQLITE_TMPDIR", "TMPDIR") if os.environ.get(name)]
    for folder in map(Path, [*named, "/var/tmp", "/usr/tmp", "/tmp"]):
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return Path()
