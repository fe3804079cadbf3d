"""The reading of chunks, documents and texts from SQLite, each checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from findling.domain.resources import Chunk, Document, Fingerprint, Resource, StoredChunk, StoredText
from findling.stores.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    RESOURCE_COLUMNS,
    Row,
    check_row,
    check_text,
    possible_cids,
    tell_changed,
    tell_lost,
    to_chunk,
    to_resource,
    to_visibility,
)
from findling.stores.sqlite.connections import rows_in
from findling.stores.sqlite.schema import SUMS_FORMAT, is_older
from findling.text.chunking.chunk_plan import context_title, in_context


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


def load_chunks(
    connection: sqlite3.Connection, cids: Sequence[int], *, has_sums: bool = True
) -> dict[int, StoredChunk]:
    """The chunks that exist among `cids`, in their order.

    A store of an older format has no checksums. Raises StoreDamagedError as `load_documents` does.
    """
    rows_of: dict[int, list[Row]] = {}
    for row in rows_in(connection, _CHUNKS_NAMED[has_sums], possible_cids(cids)):
        rows_of.setdefault(row[-1], []).append(row)
    found: dict[int, StoredChunk] = {}
    for id_, characters, *columns, noted in rows_in(connection, _RESOURCES_NAMED[has_sums], rows_of):
        check_row(f"the row of {columns[0]!r}", columns, noted)
        resource = to_resource(columns)
        chunks = [_checked_chunk(row, resource.rid) for row in rows_of.pop(id_)]
        parts = _proven_parts(connection, id_, characters, resource, chunks) if characters > _SMALL else None
        if parts is None:
            text = _whole_text(connection, id_, resource.rid, has_sums=has_sums)
            parts = [text[chunk.start : chunk.end] for chunk in chunks]
        for chunk, part in zip(chunks, parts, strict=True):
            found[chunk.cid] = StoredChunk(chunk, resource, part)
    for rows in rows_of.values():
        tell_lost(f"the resource of chunk {rows[0][0]}")
    return {cid: found[cid] for cid in cids if cid in found}


_SMALL = 10_000
"""Characters up to which a text is read and checked as a whole in the time that a part takes: 10 µs."""


def _proven_parts(
    connection: sqlite3.Connection, id_: int, characters: int, resource: Resource, chunks: Sequence[Chunk]
) -> list[str] | None:
    """The texts of chunks, each proven by its digest; `None` if the checksum of the whole text has to be asked.

    Of a text in ASCII, whose characters are bytes, nothing else is read.
    """
    from _blake2 import blake2b  # that of hashlib, without 3 ms of OpenSSL

    parts, title = [], context_title(resource)
    try:
        with connection.blobopen("bodies", "text", id_, readonly=True) as blob:
            more = len(blob) - characters
            # Up to the last chunk alone: to read on took twice as long. What is cut or damaged fails its digest.
            text = blob.read(max([chunk.end for chunk in chunks]) + more).decode("utf-8", "ignore") if more else ""
            for chunk in chunks:
                if text:
                    part = text[chunk.start : chunk.end]
                else:
                    blob.seek(chunk.start)
                    part = blob.read(chunk.end - chunk.start).decode("ascii")
                read = in_context(title, chunk.heading, part).encode("utf-8", "surrogatepass")
                if blake2b(read, digest_size=16).digest() != chunk.digest:
                    return None
                parts.append(part)
    except (sqlite3.OperationalError, ValueError):  # no such text, no such place, no UTF-8
        return None
    return parts


def _whole_text(connection: sqlite3.Connection, id_: int, rid: str, *, has_sums: bool) -> str:
    # As bytes, which the checksum is of.
    query = f"SELECT CAST(text AS BLOB), {'sum' if has_sums else 'NULL'} FROM bodies WHERE id = ?"
    row = connection.execute(query, (id_,)).fetchone() or tell_lost(f"the text of {rid!r}")
    check_text(f"the text of {rid!r}", *row)
    return _decoded(row[0], rid)


def load_resources(
    connection: sqlite3.Connection, cids: Sequence[int], known: dict[int, Resource]
) -> dict[int, Resource]:
    """The resources of those chunks that exist among `cids`, in the order of these.

    `known` are resources of the same state by their numbers; it grows.
    """
    number_of: dict[int, int] = {}
    number_of.update(rows_in(connection, "SELECT cid, resource FROM chunks WHERE cid IN ({})", possible_cids(cids)))
    if missing := set(number_of.values()) - known.keys():
        known.update({row[0]: to_resource(row[1:]) for row in rows_in(connection, _RESOURCES_KNOWN, missing)})
    return {cid: known[number_of[cid]] for cid in cids if cid in number_of}


def load_texts(connection: sqlite3.Connection, ids: Sequence[int]) -> dict[int, StoredText]:
    """The texts of resources by their numbers, without their chunks. Raises StoreDamagedError for a damaged one."""
    noted = "NULL" if is_older(connection, SUMS_FORMAT) else "bodies.sum"
    # As bytes, which the checksum is of: 40 % of the time of a text that is encoded for it.
    columns = f"id, rid, path, visibility, coalesce(digest, x''), {noted}, CAST(text AS BLOB)"
    found = {}
    for row in rows_in(
        connection, f"SELECT {columns} FROM resources LEFT JOIN bodies USING (id) WHERE id IN ({{}})", ids
    ):
        number, rid, path, visibility, digest, noted_sum, data = row
        check_text(f"the text of {rid!r}", tell_lost(f"the text of {rid!r}") if data is None else data, noted_sum)
        found[number] = StoredText(number, rid, path, to_visibility(visibility), digest, _decoded(data, rid))
    return found


def load_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """`resources`, `chunks`, `characters`, `skipped`."""
    row = connection.execute(
        "SELECT count(*), (SELECT count(*) FROM chunks), coalesce(sum(characters), 0),"
        " (SELECT count(*) FROM skipped) FROM resources"
    ).fetchone()
    return dict(zip(("resources", "chunks", "characters", "skipped"), row, strict=True))


def _chunks(has_sums: bool) -> str:
    """A query for rows that `_checked_chunk` takes; they end in the change and the number of the resource."""
    return f"SELECT {CHUNK_COLUMNS}, {'sum' if has_sums else 'NULL'}, seq, resource FROM chunks"


def _resources(has_sums: bool, *more: str) -> str:
    """A query for rows that end in what `_checked` takes."""
    sums = "resources.sum, bodies.sum" if has_sums else "NULL, NULL"
    columns = ", ".join((*more, RESOURCE_COLUMNS, sums, "text"))
    return f"SELECT {columns} FROM resources LEFT JOIN bodies USING (id)"


_RESOURCES_KNOWN = f"SELECT id, {RESOURCE_COLUMNS} FROM resources WHERE id IN ({{}})"
_CHUNKS_NAMED = [f"{_chunks(has_sums)} WHERE cid IN ({{}})" for has_sums in (False, True)]
_RESOURCES_NAMED = [
    f"SELECT id, characters, {RESOURCE_COLUMNS}, {noted} FROM resources WHERE id IN ({{}})" for noted in ("NULL", "sum")
]


def _checked(row: Sequence[Any]) -> tuple[Resource, Any]:
    """The resource and the text in a row, if they are what was written."""
    *columns, noted, noted_text, text = row
    rid = columns[0]
    check_row(f"the row of {rid!r}", columns, noted)
    if text is None:
        tell_lost(f"the text of {rid!r}")
    check_text(f"the text of {rid!r}", text, noted_text)
    return to_resource(columns), text


def _decoded(data: bytes, rid: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:  # of a store without checksums
        tell_changed(f"the text of {rid!r}")


def _checked_chunk(row: Sequence[Any], rid: str) -> Chunk:
    check_row(f"a chunk of {rid!r}", row[:CHUNK_WIDTH], row[CHUNK_WIDTH])
    return to_chunk(row)
