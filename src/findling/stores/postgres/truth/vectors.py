"""Vectors in the tables, by the digest of the chunks they were made from, and wishes for them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from findling.domain.ports import VectorRow
from findling.domain.resources import ALL, Share, StoredChunk
from findling.stores.frontiers import Frontier, pick_unembedded
from findling.stores.postgres.server.arrays import bigints, byteas
from findling.stores.postgres.truth.reads import load_chunks
from findling.stores.postgres.truth.records import PostgresRecords
from findling.stores.postgres.truth.values import escape, unescape
from findling.stores.rows import possible_cids, sound_vector, vector_sum
from findling.stores.validation import MOST_WISHES, NO_MODEL, check_width, vector_width

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

_VECTORS_PER_BATCH = 1024
"""The vectors that `vector_rows` holds at a time: at 768 bytes each, less than 1 MB."""

_HAS_NONE = "NOT EXISTS (SELECT FROM findling.vectors v WHERE v.ws = c.ws AND v.digest = c.digest AND v.model = %s)"

# New vectors, the chunks that they cover, and the wishes that they fulfil: one statement.
_PUT = """WITH added AS (
    INSERT INTO findling.vectors (ws, model, mark, digest, vector, sum)
    SELECT %(ws)s, %(model)s, %(mark)s + u.place, u.digest, u.vector, u.sum
    FROM unnest(%(digests)s, %(vectors)s, %(sums)s) WITH ORDINALITY AS u(digest, vector, sum, place)
    ON CONFLICT (ws, digest, model) DO NOTHING RETURNING digest),
