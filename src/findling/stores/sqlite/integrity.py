"""The checks of `findling doctor` on a store: SQLite's own, then the promises between the tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import islice

from findling.stores.rows import (
    CHUNK_COLUMNS,
    MOST_PROBLEMS,
    PROMISES,
    RESOURCE_COLUMNS,
    SUMMED,
    text_sum,
    wrong_rows,
)
from findling.stores.sqlite.schema import GLOSSARY_FORMAT, SUMS_FORMAT, is_older, scan_predecessors


def find_problems(connection: sqlite3.Connection) -> list[str]:
    """One sentence per problem; an empty list for a healthy store."""
    try:
        problems = [row[0] for row in connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})") if row[0] != "ok"]
        if problems:
            return problems  # the tables are not to be trusted then
        for sentence, query in PROMISES:
            rows = connection.execute(f"{query} LIMIT {MOST_PROBLEMS}")
            problems.extend(sentence.format(*row) for row in rows)
        problems.extend(_wrong_lengths(connection))
        if not is_older(connection, GLOSSARY_FORMAT):
            problems.extend(_wrong_predecessors(connection))
        if not is_older(connection, SUMS_FORMAT):
            problems.extend(islice(_wrong_rows(connection), MOST_PROBLEMS))
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
        f"text of {rid} has {length} characters, not {count}" for rid, count, length in islice(wrong, MOST_PROBLEMS)
    ]


def _wrong_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Rows that are not what was written, by their checksums."""
    for rid, noted, text in connection.execute("SELECT rid, bodies.sum, text FROM resources JOIN bodies USING (id)"):
        if noted is not None and text_sum(text) != noted:
            yield f"the text of {rid!r} is not what was written"
    for name, columns, table in (
        ("the row of {0!r}", RESOURCE_COLUMNS, "resources"),
        ("chunk {0}", CHUNK_COLUMNS, "chunks"),
        *SUMMED,
    ):
        yield from wrong_rows(name, connection.execute(f"SELECT {columns}, sum FROM {table} WHERE sum IS NOT NULL"))


def _wrong_predecessors(connection: sqlite3.Connection) -> list[str]:
    noted = set(connection.execute("SELECT rid, supersedes FROM resources WHERE supersedes IS NOT NULL"))
    stated = {(rid, replaced) for _, rid, replaced in scan_predecessors(connection)}
    wrong = sorted(noted ^ stated)[:MOST_PROBLEMS]
    return [f"{rid} and its fields differ on whether it supersedes {replaced}" for rid, replaced in wrong]
