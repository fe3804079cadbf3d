"""Many vectors by pgvector: rows of `halfvec` beside the blocks, and an HNSW index that chooses the nearest of them.

Codes are whole numbers up to 127, which a `halfvec` holds as they are. So products of codes are whole numbers, too, and
an exact search in the server has the cosines of one over files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from findling.domain.errors import ReadOnlyError
from findling.domain.ports import VectorHits
from findling.stores.postgres.legs.vector_blocks import VectorBlock
from findling.stores.postgres.server.connections import connect
from findling.stores.postgres.server.places import load_psycopg
from findling.stores.vectors.vector_scan import Query, fetched

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

__all__ = ["NEIGHBOURS_FROM", "VectorNeighbours", "drop_indexes", "find_pgvector"]

NEIGHBOURS_FROM = 100_000
"""Rows above which HNSW chooses: below, a host holds them in 26 to 77 MB. To index a row takes the server 0.65 ms."""

_OLDEST = (0, 8)
"""The first pgvector whose scans go on until enough rows pass a filter."""

_MOST_DIMENSIONS = 4_000
"""The longest `halfvec` that HNSW takes."""

_SAMPLE = 8_000
"""Rows from which mean and deviation are taken when not every row is looked at: those with the lowest ids."""

_PUT_ROWS = 2_048
"""Rows sent at once: 1 MB of 256 values."""


def find_pgvector(connection: Connection) -> str | None:
    """The schema of the extension, if the database has one that is new enough."""
    row = connection.execute(
        "SELECT quote_ident(nspname), extversion FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
        " WHERE extname = 'vector'"
    ).fetchone()
    if row is None:
        return None
    version = tuple(int(part) for part in row[1].split(".")[:2] if part.isdigit())
    return row[0] if version >= _OLDEST else None


_STATE = """
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('findling.vector_rows') AND attname = 'codes'
               AND NOT attisdropped),
       EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass(%s) AND indisvalid)
