"""Domain values as SQLite rows, checksums that reveal a turned bit, and the reading of chunks and documents."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn
from zlib import crc32

from findling.domain.errors import StoreDamagedError
from findling.domain.ports import SkippedPath
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource, StoredChunk, StoredText
from findling.stores.sqlite.connections import rows_in
from findling.stores.sqlite.schema import SUMS_FORMAT, is_older
from findling.stores.validation import CID_LIMIT, HEADING_SEPARATOR
from findling.text.chunking.chunk_plan import context_title, in_context

__all__ = [
    "CHUNK_COLUMNS",
    "CHUNK_WIDTH",
    "FINGERPRINT_COLUMNS",
    "GLOSSARY_COLUMNS",
    "RESOURCE_COLUMNS",
    "Row",
    "check_row",
    "check_text",
    "chunk_row",
    "decode_fields",
    "decode_words",
    "fingerprint_row",
    "load_chunks",
    "load_counts",
    "load_documents",
    "load_resources",
    "load_texts",
    "resource_row",
    "resource_sum",
    "row_sum",
    "skipped_row",
    "stored_time",
    "text_sum",
    "to_chunk",
    "to_resource",
    "to_skipped",
    "to_visibility",
    "vector_sum",
]


RESOURCE_COLUMNS = "rid, type, title, path, author, lang, tags, visibility, created_at, updated_at, fields"

CHUNK_COLUMNS = 'cid, digest, ordinal, start, "end", line_start, line_end, heading, places'

CHUNK_WIDTH = 9

FINGERPRINT_COLUMNS = "size, mtime_ns, digest, inode"
"""`mtime_ns` holds the later one of the times at which content and status changed."""

GLOSSARY_COLUMNS = '"group", key, surface, status, source, snippet, decided_at'

Row = tuple[Any, ...]


def resource_row(resource: Resource) -> Row:
    """The values of `RESOURCE_COLUMNS`. Two resources are equal exactly when their rows are."""
    return (
        resource.rid,
        resource.type,
        resource.title,
        resource.path,
        resource.author,
        resource.lang,
        _encode(resource.tags) if resource.tags else "",
        None if resource.visibility is None else _encode(resource.visibility),
        resource.created_at,
        resource.updated_at,
        _encode(dict(resource.fields)) if resource.fields else "",
    )


def to_visibility(text: str | None) -> tuple[str, ...] | None:
    """A list of principals; an unreadable one is empty, so that nobody sees the resource."""
    if text is None:
        return None
    try:
        return tuple(map(str, decode_words(text)))
    except ValueError:
        return ()


def to_resource(row: Sequence[Any]) -> Resource:
    """The resource in the values of `RESOURCE_COLUMNS`."""
    rid, type_, title, path, author, lang, tags, visibility, created_at, updated_at, fields = row
    return Resource(
        rid=rid,
        type=type_,
        title=title,
        path=path,
        author=author,
        lang=lang,
        tags=decode_words(tags),
        visibility=None if visibility is None else decode_words(visibility),
        created_at=created_at,
        updated_at=updated_at,
        fields=decode_fields(fields),
    )


def decode_words(text: str) -> tuple[str, ...]:
    """The words in a column of `tags` or `visibility`."""
    return tuple(_decode(text)) if text else ()


def decode_fields(text: str) -> dict[str, str]:
    """The fields in a column of `fields`."""
    return dict(_decode(text)) if text else {}


def chunk_row(chunk: Chunk) -> Row:
    """The values of `CHUNK_COLUMNS`."""
    *numbers, heading, places = chunk
    return (*numbers, HEADING_SEPARATOR.join(heading), _encode_places(chunk) if places else "")


def to_chunk(row: Sequence[Any]) -> Chunk:
    """The chunk in a row that begins with `CHUNK_COLUMNS`."""
    cid, digest, ordinal, start, end, line_start, line_end, heading, places = row[:CHUNK_WIDTH]
    headings = tuple(heading.split(HEADING_SEPARATOR)) if heading else ()
    known = _decode_places(places, start) if places else ()
    return Chunk(cid, digest, ordinal, start, end, line_start, line_end, headings, known)


def fingerprint_row(fingerprint: Fingerprint | None) -> Row:
    """The values of `FINGERPRINT_COLUMNS`."""
    return (None, None, None, None) if fingerprint is None else tuple(fingerprint)


def skipped_row(entry: SkippedPath) -> Row:
    """The columns of `skipped`, with names as bytes: they need not be valid Unicode."""
    path, reason, detail, size, changed_ns = entry
    return path.encode("utf-8", "surrogatepass"), reason, detail.encode("utf-8", "surrogatepass"), size, changed_ns


def to_skipped(row: Sequence[Any]) -> SkippedPath:
    """The entry in the columns of `skipped`."""
    path, reason, detail, size, changed_ns = row
    path, detail = path.decode("utf-8", "surrogatepass"), detail.decode("utf-8", "surrogatepass")
    return SkippedPath(path, reason, detail, size, changed_ns)


def _encode_places(chunk: Chunk) -> str:
    # Counted from the chunk's own start: what stands in front of it may change without changing this.
    return "\n".join([f"{start - chunk.start} {line} {label}" for start, label, line in chunk.places])


def _decode_places(places: str, chunk_start: int) -> tuple[Place, ...]:
    rows = [row.split(" ", 2) for row in places.split("\n")]
    return tuple([Place(chunk_start + int(start), label, int(line)) for start, line, label in rows])


def _encode(value: object) -> str:
    import json  # few resources have tags, rights or fields of their own

    # ASCII escapes keep even lone surrogates representable; sorted keys make equal mappings equal text.
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _decode(text: str) -> Any:
    import json

    return json.loads(text)


_TIMES = slice(8, 10)
"""The places of times in the row of a resource."""


def row_sum(row: Sequence[Any]) -> int:
    """The checksum of a row of numbers, bytes and texts."""
    return crc32(repr(tuple(row)).encode("utf-8", "surrogatepass"))


def resource_sum(row: Sequence[Any]) -> int:
    """The checksum of the row of a resource."""
    return row_sum((*row[: _TIMES.start], *map(stored_time, row[_TIMES]), *row[_TIMES.stop :]))


def stored_time(time: float | None) -> float | None:
    """A time as a table returns it: a float without the sign of a zero, None for NaN."""
    return None if time is None or time != time else time + 0.0


def text_sum(text: str) -> int:
    """The checksum of a text."""
    return crc32(text.encode("utf-8", "surrogatepass"))


def vector_sum(digest: bytes, vector: bytes) -> int:
    """The checksum of a vector with the digest of what it was made from."""
    return crc32(vector, crc32(digest))


def check_row(what: str, row: Sequence[Any], noted: int | None) -> None:
    """Raise StoreDamagedError for a changed row; rows of older formats have no checksum."""
    if noted is not None and row_sum(row) != noted:
        raise _changed(what)


def check_text(what: str, text: str | bytes, noted: int | None) -> None:
    """Raise StoreDamagedError for a changed text."""
    if noted is not None and (text_sum(text) if isinstance(text, str) else crc32(text)) != noted:
        raise _changed(what)


def _changed(what: str) -> StoreDamagedError:
    return StoreDamagedError(f"{what} is not what was written", hint="findling doctor")


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
    for row in rows_in(connection, _CHUNKS_NAMED[has_sums], _possible(cids)):
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
        _lost(f"the resource of chunk {rows[0][0]}")
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
            text = "" if len(blob) == characters else blob.read().decode("utf-8")
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
    row = connection.execute(query, (id_,)).fetchone() or _lost(f"the text of {rid!r}")
    check_text(f"the text of {rid!r}", *row)
    return _decoded(row[0], rid)


def load_resources(
    connection: sqlite3.Connection, cids: Sequence[int], known: dict[int, Resource]
) -> dict[int, Resource]:
    """The resources of those chunks that exist among `cids`, in the order of these.

    `known` are resources of the same state by their numbers; it grows.
    """
    number_of: dict[int, int] = {}
    number_of.update(rows_in(connection, "SELECT cid, resource FROM chunks WHERE cid IN ({})", _possible(cids)))
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
        check_text(f"the text of {rid!r}", _lost(f"the text of {rid!r}") if data is None else data, noted_sum)
        text = _decoded(data, rid)
        found[number] = StoredText(number, rid, path, to_visibility(visibility), digest, text)
    return found


def load_counts(connection: sqlite3.Connection) -> dict[str, int]:
    """`resources`, `chunks`, `characters`, `skipped`."""
    row = connection.execute(
        "SELECT count(*), (SELECT count(*) FROM chunks), coalesce(sum(characters), 0),"
        " (SELECT count(*) FROM skipped) FROM resources"
    ).fetchone()
    return dict(zip(("resources", "chunks", "characters", "skipped"), row, strict=True))


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
        _lost(f"the text of {rid!r}")
    check_text(f"the text of {rid!r}", text, noted_text)
    return to_resource(columns), text


def _decoded(data: bytes, rid: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:  # of a store without checksums
        raise _changed(f"the text of {rid!r}") from error


def _checked_chunk(row: Sequence[Any], rid: str) -> Chunk:
    check_row(f"a chunk of {rid!r}", row[:CHUNK_WIDTH], row[CHUNK_WIDTH])
    return to_chunk(row)


def _lost(what: str) -> NoReturn:
    raise StoreDamagedError(f"{what} is lost", hint="findling index --rebuild")
