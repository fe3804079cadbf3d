"""An import of rows that is killed loses nothing, and the next one continues; wide rows and a pooler between."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg
import pytest

from findling.domain.errors import FindlingError
from findling.sources.databases.postgres_rows import RowColumns, opened_table
from findling.stores.sqlite.store import SqliteStore
from tests.counts import tries
from tests.poolers import pooled, why_no_pooler
from tests.postgres_servers import PostgresServer

if TYPE_CHECKING:
    from tests.robustness.conftest import Playground

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="signals of POSIX"), pytest.mark.slow]

ROWS = 3_300
"""Five batches; hundreds of rows have the same time."""
KILLS = tries(3, short=2)
SOURCE = "postgres:public.crossings/"


@pytest.fixture(scope="module")
def crossings(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database with many rows."""
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("drop table if exists crossings")
        connection.execute(
            "create table crossings as select n as id, 'The ferry ' || n || ' left harbour ' || n %% 17 as body,"
            " '2026-01-01'::timestamptz + make_interval(days => n / 400) as at from generate_series(1, %s) n",
            [ROWS],
        )
        connection.execute("alter table crossings add primary key (id)")
    yield postgres.dsn


def command(url: str) -> list[str]:
    mapping = ("table=crossings", "text=body", "cursor=at")
    return ["import", "--from-postgres", url, *(part for one in mapping for part in ("--mapping", one)), "--json"]


def kept(playground: Playground) -> tuple[int, str]:
    """The number of rows that are stored, and the cursor."""
    with suppress(FindlingError, OSError, ValueError), SqliteStore.open(playground.store_file, readonly=True) as store:
        found = sum(rid.startswith(SOURCE) for rid in store.rids())
        return found, json.loads(store.get_meta(SOURCE) or "{}").get("cursor", "")
    return 0, ""


def count(url: str, cursor: str) -> int:
    """The number of rows that an import from a cursor on has to read."""
    with psycopg.connect(url) as connection:
        row = connection.execute("select count(*) from crossings where at >= %s", [cursor or "-infinity"]).fetchone()
    assert row is not None
    return int(row[0])


def test_an_import_that_is_killed_again_and_again(playground: Playground, crossings: str) -> None:
    chance = random.Random(5)
    before = 0
    for _ in range(KILLS):
        run = playground.start(*command(crossings))
        while run.poll() is None and kept(playground)[0] <= before:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.05))
        run.kill()
        run.communicate()
        before, cursor = kept(playground)
        behind = count(crossings, cursor)
        assert before >= ROWS - behind, "no row before the cursor is missing"
    outcome = playground.run(*command(crossings))
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["read"] == behind, "it continued"
    assert kept(playground)[0] == ROWS
    playground.assert_sound()


@pytest.mark.skipif(bool(why_no_pooler()), reason=why_no_pooler())
def test_a_pooler_in_transaction_mode(playground: Playground, crossings: str, postgres: PostgresServer) -> None:
    with pooled(postgres) as url:
        for _ in range(2):
            outcome = playground.call(*command(url))
            assert outcome.code == 0, outcome.err
    assert kept(playground)[0] == ROWS
    assert json.loads(outcome.out)["changed"] == 0


def test_a_server_that_dies_in_between(playground: Playground) -> None:
    server = PostgresServer()
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(
                "create table crossings as select n as id, repeat('harbour ', 400) || n as body, n as at"
                " from generate_series(1, 3000) n"
            )
        words = [*command(server.dsn), "--mapping", "id=id"]
        run = playground.start(*words)
        while run.poll() is None and not kept(playground)[0]:
            time.sleep(0.005)
        server.kill()
        outcome = playground.finish(run)
        assert outcome.code == 2, outcome.out
        assert "run it again" in outcome.err
        assert "imported before the error" in outcome.err
        assert "Traceback" not in outcome.err
        server.restart()
        assert playground.call(*words).code == 0
        assert kept(playground)[0] == 3000
    finally:
        server.close()


def test_wide_rows_come_few_at_a_time(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("drop table if exists wide")
        many = "select n as id, repeat(md5(n::text), 40000) as body from generate_series(1, 60) n"
        connection.execute(f"create table wide as {many}")
    with opened_table(postgres.dsn, "wide", RowColumns(("body",), ("id",)), longest=1_000_000) as table:
        batches = [[len(row.texts[0]) for row in rows] for rows in table.rows()]
    assert sum(map(len, batches)) == 60
    assert {size for batch in batches for size in batch} == {1_000_000}
    assert max(map(len, batches[1:])) <= 4
