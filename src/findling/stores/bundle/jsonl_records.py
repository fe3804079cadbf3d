"""Domain values as lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from findling.domain.records import GlossaryTerm
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource
from findling.stores.rows import RESOURCE_TEXTS

Record = dict[str, Any]
"""The content of one line."""


def encode(record: object) -> bytes:
    """A value as one line of JSON without its end: readable letters, or escapes where UTF-8 has no form for them."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which names of files may hold
        return json.dumps(record, separators=(",", ":")).encode()


def create_file(path: Path) -> int:
    """Create a file of mode 0600 in place of a draft of a killed process; return its descriptor."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


def document_record(document: Document) -> Record:
    """Everything that a store keeps of a document."""
    resource, mark = document.resource, document.fingerprint
    return {
        **{name: getattr(resource, name) for name in RESOURCE_TEXTS},
        "tags": list(resource.tags),
        "visibility": None if resource.visibility is None else list(resource.visibility),
        "created_at": resource.created_at,
        "updated_at": resource.updated_at,
        "fields": dict(sorted(resource.fields.items())),
        "fingerprint": None if mark is None else fingerprint_record(mark),
        "text": document.text,
        "chunks": [
            {
                "cid": f"{cid:016x}",
                "digest": digest.hex(),
                "ordinal": ordinal,
                "span": [start, end],
                "lines": [line_start, line_end],
                "heading": list(heading),
                "places": [[place.start, place.label, place.line] for place in places],
            }
            for cid, digest, ordinal, start, end, line_start, line_end, heading, places in document.chunks
        ],
    }


def to_document(record: Mapping[str, Any]) -> Document:
    """The document in a record. Raises KeyError, TypeError or ValueError for what is none."""
    visibility, mark = record["visibility"], record["fingerprint"]
    resource = Resource(
        **{name: record[name] for name in RESOURCE_TEXTS},
        tags=tuple(record["tags"]),
        visibility=None if visibility is None else tuple(visibility),
        created_at=_time(record["created_at"]),
        updated_at=_time(record["updated_at"]),
        fields=dict(record["fields"]),
    )
    chunks = tuple([_to_chunk(chunk) for chunk in record["chunks"]])
    return Document(resource, record["text"], chunks, None if mark is None else to_fingerprint(mark))


def _to_chunk(record: Mapping[str, Any]) -> Chunk:
    (start, end), (line_start, line_end) = record["span"], record["lines"]
    return Chunk(
        int(record["cid"], 16),
        bytes.fromhex(record["digest"]),
        int(record["ordinal"]),
        int(start),
        int(end),
        int(line_start),
        int(line_end),
        tuple(record["heading"]),
        tuple([Place(int(at), str(label), int(line)) for at, label, line in record["places"]]),
    )


def fingerprint_record(fingerprint: Fingerprint) -> Record:
    """A fingerprint with its digest in hexadecimal."""
    size, changed_ns, digest, inode = fingerprint
    return {"size": size, "mtime_ns": changed_ns, "digest": digest.hex(), "inode": inode}


def to_fingerprint(record: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint in a record. Raises as `to_document` does."""
    digest = bytes.fromhex(record["digest"])
    return Fingerprint(int(record["size"]), int(record["mtime_ns"]), digest, int(record.get("inode", 0)))


def to_term(record: Mapping[str, Any]) -> GlossaryTerm:
    """The term of a glossary in a record. Raises as `to_document` does."""
    words: list[str] = [record[name] for name in GlossaryTerm._fields[:-1]]
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"a term is made of words, not of {words}")
    return GlossaryTerm._make([*words, _time(record["decided_at"])])


def _time(value: object) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise TypeError(f"{value!r} is no time")
