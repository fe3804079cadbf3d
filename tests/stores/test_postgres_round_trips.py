"""Statements that read take one round trip, keep their plans, and end with a lost connection as others do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from findling.domain.errors import StoreDamagedError
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.faces.cli.main import run
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspaces import create_workspace
from findling.stores.postgres import backend
from findling.stores.postgres.server.arrays import bigints, texts
from findling.stores.postgres.server.connections import PostgresConnections, connect
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.server.round_trips import ServerConnection
from tests.meta.test_limits import LIMITS
from tests.postgres_servers import PostgresServer
from tests.stores.postgres_legs import noted_statements, opened_workspace, ordinary_place

PLANS = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'findling_' || chr(37)"


@pytest.fixture
def connections(postgres: PostgresServer) -> Iterator[PostgresConnections]:
    with opened_workspace(ordinary_place(postgres)) as opened:
        yield opened


@pytest.fixture
def connection(postgres: PostgresServer) -> Iterator[ServerConnection]:
    with connect(parse_place(postgres.place())) as opened:
        yield opened


def test_values_arrive_as_they_were_sent(connection: ServerConnection) -> None:
    large = b"\x00\xff" * 1_000_000
    asked = "SELECT %s::bigint, %s::text, %s::bytea, %s::bigint[], %b::text[], NULL"
    for _ in range(6):
        found = connection.rows(asked, (1 << 40, "ä日", large, bigints([1, None, 3]), texts(["a", "ö"])))
        assert found == [(1 << 40, "ä日", large, [1, None, 3], ["a", "ö"], None)]
    assert connection.rows("SELECT number FROM generate_series(1, 3) number", ()) == [(1,), (2,), (3,)]
    assert connection.rows("SELECT FROM generate_series(1, 2)", ()) == [(), ()]


def test_the_setting_ends_with_its_statement(connection: ServerConnection) -> None:
    asked = "SELECT current_setting('findling.ws', true)"
    assert connection.rows(asked, (), 7) == [("7",)]
    assert connection.rows(asked, ()) == [("0",)]
    assert connection.execute(asked).fetchone() == ("",)


def test_a_statement_that_comes_again_is_planned_once(connection: ServerConnection) -> None:
    for number in range(9):
        assert connection.rows("SELECT %s + 1", (number,), 1) == [(number + 1,)]
    assert connection.rows(PLANS, ()) == [(2,)]
    for shape in range(300):
        for _ in range(5):
            connection.rows(f"SELECT {shape}", ())
    assert connection.rows(PLANS, ()) == [(100,)]


def test_nothing_is_planned_behind_a_pooler(postgres: PostgresServer) -> None:
    place = postgres.place().replace("#", "?pooler=transaction#")
    with connect(parse_place(place)) as connection:
        for number in range(9):
            assert connection.rows("SELECT %s + 1", (number,), 1) == [(number + 1,)]
        assert connection.rows(PLANS, ()) == [(0,)]


def test_plans_outlive_a_state_that_was_read(connections: PostgresConnections) -> None:
    asked = "SELECT name FROM findling.workspaces WHERE ws = %s"
    for _ in range(9):
        connections.rows(asked, (connections.ws,))
    ((plans,),) = connections.rows(PLANS)
    assert plans
    with connections.reading() as connection:
        for _ in range(9):
            connection.execute(asked, (connections.ws,))
    assert connections.rows(PLANS) == [(plans,)]


def test_a_plan_that_is_gone_is_made_again(connection: ServerConnection) -> None:
    for _ in range(9):
        connection.rows("SELECT 1 + %s", (1,), 1)
    connection.execute("DEALLOCATE ALL")
    assert connection.rows("SELECT 1 + %s", (1,), 1) == [(2,)]


def test_an_error_leaves_the_connection_idle(connection: ServerConnection) -> None:
    for _ in range(9):
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.rows("SELECT 1 / %s", (0,), 1)
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.rows("SELECT * FROM nowhere WHERE number = %s", (0,), 1)
        with pytest.raises(psycopg.DataError):
            connection.rows("SELECT %s", ("a\0b",), 1)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.rows("SELECT %s", ("a",), 1) == [("a",)]
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_lost_connection_is_told_and_replaced(postgres: PostgresServer, connections: PostgresConnections) -> None:
    asked = "SELECT pg_backend_pid()"
    ((first,),) = connections.rows(asked)
    with psycopg.connect(postgres.dsn, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
        ((second,),) = connections.rows(asked)
        assert second != first
        with connect(connections.place) as held:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (held.info.backend_pid,))
            with pytest.raises(psycopg.OperationalError):
                held.rows(asked, ())
            assert held.closed
        with connect(connections.place) as held:
            with pytest.raises(psycopg.OperationalError):
                held.rows("SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)", (), 1)
            assert held.closed
    with pytest.raises(StoreDamagedError):
        connections.rows("SELECT * FROM findling.nowhere")


@pytest.fixture
def asked() -> Iterator[list[object]]:
    """The statements that go to the server, by whichever way."""
    with noted_statements() as asked:
        yield asked


@pytest.mark.parametrize("who", ["owner", "limited"])
def test_a_search_asks_no_more_statements_than_its_limit(
    postgres: PostgresServer,
    tmp_path: Path,
    asked: list[object],
    monkeypatch: pytest.MonkeyPatch,
    who: str,
) -> None:
    # The second after which a workspace is looked up again may be over in every search of a busy machine.
    monkeypatch.setattr(backend, "_TRUSTED_S", math.inf)
    create_workspace("counted", home=tmp_path, place=ordinary_place(postgres))
    own = {"store.home": str(tmp_path), "semantic.model": "auto"}
    settings = load_settings(tmp_path).override(own, "test")
    with open_engine(".", workspace="counted", settings=settings) as engine:
        engine.add(
            (
                Resource(rid=f"note:{number}", type="note", visibility=(("group:eng",), ("group:hr",))[number % 2]),
                f"Marie Curie wrote about radium and pool {number}.\n\n# More\n\nget_user_name waits.",
            )
            for number in range(30)
        )
        engine.refine()  # else every search of a busy machine embeds and stores what it has time for
        viewer = engine if who == "owner" else engine.as_caller("user:ann", "group:eng")
        counts = dict[str, list[int]]()
        for _ in range(5):
            for query in ("radium waits", "wrote about the pool", "Where did Marie Curie wait?"):
                asked.clear()
                assert viewer.search(SearchRequest(query=query)).hits
                counts.setdefault(query, []).append(len(asked))
    # The first of them build legs.
    assert max(map(min, counts.values())) <= LIMITS["statements"][who], counts


def test_a_command_asks_no_more_statements_than_its_limit(
    postgres: PostgresServer, tmp_path: Path, asked: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_TRUSTED_S", math.inf)
    for name, value in {"HOME": tmp_path, "CONFIG": tmp_path / "none.toml", "SEMANTIC_MODEL": "none"}.items():
        monkeypatch.setenv(f"FINDLING_{name}", str(value))
    monkeypatch.setenv("FINDLING_STORE_URL", ordinary_place(postgres))
    (tmp_path / "tree").mkdir()
    monkeypatch.chdir(tmp_path / "tree")
    for number in range(30):
        Path(f"{number}.md").write_text(f"# Note {number}\n\nThe heron of Delia {number} sleeps in the reed.\n")
    assert run(["index"]) == 0
    ask = ["search", "where does Delia sleep"]
    counts = dict[str, list[int]]()
    for turn in range(4):
        commands = {"remember": ["remember", f"Boat {turn} is green."], "": ask, "shell": ask, "unchanged": ["index"]}
        for name, command in commands.items():
            backend._looked_up.clear()  # as in a process of its own
            asked.clear()
            assert run(command) == 0
            counts.setdefault(name, []).append(len(asked))
    for name in ("shell", "unchanged", "remember"):
        assert min(counts[name]) <= LIMITS["statements"][name], counts
