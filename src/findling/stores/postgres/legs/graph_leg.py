"""The graph leg in PostgreSQL: the columns of a graph in parts, fetched once for each change and kept in memory.

Rows of things and chunks with an index both ways take 13 times the space: 25 MB for 50,000 chunks. The columns are
those of a graph in a file, and so are the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from zlib import crc32

from findling.domain.errors import CorruptError
from findling.stores.graph.graph_file import COLUMNS
from findling.stores.graph.graph_leg import NO_COLUMNS, EditedGraph
from findling.stores.postgres.legs.leg_states import ServerLegState, begin_state, forget_state, read_state, write_state
from findling.stores.postgres.server.parts_cache import PARTS

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

__all__ = ["PostgresGraph", "damaged_graph", "discard_graph_leg", "has_graph_leg"]

_LEG = "graph"

_PART_BYTES = 1 << 20
"""Bytes of a part: a commit replaces those that differ, a reader fetches those that it does not know."""


class _FetchedColumns(Mapping[str, Any]):
    """Columns that are fetched when somebody first asks for one, all of them in one state."""

    def __init__(self, fetch: Callable[[], Mapping[str, Any]]) -> None:
        self._fetch = fetch
        self._columns: Mapping[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        if self._columns is None:
            self._columns = self._fetch()
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COLUMNS)

    def __len__(self) -> int:
        return len(COLUMNS)


class PostgresGraph(EditedGraph):
    """Implements `GraphLeg` in one workspace. Writing needs its write lock.

    A reader has the state of its first question for as long as it likes.
    """

    def __init__(self, connections: PostgresConnections, *, owner: str) -> None:
        """Open the leg, an empty one where there is none of this owner."""
        super().__init__(NO_COLUMNS)
        self._connections, self._owner = connections, owner
        self._state = self._read_state()
        self._columns = _FetchedColumns(self._fetched)
        self._is_cleared = False

    def seq(self) -> int:
        """The number of the latest change that is durably absorbed."""
        return self._state.seq if self._state is not None else 0

    def is_current(self) -> bool:
        """Whether nobody has committed since it was opened."""
        return self._state is not None and self._state == self._read_state()

    def commit(self, seq: int) -> None:
        """Replace the columns by those with everything applied so far, in one transaction with the number reached."""
        connections = self._connections
        with connections.writing() as connection, connections.errors:
            state = begin_state(connection, connections.ws, _LEG)
            is_new = self._is_cleared or state.owner != self._owner
            columns = None if is_new else _columns(connection, connections.place.shown, connections.ws)
            _write(connection, connections.ws, self._edited(columns))
            state = ServerLegState(self._owner, seq, state.generation + 1, state.next_segment)
            write_state(connection, connections.ws, _LEG, state)
        self._restart(state)

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self._restart(None)
        self._is_cleared = True

    def close(self) -> None:
        """Forget what was not committed; a question that another thread asks is still answered."""
        self._forget()
        self._is_cleared = False

    def _restart(self, state: ServerLegState | None) -> None:
        self._forget()
        self._is_cleared, self._state = False, state
        self._columns = _FetchedColumns(self._fetched)

    def _read_state(self) -> ServerLegState | None:
        state = read_state(self._connections, _LEG)
        return state if state is not None and state.owner == self._owner else None

    def _fetched(self) -> Mapping[str, Any]:
        """The columns of the last commit, which is that of the leg from now on."""
        from findling.stores.graph.graph_arrays import columns_of, rows_of

        if self._state is not None:
            with self._connections.reading() as connection:
                state = begin_state(connection, self._connections.ws, _LEG)
                self._state = state if state.owner == self._owner else None
                if self._state is not None:
                    return _columns(connection, self._connections.place.shown, self._connections.ws)
        return columns_of(rows_of(None, [], ()))


def _columns(connection: Connection, place: str, ws: int) -> Mapping[str, Any]:
    """All columns; parts that this process knows come from its memory. Raises CorruptError."""
    cursor = connection.cursor(binary=True)
    listed = cursor.execute(
        "SELECT name, part, code::text, sum FROM findling.graph_parts WHERE ws = %s ORDER BY name, part", (ws,)
    ).fetchall()
    known = {(name, part): PARTS.get((place, ws, _LEG, name, part, sum_)) for name, part, _, sum_ in listed}
    lacking = [(name, part, sum_) for name, part, _, sum_ in listed if known[name, part] is None]
    if lacking:
        found = cursor.execute(
            "SELECT name, part, data FROM findling.graph_parts WHERE ws = %s"
            " AND (name, part) IN (SELECT * FROM unnest(%s::text[], %s::integer[]))",
            (ws, [name for name, _, _ in lacking], [part for _, part, _ in lacking]),
        )
        sums = {(name, part): sum_ for name, part, sum_ in lacking}
        for name, part, data in found:
            if crc32(data) != sums[name, part]:
                raise _damaged(name)
            known[name, part] = data
            PARTS.put((place, ws, _LEG, name, part, sums[name, part]), data, len(data))
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        parts = [one[1] for one in listed if one[0] == name]
        if parts != [*range(len(parts))]:
            raise _damaged(name)
        data = [known[name, part] for part in parts]
        code: Any = next((one[2] for one in listed if one[0] == name), "B")
        try:
            columns[name] = memoryview(data[0] if len(data) == 1 else b"".join(data)).cast(code)
        except (TypeError, ValueError) as error:
            raise _damaged(name) from error
    return columns


def _write(connection: Connection, ws: int, columns: Mapping[str, tuple[str, bytes]]) -> None:
    """Replace the parts that differ."""
    parts = {
        (name, place // _PART_BYTES): (code, data[place : place + _PART_BYTES])
        for name, (code, data) in columns.items()
        for place in range(0, len(data) or 1, _PART_BYTES)
    }
    listed = connection.execute("SELECT name, part, code::text, sum FROM findling.graph_parts WHERE ws = %s", (ws,))
    before = {(name, part): (code, sum_) for name, part, code, sum_ in listed}
    after = {key: (code, crc32(data)) for key, (code, data) in parts.items()}
    gone = [key for key, known in before.items() if after.get(key) != known]
    connection.execute(
        "DELETE FROM findling.graph_parts WHERE ws = %s"
        " AND (name, part) IN (SELECT * FROM unnest(%s::text[], %s::integer[]))",
        (ws, [name for name, _ in gone], [part for _, part in gone]),
    )
    for key, (code, sum_) in after.items():
        if before.get(key) != (code, sum_):
            connection.execute(
                "INSERT INTO findling.graph_parts (ws, name, part, code, sum, data) VALUES (%s, %s, %s, %s, %s, %b)",
                (ws, *key, code, sum_, parts[key][1]),
            )


def has_graph_leg(connections: PostgresConnections) -> bool:
    """Whether there is a graph leg, of whatever store or version."""
    return read_state(connections, _LEG) is not None


def discard_graph_leg(connections: PostgresConnections) -> None:
    """Delete the graph leg. The caller holds the write lock."""
    with connections.writing() as connection, connections.errors:
        connection.execute("DELETE FROM findling.graph_parts WHERE ws = %s", (connections.ws,))
        forget_state(connection, connections.ws, _LEG)


def damaged_graph(connections: PostgresConnections) -> list[str]:
    """The columns that are not what was written; every byte is read."""
    rows = connections.rows(
        "SELECT name, sum, data FROM findling.graph_parts WHERE ws = %s ORDER BY name, part", (connections.ws,)
    )
    return sorted({name for name, sum_, data in rows if crc32(data) != sum_})


def _damaged(name: str) -> CorruptError:
    return CorruptError(f"column {name} of the graph leg is not what was written", hint="findling doctor --repair")
