"""The reading of chunks, documents and texts, each checked, in the caller's transaction."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from findling.domain.resources import Chunk, Document, Fingerprint, Resource, StoredChunk, StoredText
from findling.stores.postgres.server.arrays import bigints
from findling.stores.postgres.truth.values import plain_chunk, plain_resource, read_text, unescape
from findling.stores.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    RESOURCE_COLUMNS,
    check_row,
    possible_cids,
    tell_lost,
    to_chunk,
    to_resource,
    to_visibility,
)
from findling.text.chunking.chunk_plan import context_title, in_context

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections

_RESOURCE_WIDTH = RESOURCE_COLUMNS.count(",") + 1

_BODY = "b.digest, b.is_escaped, convert_to(b.text, 'UTF8')"
"""Columns that `read_text` takes: the text as bytes, which the digest is of."""


def prefixed(table: str, columns: str) -> str:
    """Columns of a table among those of others."""
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


def one_of(table: str, name: str, ws: str, number: str) -> str:
    """The one row of a table that belongs to a row in front of it, to be joined.

    The limit makes the server look it up. Otherwise it reads the whole table up to some 10,000 rows: 10 ms, not 0.3.
    """
    row = f"SELECT * FROM findling.{table} WHERE ws = {ws} AND number = {number} LIMIT 1"
    return f"LATERAL ({row}) AS {name} ON true"


_RESOURCE = prefixed("r", RESOURCE_COLUMNS)
_CHUNK = prefixed("c", CHUNK_COLUMNS)

_FIND_CHUNKS = f"""SELECT {_CHUNK}, c.sum, {_RESOURCE}, r.sum, r.number, b.is_escaped,
    CASE WHEN b.is_escaped THEN textsend(b.text)
    WHEN octet_length(b.text) = r.characters THEN substr(textsend(b.text), c.start + 1, c."end" - c.start)
    ELSE textsend(substr(b.text, c.start + 1, c."end" - c.start)) END
    FROM findling.chunks c LEFT JOIN {one_of("resources", "r", "c.ws", "c.resource")}
    LEFT JOIN {one_of("bodies", "b", "c.ws", "c.resource")} WHERE c.ws = %s AND c.cid = ANY(%s)"""
"""Chunks by ids, with their resources and their own texts as UTF-8.

