"""Vectors in the tables, by the digest of the chunks they were made from.

Triggers of the schema keep the number of chunks that each model covers, and clear fulfilled wishes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from findling.domain.ports import VectorRow
from findling.domain.resources import ALL, Share, StoredChunk
from findling.stores.rows import possible_cids, sound_vector, vector_sum
from findling.stores.sqlite.connections import Connections, StoreErrors, rows_in
from findling.stores.sqlite.loads import load_chunks
from findling.stores.sqlite.schema import SUMS_FORMAT, is_older, read_header, sum_column
from findling.stores.validation import MOST_WISHES, NO_MODEL, check_width, vector_width

if TYPE_CHECKING:
    from findling.stores.frontiers import Frontier

_VECTORS_PER_BATCH = 1024
"""The vectors that `vector_rows` holds at a time: at 768 bytes each, less than 1 MB."""


class SqliteVectors:
    """The part of `SqliteStore` that keeps vectors and wishes for them."""

    _connections: Connections
    _errors: StoreErrors
    _has_sums: bool
    _frontiers: dict[tuple[str, str], Frontier]
    _counted: tuple[int, int]
    """A change, and the number of chunks after it."""

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        """Keep the vectors that are new; no write lock of the workspace is needed.

        Raises LockedError when others write for longer than `patience_s`, and InvalidValueError for vectors of another
        length than the stored ones; then none is kept.
        """
        if not vectors:
            return
        with self._connections.writing(patience_s) as connection, self._errors:
            width = vector_width(model, vectors.values())
            connection.execute("INSERT OR IGNORE INTO models (fingerprint, width) VALUES (?, ?)", (model, width))
            id_, stored = connection.execute("SELECT id, width FROM models WHERE fingerprint = ?", (model,)).fetchone()
            check_width(model, width, stored)
            connection.executemany(
                "INSERT OR IGNORE INTO vectors (model, digest, vector, sum) VALUES (?, ?, ?, ?)",
                [(id_, digest, vector, vector_sum(digest, vector)) for digest, vector in vectors.items()],
            )

    def vectors(self, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._connections.reading() as connection:
            columns = f"SELECT digest, vector, {sum_column(connection)} FROM vectors"
            named = f"{columns} WHERE model = {_find_model(connection, model)[0]:d} AND digest IN ({{}})"
            return {row[0]: sound_vector(*row) for row in rows_in(connection, named, digests)}

    def vector_rows(self, model: str, since: int) -> Iterator[VectorRow]:
        reached: int | None = since
        while reached is not None:
            with self._connections.reading() as connection:
                rows, reached = _load_rows(connection, model, reached)
            yield from rows

    def unembedded(self, model: str, limit: int, *, skip: Container[bytes] = (), of: Share = ALL) -> list[StoredChunk]:
        with self._connections.reading() as connection:
            key, known = (model, of.name), self._frontiers.get((model, of.name))
            cids, self._frontiers[key] = _find_unembedded(connection, model, limit, skip, of, known)
            return list(load_chunks(connection, cids, has_sums=self._has_sums).values())

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        wishes = [(cid,) for cid in possible_cids(cids)]
        if not wishes:
            return
        with self._connections.writing(patience_s) as connection, self._errors:
            # The first one is the most urgent and gets the latest turn.
            existing = "INSERT OR REPLACE INTO wanted (cid) SELECT cid FROM chunks WHERE cid = ?"
            connection.executemany(existing, reversed(wishes))
            connection.execute("DELETE FROM wanted WHERE turn <= (SELECT max(turn) FROM wanted) - ?", (MOST_WISHES,))

    def coverage(self, model: str, of: Share = ALL) -> tuple[int, int]:
        with self._connections.reading() as connection:
            seq, (counted_at, chunks) = read_header(connection).seq, self._counted
            if counted_at != seq:
                # Every hybrid search asks, and counting takes 10 ms a million chunks.
                chunks = _count_chunks(connection)
                self._counted = seq, chunks
            id_, covered = _find_model(connection, model)
            counts = (
                "SELECT count(mark), count(*) FROM chunks c LEFT JOIN vectors v ON v.digest = c.digest"
                f" AND v.model = {id_:d} WHERE c.resource IN ({{}})"
            )
            return of.part((covered, chunks), rows_in(connection, counts, of.counted) if of.counted else ())

    def models(self) -> dict[str, int]:
        with self._connections.reading() as connection:
            vectors = "SELECT fingerprint, count(*) FROM models JOIN vectors ON model = id"
            return dict(connection.execute(f"{vectors} GROUP BY id ORDER BY fingerprint").fetchall())

    def coverages(self) -> dict[str, int]:
        with self._connections.glancing() as connection:
            return dict(connection.execute("SELECT fingerprint, covered FROM models ORDER BY fingerprint").fetchall())

    def damaged_vectors(self) -> int:
        with self._connections.reading() as connection:
            return len(_find_damaged(connection))

    def drop_vectors(self, model: str | None = None) -> int:
        with self._connections.writing() as connection, self._errors:
            if model is None:
                return _drop_unused(connection)
            id_, _ = _find_model(connection, model)
            connection.execute("DELETE FROM models WHERE id = ?", (id_,))
            return connection.execute("DELETE FROM vectors WHERE model = ?", (id_,)).rowcount


def _load_rows(connection: sqlite3.Connection, model: str, since: int) -> tuple[list[VectorRow], int | None]:
    """The rows of the next vectors after mark `since`, and the mark they reach; `None` after the last one."""
    id_, _ = _find_model(connection, model)
    found = connection.execute(
        f"SELECT mark, digest, vector, {sum_column(connection)} FROM vectors"
        " WHERE model = ? AND mark > ? ORDER BY mark LIMIT ?",
        (id_, since, _VECTORS_PER_BATCH),
    )
    vectors = {mark: sound_vector(*row) for mark, *row in found}
    if not vectors:
        return [], None
    reached = max(vectors)
    # Apart from the vectors, so that chunks which share one share the bytes in memory, too.
    rows = connection.execute(
        "SELECT mark, cid, resource FROM vectors JOIN chunks USING (digest)"
        " WHERE model = ? AND mark > ? AND mark <= ? ORDER BY mark, cid",
        (id_, since, reached),
    )
    return [VectorRow(mark, cid, resource, vectors[mark]) for mark, cid, resource in rows], reached


def _find_unembedded(
    connection: sqlite3.Connection, model: str, limit: int, skip: Container[bytes], of: Share, known: Frontier | None
) -> tuple[list[int], Frontier]:
    """Up to `limit` chunks without a vector, one for each digest, wanted ones first, and the next frontier."""
    from findling.stores.frontiers import Frontier, pick_unembedded  # a search looks for none

    (id_, covered), seq = _find_model(connection, model), read_header(connection).seq
    if covered == _count_chunks(connection):
        return [], Frontier(id_, seq)
    start = 0 if known is None else known.start(id_, _first_changed(connection, known.seq))
    with closing(_wanted(connection, id_)) as wanted, closing(_lacking(connection, id_, start)) as lacking:
        cids, reached = pick_unembedded(of.own(wanted), of.own(lacking), start, limit, skip)
    return cids, Frontier(id_, seq, reached)


def _count_chunks(connection: sqlite3.Connection) -> int:
    (chunks,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
    return int(chunks)


def _find_damaged(connection: sqlite3.Connection) -> list[int]:
    """The marks of the vectors that are not what was put in."""
    if is_older(connection, SUMS_FORMAT):
        return []
    rows = connection.execute("SELECT mark, digest, vector, sum FROM vectors WHERE sum IS NOT NULL")
    return [mark for mark, digest, vector, noted in rows if vector_sum(digest, vector) != noted]


def _drop_unused(connection: sqlite3.Connection) -> int:
    """Drop damaged vectors, those that no chunk uses, and models left with none; return how many vectors."""
    damaged = [(mark,) for mark in _find_damaged(connection)]
    # No trigger counts what goes here: unlike an unused vector, a damaged one may serve chunks.
    connection.executemany(
        "UPDATE models SET covered = covered - (SELECT count(*) FROM chunks JOIN vectors USING (digest)"
        " WHERE mark = ?1) WHERE id = (SELECT model FROM vectors WHERE mark = ?1)",
        damaged,
    )
    connection.executemany("DELETE FROM vectors WHERE mark = ?", damaged)
    unused = "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.digest = vectors.digest)"
    dropped = len(damaged) + connection.execute(unused).rowcount
    connection.execute("DELETE FROM models WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE model = models.id)")
    return dropped


def _find_model(connection: sqlite3.Connection, model: str) -> tuple[int, int]:
    """The number of a model, and of the chunks that it covers."""
    found = connection.execute("SELECT id, covered FROM models WHERE fingerprint = ?", (model,)).fetchone()
    return found or (NO_MODEL, 0)


def _first_changed(connection: sqlite3.Connection, seq: int) -> int | None:
    (changed,) = connection.execute("SELECT min(id) FROM resources WHERE seq > ?", (seq,)).fetchone()
    return None if changed is None else int(changed)


_HAS_NONE = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = c.digest AND v.model = ?)"


def _wanted(connection: sqlite3.Connection, model: int) -> sqlite3.Cursor:
    return connection.execute(
        f"SELECT c.cid, c.digest, c.resource FROM wanted w CROSS JOIN chunks c ON c.cid = w.cid"
        f" WHERE {_HAS_NONE} ORDER BY w.turn DESC",
        (model,),
    )


def _lacking(connection: sqlite3.Connection, model: int, start: int) -> sqlite3.Cursor:
    # Chunks are clustered by resource: only those of one resource at a time are sorted.
    return connection.execute(
        f"SELECT c.cid, c.digest, c.resource FROM chunks c WHERE c.resource >= ? AND {_HAS_NONE}"
        " ORDER BY c.resource, c.ordinal",
        (start, model),
    )
