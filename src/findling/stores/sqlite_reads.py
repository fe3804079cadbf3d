"""Loading documents, chunks and changes from the tables. Runs inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn, TypeVar

from findling.domain.errors import CorruptError
from findling.domain.ports import Change, SkippedPath
from findling.domain.resources import Document, Fingerprint, Resource, StoredChunk
from findling.stores.admission import CID_LIMIT, predecessor
from findling.stores.sqlite_rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    RESOURCE_COLUMNS,
    Row,
    decode_fields,
    to_chunk,
    to_resource,
    to_skipped,
)

__all__ = [
    "LoadedDocument",
    "batched",
    "load_changes",
    "load_chunks",
    "load_counts",
    "load_documents",
    "load_resources",
    "load_skipped",
    "placeholders",
    "scan_predecessors",
]

T = TypeVar("T")

_IDS_PER_STATEMENT = 500
"""SQLite takes 32,766 values; the gain is flat long before."""


class LoadedDocument(NamedTuple):
    """A document, and for each of its chunks the change that added it."""

    document: Document
    chunk_seqs: tuple[int, ...]


def load_documents(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, LoadedDocument]:
    """Documents by the number of their resource. Raises CorruptError when one of them has no text."""
    marks = placeholders(ids)
    chunk_rows = connection.execute(
        f"SELECT {CHUNK_COLUMNS}, seq, resource FROM chunks WHERE resource IN ({marks}) ORDER BY resource, ordinal", ids
    ).fetchall()
    chunks_of = {id_: list(rows) for id_, rows in groupby(chunk_rows, itemgetter(CHUNK_WIDTH + 1))}
    documents = {}
    for *row, size, mtime_ns, digest, text, id_ in connection.execute(
        f"SELECT {RESOURCE_COLUMNS}, size, mtime_ns, digest, text, id"
        f" FROM resources LEFT JOIN bodies USING (id) WHERE id IN ({marks})",
        ids,
    ):
        rows = chunks_of.get(id_, [])
        fingerprint = None if size is None else Fingerprint(size, mtime_ns, digest)
        document = Document(to_resource(row), _present(text, row[0]), tuple(map(to_chunk, rows)), fingerprint)
        documents[id_] = LoadedDocument(document, tuple([row[CHUNK_WIDTH] for row in rows]))
    return documents


def load_chunks(connection: sqlite3.Connection, cids: Sequence[int]) -> dict[int, StoredChunk]:
    """The chunks that exist among `cids`, in their order; the text of each resource is read once."""
    rows_of: dict[int, list[Row]] = {}
    for batch in batched((cid for cid in cids if 0 <= cid < CID_LIMIT), _IDS_PER_STATEMENT):
        for row in connection.execute(
            f"SELECT {CHUNK_COLUMNS}, resource FROM chunks WHERE cid IN ({placeholders(batch)})", batch
        ):
            rows_of.setdefault(row[CHUNK_WIDTH], []).append(row)
    found: dict[int, StoredChunk] = {}
    for id_, rows in rows_of.items():
        *row, text = connection.execute(
            f"SELECT {RESOURCE_COLUMNS}, text FROM resources LEFT JOIN bodies USING (id) WHERE id = ?", (id_,)
        ).fetchone() or _lost(f"the resource of chunk {rows[0][0]}")
        resource = to_resource(row)
        text = _present(text, resource.rid)
        for chunk in map(to_chunk, rows):
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


def scan_predecessors(connection: sqlite3.Connection) -> Iterator[tuple[int, str, str]]:
    """Number and id of each resource that supersedes another one, and the id of that one, oldest change first."""
    # Only columns that every format has: a migration relies on it.
    rows = connection.execute(
        "SELECT id, rid, fields FROM resources WHERE fields LIKE '%\"supersedes\"%' ORDER BY seq"
    ).fetchall()
    for id_, rid, fields in rows:
        replaced = predecessor(Resource(rid=rid, fields=decode_fields(fields)))
        if replaced is not None:
            yield id_, rid, replaced


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


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The values in lists of at most `size`."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def _drops(connection: sqlite3.Connection, rid: str, since: int) -> tuple[int, ...]:
    rows = connection.execute("SELECT cid FROM dropped WHERE rid = ? AND seq > ? ORDER BY cid", (rid, since))
    return tuple([cid for (cid,) in rows])


def _present(text: str | None, rid: str) -> str:
    return _lost(f"the text of {rid!r}") if text is None else text


def _lost(what: str) -> NoReturn:
    raise CorruptError(f"{what} is lost", hint="findling index --rebuild")
