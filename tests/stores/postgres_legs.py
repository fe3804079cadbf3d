"""The set-up of tests for legs in PostgreSQL: a workspace of its own, and connections that are closed after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.migrations import create_workspace
from findling.stores.postgres.server.places import parse_place

__all__ = ["opened_workspace"]


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
