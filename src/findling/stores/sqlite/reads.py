"""Loading documents, chunks and changes from the tables. Runs inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn, TypeVar

from findling.domain.errors import StoreDamagedError
from findling.domain.ports import Change, SkippedPath
from findling.domain.resources import Chunk, Document, Fingerprint, Resource, StoredChunk
from findling.stores.sqlite.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    RESOURCE_COLUMNS,
    Row,
    check_row,
    check_text,
    to_chunk,
    to_resource,
    to_skipped,
)
from findling.stores.sqlite.schema import SUMS_FORMAT, read_header
from findling.stores.validation import CID_LIMIT

__all__ = [
    "LoadedDocument",
    "batched",
    "count_made",
    "load_changes",
    "load_chunks",
    "load_counts",
    "load_documents",
    "load_resources",
    "load_skipped",
    "placeholders",
]

T = TypeVar("T")

_IDS_PER_STATEMENT = 500
"""SQLite takes 32,766 values; the gain is flat long before."""


class LoadedDocument(NamedTuple):
    """A document, and for each of its chunks the change that added it."""

    document: Document
    chunk_seqs: tuple[int, ...]


def load_documents(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, LoadedDocument]:
    """Documents by the number of their resource. Raises StoreDamagedError when a part of one is lost or damaged."""
    marks = placeholders(ids)
    has_sums = _has_sums(connection)
    noted = "sum" if has_sums else "NULL"
    chunk_rows = connection.execute(
        f"SELECT {CHUNK_COLUMNS}, {noted}, seq, resource FROM chunks WHERE resource IN ({marks})"
        " ORDER BY resource, ordinal",
        ids,
    ).fetchall()
    chunks_of = {id_: list(rows) for id_, rows in groupby(chunk_rows, itemgetter(CHUNK_WIDTH + 2))}
    documents = {}
    columns = f"{_read(has_sums)}, size, mtime_ns, digest, {'coalesce(inode, 0)' if has_sums else 0}, id"
    for *row, size, changed_ns, digest, inode, id_ in connection.execute(
        f"SELECT {columns} FROM resources LEFT JOIN bodies USING (id) WHERE id IN ({marks})", ids
    ):
        resource, text = _checked(row)
        rows = chunks_of.get(id_, [])
        fingerprint = None if size is None else Fingerprint(size, changed_ns, digest, inode)
        chunks = tuple([_checked_chunk(row, resource.rid) for row in rows])
        documents[id_] = LoadedDocument(
            Document(resource, text, chunks, fingerprint), tuple([row[CHUNK_WIDTH + 1] for row in rows])
        )
    return documents


def load_chunks(connection: sqlite3.Connection, cids: Sequence[int]) -> dict[int, StoredChunk]:
    """The chunks that exist among `cids`, in their order; the text of each resource is read once.

    Raises StoreDamagedError as `load_documents` does.
    """
    has_sums = _has_sums(connection)
    noted = "sum" if has_sums else "NULL"
    rows_of: dict[int, list[Row]] = {}
    for batch in batched((cid for cid in cids if 0 <= cid < CID_LIMIT), _IDS_PER_STATEMENT):
        for row in connection.execute(
            f"SELECT {CHUNK_COLUMNS}, {noted}, resource FROM chunks WHERE cid IN ({placeholders(batch)})", batch
        ):
            rows_of.setdefault(row[CHUNK_WIDTH + 1], []).append(row)
    found: dict[int, StoredChunk] = {}
    for id_, rows in rows_of.items():
        found_row = connection.execute(
            f"SELECT {_read(has_sums)} FROM resources LEFT JOIN bodies USING (id) WHERE id = ?", (id_,)
        ).fetchone()
        resource, text = _checked(found_row or _lost(f"the resource of chunk {rows[0][0]}"))
        for chunk in [_checked_chunk(row, resource.rid) for row in rows]:
            found[chunk.cid] = StoredChunk(chunk, resource, text[chunk.start : chunk.end])
    return {cid: found[cid] for cid in cids if cid in found}


def load_resources(connection: sqlite3.Connection, cids: Sequence[int]) -> dict[int, Resource]:
    """The resources of those chunks that exist among `cids`, in the order of these."""
    number_of: dict[int, int] = {}
    for batch in batched((cid for cid in cids if 0 <= cid < CID_LIMIT), _IDS_PER_STATEMENT):
        marks = placeholders(batch)
        number_of.update(connection.execute(f"SELECT cid, resource FROM chunks WHERE cid IN ({marks})", batch))
    resources: dict[int, Resource] = {}
    for batch in batched(dict.fromkeys(number_of.values()), _IDS_PER_STATEMENT):
        rows = connection.execute(
            f"SELECT {RESOURCE_COLUMNS}, id FROM resources WHERE id IN ({placeholders(batch)})", batch
        )
        resources |= {row[-1]: to_resource(row[:-1]) for row in rows}
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
        document, chunk_seqs = documents[id_]
        added = frozenset(
            chunk.cid for chunk, added_at in zip(document.chunks, chunk_seqs, strict=True) if added_at > since
        )
        changes.append(Change(seq, rid, dropped, added, document, id_))
    return changes


def load_skipped(connection: sqlite3.Connection) -> list[SkippedPath]:
    """The paths that were left out, ordered by path."""
    return [to_skipped(row) for row in connection.execute("SELECT * FROM skipped ORDER BY path")]


def placeholders(values: Sequence[Any]) -> str:
    """As many question marks as there are values."""
    return ",".join("?" * len(values))


def load_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """`resources`, `chunks`, `characters`, `skipped`."""
    row = connection.execute(
        "SELECT count(*), (SELECT count(*) FROM chunks), coalesce(sum(characters), 0),"
        " (SELECT count(*) FROM skipped) FROM resources"
    ).fetchone()
    return dict(zip(("resources", "chunks", "characters", "skipped"), row, strict=True))


def count_made(connection: sqlite3.Connection) -> dict[str, int]:
    """Type → how many resources that are no files; relations and terms of the glossary, where there are any."""
    counts = dict(connection.execute("SELECT type, count(*) FROM resources WHERE type != 'file' GROUP BY type"))
    for name, table in (("relation", "relations"), ("term", "glossary")):
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        if count:
            counts[name] = counts.get(name, 0) + count
    return counts


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def _drops(connection: sqlite3.Connection, rid: str, since: int) -> tuple[int, ...]:
    rows = connection.execute("SELECT cid FROM dropped WHERE rid = ? AND seq > ? ORDER BY cid", (rid, since))
    return tuple([cid for (cid,) in rows])


def _has_sums(connection: sqlite3.Connection) -> bool:
    return read_header(connection).format >= SUMS_FORMAT


def _read(has_sums: bool) -> str:
    """The columns that `_checked` takes."""
    return f"{RESOURCE_COLUMNS}, {'resources.sum, bodies.sum' if has_sums else 'NULL, NULL'}, text"


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
