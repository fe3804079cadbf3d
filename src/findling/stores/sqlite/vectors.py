"""Vectors in the tables, by the digest of the chunks they were made from. Runs inside the caller's transaction.

How many chunks each model covers, and which wishes are fulfilled, is kept up to date by triggers of the schema.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from findling.domain.errors import CorruptError, InvalidValueError
from findling.domain.ports import VectorRow
from findling.stores.sqlite.reads import batched, placeholders
from findling.stores.sqlite.rows import vector_sum
from findling.stores.sqlite.schema import SUMS_FORMAT, read_header
from findling.stores.validation import CID_LIMIT, MOST_WISHES, vector_width

__all__ = [
    "Frontier",
    "Unembedded",
    "add_wishes",
    "count_covered",
    "count_vectors",
    "drop_model",
    "drop_unused",
    "find_damaged",
    "find_unembedded",
    "insert_vectors",
    "load_vector_rows",
    "load_vectors",
]

_DIGESTS_PER_STATEMENT = 500

_NO_MODEL = 0
"""The number of a model of which there are no vectors."""

_LAST = CID_LIMIT - 1


class Frontier(NamedTuple):
    """At change `seq`, no chunk of a resource below number `resource` lacked a vector of `model`."""

    model: int
    seq: int
    resource: int


class Unembedded(NamedTuple):
    """The chunks that were found, and where to begin the next time."""

    cids: list[int]
    frontier: Frontier


def insert_vectors(connection: sqlite3.Connection, model: str, vectors: Mapping[bytes, bytes]) -> None:
    """Keep the vectors that are not there yet. Raises InvalidValueError when their length is not the model's."""
    width = vector_width(model, vectors.values())
    connection.execute("INSERT OR IGNORE INTO models (fingerprint, width) VALUES (?, ?)", (model, width))
    id_, stored = connection.execute("SELECT id, width FROM models WHERE fingerprint = ?", (model,)).fetchone()
    if stored != width:
        raise InvalidValueError(f"vectors of {model} have {stored} bytes, not {width}", hint="drop the old ones first")
    connection.executemany(
        "INSERT OR IGNORE INTO vectors (model, digest, vector, sum) VALUES (?, ?, ?, ?)",
        [(id_, digest, vector, vector_sum(digest, vector)) for digest, vector in vectors.items()],
    )