"""
"""Whether the table holds vectors: `DROP EXTENSION … CASCADE` takes that column; and whether the index is whole."""

_INDEXES = """
SELECT quote_ident(relname) FROM pg_class
WHERE relnamespace = 'findling'::regnamespace AND relkind = 'i' AND relname LIKE %s
"""


def drop_indexes(connection: Connection, ws: int) -> None:
    """Drop the indexes of all vectors of a workspace; without the right to it they stay, and are empty."""
    found = connection.execute(_INDEXES, (f"vector\\_rows\\_{ws:d}\\_%",)).fetchall()
    with suppress(load_psycopg().errors.InsufficientPrivilege), connection.transaction():
        for (name,) in found:
            connection.execute(f"DROP INDEX findling.{name}".encode())


class VectorNeighbours:
    """The rows of one table by pgvector; `table` is its workspace and its id.

    `has_table` says whether the database has a table of such rows, `is_indexed` whether that of these rows is whole.
    """

    def __init__(self, schema: str, table: tuple[int, int], dimensions: int) -> None:
        self._schema, self._table, self._dimensions = schema, table, dimensions
        self._where = f"ws = {table[0]:d} AND id = {table[1]:d}"
        """Written out, so that the planner sees which partial index holds all rows."""
        self._index = f"vector_rows_{table[0]}_{table[1]}"
        self.has_table = self.is_indexed = False

    @classmethod
    def of(cls, connection: Connection, table: tuple[int, int], dimensions: int) -> VectorNeighbours | None:
        """Those of a table; None where the database cannot have any."""
        schema = find_pgvector(connection) if dimensions <= _MOST_DIMENSIONS else None
        if schema is None:
            return None
        one = cls(schema, table, dimensions)
        row = connection.execute(_STATE, (f"findling.{one._index}",)).fetchone()
        one.has_table, one.is_indexed = row or (False, False)
        return one

    def create(self, connection: Connection) -> bool:
        """Create the table of rows, unless another workspace did; returns whether it is there, without these rows."""
        if self.has_table:
            connection.execute(f"DELETE FROM findling.vector_rows WHERE {self._where}")
            return True
        try:
            with connection.transaction():
                connection.execute("DROP TABLE IF EXISTS findling.vector_rows")  # one that has lost its vectors
                connection.execute(
                    "CREATE TABLE findling.vector_rows (ws integer NOT NULL, id integer NOT NULL, cid bigint NOT NULL,"
                    f" number bigint NOT NULL, scale real NOT NULL, codes {self._schema}.halfvec NOT NULL,"
                    " rest bytea NOT NULL, PRIMARY KEY (ws, id, cid))"
                )
                connection.execute("ALTER TABLE findling.vector_rows ALTER codes SET STORAGE EXTERNAL")
                connection.execute("SELECT findling.guard(ARRAY['vector_rows'])")
        except load_psycopg().errors.InsufficientPrivilege:
            return False
        return True

    def put(self, connection: Connection, rows: VectorBlock) -> None:
        """Add rows of chunks that have none."""
        for start in range(0, len(rows.cids), _PUT_ROWS):
            part = rows.taken(slice(start, start + _PUT_ROWS))
            rest = [row.tobytes() for row in part.rest] or [b""] * len(part.cids)
            connection.execute(
                f"INSERT INTO findling.vector_rows SELECT {self._table[0]:d}, {self._table[1]:d}, cid, number, scale,"
                f" codes::{self._schema}.halfvec, rest"
                " FROM unnest(%b::bigint[], %b::bigint[], %b::real[], %s::text[], %b::bytea[])"
                " AS t(cid, number, scale, codes, rest)",
                (part.cids.tolist(), part.numbers.tolist(), part.scales.tolist(), _written(part.codes), rest),
            )

    def drop(self, connection: Connection, cids: Iterable[int] | None = None) -> None:
        """Remove the rows of these chunks, or all and their index."""
        if cids is None:
            connection.execute(f"DELETE FROM findling.vector_rows WHERE {self._where}")
            with suppress(load_psycopg().errors.InsufficientPrivilege), connection.transaction():
                connection.execute(f"DROP INDEX IF EXISTS findling.{self._index}")
        else:
            statement = f"DELETE FROM findling.vector_rows WHERE {self._where} AND cid = ANY(%b)"
            connection.execute(statement, (list(cids),))

    def build_index(self, connections: PostgresConnections) -> None:
        """Build the index unless it is there. Writers go on meanwhile; one that was cut short is built again.

        Without the right to it searches look at every row.
        """
        connection = connect(connections.place)
        try:
            with suppress(ReadOnlyError), connections.errors:
                state = connection.execute(
                    "SELECT indisvalid FROM pg_catalog.pg_index"
                    " WHERE indexrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(%s)",
                    (f"findling.{self._index}",),
                ).fetchone()
                if state == (False,):
                    connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS findling.{self._index}")
                if state != (True,):
                    connection.execute(
                        f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {self._index} ON findling.vector_rows USING hnsw"
                        f" ({self._vector} {self._schema}.halfvec_cosine_ops) WHERE {self._where}"
                    )
                    connection.execute("ANALYZE findling.vector_rows")
        finally:
            connection.close()

    def count(self, connection: Connection, allowed: Collection[int] | None = None) -> int:
        """The number of rows, or of those of some resources."""
        passes, values = _mask(allowed)
        row = connection.execute(f"SELECT count(*) FROM findling.vector_rows WHERE {self._where}{passes}", values)
        return int((row.fetchone() or (0,))[0])

    def search(
        self,
        connection: Connection,
        vector: NDArray[np.float32],
        limit: int,
        allowed: Collection[int] | None,
        also: Sequence[int],
        passed: int,
        exact: bool,
    ) -> VectorHits:
        """The nearest of the allowed rows, of which there are `passed`; every one of them is looked at if `exact`."""
        query = Query.of(vector)
        passes, values = _mask(allowed)
        near, cosines = _NO_ROWS, np.empty(0, np.float32)
        if not exact:
            near, cosines = self._walk(connection, query, limit, passes, values)
        # A walk ends after 20,000 rows, or when its memory is used up, however few of them have passed.
        if len(near.cids) < min(fetched(limit), passed):
            near, cosines = self._look_at_all(connection, query, limit, passes, values)
        asked = self._rows(connection, f"WHERE {self._where} AND cid = ANY(%b)", (list(also),)) if also else _NO_ROWS
        scores = zip(asked.cids.tolist(), _in_full(asked, query).tolist(), strict=True)
        full = _in_full(near, query)
        order = np.lexsort((near.cids, -full))[: max(0, limit)]
        hits = list(zip(near.cids[order].tolist(), full[order].tolist(), strict=True))
        mean = float(cosines.mean(dtype=np.float64)) if len(cosines) else 0.0
        deviation = float(cosines.std(dtype=np.float64)) if len(cosines) else 0.0
        return VectorHits(hits, dict(scores), mean, deviation, passed)

    def _walk(
        self, connection: Connection, query: Query, limit: int, passes: str, values: tuple[object, ...]
    ) -> tuple[VectorBlock, NDArray[np.float32]]:
        """Rows that the index finds near the query, and the cosines of a sample."""
        wanted = fetched(limit)
        breadth = min(max(wanted, 100), 1_000)
        connection.execute(f"SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = {breadth:d}")
        order = f"{self._vector} OPERATOR({self._schema}.<=>) %s::{self._schema}.halfvec"
        near = self._rows(
            connection,
            f"WHERE {self._where}{passes} ORDER BY {order} LIMIT {wanted:d}",
            (*values, _written(query.codes)[0]),
        )
        sample = f"(SELECT * FROM findling.vector_rows WHERE {self._where}{passes} ORDER BY cid LIMIT {_SAMPLE:d}) t"
        return near, self._cosines(connection, query, sample, values)[1]

    def _look_at_all(
        self, connection: Connection, query: Query, limit: int, passes: str, values: tuple[object, ...]
    ) -> tuple[VectorBlock, NDArray[np.float32]]:
        """The rows nearest by their codes, and the cosines of all."""
        every = f"findling.vector_rows WHERE {self._where}{passes}"
        cids, cosines = self._cosines(connection, query, every, values)
        best = cids[np.lexsort((cids, -cosines))[: fetched(limit)]]
        return self._rows(connection, f"WHERE {self._where} AND cid = ANY(%b)", (best.tolist(),)), cosines

    def _cosines(
        self, connection: Connection, query: Query, source: str, values: tuple[object, ...]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Chunks and cosines by codes, in the order of their ids: the same numbers whatever rows lie beside them."""
        # Bytes, not arrays: of 51,200 rows 30 ms of server and host in place of 38.
        product = f"(codes OPERATOR({self._schema}.<#>) %s::{self._schema}.halfvec)::real"
        row = connection.cursor(binary=True).execute(
            f"SELECT string_agg(int8send(cid), ''), string_agg(float4send({product}), ''),"
            f" string_agg(float4send(scale), '') FROM {source}",
            (_written(query.codes)[0], *values),
        )
        cids, products, scales = (one or b"" for one in row.fetchone() or (b"", b"", b""))
        found = np.frombuffer(cids, ">i8").astype(np.int64)
        # pgvector gives negative products.
        cosines = -np.frombuffer(products, ">f4").astype(np.float32) * np.float32(query.scale)
        cosines *= np.frombuffer(scales, ">f4").astype(np.float32)
        order = np.argsort(found)
        return found[order], cosines[order]

    def _rows(self, connection: Connection, where: str, values: tuple[object, ...]) -> VectorBlock:
        found = connection.cursor(binary=True).execute(
            f"SELECT cid, number, scale, {self._schema}.halfvec_send(codes), rest FROM findling.vector_rows {where}",
            values,
        )
        rows = found.fetchall()
        if not rows:
            return _NO_ROWS
        cids, numbers, scales, codes, rest = zip(*rows, strict=True)
        vectors = np.frombuffer(b"".join(codes), ">f2").reshape(len(rows), -1)[:, 2:]  # behind two numbers of a head
        return VectorBlock(
            np.array(cids, np.int64),
            np.array(numbers, np.int64),
            np.array(scales, np.float32),
            vectors.astype(np.int8),
            np.frombuffer(b"".join(one or bytes(self._dimensions) for one in rest), np.int8).reshape(len(rows), -1),
        )

    @property
    def _vector(self) -> str:
        return f"(codes::{self._schema}.halfvec({self._dimensions:d}))"


