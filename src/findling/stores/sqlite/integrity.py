"""The checks of `findling doctor` on a store: SQLite's own, then the promises between the tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice

from findling.stores.rows import CHUNK_COLUMNS, GLOSSARY_COLUMNS, RESOURCE_COLUMNS, row_sum, text_sum
from findling.stores.sqlite.schema import GLOSSARY_FORMAT, SUMS_FORMAT, is_older, scan_predecessors

_MOST_PROBLEMS = 20
"""Per kind: a damaged store would otherwise list every chunk."""

_PROMISES = (
    (
        "chunk {} belongs to a resource that is not there",
        "SELECT cid FROM chunks WHERE resource NOT IN (SELECT id FROM resources)",
    ),
    ("resource {} has no text", "SELECT rid FROM resources WHERE id NOT IN (SELECT id FROM bodies)"),
    (
        "text {} belongs to a resource that is not there",
        "SELECT id FROM bodies WHERE id NOT IN (SELECT id FROM resources)",
    ),
    (
        "chunk {} of {} lies outside its text",
        """SELECT cid, rid FROM chunks c JOIN resources r ON r.id = c.resource
           WHERE start < 0 OR "end" < start OR "end" > characters""",
    ),
    (
        "chunk {} of {} is newer than its resource",
        "SELECT cid, rid FROM chunks c JOIN resources r ON r.id = c.resource WHERE c.seq > r.seq",
    ),
    (
        "{} carries change {}, which is above the latest",
        """SELECT rid, seq FROM (SELECT rid, seq FROM resources UNION ALL SELECT rid, seq FROM deleted
           UNION ALL SELECT rid, seq FROM dropped) WHERE seq > (SELECT seq FROM header)""",
    ),
    ("{} is both stored and deleted", "SELECT rid FROM resources WHERE rid IN (SELECT rid FROM deleted)"),
    (
        "vector {} belongs to a model that is not there",
        "SELECT mark FROM vectors WHERE model NOT IN (SELECT id FROM models)",
    ),
    (
        "vector {} has {} bytes, those of its model {}",
        """SELECT mark, length(vector), width FROM vectors JOIN models ON id = model WHERE length(vector) != width""",
    ),
    (
        "model {} counts {} chunks with a vector, there are {}",
        """SELECT fingerprint, covered, counted FROM (SELECT fingerprint, covered,
           (SELECT count(*) FROM vectors v JOIN chunks c ON c.digest = v.digest WHERE v.model = models.id) AS counted
           FROM models) WHERE covered != counted""",
    ),
    ("wish {} is for a chunk that is not there", "SELECT cid FROM wanted WHERE cid NOT IN (SELECT cid FROM chunks)"),
)


def find_problems(connection: sqlite3.Connection) -> list[str]:
    """One sentence per problem; an empty list for a healthy store."""
    try:
        problems = [row[0] for row in connection.execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})") if row[0] != "ok"]
        if problems:
            return problems  # the tables are not to be trusted then
        for sentence, query in _PROMISES:
            rows = connection.execute(f"{query} LIMIT {_MOST_PROBLEMS}")
            problems.extend(sentence.format(*row) for row in rows)
        problems.extend(_wrong_lengths(connection))
        if not is_older(connection, GLOSSARY_FORMAT):
            problems.extend(_wrong_predecessors(connection))
        if not is_older(connection, SUMS_FORMAT):
            problems.extend(islice(_wrong_rows(connection), _MOST_PROBLEMS))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        # A page too damaged to be read ends the search, and is itself the answer.
        return [f"the file is damaged: {error}"]
    return problems


def _wrong_lengths(connection: sqlite3.Connection) -> list[str]:
    # Counted here and not by SQL's length(), which stops at the first NUL character.
    rows = connection.execute("SELECT rid, characters, text FROM resources JOIN bodies USING (id)")
    wrong = ((rid, count, len(text)) for rid, count, text in rows if len(text) != count)
    return [
        f"text of {rid} has {length} characters, not {count}" for rid, count, length in islice(wrong, _MOST_PROBLEMS)
    ]


def _wrong_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Rows that are not what was written, by their checksums."""
    for rid, noted, text in connection.execute("SELECT rid, bodies.sum, text FROM resources JOIN bodies USING (id)"):
        if noted is not None and text_sum(text) != noted:
            yield f"the text of {rid!r} is not what was written"
    tables = (
        ("the row of {0!r}", RESOURCE_COLUMNS, "resources"),
        ("chunk {0}", CHUNK_COLUMNS, "chunks"),
        ("the relation {0} {1} {2}", "subject, relation, object", "relations"),
        ("the term {2!r} of the glossary", GLOSSARY_COLUMNS, "glossary"),
    )
    for name, columns, table in tables:
        for *row, noted in connection.execute(f"SELECT {columns}, sum FROM {table} WHERE sum IS NOT NULL"):
            if row_sum(row) != noted:
                yield f"{name.format(*row)} is not what was written"


def _wrong_predecessors(connection: sqlite3.Connection) -> list[str]:
    noted = set(connection.execute("SELECT rid, supersedes FROM resources WHERE supersedes IS NOT NULL"))
    stated = {(rid, replaced) for _, rid, replaced in scan_predecessors(connection)}
    wrong = sorted(noted ^ stated)[:_MOST_PROBLEMS]
    return [f"{rid} and its fields differ on whether it supersedes {replaced}" for rid, replaced in wrong]
