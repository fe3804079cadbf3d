"""Places in PostgreSQL: what a URL means, and that no secret of it is ever shown."""

from __future__ import annotations

import os
import shutil
import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from findling.domain.errors import (
    DiskFullError,
    InvalidValueError,
    NotIndexedError,
    StoreDamagedError,
    UnreachableError,
    WorkspaceError,
)
from findling.domain.resources import Document
from findling.stores.postgres.checks import examine_server
from findling.stores.postgres.server.connections import PostgresConnections, connect
from findling.stores.postgres.server.errors import PostgresErrors
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import line_document
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, in_time, run_process

SECRET = "s3cr3t-passw0rd"


def test_a_url_names_database_and_workspace() -> None:
    place = parse_place(f"postgresql://ann:{SECRET}@db.example:5433/team?sslmode=verify-full#notes%20%C3%A4")
    assert place.workspace == "notes ä"
    assert place.shown == "postgresql://db.example:5433/team#notes ä"
    assert place.dsn == f"postgresql://ann:{SECRET}@db.example:5433/team?sslmode=verify-full"
    assert not place.is_pooled
    assert SECRET not in repr(place)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("?pooler=transaction", ""),
        ("?pooler=transaction&sslmode=require", "?sslmode=require"),
        ("?sslmode=require&pooler=transaction", "?sslmode=require"),
    ],
)
def test_a_pooler_is_said_in_the_url(query: str, left: str) -> None:
    place = parse_place(f"postgresql://host/team{query}#notes")
    assert (place.is_pooled, place.dsn) == (True, f"postgresql://host/team{left}")


