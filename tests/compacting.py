"""What compaction does to a truth store, without the legs of a workspace."""

from __future__ import annotations

from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import fold_log, rewrite_store, trim_log


def compact(store: SqliteStore, absorbed: int) -> None:
    """Forget the changes that every leg has absorbed, and give unused space back."""
    trim_log(store._path, absorbed)
    rewrite_store(store._path)
    fold_log(store._path)
