"""Vectors in PostgreSQL keep their contract, say the same as vectors in files, and survive every kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from findling.domain.backends import VectorTable
from findling.domain.errors import CorruptError, FindlingError
from findling.domain.ports import VectorHits
from findling.stores.postgres.legs import vector_blocks, vector_neighbours, vector_table
from findling.stores.postgres.legs.vector_table import PostgresVectors, discard_vectors, vector_state
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.parts_cache import PartsCache
from findling.stores.postgres.server_backend import PostgresServerBackend
from findling.stores.vectors.vector_matrix import VectorMatrix
from findling.testing.vector_table import VectorTableSuite
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.processes import BoundedProcess
from tests.stores.leg_folders import LegsInFolder
from tests.stores.postgres_legs import opened_workspace, ordinary_place

KILLS = tries(6, short=2)


@pytest.fixture
def connections(postgres: PostgresServer) -> Iterator[PostgresConnections]:
    with opened_workspace(ordinary_place(postgres)) as opened:
        yield opened


class TestPostgresVectors(LegsInFolder, VectorTableSuite):
    neighbours_from = 100_000

    @pytest.fixture(autouse=True)
    def _connect(self, connections: PostgresConnections) -> None:
        self.connections = connections
        self.count = 0

    def make_table(self, dimensions: int) -> VectorTable:
        self.count += 1
        return PostgresVectors(
            self.connections,
            model=f"m{self.count}",
            made_for="s|m",
            dimensions=dimensions,
            neighbours_from=self.neighbours_from,
        )


class TestPostgresVectorsByPgvector(TestPostgresVectors):
    neighbours_from = 0


def opened_table(connections: PostgresConnections, neighbours_from: int = 100_000) -> PostgresVectors:
    return PostgresVectors(connections, model="m", made_for="s|m", dimensions=24, neighbours_from=neighbours_from)


@pytest.mark.parametrize("neighbours_from", [100_000, 150])
@pytest.mark.parametrize("seed", range(tries(3, short=1)))
def test_a_table_says_what_one_in_files_says(
    connections: PostgresConnections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, neighbours_from: int
) -> None:
    for module in (vector_blocks, vector_table):
        monkeypatch.setattr(module, "BLOCK_ROWS", 64)
    chance = np.random.default_rng(seed)
    table = opened_table(connections, neighbours_from)
    matrix = VectorMatrix.open(tmp_path, made_for="s|m", dimensions=24)
    for turn in range(12):
        cids = chance.choice(500, 60, replace=False).tolist()
        numbers = chance.integers(0, 40, 60).tolist()
        rows = chance.standard_normal((60, 24)).astype(np.float16).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        codes = np.rint(rows * 100).astype(np.int8)
        codes[np.arange(60), np.abs(codes).argmax(axis=1)] = 127
        dropped = chance.choice(500, 25).tolist()
        for one in (table, matrix):
            one.add(cids[:30], numbers[:30], rows[:30])
            one.drop(dropped)
            one.add_codes(cids[30:], numbers[30:], [row.tobytes() for row in codes[30:]])
            if turn == 7:
                one.clear()
            one.commit(seq=turn)
        if turn % 3 == 2:
            table = opened_table(connections, neighbours_from)
        assert (table.cids(), len(table), table.state) == (matrix.cids(), len(matrix), matrix.state)
        for _ in range(4):
            query = chance.standard_normal(24).astype(np.float32)
            query /= np.linalg.norm(query)
            allowed = set(chance.choice(40, 15).tolist())
            assert table.count(allowed) == matrix.count(allowed)
            for limit, chosen in ((0, None), (10, None), (10, allowed), (500, allowed), (10, set[int]())):
                options = {"allowed": chosen, "also": cids[:5], "exact": chosen is not None}
                found, expected = (one.search(query, limit, **options) for one in (table, matrix))
                assert_same(found, expected)
    assert (table._header is not None and table._header.has_neighbours) == (neighbours_from == 150)


def assert_same(found: VectorHits, expected: VectorHits) -> None:
    """The same chunks in the same order with the same cosines, to the last bit; sums may be added in another order."""
    assert (found.hits, found.scores, found.rows) == (expected.hits, expected.scores, expected.rows)
    assert (found.mean, found.deviation) == pytest.approx((expected.mean, expected.deviation), abs=1e-6)


def test_the_index_finds_nearly_all_and_every_allowed_row_of_a_few(connections: PostgresConnections) -> None:
    chance = np.random.default_rng(1)
    rows = chance.standard_normal((3_000, 24)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    table = opened_table(connections, 1_000)
    table.add(range(3_000), [cid % 30 for cid in range(3_000)], rows)
    table.commit(seq=1)
    with connections.reading() as connection:
        plan = connection.execute(
            "SELECT count(*) FROM pg_index WHERE indrelid = 'findling.vector_rows'::regclass AND indisvalid"
            " AND pg_get_indexdef(indexrelid) LIKE %s",
            (f"%hnsw%ws = {connections.ws})%",),
        ).fetchone()
    assert plan == (1,)
    found = 0
    for query in rows[:20]:
        best = set(np.argsort(-(rows @ query))[:10].tolist())
        found += len(best & {cid for cid, _ in table.search(query, 10).hits})
        many = set(range(1, 30))
        assert all(cid % 30 for cid, _ in table.search(query, 10, allowed=many).hits)
        assert len(table.search(query, 10, allowed=many).hits) == 10
        mean = table.search(query, 10).mean
        assert mean == pytest.approx(float((rows @ query).mean()), abs=1e-3)
    assert found >= 190


def test_a_process_fetches_a_block_once(connections: PostgresConnections, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened_table(connections)
    table.add([1, 2], [1, 1], np.eye(2, 24, dtype=np.float32))
    table.commit(seq=1)
    assert table.search(np.eye(1, 24, dtype=np.float32)[0], 1).hits == [(1, 1.0)]
    with connections.writing() as connection:
        connection.execute("UPDATE findling.vector_blocks SET codes = ''")
    assert opened_table(connections).search(np.eye(1, 24, dtype=np.float32)[0], 1).hits == [(1, 1.0)]
    assert table.damaged_parts() == ["block 0"]
    monkeypatch.setattr(vector_blocks, "PARTS", PartsCache(1 << 20))
    with pytest.raises(CorruptError, match="block 0"):
        opened_table(connections).search(np.eye(1, 24, dtype=np.float32)[0], 1)


def test_a_cache_forgets_what_was_not_used_for_longest() -> None:
    cache = PartsCache(10)
    for key in "abc":
        cache.put(key, key, 4)
        cache.get("a")
    assert [cache.get(key) for key in "abc"] == ["a", None, "c"]
    cache.put("large", "l", 99)
    assert (cache.get("large"), cache.get("a")) == ("l", None)


def test_a_table_of_another_store_or_length_starts_from_nothing(connections: PostgresConnections) -> None:
    table = opened_table(connections, 0)
    table.add([1], [1], np.eye(1, 24, dtype=np.float32))
    table.commit(seq=4)
    assert vector_state(connections, "m", "s|m") == {"seq": 4}
    for made_for, size in (("other|m", 24), ("s|m", 16)):
        other = PostgresVectors(connections, model="m", made_for=made_for, dimensions=size, neighbours_from=0)
        assert (len(other), other.cids(), other.state) == (0, set(), {})
    other.add([2], [1], np.eye(1, 16, dtype=np.float32))
    other.commit(seq=1)
    assert other.search(np.eye(1, 16, dtype=np.float32)[0], 5).hits == [(2, 1.0)]
    assert opened_table(connections).state == {}
    discard_vectors(connections)
    assert vector_state(connections, "m", "s|m") == {}
    with connections.reading() as connection:
        rows = connection.execute("SELECT FROM findling.vector_rows WHERE ws = %s", (connections.ws,)).rowcount
    assert rows == 0


def test_without_pgvector_hosts_look_at_every_row(
    connections: PostgresConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connections.reading() as connection:
        assert vector_neighbours.find_pgvector(connection) == "extensions"
    monkeypatch.setattr(vector_neighbours, "_OLDEST", (99, 0))
    with connections.reading() as connection:
        assert vector_neighbours.find_pgvector(connection) is None
    table = opened_table(connections, 0)
    table.add([1], [1], np.eye(1, 24, dtype=np.float32))
    table.commit(seq=1)
    assert table.search(np.eye(1, 24, dtype=np.float32)[0], 5).hits == [(1, 1.0)]


def test_an_extension_that_was_dropped_and_came_back_is_used_again(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as admin:
        admin.execute("CREATE DATABASE without_vectors")
    place = postgres.place().replace("/postgres#", "/without_vectors#")
    query = np.eye(1, 24, dtype=np.float32)[0]
    with opened_workspace(place) as connections, opened_workspace(f"{place}-other") as elsewhere:
        for one in (connections, elsewhere):
            table = opened_table(one, 0)
            table.add([1, 2], [1, 1], np.eye(2, 24, dtype=np.float32))
            table.commit(seq=1)
        for statement in ("DROP EXTENSION vector CASCADE", "CREATE EXTENSION vector"):
            with psycopg.connect(postgres.dsn, dbname="without_vectors", autocommit=True) as admin:
                admin.execute(statement.encode())
            assert opened_table(connections, 0).search(query, 1).hits == [(1, 1.0)]
        table = opened_table(connections, 0)
        table.add([3], [1], query[None])
        table.commit(seq=2)
        for one, count in ((connections, 3), (elsewhere, 2)):
            assert len(opened_table(one, 0).search(query, 5).hits) == count
        assert index_names(connections) == [f"vector_rows_{connections.ws}_1"]
        discard_vectors(elsewhere)
        assert opened_table(elsewhere, 0).search(query, 5).hits == []


def index_names(connections: PostgresConnections) -> list[str]:
    """The indexes of the vectors of a workspace."""
    names = connections.rows(
        "SELECT relname::text FROM pg_class WHERE relkind = 'i' AND relname ~ '^vector_rows_[0-9]'"
    )
    return sorted(name for (name,) in names if name.startswith(f"vector_rows_{connections.ws}_"))


def test_a_walk_that_ends_early_is_no_short_answer(connections: PostgresConnections, postgres: PostgresServer) -> None:
    chance = np.random.default_rng(4)
    rows = chance.standard_normal((4_000, 24)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = rows[0]
    near = np.argsort(-(rows @ query))
    numbers = np.full(4_000, 1)
    numbers[near[:3_700]] = 2
    table = opened_table(connections, 200)
    table.add(range(4_000), numbers.tolist(), rows)
    table.commit(seq=1)
    with psycopg.connect(postgres.dsn, autocommit=True) as admin:
        # So few rows would be sorted, without the index.
        admin.execute("ALTER ROLE keeper SET hnsw.max_scan_tuples = 1; ALTER ROLE keeper SET enable_sort = off")
    try:
        connections._all_gone()
        found = table.search(query, 20, allowed={1}).hits
        assert [cid for cid, _ in found] == near[3_700:3_720].tolist()
    finally:
        with psycopg.connect(postgres.dsn, autocommit=True) as admin:
            admin.execute("ALTER ROLE keeper RESET ALL")
        connections._all_gone()


def test_a_workspace_that_is_dropped_leaves_no_index(postgres: PostgresServer, tmp_path: Path) -> None:
    place = ordinary_place(postgres)
    with opened_workspace(place) as connections:
        table = opened_table(connections, 0)
        table.add([1], [1], np.eye(1, 24, dtype=np.float32))
        table.commit(seq=1)
        assert index_names(connections)
        PostgresServerBackend(place, tmp_path).drop_store()
        assert index_names(connections) == []


def test_a_role_that_may_create_nothing_does_without_an_index(postgres: PostgresServer) -> None:
    admin = postgres.place()
    with opened_workspace(admin) as owner:
        with owner.writing() as connection:
            connection.execute("DROP TABLE IF EXISTS findling.vector_rows")
            connection.execute(
                "DROP ROLE IF EXISTS guest_writer; CREATE ROLE guest_writer LOGIN PASSWORD 'guest';"
                " GRANT USAGE ON SCHEMA findling TO guest_writer;"
                " GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA findling TO guest_writer"
            )
        guest = PostgresConnections(admin.replace("postgres:postgres@", "guest_writer:guest@"))
        try:
            table = opened_table(guest, 0)
            table.add([1], [1], np.eye(1, 24, dtype=np.float32))
            table.commit(seq=1)
            assert table.search(np.eye(1, 24, dtype=np.float32)[0], 5).hits == [(1, 1.0)]
            # The owner has the rows made; the guest keeps them in step, and cannot build an index.
            again = opened_table(owner, 0)
            again.add([2], [1], np.eye(1, 24, dtype=np.float32))
            again.commit(seq=2)
            with owner.writing() as connection:
                connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON findling.vector_rows TO guest_writer")
                connection.execute(f"DROP INDEX findling.vector_rows_{owner.ws}_1")
            table.add([3], [1], np.eye(1, 24, dtype=np.float32))
            table.commit(seq=3)
            assert table.search(np.eye(1, 24, dtype=np.float32)[0], 5).hits == [(1, 1.0), (2, 1.0), (3, 1.0)]
        finally:
            guest.close()
            with owner.writing() as connection:
                connection.execute("DROP OWNED BY guest_writer; DROP ROLE guest_writer")


WRITER = """
import sys
import numpy as np
from findling.stores.postgres.legs.vector_table import PostgresVectors
from findling.stores.postgres.server.connections import PostgresConnections

