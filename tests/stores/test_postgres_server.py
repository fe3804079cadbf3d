"""The server that tests run on: it has what findling asks of one, and comes back after a crash."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres_servers import PostgresServer


def test_a_server_has_the_extensions(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.dsn) as connection:
        assert connection.info.server_version >= 150000
        rows = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
    assert {("vector",), ("pg_trgm",)} <= set(rows)


def test_a_killed_server_keeps_what_was_committed(postgres: PostgresServer) -> None:
    server = PostgresServer()
    try:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        held = psycopg.connect(server.dsn)
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            held.execute("SELECT 1")
        server.restart()
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(7,)]
        with psycopg.connect(postgres.dsn) as connection:
            assert connection.execute("SELECT to_regclass('kept')").fetchone() == (None,), "servers share no data"
    finally:
        server.close()
