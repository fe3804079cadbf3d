"""States of legs in the server: the change that a leg has reached, its store, and its generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

__all__ = ["ServerLegState", "begin_state", "forget_state", "read_state", "write_state"]


class ServerLegState(NamedTuple):
    """The change that a leg has reached. Its generation rises with every commit; no segment has a number twice."""

    owner: str
    seq: int
    generation: int
    next_segment: int


_NO_STATE = ServerLegState("", 0, 0, 0)
_SELECT = "SELECT owner, seq, generation, next_segment FROM findling.leg_states WHERE ws = %s AND leg = %s"


def read_state(connections: PostgresConnections, leg: str) -> ServerLegState | None:
    """The state of a leg of whatever owner; None where there is none."""
    row = connections.row(_SELECT, (connections.ws, leg))
    return ServerLegState(*row) if row and row[0] else None


def begin_state(connection: Connection, ws: int, leg: str) -> ServerLegState:
    """The state that a commit goes on from."""
    row = connection.execute(_SELECT, (ws, leg)).fetchone()
    return ServerLegState(*row) if row else _NO_STATE


def write_state(connection: Connection, ws: int, leg: str, state: ServerLegState) -> None:
    """Replace the state of a leg."""
    connection.execute(
        "INSERT INTO findling.leg_states (ws, leg, owner, seq, generation, next_segment)"
        " VALUES (%s, %s, %s, %s, %s, %s)"
        " ON CONFLICT (ws, leg) DO UPDATE SET owner = excluded.owner, seq = excluded.seq,"
        " generation = excluded.generation, next_segment = excluded.next_segment",
        (ws, leg, *state),
    )


def forget_state(connection: Connection, ws: int, leg: str) -> None:
    """Let a leg count as none; its numbers are not used again."""
    connection.execute(
        "UPDATE findling.leg_states SET owner = '', seq = 0, generation = generation + 1 WHERE ws = %s AND leg = %s",
        (ws, leg),
    )