@pytest.mark.parametrize(
    ("url", "named"),
    [
        (f"postgresql://ann:{SECRET}@host/team?ssl_mode=require#notes", 'parameter: "ssl_mode"'),
        (f"postgresql://ann:{SECRET}@host/team?pooler=session#notes", "pooler=session"),
        (f"postgresql://ann:{SECRET}@host/team", "no workspace"),
        (f"postgresql://ann:{SECRET}@host/team#", "no workspace"),
        (f"postgresql://ann:{SECRET}@host/team#a%00b", "no workspace"),
        (f"postgresql://ann:{SECRET}@host/team#%ff", "no workspace"),
        (f"postgresql://ann:{SECRET}%zz@host/team#notes", "another form"),
        (f"postgresql://ann:{SECRET}@[host/team#notes", "another form"),
        (f"postgresql://ann:{SECRET}@[::1]x/team#notes", "another form"),
        (f"postgresql://ann:a/{SECRET}@host/team#notes", "needs an escape"),
        (f"postgresql://ann:a?{SECRET}@host/team#notes", "needs an escape"),
        (f"postgresql://ann:a#{SECRET}@host/team#notes", "needs an escape"),
        (f"postgresql://ann:a@{SECRET}@host/team#notes", "needs an escape"),
        (f"postgresql://ann@host/team?password=a#{SECRET}#notes", "needs an escape"),
    ],
)
def test_a_wrong_url_is_refused_without_its_secret(url: str, named: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_place(url)
    assert named in caught.value.message
    assert caught.value.hint
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_is_away_is_named_without_secrets() -> None:
    place = parse_place(f"postgresql://ann:{SECRET}@127.0.0.1:9/team?connect_timeout=2#notes")
    connections = PostgresConnections(place)
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9/team#notes does not answer") as caught:
        connections.find_workspace()
    assert "server runs" in caught.value.hint
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + repr(connections)
    connections.close()


def test_a_wrong_password_is_said_and_not_shown(postgres: PostgresServer) -> None:
    connection = connect(parse_place(postgres.place()))
    connection.execute(f"CREATE ROLE refused LOGIN PASSWORD '{SECRET}'")
    connection.close()
    url = postgres.place().replace("postgres:postgres@", f"refused:not-{SECRET}@")
    with pytest.raises(WorkspaceError) as caught:
        connect(parse_place(url))
    assert "password" in caught.value.hint
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_database_that_is_not_there_is_named(postgres: PostgresServer) -> None:
    url = postgres.place().replace("/postgres#", "/nowhere#")
    with pytest.raises(WorkspaceError, match="nowhere") as caught:
        connect(parse_place(url))
    assert "createdb" in caught.value.hint


def test_settings_of_tls_reach_the_library(postgres: PostgresServer) -> None:
    url = postgres.place().replace("/postgres#", "/postgres?sslmode=require#")
    with pytest.raises(WorkspaceError, match="SSL"):
        connect(parse_place(url))
    url = postgres.place().replace("/postgres#", "/postgres?sslmode=require&sslrootcert=system#")
    with pytest.raises(WorkspaceError, match="sslrootcert=system"):
        connect(parse_place(url))


def test_a_workspace_that_nobody_made_is_empty(postgres: PostgresServer) -> None:
    connections = PostgresConnections(postgres.place())
    assert connections.find_workspace() is None
    with pytest.raises(NotIndexedError):
        connections.rows("SELECT 1")
    connections.close()


def test_letters_with_escapes_and_an_at_among_the_options_are_fine() -> None:
    place = parse_place("postgresql://ann%40team:a%2Fb%3F%23@host/team?application_name=ann@desk#notes")
    assert place.shown == "postgresql://host/team#notes"


@pytest.mark.parametrize(
    ("query", "said", "hint"),
    [
        ("?sslmode=require", "SSL", "sslmode"),
        ("?sslmode=banana", 'invalid sslmode value: "banana"', "part of the URL"),
        ("?service=nowhere", 'service "nowhere"', "part of the URL"),
    ],
)
def test_a_wrong_option_is_named_with_the_next_step(postgres: PostgresServer, query: str, said: str, hint: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        connect(parse_place(postgres.place().replace("#", f"{query}#")))
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_server_without_a_free_connection_says_so(postgres: PostgresServer) -> None:
    place = parse_place(postgres.place())
    with closing(connect(place)) as owner:
        owner.execute("CREATE ROLE crowd LOGIN PASSWORD 'crowd' CONNECTION LIMIT 1")
        crowd = parse_place(postgres.place().replace("postgres:postgres@", "crowd:crowd@"))
        with closing(connect(crowd)), pytest.raises(WorkspaceError, match="takes no more connections") as caught:
            connect(crowd)
        assert "max_connections" in caught.value.hint
        owner.execute("DROP ROLE crowd")


def test_a_schema_of_another_program_is_called_so(postgres: PostgresServer) -> None:
    with closing(connect(parse_place(postgres.place()))) as owner:
        owner.execute("CREATE DATABASE taken")
        place = parse_place(postgres.place().replace("/postgres#", "/taken#"))
        with closing(connect(place)) as connection:
            connection.execute("CREATE SCHEMA findling CREATE TABLE workspaces (id integer, name text)")
        connections = PostgresConnections(place)
        with pytest.raises(StoreDamagedError, match="belongs to another program"):
            connections.find_workspace()
        connections.close()
        owner.execute("DROP DATABASE taken WITH (FORCE)")


def test_a_server_that_starts_up_is_no_matter_of_passwords() -> None:
    place = parse_place("postgresql://ann@host/team#notes")
    said = (
        'connection failed: connection to server at "::1", port 5432 failed: FATAL:  the database system is starting up'
    )
    with pytest.raises(WorkspaceError, match="does not answer"), PostgresErrors(place):
        raise psycopg.OperationalError(said)


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_timeout_of_the_role_is_named(postgres: PostgresServer, setting: str) -> None:
    place = postgres.place()

    def ask(seconds: float) -> None:
        hurried = PostgresConnections(place.replace("#", f"?options=-c%20{setting}%3D{seconds * 1000:.0f}#"))
        with pytest.raises(UnreachableError) as caught, hurried.reading() as connection:
            time.sleep(6 * seconds)
            connection.execute("SELECT 1")
        assert "ended the connection" in caught.value.message
        assert setting in caught.value.hint
        assert hurried.row("SELECT 7") == (7,), "the next question has another connection"
        hurried.close()

    with PostgresStore.create(place):
        in_time(ask, 0.05)


def test_a_write_may_wait_for_what_is_written(postgres: PostgresServer) -> None:
    place = postgres.place()

    def write(seconds: float) -> None:
        def documents() -> Iterator[Document]:
            yield line_document("second", ["two"])
            time.sleep(6 * seconds)
            yield line_document("third", ["three"])

        option = f"?options=-c%20idle_in_transaction_session_timeout%3D{seconds * 1000:.0f}#"
        with PostgresStore.open(place.replace("#", option)) as hurried:
            hurried.write(documents())

    with PostgresStore.create(place) as store:
        store.write([line_document("first", ["one"])])
        in_time(write, 0.05)
        assert store.counts()["resources"] == 3


@pytest.mark.parametrize("code", ["53200", "58030", "0A000", "55006", "XX000"])
def test_a_server_in_trouble_is_no_fault_of_findling(code: str) -> None:
    place = parse_place("postgresql://ann@host/team#notes")
    with pytest.raises(WorkspaceError, match=code) as caught, PostgresErrors(place):
        raise psycopg.errors.lookup(code)("it is in trouble")
    assert "log of the server" in caught.value.hint


def test_a_server_that_ends_for_want_of_space_is_no_server_that_is_away() -> None:
    place = parse_place("postgresql://ann@host/team#notes")
    with pytest.raises(DiskFullError, match="has no space left"), PostgresErrors(place):
        raise psycopg.OperationalError('PANIC:  could not write to file "pg_wal/1": No space left on device')


def test_an_error_of_whatever_kind_is_told_in_words() -> None:
    place = parse_place("postgresql://ann@host/team#notes")
    for code in ("P0001", "42804", "25P02"):
        with pytest.raises(WorkspaceError, match="a trigger refuses"), PostgresErrors(place):
            raise psycopg.errors.lookup(code)("a trigger refuses")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_certificates_are_checked_as_the_url_says(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        with psycopg.connect(server.dsn) as connection:
            folder = Path(next(connection.execute("SHOW data_directory"))[0])
        make = "openssl req -new -x509 -days 2 -nodes -subj".split()
        for folder_, name, host in ((folder, "server", "localhost"), (tmp_path, "other", "other")):
            files = ["-keyout", str(folder_ / f"{name}.key"), "-out", str(folder_ / f"{name}.crt")]
            assert run_process([*make, f"/CN={host}", *files]).returncode == 0
        owner = folder.stat()
        for file in folder.glob("server.*"):
            os.chown(file, owner.st_uid, owner.st_gid)
            file.chmod(0o600)
        (folder / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 scram-sha-256\n")
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET ssl = on")
            connection.execute("SELECT pg_reload_conf()")
        place = server.place().replace("@127.0.0.1:", "@localhost:")
        trusted = f"sslrootcert={folder / 'server.crt'}"

        def told(options: str, at: str = place) -> str:
            place = parse_place(at.replace("#", f"?{options}#"))
            return next(iter(examine_server(place, PostgresConnections(place)))).detail

        deadline = time.monotonic() + PATIENCE_S
        while "encrypted" not in told("sslmode=require"):
            assert time.monotonic() < deadline, told("sslmode=require")
            time.sleep(0.02)
        for mode in ("require", "verify-ca", "verify-full"):
            assert told(f"sslmode={mode}&{trusted}").endswith(", encrypted")
        assert "verify failed" in told(f"sslmode=verify-ca&sslrootcert={tmp_path / 'other.crt'}")
        assert "does not match" in told(f"sslmode=verify-full&{trusted}", server.place())
        with pytest.raises(WorkspaceError, match="no encryption") as caught:
            connect(parse_place(place.replace("#", "?sslmode=disable#")))
        assert "sslmode" in caught.value.hint
    finally:
        server.close()


def test_an_encryption_that_the_url_requires_is_named() -> None:
    place = parse_place("postgresql://ann@host/team#notes")
    said = "connection is bad: GSSAPI encryption required but no credential cache"
    with pytest.raises(WorkspaceError, match="GSSAPI encryption required") as caught, PostgresErrors(place):
        raise psycopg.OperationalError(said)
    assert "gssencmode" in caught.value.hint
