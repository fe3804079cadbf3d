"""The set-up of tests for legs in PostgreSQL: a workspace of its own, and connections that are closed after it.

They work as a role without any privilege but the database that it owns: policies do not bind a superuser.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.migrations import create_workspace
from findling.stores.postgres.server.places import parse_place
from tests.postgres_servers import PostgresServer

__all__ = ["opened_workspace", "ordinary_place"]


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
def opened_workspace(url: str) -> Iterator[PostgresConnections]:
    """The connections of a new workspace."""
    place = parse_place(url)
    create_workspace(place)
    connections = PostgresConnections(place)
    try:
        yield connections
    finally:
        connections.close()
