"""Vectors of a workspace in PostgreSQL: blocks of rows, which a host that searches keeps in memory.

A search looks at the same codes by the same way as one over files: cosines are the same to the last bit. At 50,000 rows
of 256 values it takes 1 ms; a scan of `halfvec` rows in the server takes 20. Above a bound pgvector's HNSW chooses the
rows, and no host holds them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from findling.core import native
from findling.domain.errors import CorruptError
from findling.stores.postgres.legs.rewriting import worn_out
from findling.stores.postgres.legs.vector_blocks import (
    BLOCK_ROWS,
    ListedBlock,
    VectorBlock,
    columns_of,
    fetch_blocks,
    joined,
    list_blocks,
    mark_rows,
    share,
    sum_of,
)
from findling.stores.postgres.legs.vector_neighbours import NEIGHBOURS_FROM, VectorNeighbours
from findling.stores.vectors.vector_scan import quantise, rest_of, unit_rows
from findling.stores.vectors.vector_view import VectorView

if TYPE_CHECKING:
    from findling.domain.ports import VectorHits
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

__all__ = ["PostgresVectors", "discard_vectors", "vector_state"]

_DROPPED = -1
"""The staged row of a chunk that was dropped."""


class _Header(NamedTuple):
    """A row of `vector_tables`. One of another store or length counts as none, but for its id and its generation."""

    id: int
    generation: int
    next_block: int
    rows: int
    has_neighbours: bool
    state: Mapping[str, int]
    is_ours: bool


class PostgresVectors:
    """Implements `VectorTable` for one model. Writing needs the workspace's write lock.

    A reader sees the commit that was the last when it first looked at the rows, for as long as it likes.
    """

    def __init__(
        self,
        connections: PostgresConnections,
        *,
        model: str,
        made_for: str,
        dimensions: int,
        neighbours_from: int = NEIGHBOURS_FROM,
    ) -> None:
        """Open the table, an empty one where there is none of these vectors. Nothing is fetched but its header."""
        self._connections, self._neighbours_from = connections, neighbours_from
        self._model, self._made_for, self._dimensions = model, made_for, dimensions
        self._damage = connections.leg_errors("vectors")
        self._key = (connections.place.shown, connections.ws, model, made_for)
        self._header: _Header | None = self._read_header()
        self._viewed: VectorView | None = None
        self._staged: list[VectorBlock] = []
        self._latest: dict[int, int] = {}
        """Chunk → its row among the staged ones, which counts from the next commit on."""
        self._is_cleared = False

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"{self._connections.place.shown}, model {self._model}"

    @property
    def state(self) -> Mapping[str, int]:
        """The numbers given to the last commit; none when nothing was committed."""
        return {} if self._header is None else self._header.state

    def __len__(self) -> int:
        return 0 if self._header is None else self._header.rows

    def cids(self) -> set[int]:
        """The chunks that have a row."""
        if self._header is None:
            return set()
        with self._connections.reading() as connection, self._damage:
            living, _ = mark_rows(connection, self._table(self._header))
        return {cid for rows in living.values() for cid in rows.cids[rows.live].tolist()}

    def count(self, allowed: Collection[int]) -> int:
        """The number of rows of resources with these numbers."""
        if self._header is not None and self._header.has_neighbours:
            with self._connections.reading() as connection, self._damage:
                neighbours = self._neighbours(connection, self._header)
                if neighbours is not None and neighbours.is_indexed:
                    return neighbours.count(connection, allowed)
        with self._damage:
            return self._view.count(allowed)

    def search(
        self,
        query: NDArray[np.float32],
        limit: int,
        *,
        allowed: Collection[int] | None = None,
        also: Sequence[int] = (),
        exact: bool = False,
    ) -> VectorHits:
        """The `limit` chunks nearest to a unit vector, as a table in files finds them. Raises CorruptError.

        Above the bound an index chooses, unless the caller may see fewer rows: others must not steer what it finds.
        """
        if self._header is not None and self._header.has_neighbours:
            with self._connections.reading() as connection, self._damage:
                neighbours = self._neighbours(connection, self._header)
                if neighbours is not None and neighbours.is_indexed:
                    passed = len(self) if allowed is None else neighbours.count(connection, allowed)
                    exact = exact or passed <= self._neighbours_from
                    return neighbours.search(connection, query, limit, allowed, also, passed, exact)
        with self._damage:
            return self._view.search(query, limit, allowed, also, exact)

    def add(self, cids: Sequence[int], numbers: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Add unit vectors, or replace those of the same chunks, with the next commit. Raises ValueError."""
        rows = np.asarray(vectors, np.float32)
        if rows.shape != (len(cids), self._dimensions) or len(numbers) != len(cids):
            raise ValueError(f"{len(cids)} chunks and {len(numbers)} numbers with vectors of shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise ValueError("a vector holds a value that is no finite number")
        if len(rows):
            codes, scales = quantise(rows)
            rest = rest_of(rows, codes, scales)
            self._stage(cids, numbers, scales, codes, rest if rest.any() else rest[:0])

    def add_codes(self, cids: Sequence[int], numbers: Sequence[int], codes: Sequence[bytes]) -> None:
        """Add rows of 8-bit numbers, whose directions count and whose largest number is 127; zeros are left out."""
        known = [place for place, row in enumerate(codes) if any(row)]
        data = b"".join([codes[place] for place in known])
        if len(data) != len(known) * self._dimensions:
            raise ValueError(f"{len(known)} rows of codes have {len(data)} numbers")
        if not known:
            return
        if native is None:
            rows, scales = quantise(unit_rows(data, self._dimensions))
        else:
            rows = np.frombuffer(data, np.int8).reshape(len(known), -1)
            scales = np.frombuffer(native.unit_rows(data, self._dimensions)[0], np.float32)
        self._stage([cids[place] for place in known], [numbers[place] for place in known], scales, rows, rows[:0])

    def drop(self, cids: Iterable[int]) -> None:
        """Remove the rows of these chunks, with the next commit; chunks without one are passed over."""
        self._latest.update(dict.fromkeys(cids, _DROPPED))

    def commit(self, **state: int) -> None:
        """Make everything added and dropped so far visible and durable, together with these numbers.

        It is one transaction: when it fails the last commit stands, and it can be repeated.
        """
        with self._connections.writing() as connection, self._connections.errors, self._damage:
            header = self._commit(connection, state)
            neighbours = self._neighbours(connection, header) if header.has_neighbours else None
        self._forget()
        self._header, self._viewed = header, None
        if neighbours is not None:
            neighbours.build_index(self._connections)

    def clear(self) -> None:
        """Forget everything, durably with the next commit."""
        self._forget()
        self._is_cleared = True
        self._header, self._viewed = None, None

    def close(self) -> None:
        """Forget what was not committed; a question that another thread asks is still answered."""
        self._forget()

    def damaged_parts(self) -> list[str]:
        """The blocks that are not what was written; every byte is read."""
        if self._header is None:
            return []
        wrong = []
        with self._connections.reading() as connection, self._damage:
            for listed in list_blocks(connection, self._table(self._header)):
                try:
                    fetch_blocks(connection, None, self._table(self._header), [listed], self._dimensions)
                except CorruptError:
                    wrong.append(f"block {listed.block}")
        return wrong

    @property
    def _view(self) -> VectorView:
        """The rows of the last commit, fetched when somebody first asks."""
        if (view := self._viewed) is None:
            listed: list[ListedBlock] = []
            blocks: dict[int, VectorBlock] = {}
            if self._header is not None:
                with self._connections.reading() as connection, self._damage:
                    self._header = self._read_header(connection)
                    if self._header is not None:
                        table = self._table(self._header)
                        listed = list_blocks(connection, table)
                        blocks = fetch_blocks(connection, self._key, table, listed, self._dimensions)
            columns = columns_of(listed, blocks, self._dimensions)
            share(self._key, listed, blocks, columns)
            self._viewed = view = VectorView(columns)
        return view

    def _neighbours(self, connection: Connection, header: _Header) -> VectorNeighbours | None:
        return VectorNeighbours.of(connection, self._table(header), self._dimensions)

    def _table(self, header: _Header) -> tuple[int, int]:
        return self._connections.ws, header.id

    def _read_header(self, connection: Connection | None = None) -> _Header | None:
        statement, values = _SELECT_HEADER, (self._connections.ws, self._model)
        rows = (
            self._connections.rows(statement, values)
            if connection is None
            else connection.cursor(binary=True).execute(statement, values).fetchall()
        )
        header = next((_header_of(row, self._made_for, self._dimensions) for row in rows), None)
        return header if header is not None and header.is_ours else None

    def _stage(
        self,
        cids: Sequence[int],
        numbers: Sequence[int],
        scales: NDArray[np.float32],
        codes: NDArray[np.int8],
        rest: NDArray[np.int8],
    ) -> None:
        first = sum(len(block.cids) for block in self._staged)
        self._staged.append(
            VectorBlock(np.array(cids, np.int64), np.array(numbers, np.int64), scales.astype(np.float32), codes, rest)
        )
        self._latest.update(zip(cids, range(first, first + len(cids)), strict=True))

    def _forget(self) -> None:
        self._staged, self._latest, self._is_cleared = [], {}, False

    def _commit(self, connection: Connection, state: Mapping[str, int]) -> _Header:
        """Write what is staged. The transaction has locked the row of the workspace, so nobody else writes."""
        header = self._begun(connection)
        table = self._table(header)
        living, dying = mark_rows(connection, table, self._latest)
        added = joined(self._staged, self._dimensions)
        added = added.taken(np.array([row for row in self._latest.values() if row != _DROPPED], np.int64))
        sizes = {block: (len(one.live), len(one.cids)) for block, one in living.items()}
        again = worn_out(sizes, len(added.cids), BLOCK_ROWS)
        fresh = added
        if again:
            listed = [one for one in list_blocks(connection, table) if one.block in again]
            old = fetch_blocks(connection, self._key, table, listed, self._dimensions)
            kept = [rows.taken(living[block].live) for block, rows in sorted(old.items())]
            fresh = joined([*kept, added], self._dimensions)
            connection.execute(
                "DELETE FROM findling.vector_blocks WHERE ws = %s AND id = %s AND block = ANY(%s)",
                (*table, sorted(again)),
            )
        for block, dead in dying.items():
            if block not in again:
                connection.execute(
                    "UPDATE findling.vector_blocks SET dead = %s WHERE ws = %s AND id = %s AND block = %s",
                    (dead.astype("<u2").tobytes(), *table, block),
                )
        block = header.next_block
        for start in range(0, len(fresh.cids), BLOCK_ROWS):
            packed = fresh.taken(slice(start, start + BLOCK_ROWS)).packed()
            connection.execute(_INSERT_BLOCK, (*table, block, sum_of(packed), b"", *packed))
            block += 1
        rows = len(fresh.cids) + sum(len(one.live) for number, one in living.items() if number not in again)
        has_neighbours = self._follow(connection, header, rows, added)
        connection.execute(
            "UPDATE findling.vector_tables SET generation = %s, next_block = %s, rows = %s, has_neighbours = %s,"
            " state = %s WHERE ws = %s AND id = %s",
            (header.generation + 1, block, rows, has_neighbours, json.dumps(dict(state)), *table),
        )
        generation = header.generation + 1
        return _Header(header.id, generation, block, rows, has_neighbours, dict(state), is_ours=True)

    def _follow(self, connection: Connection, header: _Header, rows: int, added: VectorBlock) -> bool:
        """Bring the rows of pgvector in step, once there are many; returns whether there are any."""
        if not header.has_neighbours and rows <= self._neighbours_from:
            return False
        neighbours = self._neighbours(connection, header)
        if neighbours is None:
            return False
        if header.has_neighbours and self._has_rows(connection, header, neighbours):
            neighbours.drop(connection, self._latest)
            neighbours.put(connection, added)
            return True
        if not neighbours.create(connection):
            return False
        table = self._table(header)
        for listed in list_blocks(connection, table):
            (block,) = fetch_blocks(connection, None, table, [listed], self._dimensions).values()
            neighbours.put(connection, block.taken(np.delete(np.arange(len(block.cids)), listed.dead)))
        return True

    def _has_rows(self, connection: Connection, header: _Header, neighbours: VectorNeighbours) -> bool:
        """Whether pgvector has the rows of the last commit: the extension may have been dropped since, and with it all.

        Without an index they are counted, which takes 20 ms for 100,000.
        """
        if neighbours.is_indexed or not neighbours.has_table:
            return neighbours.is_indexed
        return neighbours.count(connection) == header.rows

    def _begun(self, connection: Connection) -> _Header:
        """The header of a table that holds nothing but what counts."""
        ws = self._connections.ws
        row = connection.execute(_SELECT_HEADER, (ws, self._model)).fetchone()
        header = None if row is None else _header_of(row, self._made_for, self._dimensions)
        if header is None:
            connection.execute(_INSERT_HEADER, (ws, self._model, self._made_for, self._dimensions, ws))
            return self._begun(connection)
        if header.is_ours and not self._is_cleared:
            return header
        connection.execute("DELETE FROM findling.vector_blocks WHERE ws = %s AND id = %s", (ws, header.id))
        _drop_neighbours(connection, ws, header.id, header.has_neighbours)
        connection.execute(
            "UPDATE findling.vector_tables SET made_for = %s, dimensions = %s WHERE ws = %s AND id = %s",
            (self._made_for, self._dimensions, ws, header.id),
        )
        return header._replace(rows=0, has_neighbours=False, state={}, is_ours=True)


_SELECT_HEADER = (
    "SELECT id, generation, next_block, rows, has_neighbours, state, made_for, dimensions"
    " FROM findling.vector_tables WHERE ws = %s AND model = %s"
)
_INSERT_HEADER = (
    "INSERT INTO findling.vector_tables"
    " SELECT %s, %s, coalesce(max(id), 0) + 1, %s, %s, 0, 0, 0, false, '{}'"
    " FROM findling.vector_tables WHERE ws = %s"
)
_INSERT_BLOCK = (
    "INSERT INTO findling.vector_blocks (ws, id, block, sum, dead, cids, numbers, scales, codes, rest)"
    " VALUES (%s, %s, %s, %s, %b, %b, %b, %b, %b, %b)"
)


def _header_of(row: Sequence[Any], made_for: str, dimensions: int) -> _Header:
    id_, generation, next_block, rows, has_neighbours, state, *owner = row
    return _Header(id_, generation, next_block, rows, has_neighbours, state, owner == [made_for, dimensions])


def vector_state(connections: PostgresConnections, model: str, made_for: str) -> Mapping[str, int]:
    """The `state` of the vectors of a model, none where there are none of this store."""
    row = connections.row(
        "SELECT state FROM findling.vector_tables WHERE ws = %s AND model = %s AND made_for = %s",
        (connections.ws, model, made_for),
    )
    return row[0] if row else {}


def discard_vectors(connections: PostgresConnections, model: str | None = None) -> None:
    """Delete the rows of a model, or of all. The caller holds the write lock."""
    with connections.writing() as connection, connections.errors:
        found = connection.execute(
            "SELECT id, has_neighbours FROM findling.vector_tables WHERE ws = %s AND (model = %s OR %s)",
            (connections.ws, model or "", model is None),
        ).fetchall()
        for id_, has_neighbours in found:
            _drop_neighbours(connection, connections.ws, id_, has_neighbours)
        values = connections.ws, [id_ for id_, _ in found]
        connection.execute("DELETE FROM findling.vector_blocks WHERE ws = %s AND id = ANY(%s)", values)
        connection.execute(
            "UPDATE findling.vector_tables SET made_for = '', state = '{}', rows = 0, has_neighbours = false,"
            " generation = generation + 1 WHERE ws = %s AND id = ANY(%s)",
            values,
        )


def _drop_neighbours(connection: Connection, ws: int, id_: int, has_neighbours: bool) -> None:
    neighbours = VectorNeighbours.of(connection, (ws, id_), 0) if has_neighbours else None
    if neighbours is not None and neighbours.has_table:
        neighbours.drop(connection)
