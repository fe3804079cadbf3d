"""News of a workspace: a writer tells the hosts that follow it, which else would look at intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from findling.stores.postgres.server.connections import PostgresConnections, connect
from findling.stores.postgres.server.errors import PostgresErrors

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection
    from findling.stores.postgres.server.places import PostgresPlace

__all__ = ["NewsListener", "tell_others"]

_POLL_S = 1.0
"""Pause between two looks where nobody can be told: behind a pooler in transaction mode."""


def tell_others(connections: PostgresConnections) -> None:
    """Wake the processes that wait for news of a workspace, after something was written."""
    connections.rows("SELECT pg_notify(%s, '')", (_channel(connections.ws),))


class NewsListener:
    """A connection that waits for news of one workspace; for one thread."""

    def __init__(self, place: PostgresPlace, version: Callable[[], Hashable]) -> None:
        self._place, self._version = place, version
        self._connection: Connection | None = None
        self._last = version()

    def wait(self, ws: int, timeout_s: float) -> bool:
        """Wait until something was written, up to `timeout_s`; returns whether anything was. Raises WorkspaceError."""
        deadline = time.monotonic() + timeout_s
        while not (is_new := self._is_new()) and (left := deadline - time.monotonic()) > 0:
            if self._place.is_pooled:
                time.sleep(min(left, _POLL_S))
            else:
                self._listen(ws, left)
        return is_new

    def _is_new(self) -> bool:
        before, self._last = self._last, self._version()
        return before != self._last

    def _listen(self, ws: int, timeout_s: float) -> None:
        with PostgresErrors(self._place):
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._place)
                self._connection.execute(f"LISTEN {_channel(ws)}".encode())
                return  # what was written before is looked at first
            for _ in self._connection.notifies(timeout=timeout_s, stop_after=1):
                pass

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _channel(ws: int) -> str:
    return f"findling_{ws:d}"
