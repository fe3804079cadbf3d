"""The truth store behind a pooler in transaction mode: two connections to the server, given to anybody in turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from findling.domain.errors import ReplacedError, WorkspaceError
from findling.domain.ports import TruthStore
from findling.stores.postgres.checks import examine_server
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import line_document
from findling.testing.truth_store import TruthStoreSuite
from tests.poolers import pooled, why_no_pooler
from tests.postgres_servers import PostgresServer

pytestmark = pytest.mark.skipif(bool(why_no_pooler()), reason=why_no_pooler())


@pytest.fixture(scope="module")
def dsn(postgres: PostgresServer) -> Iterator[str]:
    """A database of a role without privileges, through the pooler."""
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE pooled LOGIN PASSWORD 'pooled'")
        connection.execute("CREATE DATABASE pooled OWNER pooled")
    with pooled(postgres, "pooled", "pooled") as url:
        yield f"{url.rpartition('/')[0]}/pooled?pooler=transaction"


def test_doctor_names_a_pooler_that_the_url_does_not(dsn: str, postgres: PostgresServer) -> None:
    def pooler(url: str) -> list[tuple[bool, str]]:
        checks = examine_server(parse_place(url), PostgresConnections(url))
        return [(one.ok, one.hint) for one in checks if one.name == "pooler"]

    assert pooler(f"{dsn.partition('?')[0]}#notes") == [(False, "add pooler=transaction to the URL, behind ? or &")]
    assert pooler(f"{dsn}#notes") == pooler(postgres.place()) == []


class TestPooledStore(TruthStoreSuite):
    @pytest.fixture(autouse=True)
    def _pooler(self, postgres: PostgresServer, dsn: str) -> Iterator[None]:
        self.server, self.dsn = postgres, dsn
        self.stores: list[PostgresStore] = []
        yield
        for store in self.stores:
            with suppress(ReplacedError):  # some tests close theirs
                assert store.integrity() == []
            store.close()

    def make_store(self) -> TruthStore:
        name = self.server.place().partition("#")[2]
        self.stores.append(PostgresStore.create(f"{self.dsn}#{name}"))
        return self.stores[-1]


def test_workspaces_share_connections_and_see_only_themselves(dsn: str) -> None:
    failures: list[BaseException] = []

    def use(name: str) -> None:
        try:
            with PostgresStore.create(f"{dsn}#{name}") as store:
                for turn in range(8):
                    store.write([line_document(f"{name}{turn}", [name])])
                    assert list(store.rids()) == [f"{name}{number}" for number in range(turn + 1)]
                    assert store.seq() == turn + 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(name,)) for name in "abcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_pooler_that_the_url_does_not_tell_of_is_named(dsn: str) -> None:
    silent = dsn.replace("?pooler=transaction", "")
    with PostgresStore.create(f"{dsn}#told"), PostgresStore.open(f"{silent}#told") as store:
        for turn in range(8):  # after three uses a statement is prepared, in one connection of the two
            store.set_meta("turn", str(turn))
            asked = store.seq()
        with psycopg.connect(silent) as other, pytest.raises(WorkspaceError, match="pooler in transaction") as caught:
            other.execute("SELECT 1")  # keeps that connection until its transaction ends
            assert store.seq() == asked  # single questions find their plans gone, and go on
            store.set_meta("turn", "last")
        assert "pooler=transaction" in caught.value.hint
