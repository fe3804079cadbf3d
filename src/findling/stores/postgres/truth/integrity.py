"""The checks of `findling doctor` on a workspace: the promises between the tables, then every checksum."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from findling.domain.errors import StoreDamagedError
from findling.domain.resources import Resource
from findling.stores.postgres.truth.reads import load_documents
from findling.stores.postgres.truth.values import unescape
from findling.stores.rows import GLOSSARY_COLUMNS, row_sum
from findling.stores.validation import batched, predecessor

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

_MOST_PROBLEMS = 20
"""Per kind: a damaged store would otherwise list every chunk."""

_DOCUMENTS_PER_BATCH = 64

# The policies of the tables limit every statement to the workspace; the numbers say so once more for each table.
_OF_CHUNKS = "findling.chunks c JOIN findling.resources r ON r.ws = c.ws AND r.number = c.resource WHERE c.ws = %(ws)s"
_PROMISES = (
    (
        "chunk {} belongs to a resource that is not there",
        "SELECT cid FROM findling.chunks c WHERE ws = %(ws)s AND NOT EXISTS"
        " (SELECT FROM findling.resources r WHERE r.ws = c.ws AND r.number = c.resource)",
    ),
    (
        "resource {} has no text",
        "SELECT rid FROM findling.resources r WHERE ws = %(ws)s AND NOT EXISTS"
        " (SELECT FROM findling.bodies b WHERE b.ws = r.ws AND b.number = r.number)",
    ),
    (
        "text {} belongs to a resource that is not there",
        "SELECT number FROM findling.bodies b WHERE ws = %(ws)s AND NOT EXISTS"
        " (SELECT FROM findling.resources r WHERE r.ws = b.ws AND r.number = b.number)",
    ),
    (
        "chunk {} of {} lies outside its text",
        f'SELECT cid, rid FROM {_OF_CHUNKS} AND (start < 0 OR "end" < start OR "end" > characters)',
    ),
    ("chunk {} of {} is newer than its resource", f"SELECT cid, rid FROM {_OF_CHUNKS} AND c.seq > r.seq"),
    (
        "{} carries change {}, which is above the latest",
        "SELECT rid, seq FROM (SELECT rid, seq FROM findling.resources WHERE ws = %(ws)s"
        " UNION ALL SELECT rid, seq FROM findling.deleted WHERE ws = %(ws)s"
        " UNION ALL SELECT 'chunk ' || cid, seq FROM findling.dropped WHERE ws = %(ws)s) AS changed"
        " WHERE seq > (SELECT seq FROM findling.workspaces WHERE ws = %(ws)s)",
    ),
    (
        "{} has number {}, which is above the latest",
        "SELECT rid, number FROM findling.resources WHERE ws = %(ws)s"
        " AND number > (SELECT number FROM findling.workspaces WHERE ws = %(ws)s)",
    ),
    (
        "{} is both stored and deleted",
        "SELECT r.rid FROM findling.resources r JOIN findling.deleted d ON d.ws = r.ws AND d.rid_hash = r.rid_hash"
        " WHERE r.ws = %(ws)s",
    ),
    (
        "vector {} belongs to a model that is not there",
        "SELECT mark FROM findling.vectors v WHERE ws = %(ws)s AND NOT EXISTS"
        " (SELECT FROM findling.models m WHERE m.ws = v.ws AND m.id = v.model)",
    ),
    (
        "vector {} has {} bytes, those of its model {}",
        "SELECT mark, length(vector), width FROM findling.vectors v JOIN findling.models m ON m.ws = v.ws"
        " AND m.id = v.model WHERE v.ws = %(ws)s AND length(vector) <> width",
    ),
    (
        "model {} counts {} chunks with a vector, there are {}",
        "SELECT fingerprint, covered, counted FROM (SELECT fingerprint, covered,"
        " (SELECT count(*) FROM findling.vectors v JOIN findling.chunks c ON c.ws = v.ws AND c.digest = v.digest"
        " WHERE v.ws = m.ws AND v.model = m.id) AS counted"
        " FROM findling.models m WHERE ws = %(ws)s) AS models WHERE covered <> counted",
    ),
    (
        "wish {} is for a chunk that is not there",
        "SELECT cid FROM findling.wanted w WHERE ws = %(ws)s AND NOT EXISTS"
        " (SELECT FROM findling.chunks c WHERE c.ws = w.ws AND c.cid = w.cid)",
    ),
)


def find_problems(connection: Connection, ws: int) -> list[str]:
    """One sentence per problem; an empty list for a healthy workspace."""
    problems = []
    for sentence, query in _PROMISES:
        rows = connection.execute(f"{query} LIMIT {_MOST_PROBLEMS}", {"ws": ws})
        problems += [sentence.format(*map(_shown, row)) for row in rows]
    problems += islice(_wrong_documents(connection, ws), _MOST_PROBLEMS)
    problems += islice(_wrong_predecessors(connection, ws), _MOST_PROBLEMS)
    problems += islice(_wrong_records(connection, ws), _MOST_PROBLEMS)
    return problems


def _wrong_documents(connection: Connection, ws: int) -> Iterator[str]:
    """Resources, texts and chunks that are not what was written, by their checksums."""
    rows = connection.execute("SELECT number, characters FROM findling.resources WHERE ws = %s ORDER BY number", (ws,))
    characters: dict[int, int] = dict(rows.fetchall())
    for batch in batched(characters, _DOCUMENTS_PER_BATCH):
        try:
            documents = load_documents(connection, ws, batch)
        except StoreDamagedError:
            documents = {}
            for number in batch:  # one by one, for the name of each
                try:
                    documents |= load_documents(connection, ws, [number])
                except StoreDamagedError as error:
                    yield error.message
        for number, (document, _) in documents.items():
            length, noted = len(document.text), characters[number]
            if length != noted:
                yield f"text of {document.resource.rid} has {length} characters, not {noted}"


def _wrong_predecessors(connection: Connection, ws: int) -> Iterator[str]:
    rows = connection.execute(
        "SELECT rid, fields, supersedes FROM findling.resources WHERE ws = %s"
        " AND (supersedes IS NOT NULL OR fields LIKE '%%\"supersedes\"%%') ORDER BY number",
        (ws,),
    )
    for rid, fields, noted in rows:
        name = unescape(rid)
        stated = predecessor(Resource(rid=name, fields=json.loads(fields or "{}")))
        if stated != (None if noted is None else unescape(noted)):
            yield f"{name} and its fields differ on whether it supersedes {noted or stated}"


def _wrong_records(connection: Connection, ws: int) -> Iterator[str]:
    tables = (
        ("the relation {0} {1} {2}", "subject, relation, object", "relations"),
        ("the term {2!r} of the glossary", GLOSSARY_COLUMNS, "glossary"),
    )
    for name, columns, table in tables:
        for *row, noted in connection.execute(f"SELECT {columns}, sum FROM findling.{table} WHERE ws = %s", (ws,)):
            plain = _plain(row)
            if row_sum(plain) != noted:
                yield f"{name.format(*plain)} is not what was written"


def _plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(_shown, row))


def _shown(value: object) -> object:
    return unescape(value) if isinstance(value, str) else value
