"""The set-up of tests for legs in PostgreSQL: a workspace of its own, and connections that are closed after it.

They work as a role without any privilege but the database that it owns: policies do not bind a superuser.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TypeVar

import psycopg
import pytest

from findling.domain.errors import FindlingError
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.migrations import create_workspace
from findling.stores.postgres.server.places import parse_place
from findling.stores.postgres.server.round_trips import ServerConnection
from tests.postgres_servers import PostgresServer
from tests.processes import BoundedProcess

__all__ = ["connections", "killed_run", "noted_statements", "opened_again", "opened_workspace", "ordinary_place"]

_Leg = TypeVar("_Leg")


def ordinary_place(server: PostgresServer) -> str:
    """The URL of a new workspace in the database of an ordinary role."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_roles WHERE rolname = 'keeper'").rowcount == 0:
            connection.execute("CREATE ROLE keeper LOGIN PASSWORD 'keeper'")
            connection.execute("CREATE DATABASE legs OWNER keeper")
            # As services have it: added by the administrator, in a schema outside of the search path.
            with psycopg.connect(server.dsn, dbname="legs") as other:
                other.execute("CREATE SCHEMA extensions; GRANT USAGE ON SCHEMA extensions TO keeper")
                other.execute("CREATE EXTENSION vector SCHEMA extensions")
    return server.place().replace("postgres:postgres@", "keeper:keeper@").replace("/postgres#", "/legs#")


@contextmanager
def noted_statements() -> Iterator[list[object]]:
    """The statements that go to a server, by whichever way, in a list that grows."""
    asked: list[object] = []

    def noted(method: Callable[..., object]) -> Callable[..., object]:
        def ask(self: object, statement: object, *values: object, **options: object) -> object:
            asked.append(statement)
            return method(self, statement, *values, **options)

        return ask

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ServerConnection, "rows", noted(ServerConnection.rows))
        patched.setattr(psycopg.Cursor, "execute", noted(psycopg.Cursor.execute))
        yield asked


@contextmanager
def opened_workspace(url: str) -> Iterator[PostgresConnections]:
    """The connections of a new workspace."""
    place = parse_place(url)
    create_workspace(place)
    connections = PostgresConnections(place)
    try:
        yield connections
    finally:
        connections.close()


@pytest.fixture
def connections(postgres: PostgresServer) -> Iterator[PostgresConnections]:
    """The connections of a new workspace of an ordinary role."""
    with opened_workspace(ordinary_place(postgres)) as opened:
        yield opened


@contextmanager
def killed_run(server: PostgresServer, command: Sequence[str], turn: int) -> Iterator[IO[str]]:
    """The output of a process, which is killed in the end, the second time of three after the server."""
    run = BoundedProcess(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert run.stdout is not None
    try:
        yield run.stdout
        time.sleep(random.Random(turn).uniform(0, 0.02))
        if turn % 3 == 1:
            server.kill()
            server.restart()
    finally:
        run.send_signal(signal.SIGKILL)
        run.stdout.close()
        run.wait()


def opened_again(open_leg: Callable[[], _Leg]) -> _Leg:
    """A leg after a kill: a connection that a killed server held is replaced by the next call."""
    for _ in range(2):
        try:
            return open_leg()
        except FindlingError:
            continue
    return open_leg()
