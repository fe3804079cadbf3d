"""Migrations in PostgreSQL: forward only, once, by one at a time, and only in a schema that is ours."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from subprocess import PIPE

import psycopg
import pytest

from findling.domain.errors import FormatError, InvalidValueError, NotIndexedError, ReadOnlyError, StoreDamagedError
from findling.stores.postgres.server.connections import connect
from findling.stores.postgres.server.formats import SqlMigration, load_migrations
from findling.stores.postgres.server.migrations import check_format, create_workspace, migrate
from findling.stores.postgres.server.places import PostgresPlace, parse_place
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import FULL, PLAIN
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, BoundedProcess

STEPS = load_migrations()
FORMAT = STEPS[-1].number
NEXT = SqlMigration(FORMAT + 1, "next.sql", FORMAT + 1, False, "CREATE TABLE findling.next (ws integer); SELECT 1")


@pytest.fixture
def place(postgres: PostgresServer) -> Iterator[PostgresPlace]:
    """A workspace in a database of its own."""
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS migrated WITH (FORCE)")
        connection.execute("CREATE DATABASE migrated")
        yield parse_place(postgres.place().replace("/postgres#", "/migrated#"))
        connection.execute("DROP DATABASE migrated WITH (FORCE)")


def format_of(place: PostgresPlace, *, readonly: bool = True, migrations: list[SqlMigration] | None = None) -> int:
    connection = connect(place)
    try:
        return check_format(connection, place, readonly=readonly, migrations=migrations)
    finally:
        connection.close()


def execute(place: PostgresPlace, statement: str) -> list[tuple[object, ...]]:
    connection = connect(place)
    try:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def test_numbers_of_migrations_begin_at_one_and_have_no_gaps() -> None:
    assert [step.number for step in STEPS] == list(range(1, FORMAT + 1))


def test_an_empty_database_comes_to_the_format(place: PostgresPlace) -> None:
    with pytest.raises(NotIndexedError):
        format_of(place)
    create_workspace(place)
    create_workspace(place)
    assert format_of(place) == FORMAT
    assert execute(place, "SELECT number FROM findling.migrations ORDER BY 1") == [(step.number,) for step in STEPS]
    assert execute(place, "SELECT name FROM findling.workspaces") == [(place.workspace,)]


@pytest.mark.parametrize("before", range(1, FORMAT + 1))
def test_every_format_is_brought_forward(place: PostgresPlace, before: int) -> None:
    migrate(place, STEPS[:before])
    execute(place, "INSERT INTO findling.workspaces (name, feature, seq) VALUES ('old', 1, 7)")
    migrate(place, [*STEPS, NEXT])
    assert format_of(place, migrations=[*STEPS, NEXT]) == FORMAT + 1
    assert execute(place, "SELECT name, seq FROM findling.workspaces") == [("old", 7)]
    assert execute(place, "SELECT * FROM findling.next") == []


def test_a_step_that_fails_leaves_the_database_as_it_was(place: PostgresPlace) -> None:
    migrate(place)
    broken = NEXT._replace(number=FORMAT + 2, sql="CREATE TABLE findling.half (ws integer); SELECT nonsense")
    with pytest.raises(StoreDamagedError, match="nonsense"):
        migrate(place, [*STEPS, NEXT, broken])
    assert format_of(place) == FORMAT
    assert execute(place, "SELECT to_regclass('findling.next'), to_regclass('findling.half')") == [(None, None)]


def test_a_newer_format_is_refused(place: PostgresPlace) -> None:
    migrate(place, [*STEPS, NEXT])
    for readonly in (True, False):
        with pytest.raises(FormatError, match=f"format {FORMAT + 1}") as caught:
            format_of(place, readonly=readonly)
        assert "upgrade" in caught.value.hint
    with pytest.raises(FormatError):
        migrate(place)


def test_a_newer_format_that_we_can_read_is_not_written(place: PostgresPlace) -> None:
    migrate(place, [*STEPS, NEXT._replace(min_reader=1)])
    assert format_of(place) == FORMAT + 1
    with pytest.raises(FormatError):
        format_of(place, readonly=False)


def test_an_open_store_writes_nothing_into_a_newer_format(place: PostgresPlace) -> None:
    with PostgresStore.create(place) as store:
        store.write([PLAIN])
        migrate(place, [*STEPS, NEXT._replace(min_reader=1)])
        for write in (
            lambda: store.write([FULL]),
            lambda: store.set_meta("a", "b"),
            lambda: store.put_vectors("m", {b"a": b"1"}),
        ):
            with pytest.raises(FormatError, match=f"format {FORMAT + 1}.*up to {FORMAT}") as caught:
                write()
            assert "upgrade" in caught.value.hint
        assert (store.seq(), store.document(PLAIN.resource.rid)) == (1, PLAIN)


def test_a_newer_format_that_we_cannot_read_is_noticed_while_a_workspace_is_in_use(place: PostgresPlace) -> None:
    with PostgresStore.create(place) as store:
        migrate(place, [*STEPS, NEXT])
        with pytest.raises(FormatError, match=f"up to {FORMAT}"):
            store.connections.find_workspace()


def test_a_migration_waits_for_a_writer_of_the_older_format(place: PostgresPlace) -> None:
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'findling.workspaces'::regclass"
    with PostgresStore.create(place) as store:
        with store.connections.writing() as connection:
            connection.execute("UPDATE findling.workspaces SET seq = 5")
            migrating = threading.Thread(target=migrate, args=(place, [*STEPS, NEXT]))
            migrating.start()
            deadline = time.monotonic() + PATIENCE_S
            while execute(place, waits) == [(0,)]:
                assert migrating.is_alive() and time.monotonic() < deadline, "it did not wait"
                time.sleep(0.01)
        migrating.join()
        with pytest.raises(FormatError):
            store.write([PLAIN])
    assert execute(place, "SELECT seq FROM findling.workspaces") == [(5,)]


def test_readers_do_without_steps_that_are_optional_and_only_those(place: PostgresPlace) -> None:
    migrate(place)
    assert format_of(place, migrations=[*STEPS, NEXT._replace(is_optional=True)]) == FORMAT
    for readonly, is_optional in ((True, False), (False, True)):
        with pytest.raises(ReadOnlyError, match=f"format {FORMAT}"):
            format_of(place, readonly=readonly, migrations=[*STEPS, NEXT._replace(is_optional=is_optional)])


@pytest.mark.parametrize("theirs", ["workspaces (name text)", "migrations (id text)"])
def test_a_schema_of_another_program_is_left_alone(place: PostgresPlace, theirs: str) -> None:
    execute(place, f"CREATE SCHEMA findling; CREATE TABLE findling.{theirs}")
    with pytest.raises(StoreDamagedError, match="another program") as caught:
        create_workspace(place)
    assert "another database" in caught.value.hint
    assert execute(place, "SELECT count(*) FROM pg_class WHERE relnamespace = 'findling'::regnamespace") == [(1,)]


def test_a_database_that_lacks_characters_is_refused(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS latin")
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(InvalidValueError, match="LATIN1") as caught:
        migrate(parse_place(postgres.place().replace("/postgres#", "/latin#")))
    assert "UTF8" in caught.value.hint


def test_a_schema_that_was_made_for_us_is_used(place: PostgresPlace) -> None:
    execute(place, "CREATE SCHEMA findling")
    migrate(place)
    assert format_of(place) == FORMAT


def test_a_search_path_without_a_schema_is_no_matter(place: PostgresPlace) -> None:
    execute(place, "ALTER DATABASE migrated SET search_path = nowhere")
    create_workspace(place)
    assert format_of(place) == FORMAT


def test_processes_that_migrate_at_once_wait_for_each_other(postgres: PostgresServer, place: PostgresPlace) -> None:
    code = (
        "import sys; from findling.stores.postgres.server.migrations import create_workspace;"
        " from findling.stores.postgres.server.places import parse_place;"
        " print(flush=True); sys.stdin.readline(); create_workspace(parse_place(sys.argv[1]))"
    )
    url = f"{place.dsn}#{place.workspace}"
    processes = [BoundedProcess([sys.executable, "-c", code, url], stdin=PIPE, stdout=PIPE) for _ in "1234"]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        process.communicate("\n")
    assert [process.returncode for process in processes] == [0] * len(processes)
    assert execute(place, "SELECT count(*) FROM findling.workspaces") == [(1,)]
    assert execute(place, "SELECT count(*) FROM findling.migrations") == [(len(STEPS),)]
