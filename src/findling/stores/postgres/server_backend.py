"""Legs in the database: a host that searches needs no index of its own."""

from __future__ import annotations

from pathlib import Path

from findling.stores.postgres.backend import PostgresBackend
from findling.stores.postgres.legs.server_legs import ServerLegs

__all__ = ["PostgresServerBackend", "postgres_backend"]


def postgres_backend(url: str, folder: Path, legs: str) -> PostgresBackend:
    """The backend of a place with its legs on this host (`local`), or in the database (`server`)."""
    return (PostgresServerBackend if legs == "server" else PostgresBackend)(url, folder)


class PostgresServerBackend(ServerLegs, PostgresBackend):
    """Implements `Backend` with everything in the database; its `folder` holds the locks of this host."""

    legs = "server"

    def __init__(self, url: str, folder: Path) -> None:
        PostgresBackend.__init__(self, url, folder)
        ServerLegs.__init__(self, lambda: self._connections)