_NO_ROWS = VectorBlock(
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.float32),
    np.empty((0, 1), np.int8),
    np.empty((0, 1), np.int8),
)


def _in_full(rows: VectorBlock, query: Query) -> NDArray[np.float32]:
    """Cosines as a search over files has them."""
    if not len(rows.cids):
        return np.empty(0, np.float32)
    values = rows.codes.astype(np.float32)
    if rows.rest.any():
        values += rows.rest * np.float32(1 / 256)
    return np.asarray((values * query.vector).sum(axis=1) * rows.scales, np.float32)


def _written(codes: NDArray[np.int8]) -> list[str]:
    """Codes as pgvector reads them: 75 µs a row, a tenth of what its place in the index takes."""
    return [str(row) for row in codes.tolist()]


def _mask(allowed: Collection[int] | None) -> tuple[str, tuple[object, ...]]:
    """A condition on the number of a resource, as bits: a list of 50,000 numbers takes seven times as long."""
    if allowed is None:
        return "", ()
    numbers = np.fromiter(allowed, np.int64, len(allowed))
    numbers = numbers[numbers >= 0]
    bits = np.zeros(int(numbers.max(initial=0)) + 1, np.bool_)
    bits[numbers] = True
    marks = np.packbits(bits, bitorder="little").tobytes()
    condition = f" AND CASE WHEN number < {len(bits):d} THEN get_bit(%b::bytea, number) = 1 ELSE false END"
    return condition, (marks,)
