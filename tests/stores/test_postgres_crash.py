"""A client, a backend process or the whole server that ends at any moment leaves nothing half-done."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from findling.domain.errors import WorkspaceError
from findling.domain.resources import Document
from findling.stores.postgres.truth import writes
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import FULL, PLAIN, LegModel, held_by, line_document, stored_document, vectors_of
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, run_and_kill

KILLS = tries(20, short=2)

WRITER = """
import sys
from findling.testing.samples import line_document, vectors_of
from findling.stores.postgres.truth import writes
from findling.stores.postgres.truth.store import PostgresStore

writes._DOCUMENTS_PER_BATCH = 3
with PostgresStore.create(sys.argv[1]) as store:
    turn = store.seq()
    while True:
        turn += 1
        batch = [
            line_document(f"r{(turn * 7 + n) % 40}", ["same"] + [f"{turn} {n} {line}" + "x" * 600 for line in range(n)])
            for n in range(12)
        ]
        store.write(batch, [f"r{turn % 40}"])
        store.put_vectors("m", vectors_of(batch[-1], b"12"))
        if turn % 5 == 0:
            store.trim_log(store.seq() - 60)
        sys.stdout.write(f"{store.seq()}\\n")
        sys.stdout.flush()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_loses_nothing_it_reported(postgres: PostgresServer) -> None:
    place = postgres.place()
    moments = random.Random(7)
    leg = LegModel()
    reported = 0
    for _ in range(KILLS):
        lines = run_and_kill(WRITER, place, moments.uniform(0, 0.3))
        reported = max(reported, *map(int, lines))
        with PostgresStore.open(place) as store:
            assert store.seq() >= reported
            assert store.integrity() == []
            leg.catch_up(store)
            assert leg.held == held_by(store)
    assert reported >= KILLS


def in_the_middle(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> Iterator[Document]:
    """Documents of a write; something happens when the first ones are in the tables, and not committed."""
    monkeypatch.setattr(writes, "_DOCUMENTS_PER_BATCH", 1)
    yield FULL
    yield line_document(PLAIN.resource.rid, ["changed"])
    yield line_document("r", ["written after it"])
    happens()
    yield line_document("z", ["never"])


def writing_backend(server: PostgresServer) -> int:
    """The process of the server that is in the middle of a write."""
    with psycopg.connect(server.dsn) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xid IS NOT NULL"
        ).fetchall()
    ((pid,),) = rows
    return int(pid)


def eventually(store: PostgresStore) -> int:
    """The number of the latest change, as soon as the server answers again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return store.seq()
        except WorkspaceError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def check_untouched(store: PostgresStore) -> None:
    assert eventually(store) == 1
    assert list(store.rids()) == [PLAIN.resource.rid]
    assert stored_document(store, PLAIN.resource.rid) == PLAIN
    assert store.integrity() == []
    assert [change.seq for change in store.write([FULL])] == [2], "the next call connects by itself"
    store.write([], [FULL.resource.rid])


def test_a_connection_that_is_lost_mid_write_keeps_nothing(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminate() -> None:
        with psycopg.connect(postgres.dsn) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 10000)", (writing_backend(postgres),))

    with PostgresStore.create(postgres.place()) as store:
        store.write([PLAIN])
        with pytest.raises(
            WorkspaceError, match="nothing of it was kept, only what the command had written before"
        ) as caught:
            store.write(in_the_middle(monkeypatch, terminate), [PLAIN.resource.rid])
        assert "do the same again" in caught.value.hint
        check_untouched(store)


def test_connections_that_were_lost_while_idle_are_replaced_unnoticed(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    with PostgresStore.create(postgres.place()) as store:
        store.write([PLAIN])
        for use in (
            store.seq,
            lambda: store.document(PLAIN.resource.rid),
            lambda: store.put_vectors("m", vectors_of(PLAIN, b"1")),
        ):
            with psycopg.connect(postgres.dsn) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                    " WHERE application_name = 'findling' AND pid <> pg_backend_pid()"
                )
            use()
        assert store.models() == {"m": 3}
    assert not caplog.records, "no log tells of what was mended"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_server_that_crashes_mid_write_keeps_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = PostgresServer()
    try:
        store = PostgresStore.create(server.place())
        store.write([PLAIN])
        # One killed process makes the server end all others and recover.
        for happens in (lambda: os.kill(writing_backend(server), signal.SIGKILL), server.kill):
            with pytest.raises(
                WorkspaceError, match="nothing of it was kept, only what the command had written before"
            ):
                store.write(in_the_middle(monkeypatch, happens))
            if happens == server.kill:
                with pytest.raises(WorkspaceError, match="does not answer") as caught:
                    store.seq()
                assert "try again" in caught.value.hint
                server.restart()
                assert eventually(store) == 3
                assert list(store.rids()) == [PLAIN.resource.rid]
                assert store.integrity() == []
            else:
                check_untouched(store)
        store.close()
    finally:
        server.close()
