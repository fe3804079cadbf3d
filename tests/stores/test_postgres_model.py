"""Random histories: PostgresStore must do what MemoryStore does."""

from __future__ import annotations

from typing import ClassVar

import pytest

from findling.domain.ports import TruthStore
from findling.stores.postgres.truth.store import PostgresStore
from tests.postgres_servers import PostgresServer
from tests.stores.store_history import StoreHistory, history_settings


class PostgresHistory(StoreHistory):
    server: ClassVar[PostgresServer]

    def make_place(self) -> None:
        self.place = self.server.place()

    def open_store(self) -> TruthStore:
        return PostgresStore.create(self.place)

    def trim_log(self, absorbed: int) -> None:
        assert isinstance(self.store, PostgresStore)
        self.store.trim_log(absorbed)

    def drop_place(self) -> None:
        """Leave it: the server is deleted in the end."""


@pytest.fixture(scope="module", autouse=True)
def _server(postgres: PostgresServer) -> None:
    PostgresHistory.server = postgres


TestPostgresHistory = PostgresHistory.TestCase
TestPostgresHistory.settings = history_settings(40, 4)
