"""Random histories: SqliteStore must do what MemoryStore does."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from findling.domain.ports import TruthStore
from findling.stores.sqlite.store import SqliteStore
from tests.compacting import compact
from tests.stores.store_history import StoreHistory, history_settings


class SqliteHistory(StoreHistory):
    def make_place(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="findling-"))

    def open_store(self) -> TruthStore:
        return SqliteStore.open(self.folder / "truth.db")

    def trim_log(self, absorbed: int) -> None:
        assert isinstance(self.store, SqliteStore)
        compact(self.store, absorbed)

    def drop_place(self) -> None:
        shutil.rmtree(self.folder)


TestSqliteHistory = SqliteHistory.TestCase
TestSqliteHistory.settings = history_settings(40, 5)
