"""Load documents, chunks and changes from the tables, in the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from findling.domain.errors import StoreDamagedError
from findling.domain.ports import Change
from findling.domain.resources import Chunk, Document, Fingerprint, Resource, StoredChunk
from findling.stores.sqlite.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    RESOURCE_COLUMNS,
    Row,
    check_row,
    check_text,
    rows_in,
    to_chunk,
    to_resource,
)
from findling.stores.sqlite.schema import SUMS_FORMAT, is_older
from findling.stores.validation import CID_LIMIT

__all__ = ["load_changes", "load_chunks", "load_counts", "load_documents", "load_resources"]


def load_documents(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, tuple[Document, list[int]]]:
    """Documents by the number of their resource, each with the changes that added its chunks.

    Raises StoreDamagedError when a part of one is lost or damaged.
    """
    has_sums = not is_older(connection, SUMS_FORMAT)
    rows_of: dict[int, list[Row]] = {}
    in_order = f"{_chunks(has_sums)} WHERE resource IN ({{}}) ORDER BY resource, ordinal"
    for row in rows_in(connection, in_order, ids):
        rows_of.setdefault(row[-1], []).append(row)
    documents = {}
    mark = f"id, size, mtime_ns, digest, {'coalesce(inode, 0)' if has_sums else 0}"
    for id_, *found in rows_in(connection, f"{_resources(has_sums, mark)} WHERE id IN ({{}})", ids):
        resource, text = _checked(found[4:])
        rows = rows_of.get(id_, [])
        chunks = tuple([_checked_chunk(row, resource.rid) for row in rows])
        fingerprint = None if found[0] is None else Fingerprint(*found[:4])
        documents[id_] = Document(resource, text, chunks, fingerprint), [row[-2] for row in rows]
    return documents


def load_chunks(connection: sqlite3.Connection, cids: Sequence[int]) -> dict[int, StoredChunk]:
    """The chunks that exist among `cids`, in their order; reads the text of each resource once.

    Raises StoreDamagedError as `load_documents` does.
    """
    has_sums = not is_older(connection, SUMS_FORMAT)
    rows_of: dict[int, list[Row]] = {}
    for row in rows_in(connection, f"{_chunks(has_sums)} WHERE cid IN ({{}})", _possible(cids)):
        rows_of.setdefault(row[-1], []).append(row)
    found: dict[int, StoredChunk] = {}
    for id_, rows in rows_of.items():
        row = connection.execute(f"{_resources(has_sums)} WHERE id = ?", (id_,)).fetchone()
        resource, text = _checked(row or _lost(f"the resource of chunk {rows[0][0]}"))
        for chunk in [_checked_chunk(row, resource.rid) for row in rows]:
            found[chunk.cid] = StoredChunk(chunk, resource, text[chunk.start : chunk.end])
    return {cid: found[cid] for cid in cids if cid in found}


def load_resources(connection: sqlite3.Connection, cids: Sequence[int]) -> dict[int, Resource]:
    """The resources of those chunks that exist among `cids`, in the order of these."""
    number_of: dict[int, int] = {}
    number_of.update(rows_in(connection, "SELECT cid, resource FROM chunks WHERE cid IN ({})", _possible(cids)))
    named = f"SELECT id, {RESOURCE_COLUMNS} FROM resources WHERE id IN ({{}})"
    numbers = dict.fromkeys(number_of.values())
    resources = {id_: to_resource(row) for id_, *row in rows_in(connection, named, numbers)}
    return {cid: resources[number_of[cid]] for cid in cids if cid in number_of}


def load_changes(connection: sqlite3.Connection, since: int, position: int, limit: int) -> list[Change]:
    """The next `limit` changes after `position` for a leg that has absorbed `since`."""
    # A leg that starts from nothing has nothing to drop.
    tombstones = "" if since == 0 else "UNION ALL SELECT seq, NULL, rid FROM deleted WHERE seq > :position"
    rows = connection.execute(
        f"SELECT seq, id, rid FROM resources WHERE seq > :position {tombstones} ORDER BY seq LIMIT :limit",
        {"position": position, "limit": limit},
    ).fetchall()
    documents = load_documents(connection, [id_ for _, id_, _ in rows if id_ is not None])
    changes = []
    for seq, id_, rid in rows:
        dropped = () if since == 0 else _drops(connection, rid, since)
        if id_ is None:
            changes.append(Change(seq, rid, dropped, frozenset(), None))
            continue
        document, added_at = documents[id_]
        added = [chunk.cid for chunk, at in zip(document.chunks, added_at, strict=True) if at > since]
        changes.append(Change(seq, rid, dropped, frozenset(added), document, id_))
    return changes


def load_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """`resources`, `chunks`, `characters`, `skipped`."""
    row = connection.execute(
        "SELECT count(*), (SELECT count(*) FROM chunks), coalesce(sum(characters), 0),"
        " (SELECT count(*) FROM skipped) FROM resources"
    ).fetchone()
    return dict(zip(("resources", "chunks", "characters", "skipped"), row, strict=True))


def _drops(connection: sqlite3.Connection, rid: str, since: int) -> tuple[int, ...]:
    rows = connection.execute("SELECT cid FROM dropped WHERE rid = ? AND seq > ? ORDER BY cid", (rid, since))
    return tuple([cid for (cid,) in rows])


def _possible(cids: Iterable[int]) -> list[int]:
    return [cid for cid in cids if 0 <= cid < CID_LIMIT]


def _chunks(has_sums: bool) -> str:
    """A query for rows that `_checked_chunk` takes; they end in the change and the number of the resource."""
    return f"SELECT {CHUNK_COLUMNS}, {'sum' if has_sums else 'NULL'}, seq, resource FROM chunks"


def _resources(has_sums: bool, *more: str) -> str:
    """A query for rows that end in what `_checked` takes."""
    sums = "resources.sum, bodies.sum" if has_sums else "NULL, NULL"
    columns = ", ".join((*more, RESOURCE_COLUMNS, sums, "text"))
    return f"SELECT {columns} FROM resources LEFT JOIN bodies USING (id)"


def _checked(row: Sequence[Any]) -> tuple[Resource, str]:
    """The resource and the text in a row, if they are what was written."""
    *columns, noted, noted_text, text = row
    rid = columns[0]
    check_row(f"the row of {rid!r}", columns, noted)
    if text is None:
        _lost(f"the text of {rid!r}")
    check_text(f"the text of {rid!r}", text, noted_text)
    return to_resource(columns), text


def _checked_chunk(row: Sequence[Any], rid: str) -> Chunk:
    check_row(f"a chunk of {rid!r}", row[:CHUNK_WIDTH], row[CHUNK_WIDTH])
    return to_chunk(row)


def _lost(what: str) -> NoReturn:
    raise StoreDamagedError(f"{what} is lost", hint="findling index --rebuild")