table = PostgresVectors(
    PostgresConnections(sys.argv[1]), model="m", made_for="s|m", dimensions=24, neighbours_from=int(sys.argv[2])
)
turn = table.state.get("seq", 0)
while True:
    turn += 1
    vectors = np.zeros((400, 24), np.float32)
    vectors[:, 0], vectors[:, 1] = np.cos(turn), np.sin(turn)
    table.add([turn * 400 + n for n in range(400)], [turn] * 400, vectors)
    table.drop(range((turn - 4) * 400, (turn - 3) * 400))
    table.commit(seq=turn)
    print(turn, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("neighbours_from", [100_000, 0])
def test_a_killed_writer_or_server_leaves_the_last_commit(neighbours_from: int) -> None:
    server, moments = PostgresServer(), random.Random(5)
    try:
        place, reached = ordinary_place(server), 0
        with opened_workspace(place) as connections:
            for turn in range(KILLS):
                command = [sys.executable, "-c", WRITER, place, str(neighbours_from)]
                writer = BoundedProcess(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                assert writer.stdout is not None
                reached = max(reached, int(writer.stdout.readline()))
                time.sleep(moments.uniform(0, 0.1))
                if turn % 3 == 1:
                    server.kill()
                    server.restart()
                writer.send_signal(signal.SIGKILL)
                lines = writer.stdout.read().split()
                writer.stdout.close()
                writer.wait()
                reached = max(reached, *(int(line) for line in lines[:-1]), 0)
                last = _checked(connections, neighbours_from)
                assert last >= reached
                reached = last
    finally:
        server.close()


def _checked(connections: PostgresConnections, neighbours_from: int) -> int:
    """The number of the last commit, all rows of which are there."""
    for _ in range(3):  # a connection that a killed server held is replaced by the next call
        try:
            table = opened_table(connections, neighbours_from)
            break
        except FindlingError:
            continue
    last = table.state["seq"]
    turns = range(max(1, last - 3), last + 1)
    assert table.cids() == {turn * 400 + n for turn in turns for n in range(400)}
    query = np.zeros(24, np.float32)
    query[0], query[1] = np.cos(last), np.sin(last)
    answer = table.search(query, 5, also=[turn * 400 for turn in turns])
    assert answer.rows == 400 * len(turns) == len(table)
    assert answer.hits[0][1] == pytest.approx(1, abs=1e-3)
    assert answer.scores == {turn * 400: pytest.approx(np.cos(turn - last), abs=2e-3) for turn in turns}
    assert table.damaged_parts() == []
    return last
