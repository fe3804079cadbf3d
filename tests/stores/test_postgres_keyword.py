"""The keyword leg in PostgreSQL keeps the contract, ranks as tantivy does, and shows nobody what is hidden."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from findling.domain.ports import KeywordLeg, TruthStore
from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.migrations import create_workspace
from findling.stores.postgres.server.places import parse_place
from findling.testing.keyword_leg import KeywordLegSuite
from findling.testing.reference.memory_store import MemoryStore
from tests.postgres_servers import PostgresServer


class _Workspaces:
    """The set-up of suites: a workspace of its own for each leg."""

    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> Iterator[None]:
        self.server = postgres
        self.opened: list[PostgresConnections] = []
        yield
        for one in self.opened:
            one.close()

    def connections(self) -> PostgresConnections:
        place = parse_place(self.server.place())
        create_workspace(place)
        self.opened.append(PostgresConnections(place))
        return self.opened[-1]


class TestPostgresKeywordLeg(_Workspaces, KeywordLegSuite):
    def make_store(self) -> TruthStore:
        return MemoryStore()

    def make_leg(self) -> KeywordLeg:
        return PostgresKeywordLeg(self.connections(), store_id="test")
