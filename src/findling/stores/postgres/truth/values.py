"""Values as PostgreSQL can keep them: escapes, hashes of long keys, rows of resources, chunks and texts."""

from __future__ import annotations

import re
from _blake2 import blake2b  # that of hashlib, without 3 ms of OpenSSL
from collections.abc import Sequence
from typing import Any, NamedTuple

from findling.domain.resources import Resource
from findling.stores.rows import RESOURCE_TEXTS, Row, resource_row, stored_time, tell_changed, tell_lost

_ESCAPE = "\x10"
"""ASCII's data link escape: ordinary text has none, and stays readable in SQL."""

_AWKWARD = re.compile("[\0\x10\ud800-\udfff]")
_ESCAPED = re.compile("\x10([0-9a-f]{4})")

_TEXTS = len(RESOURCE_TEXTS)
"""Columns of a resource that hold texts as they are: the first ones. Tags and others are JSON in ASCII."""


class StoredBody(NamedTuple):
    """The text of a resource as its table holds it."""

    digest: bytes
    is_escaped: bool
    data: bytes


def escape(text: str) -> str:
    """A text without NUL and without halves of surrogate pairs, which PostgreSQL refuses."""
    if "\0" not in text and _ESCAPE not in text and (text.isascii() or not _AWKWARD.search(text)):
        return text
    return _AWKWARD.sub(_escaped, text)


def unescape(text: str) -> str:
    """The text that was escaped."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text


def body_of(text: str) -> StoredBody:
    """The text of a document, which is valid Unicode, with the digest of what is kept."""
    is_escaped = "\0" in text or _ESCAPE in text
    data = (_AWKWARD.sub(_escaped, text) if is_escaped else text).encode()
    return StoredBody(blake2b(data, digest_size=16).digest(), is_escaped, data)


def read_text(rid: str, body: Sequence[Any]) -> str:
    """The text in a row of `digest, is_escaped, data`. Raises StoreDamagedError when it is lost or changed."""
    digest, is_escaped, data = body
    if data is None:
        tell_lost(f"the text of {rid!r}")
    if blake2b(data, digest_size=16).digest() != digest:
        tell_changed(f"the text of {rid!r}")
    text: str = data.decode()
    return unescape(text) if is_escaped else text


def hash_of(*parts: str) -> bytes:
    """A key of 16 bytes for texts of any length."""
    joined = parts[0] if len(parts) == 1 else "".join(f"{len(part)}:{part}" for part in parts)
    return blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def stored_resource(resource: Resource) -> Row:
    """The values of `RESOURCE_COLUMNS`, not escaped. Two resources are equal exactly when their rows are."""
    *texts, created_at, updated_at, fields = resource_row(resource)
    return (*texts, stored_time(created_at), stored_time(updated_at), fields)


def plain_resource(columns: Sequence[Any]) -> Row:
    """The values of `RESOURCE_COLUMNS` out of their table."""
    return (*map(unescape, columns[:_TEXTS]), *columns[_TEXTS:])


def stored_chunk(row: Row) -> Row:
    """The values of `CHUNK_COLUMNS` as their table holds them."""
    *numbers, heading, places = row
    return (*numbers, escape(heading), escape(places))


def plain_chunk(row: Sequence[Any]) -> Row:
    """The values of `CHUNK_COLUMNS` out of their table."""
    *numbers, heading, places = row
    return (*numbers, unescape(heading), unescape(places))


def _escaped(found: re.Match[str]) -> str:
    return f"{_ESCAPE}{ord(found[0]):04x}"