def load_vectors(connection: sqlite3.Connection, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
    """The vectors that exist among `digests`, in no order."""
    id_, noted = _model_id(connection, model), _sum_column(connection)
    found: dict[bytes, bytes] = {}
    for batch in batched(digests, _DIGESTS_PER_STATEMENT):
        rows = connection.execute(
            f"SELECT digest, vector, {noted} FROM vectors WHERE digest IN ({placeholders(batch)}) AND model = ?",
            (*batch, id_),
        )
        found.update((digest, _sound(digest, vector, sum_)) for digest, vector, sum_ in rows)
    return found


def load_vector_rows(
    connection: sqlite3.Connection, model: str, since: int, limit: int
) -> tuple[list[VectorRow], int | None]:
    """The rows of the next `limit` vectors after mark `since`, and the mark they reach; `None` after the last one."""
    id_, noted = _model_id(connection, model), _sum_column(connection)
    found = connection.execute(
        f"SELECT mark, digest, vector, {noted} FROM vectors WHERE model = ? AND mark > ? ORDER BY mark LIMIT ?",
        (id_, since, limit),
    )
    vectors = {mark: _sound(digest, vector, sum_) for mark, digest, vector, sum_ in found}
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


def find_unembedded(
    connection: sqlite3.Connection,
    model: str,
    limit: int,
    skip: Container[bytes] = (),
    frontier: Frontier | None = None,
) -> Unembedded:
    """Up to `limit` chunks without a vector, one for each digest, those that searches wanted first."""
    id_, seq = _model_id(connection, model), read_header(connection).seq
    covered, chunks = count_covered(connection, model)
    if covered == chunks:
        return Unembedded([], Frontier(id_, seq, _LAST))
    start = _first_resource(connection, id_, frontier)
    cids: list[int] = []
    seen: set[bytes] = set()
    first = _LAST
    with closing(_wanted(connection, id_)) as wanted, closing(_lacking(connection, id_, start)) as lacking:
        for cid, digest, resource in chain(wanted, lacking):
            if resource is not None:
                first = min(first, resource)
            if len(cids) == limit:
                break
            if digest not in seen and digest not in skip:
                seen.add(digest)
                cids.append(cid)
        else:
            return Unembedded(cids, Frontier(id_, seq, first))
    # Cut short among the wishes, the rest has not been looked at.
    return Unembedded(cids, Frontier(id_, seq, start if first == _LAST else first))


def add_wishes(connection: sqlite3.Connection, cids: Iterable[int]) -> None:
    """Note wishes for those of the chunks that exist; of one call the first are the most urgent."""
    known = [cid for cid in dict.fromkeys(cids) if 0 <= cid < CID_LIMIT]
    connection.executemany(
        "INSERT OR REPLACE INTO wanted (cid) SELECT cid FROM chunks WHERE cid = ?", [(cid,) for cid in reversed(known)]
    )
    connection.execute("DELETE FROM wanted WHERE turn <= (SELECT max(turn) FROM wanted) - ?", (MOST_WISHES,))


def count_covered(connection: sqlite3.Connection, model: str) -> tuple[int, int]:
    """How many chunks have a vector, and how many there are."""
    row = connection.execute("SELECT covered FROM models WHERE fingerprint = ?", (model,)).fetchone()
    (chunks,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
    return (row[0] if row else 0), chunks


def count_vectors(connection: sqlite3.Connection) -> dict[str, int]:
    """Model → how many vectors are kept of it."""
    return dict(
        connection.execute(
            "SELECT fingerprint, count(*) FROM models JOIN vectors ON model = id GROUP BY id ORDER BY fingerprint"
        ).fetchall()
    )


def drop_model(connection: sqlite3.Connection, model: str) -> int:
    """Forget a model with its vectors; tells how many there were."""
    id_ = _model_id(connection, model)
    connection.execute("DELETE FROM models WHERE id = ?", (id_,))
    return connection.execute("DELETE FROM vectors WHERE model = ?", (id_,)).rowcount


def find_damaged(connection: sqlite3.Connection) -> list[int]:
    """The marks of the vectors that are not what was put in."""
    if read_header(connection).format < SUMS_FORMAT:
        return []
    rows = connection.execute("SELECT mark, digest, vector, sum FROM vectors WHERE sum IS NOT NULL")
    return [mark for mark, digest, vector, noted in rows if vector_sum(digest, vector) != noted]


def drop_unused(connection: sqlite3.Connection) -> int:
    """Forget vectors that are damaged or that no chunk has use for, and models left with none; tells how many."""
    damaged = find_damaged(connection)
    # No trigger counts what goes here: unlike an unused vector, a damaged one may serve chunks.
    for mark in damaged:
        connection.execute(
            "UPDATE models SET covered = covered - (SELECT count(*) FROM chunks JOIN vectors USING (digest)"
            " WHERE mark = ?1) WHERE id = (SELECT model FROM vectors WHERE mark = ?1)",
            (mark,),
        )
    connection.executemany("DELETE FROM vectors WHERE mark = ?", [(mark,) for mark in damaged])
    dropped = (
        len(damaged)
        + connection.execute(
            "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.digest = vectors.digest)"
        ).rowcount
    )
    connection.execute("DELETE FROM models WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE model = models.id)")
    return dropped


def _sum_column(connection: sqlite3.Connection) -> str:
    return "sum" if read_header(connection).format >= SUMS_FORMAT else "NULL"


def _sound(digest: bytes, vector: bytes, noted: int | None) -> bytes:
    if noted is not None and vector_sum(digest, vector) != noted:
        raise CorruptError("a vector of the model is not what was put in", hint="findling doctor --repair")
    return vector


def _model_id(connection: sqlite3.Connection, model: str) -> int:
    row = connection.execute("SELECT id FROM models WHERE fingerprint = ?", (model,)).fetchone()
    return row[0] if row else _NO_MODEL


def _first_resource(connection: sqlite3.Connection, model: int, frontier: Frontier | None) -> int:
    """Where to begin: what lay behind the frontier is still embedded unless its resource was written since.

    Vectors that chunks use go only with their model, whose number never comes back.
    """
    if frontier is None or frontier.model != model or model == _NO_MODEL:
        return 0
    (changed,) = connection.execute("SELECT min(id) FROM resources WHERE seq > ?", (frontier.seq,)).fetchone()
    return frontier.resource if changed is None else min(changed, frontier.resource)


_HAS_NONE = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = c.digest AND v.model = ?)"


def _wanted(connection: sqlite3.Connection, model: int) -> sqlite3.Cursor:
    return connection.execute(
        f"SELECT c.cid, c.digest, NULL FROM wanted w CROSS JOIN chunks c ON c.cid = w.cid"
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
