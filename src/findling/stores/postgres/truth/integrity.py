"""The checks of `findling doctor` on a workspace: the promises between the tables, then every checksum."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from findling.domain.errors import StoreDamagedError
from findling.domain.resources import Resource
from findling.stores.postgres.truth.reads import load_documents
from findling.stores.postgres.truth.values import unescape
from findling.stores.rows import MOST_PROBLEMS, PROMISES, SUMMED, wrong_rows
from findling.stores.validation import batched, predecessor

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

_DOCUMENTS_PER_BATCH = 64

# The policies of the tables limit every statement to the workspace; the numbers say so once more for each table.
_TABLES = {
    "header": "* FROM findling.workspaces",
    "dropped": "'chunk ' || cid AS rid, seq FROM findling.dropped",
    **{table: f"number AS id, * FROM findling.{table}" for table in ("resources", "bodies")},
    **{table: f"* FROM findling.{table}" for table in ("chunks", "deleted", "models", "vectors", "wanted")},
}
_AS_TABLES = ", ".join(f"{name} AS (SELECT {columns} WHERE ws = %(ws)s)" for name, columns in _TABLES.items())
"""The tables of the workspace under the names and keys that the promises know; the server looks through them."""

_PROMISES = (
    *PROMISES,
    (
        "{} has number {}, which is above the latest",
        "SELECT rid, number FROM resources WHERE number > (SELECT number FROM header)",
    ),
)


def find_problems(connection: Connection, ws: int) -> list[str]:
    """One sentence per problem; an empty list for a healthy workspace."""
    problems = []
    for sentence, query in _PROMISES:
        rows = connection.execute(f"WITH {_AS_TABLES} {query} LIMIT {MOST_PROBLEMS}", {"ws": ws})
        problems += [sentence.format(*map(_shown, row)) for row in rows]
    problems += islice(_wrong_documents(connection, ws), MOST_PROBLEMS)
    problems += islice(_wrong_predecessors(connection, ws), MOST_PROBLEMS)
    problems += islice(_wrong_records(connection, ws), MOST_PROBLEMS)
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
    for name, columns, table in SUMMED:
        rows = connection.execute(f"SELECT {columns}, sum FROM findling.{table} WHERE ws = %s", (ws,))
        yield from wrong_rows(name, (tuple(map(_shown, row)) for row in rows))


def _shown(value: object) -> object:
    return unescape(value) if isinstance(value, str) else value