Where each letter is one byte, the server need not count them up to the chunk: 1.0 ms for ten chunks, not 1.8.
"""

_FIND_RESOURCES = f"""SELECT c.cid, r.number, {_RESOURCE} FROM findling.chunks c
    JOIN {one_of("resources", "r", "c.ws", "c.resource")} WHERE c.ws = %s AND c.cid = ANY(%s)"""
_FIND_TEXTS = f"""SELECT r.number, r.rid, r.path, r.visibility, coalesce(r.digest, ''), {_BODY}
    FROM findling.resources r LEFT JOIN {one_of("bodies", "b", "r.ws", "r.number")}
    WHERE r.ws = %s AND r.number = ANY(%s)"""


def load_documents(connection: Connection, ws: int, numbers: Sequence[int]) -> dict[int, tuple[Document, list[int]]]:
    """Documents by the number of their resource, each with the changes that added its chunks.

    Raises StoreDamagedError when a part of one is lost or damaged.
    """
    wanted = ws, bigints(numbers)
    rows_of: dict[int, list[tuple[Any, ...]]] = {}
    chunk_rows = connection.ask(
        f"SELECT {CHUNK_COLUMNS}, sum, seq, resource FROM findling.chunks"
        " WHERE ws = %s AND resource = ANY(%s) ORDER BY resource, ordinal",
        wanted,
    )
    for row in chunk_rows:
        rows_of.setdefault(row[-1], []).append(row)
    resource_rows = connection.ask(
        f"SELECT r.number, r.size, r.mtime_ns, r.digest, coalesce(r.inode, 0), {_BODY}, r.sum, {_RESOURCE}"
        f" FROM findling.resources r LEFT JOIN {one_of('bodies', 'b', 'r.ws', 'r.number')}"
        " WHERE r.ws = %s AND r.number = ANY(%s)",
        wanted,
    )
    documents = {}
    for number, *found in resource_rows:
        resource = _checked_resource(found[8:], found[7])
        rows = rows_of.get(number, [])
        chunks = tuple([_checked_chunk(row[:CHUNK_WIDTH], row[CHUNK_WIDTH], resource.rid) for row in rows])
        fingerprint = None if found[0] is None else Fingerprint(*found[:4])
        text = read_text(resource.rid, found[4:7])
        documents[number] = Document(resource, text, chunks, fingerprint), [row[-2] for row in rows]
    return documents


def load_chunks(connections: PostgresConnections, cids: Sequence[int]) -> dict[int, StoredChunk]:
    """The chunks that exist among `cids`, in their order. Raises StoreDamagedError as `load_documents` does.

    The digest of a passage proves it. Where it is of something else, the whole text is read and checked.
    """
    rows = connections.rows(_FIND_CHUNKS, (connections.ws, bigints(possible_cids(cids))))
    known: dict[int, Resource] = {}
    found: dict[int, StoredChunk] = {}
    unproven: set[int] = set()
    with connections.read_errors:
        for row in rows:
            columns = row[CHUNK_WIDTH + 1 : CHUNK_WIDTH + 1 + _RESOURCE_WIDTH]
            noted, number, is_escaped, part = row[CHUNK_WIDTH + 1 + _RESOURCE_WIDTH :]
            if number is None:
                tell_lost(f"the resource of chunk {row[0]}")
            resource = known.get(number) or known.setdefault(number, _checked_resource(columns, noted))
            chunk = _checked_chunk(row[:CHUNK_WIDTH], row[CHUNK_WIDTH], resource.rid)
            if part is None:
                tell_lost(f"the text of {resource.rid!r}")
            text = part.decode()
            text = unescape(text)[chunk.start : chunk.end] if is_escaped else text
            if not _proves(resource, chunk, text):
                unproven.add(number)
            found[chunk.cid] = StoredChunk(chunk, resource, text)
    if unproven:
        load_texts(connections, list(unproven))
    return {cid: found[cid] for cid in cids if cid in found}


def load_resources(connections: PostgresConnections, cids: Sequence[int]) -> dict[int, Resource]:
    """The resources of those chunks that exist among `cids`, in the order of these."""
    rows = connections.rows(_FIND_RESOURCES, (connections.ws, bigints(possible_cids(cids))))
    known: dict[int, Resource] = {}
    found: dict[int, Resource] = {}
    with connections.read_errors:
        for cid, number, *columns in rows:
            found[cid] = known.get(number) or known.setdefault(number, to_resource(plain_resource(columns)))
    return {cid: found[cid] for cid in cids if cid in found}


def load_texts(connections: PostgresConnections, numbers: Sequence[int]) -> dict[int, StoredText]:
    """The texts of resources by their numbers, without their chunks. Raises StoreDamagedError for a damaged one."""
    rows = connections.rows(_FIND_TEXTS, (connections.ws, bigints(numbers)))
    found = {}
    with connections.read_errors:
        for number, rid, path, visibility, digest, *body in rows:
            name = unescape(rid)
            text = read_text(name, body)
            found[number] = StoredText(number, name, unescape(path), to_visibility(visibility), digest, text)
    return found


def _proves(resource: Resource, chunk: Chunk, text: str) -> bool:
    read = in_context(context_title(resource), chunk.heading, text).encode("utf-8", "surrogatepass")
    return blake2b(read, digest_size=16).digest() == chunk.digest


def _checked_resource(columns: Sequence[Any], noted: int) -> Resource:
    row = plain_resource(columns)
    check_row(f"the row of {row[0]!r}", row, noted)
    return to_resource(row)


def _checked_chunk(columns: Sequence[Any], noted: int, rid: str) -> Chunk:
    row = plain_chunk(columns)
    check_row(f"a chunk of {rid!r}", row, noted)
    return to_chunk(row)
