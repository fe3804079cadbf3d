"""News of a workspace: a writer tells the processes that listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from findling.stores.postgres.server.connections import PostgresConnections, connect
from findling.stores.postgres.server.errors import PostgresErrors

if TYPE_CHECKING:
    from findling.stores.postgres.server.places import PostgresPlace


def tell_others(connections: PostgresConnections) -> None:
    """Wake the processes that wait for news of a workspace, after something was written."""
    connections.rows("SELECT pg_notify(%s, '')", (_channel(connections.ws),))


@contextmanager
def listening(place: PostgresPlace, ws: int) -> Iterator[Callable[[float], object]]:
    """A function that waits for the next write, for so many seconds; it returns whether there was one.

    Raises WorkspaceError when the server is away.
    """
    errors = PostgresErrors(place)
    with closing(connect(place)) as connection:

        def wait(timeout_s: float) -> bool:
            with errors:
                return bool([*connection.notifies(timeout=timeout_s, stop_after=1)])

        with errors:
            connection.execute(f"LISTEN {_channel(ws)}".encode())
        yield wait


def _channel(ws: int) -> str:
    return f"findling_{ws:d}"
