"""The truth store in PostgreSQL, by the suites of every store and by its own promises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from findling.domain.errors import ReplacedError
from findling.domain.ports import TruthStore
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.truth_store import TruthStoreSuite
from tests.postgres_servers import PostgresServer


class TestPostgresStore(TruthStoreSuite):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> Iterator[None]:
        self.server = postgres
        self.stores: list[PostgresStore] = []
        yield
        for store in self.stores:
            with suppress(ReplacedError):  # some tests close theirs
                assert store.integrity() == []
            store.close()

    def make_store(self) -> TruthStore:
        self.stores.append(PostgresStore.create(self.server.place()))
        return self.stores[-1]
