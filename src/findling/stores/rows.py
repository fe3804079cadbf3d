"""Domain values as rows of any SQL store, checksums that reveal a turned bit, and the promises between its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NoReturn
from zlib import crc32

from findling.domain.errors import CorruptError, StoreDamagedError
from findling.domain.ports import SkippedPath
from findling.domain.resources import Chunk, Fingerprint, Place, Resource
from findling.stores.validation import CID_LIMIT, HEADING_SEPARATOR

RESOURCE_TEXTS = ("rid", "type", "title", "path", "author", "lang")
"""Attributes of a resource that are plain texts."""

_texts_of = attrgetter(*RESOURCE_TEXTS)

RESOURCE_COLUMNS = ", ".join((*RESOURCE_TEXTS, "tags, visibility, created_at, updated_at, fields"))

CHUNK_COLUMNS = 'cid, digest, ordinal, start, "end", line_start, line_end, heading, places'

CHUNK_WIDTH = 9

FINGERPRINT_COLUMNS = "size, mtime_ns, digest, inode"
"""`mtime_ns` holds the later one of the times at which content and status changed."""

GLOSSARY_COLUMNS = '"group", key, surface, status, source, snippet, decided_at'

Row = tuple[Any, ...]


def resource_row(resource: Resource) -> Row:
    """The values of `RESOURCE_COLUMNS`. Two resources are equal exactly when their rows are."""
    return (
        *_texts_of(resource),
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
    *texts, tags, visibility, created_at, updated_at, fields = row
    return Resource(
        **dict(zip(RESOURCE_TEXTS, texts, strict=True)),
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


def possible_cids(cids: Iterable[int]) -> list[int]:
    """Those that a chunk may have, each once."""
    return [cid for cid in dict.fromkeys(cids) if 0 <= cid < CID_LIMIT]


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


def dropped_chunks(stored: Mapping[int, Row], rows: Mapping[int, Row], *, all_of_them: bool) -> set[int]:
    """The stored chunks that legs must forget: they vanished, or what legs index of them changed."""
    if all_of_them:
        return set(stored)
    return {cid for cid, row in stored.items() if cid not in rows or _indexed(row) != _indexed(rows[cid])}


def _indexed(row: Row) -> Row:
    return row[1], row[7]  # digest and heading; the other columns only say where the chunk stands


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


def sound_vector(digest: bytes, vector: bytes, noted: int | None) -> bytes:
    """The vector, if it is what was put in. Raises CorruptError."""
    if noted is not None and vector_sum(digest, vector) != noted:
        raise CorruptError("a vector of the model is not what was put in", hint="findling doctor --repair")
    return vector


def check_row(what: str, row: Sequence[Any], noted: int | None) -> None:
    """Raise StoreDamagedError for a changed row; rows of older formats have no checksum."""
    if noted is not None and row_sum(row) != noted:
        tell_changed(what)


def check_text(what: str, text: str | bytes, noted: int | None) -> None:
    """Raise StoreDamagedError for a changed text."""
    if noted is not None and (text_sum(text) if isinstance(text, str) else crc32(text)) != noted:
        tell_changed(what)


def tell_changed(what: str) -> NoReturn:
    """Raise StoreDamagedError for something that is not what was written."""
    raise StoreDamagedError(f"{what} is not what was written", hint="findling doctor")


def tell_lost(what: str) -> NoReturn:
    """Raise StoreDamagedError for something that is gone."""
    raise StoreDamagedError(f"{what} is lost", hint="findling index --rebuild")


MOST_PROBLEMS = 20
"""Problems of a kind that are named: a damaged store would otherwise list every chunk."""


def _lone(named: str, table: str, other: str, match: str) -> str:
    """A query for the rows of a table to which none of another one belongs."""
    return f"SELECT {named} FROM {table} one WHERE NOT EXISTS (SELECT 1 FROM {other} WHERE {match})"


_OF_CHUNKS = "SELECT cid, rid FROM chunks c JOIN resources r ON r.id = c.resource WHERE"

PROMISES = (
    (
        "chunk {} belongs to a resource that is not there",
        _lone("cid", "chunks", "resources", "resources.id = one.resource"),
    ),
    ("resource {} has no text", _lone("rid", "resources", "bodies", "bodies.id = one.id")),
    ("text {} belongs to a resource that is not there", _lone("id", "bodies", "resources", "resources.id = one.id")),
    ("chunk {} of {} lies outside its text", f'{_OF_CHUNKS} start < 0 OR "end" < start OR "end" > characters'),
    ("chunk {} of {} is newer than its resource", f"{_OF_CHUNKS} c.seq > r.seq"),
    (
        "{} carries change {}, which is above the latest",
        "SELECT rid, seq FROM (SELECT rid, seq FROM resources UNION ALL SELECT rid, seq FROM deleted"
        " UNION ALL SELECT rid, seq FROM dropped) AS changed WHERE seq > (SELECT seq FROM header)",
    ),
    ("{} is both stored and deleted", "SELECT rid FROM resources WHERE rid IN (SELECT rid FROM deleted)"),
    ("vector {} belongs to a model that is not there", _lone("mark", "vectors", "models", "models.id = one.model")),
    (
        "vector {} has {} bytes, those of its model {}",
        "SELECT mark, length(vector), width FROM vectors JOIN models ON id = model WHERE length(vector) <> width",
    ),
    (
        "model {} counts {} chunks with a vector, there are {}",
        "SELECT fingerprint, covered, counted FROM (SELECT fingerprint, covered, (SELECT count(*) FROM vectors v"
        " JOIN chunks c ON c.digest = v.digest WHERE v.model = m.id) AS counted FROM models m) AS found"
        " WHERE covered <> counted",
    ),
    ("wish {} is for a chunk that is not there", _lone("cid", "wanted", "chunks", "chunks.cid = one.cid")),
)
"""The promises between the tables: sentences with the columns of what breaks one, and the queries that find that."""

SUMMED = (
    ("the relation {0} {1} {2}", "subject, relation, object", "relations"),
    ("the term {2!r} of the glossary", GLOSSARY_COLUMNS, "glossary"),
)
"""Small tables whose rows have checksums: the name of a row, its columns, and the table."""


def wrong_rows(name: str, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The rows that are not what was written; each ends in its checksum."""
    for *row, noted in rows:
        if row_sum(row) != noted:
            yield f"{name.format(*row)} is not what was written"