used AS (SELECT c.cid FROM added JOIN findling.chunks c ON c.ws = %(ws)s AND c.digest = added.digest),
granted AS (DELETE FROM findling.wanted WHERE ws = %(ws)s AND cid IN (SELECT cid FROM used)),
numbered AS (UPDATE findling.workspaces SET mark = mark + %(count)s WHERE ws = %(ws)s)
UPDATE findling.models SET covered = covered + (SELECT count(*) FROM used) WHERE ws = %(ws)s AND id = %(model)s"""


class PostgresKeptVectors(PostgresRecords):
    """The part of `PostgresStore` that keeps vectors and wishes for them."""

    _frontiers: dict[tuple[str, str], Frontier]

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        """Keep the vectors that are new; no write lock of the workspace is needed.

        Raises LockedError when others write for longer than `patience_s`, and InvalidValueError for vectors of another
        length than the stored ones; then none is kept.
        """
        if not vectors:
            return
        ws = self._connections.ws
        with self._connections.writing(patience_s) as connection, self._connections.errors:
            width = vector_width(model, vectors.values())
            id_, stored, mark, estimated = _model_to_write(connection, ws, model, width)
            check_width(model, width, stored)
            sums = [vector_sum(digest, vector) for digest, vector in vectors.items()]
            values = {"ws": ws, "model": id_, "mark": mark, "count": len(vectors), "sums": bigints(sums)}
            arrays = {"digests": byteas(vectors), "vectors": byteas(vectors.values())}
            connection.execute(_PUT, values | arrays)
        if mark > 2 * estimated + _VECTORS_PER_BATCH and 4 * len(vectors) > estimated:
            self._connections.analyze("vectors")

    def vectors(self, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        rows = self._all(
            "SELECT v.digest, v.vector, v.sum FROM findling.vectors v JOIN findling.models m"
            " ON m.ws = v.ws AND m.id = v.model WHERE v.ws = %s AND m.fingerprint = %s AND v.digest = ANY(%s)",
            escape(model),
            byteas(digests),
        )
        return {row[0]: sound_vector(*row) for row in rows}

    def vector_rows(self, model: str, since: int) -> Iterator[VectorRow]:
        reached: int | None = since if self._state is None or since < self._state.mark else None
        while reached is not None:
            with self._connections.reading() as connection:
                rows, reached = _load_rows(connection, self._connections.ws, model, reached)
            yield from rows

    def unembedded(self, model: str, limit: int, *, skip: Container[bytes] = (), of: Share = ALL) -> list[StoredChunk]:
        covered, chunks = self.coverage(model)
        if covered == chunks:
            return []
        ws, key = self._connections.ws, (model, of.name)
        with self._connections.reading() as connection:
            known = self._frontiers.get(key)
            cids, self._frontiers[key] = _find_unembedded(connection, ws, model, limit, skip, of, known)
        return list(load_chunks(self._connections, cids).values())

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        wishes = possible_cids(cids)
        if not wishes:
            return
        ws = self._connections.ws
        with self._connections.writing(patience_s) as connection, self._connections.errors:
            row = connection.execute(
                "UPDATE findling.workspaces SET turn = turn + %s WHERE ws = %s RETURNING turn", (len(wishes), ws)
            ).fetchone()
            (turn,) = row or (0,)
            # The first one is the most urgent and gets the latest turn.
            connection.execute(
                "INSERT INTO findling.wanted (ws, turn, cid) SELECT c.ws, %s - u.place + 1, c.cid"
                " FROM unnest(%s) WITH ORDINALITY AS u(cid, place)"
                " JOIN findling.chunks c ON c.ws = %s AND c.cid = u.cid"
                " ON CONFLICT (ws, cid) DO UPDATE SET turn = excluded.turn",
                (turn, bigints(wishes), ws),
            )
            connection.execute(
                "DELETE FROM findling.wanted WHERE ws = %s AND turn <= (SELECT turn FROM findling.wanted WHERE ws = %s"
                " ORDER BY turn DESC OFFSET %s LIMIT 1)",
                (ws, ws, MOST_WISHES),
            )

    def models(self) -> dict[str, int]:
        rows = self._all(
            "SELECT m.fingerprint, count(*) FROM findling.models m JOIN findling.vectors v ON v.ws = m.ws"
            " AND v.model = m.id WHERE m.ws = %s GROUP BY m.fingerprint ORDER BY m.fingerprint"
        )
        return {unescape(model): count for model, count in rows}

    def damaged_vectors(self) -> int:
        with self._connections.reading() as connection:
            return sum(1 for _ in _find_damaged(connection, self._connections.ws))

    def drop_vectors(self, model: str | None = None) -> int:
        ws = self._connections.ws
        with self._connections.writing() as connection, self._connections.errors:
            if model is None:
                return _drop_damaged(connection, ws) + _drop_unused(connection, ws)
            id_, _ = _find_model(connection, ws, model)
            connection.execute("DELETE FROM findling.models WHERE ws = %s AND id = %s", (ws, id_))
            return connection.execute("DELETE FROM findling.vectors WHERE ws = %s AND model = %s", (ws, id_)).rowcount

    def drop_unused_vectors(self) -> int:
        """Drop the vectors that no chunk uses, and models left with none; returns how many vectors."""
        with self._connections.writing() as connection, self._connections.errors:
            return _drop_unused(connection, self._connections.ws)


def _find_model(connection: Connection, ws: int, model: str) -> tuple[int, int]:
    """The number of a model and the width of its vectors."""
    found = connection.execute(
        "SELECT id, width FROM findling.models WHERE ws = %s AND fingerprint = %s", (ws, escape(model))
    ).fetchone()
    return (NO_MODEL, 0) if found is None else (found[0], found[1])


def _model_to_write(connection: Connection, ws: int, model: str, width: int) -> tuple[int, int, int, int]:
    """The number of a model, made if need be, the width of its vectors, the latest mark, and an estimate of rows."""
    mark, latest, estimated = connection.execute(
        "SELECT mark, model, (SELECT reltuples FROM pg_class WHERE oid = 'findling.vectors'::regclass)::bigint"
        " FROM findling.workspaces WHERE ws = %s",
        (ws,),
    ).fetchone() or (0, 0, 0)
    id_, stored = _find_model(connection, ws, model)
    if id_ != NO_MODEL:
        return id_, stored, mark, estimated
    connection.execute("UPDATE findling.workspaces SET model = %s WHERE ws = %s", (latest + 1, ws))
    connection.execute(
        "INSERT INTO findling.models (ws, id, fingerprint, width) VALUES (%s, %s, %s, %s)",
        (ws, latest + 1, escape(model), width),
    )
    return latest + 1, width, mark, estimated


def _load_rows(connection: Connection, ws: int, model: str, since: int) -> tuple[list[VectorRow], int | None]:
    """The rows of the next vectors after mark `since`, and the mark they reach; `None` after the last one."""
    id_, _ = _find_model(connection, ws, model)
    found = connection.ask(
        "SELECT mark, digest, vector, sum FROM findling.vectors WHERE ws = %s AND model = %s AND mark > %s"
        " ORDER BY mark LIMIT %s",
        (ws, id_, since, _VECTORS_PER_BATCH),
    )
    vectors = {mark: sound_vector(*row) for mark, *row in found}
    if not vectors:
        return [], None
    reached = max(vectors)
    # Apart from the vectors, so that chunks which share one share the bytes in memory, too.
    rows = connection.ask(
        "SELECT v.mark, c.cid, c.resource FROM findling.vectors v JOIN findling.chunks c ON c.ws = v.ws"
        " AND c.digest = v.digest WHERE v.ws = %s AND v.model = %s AND v.mark > %s AND v.mark <= %s"
        " ORDER BY v.mark, c.cid",
        (ws, id_, since, reached),
    )
    return [VectorRow(mark, cid, resource, vectors[mark]) for mark, cid, resource in rows], reached


def _find_unembedded(
    connection: Connection,
    ws: int,
    model: str,
    limit: int,
    skip: Container[bytes],
    of: Share,
    known: Frontier | None,
) -> tuple[list[int], Frontier]:
    """Up to `limit` chunks without a vector, one for each digest, wanted ones first, and the next frontier."""
    id_, _ = _find_model(connection, ws, model)
    seq, changed = connection.execute(
        "SELECT seq, (SELECT min(number) FROM findling.resources r WHERE r.ws = w.ws AND r.seq > %s)"
        " FROM findling.workspaces w WHERE ws = %s",
        (-1 if known is None else known.seq, ws),
    ).fetchone() or (0, None)
    start = 0 if known is None else known.start(id_, changed)
    wanted, lacking = _wanted(connection, ws, id_), _lacking(connection, ws, id_, start, 2 * limit + 1)
    cids, reached = pick_unembedded(of.own(wanted), of.own(lacking), start, limit, skip)
    return cids, Frontier(id_, seq, reached)


def _wanted(connection: Connection, ws: int, model: int) -> Iterable[tuple[Any, ...]]:
    return connection.ask(
        "SELECT c.cid, c.digest, c.resource FROM findling.wanted w JOIN findling.chunks c USING (ws, cid)"
        f" WHERE w.ws = %s AND {_HAS_NONE} ORDER BY w.turn DESC",
        (ws, model),
    )


def _lacking(
    connection: Connection, ws: int, model: int, start: int, rows_at_a_time: int
) -> Iterator[tuple[int, bytes, int]]:
    """Chunks without a vector in the order of their resources, twice as many with each statement."""
    place = start, -1
    while True:
        rows = connection.ask(
            "SELECT c.cid, c.digest, c.resource, c.ordinal FROM findling.chunks c WHERE c.ws = %s"
            f" AND (c.resource, c.ordinal) > (%s, %s) AND {_HAS_NONE} ORDER BY c.resource, c.ordinal LIMIT %s",
            (ws, *place, model, rows_at_a_time),
        ).fetchall()
        for cid, digest, resource, _ in rows:
            yield cid, digest, resource
        if len(rows) < rows_at_a_time:
            return
        place, rows_at_a_time = rows[-1][2:], 2 * rows_at_a_time


def _find_damaged(connection: Connection, ws: int) -> Iterator[tuple[int, int]]:
    """The models and marks of the vectors that are not what was put in."""
    place = 0, 0
    while True:
        rows = connection.ask(
            "SELECT model, mark, digest, vector, sum FROM findling.vectors"
            " WHERE ws = %s AND (model, mark) > (%s, %s) ORDER BY model, mark LIMIT %s",
            (ws, *place, _VECTORS_PER_BATCH),
        ).fetchall()
        if not rows:
            return
        yield from ((model, mark) for model, mark, digest, data, noted in rows if vector_sum(digest, data) != noted)
        place = rows[-1][:2]


def _drop_damaged(connection: Connection, ws: int) -> int:
    """Drop the vectors that are not what was put in; return how many."""
    damaged = list(_find_damaged(connection, ws))
    models, marks = (bigints(model for model, _ in damaged), bigints(mark for _, mark in damaged))
    return connection.execute(
        "WITH gone AS (DELETE FROM findling.vectors v USING unnest(%s, %s) AS u(model, mark)"
        " WHERE v.ws = %s AND v.model = u.model AND v.mark = u.mark RETURNING v.model, v.digest),"
        # Unlike an unused vector, a damaged one may serve chunks.
        " less AS (SELECT gone.model, count(*) AS chunks FROM gone JOIN findling.chunks c ON c.ws = %s"
        " AND c.digest = gone.digest GROUP BY gone.model),"
        " counted AS (UPDATE findling.models m SET covered = covered - less.chunks FROM less WHERE m.ws = %s"
        " AND m.id = less.model) SELECT FROM gone",
        (models, marks, ws, ws, ws),
    ).rowcount


def _drop_unused(connection: Connection, ws: int) -> int:
    """Drop the vectors that no chunk uses, and models left with none; return how many vectors."""
    dropped = connection.execute(
        "DELETE FROM findling.vectors v WHERE v.ws = %s AND NOT EXISTS"
        " (SELECT FROM findling.chunks c WHERE c.ws = v.ws AND c.digest = v.digest)",
        (ws,),
    ).rowcount
    connection.execute(
        "DELETE FROM findling.models m WHERE m.ws = %s AND NOT EXISTS"
        " (SELECT FROM findling.vectors v WHERE v.ws = m.ws AND v.model = m.id)",
        (ws,),
    )
    return dropped
