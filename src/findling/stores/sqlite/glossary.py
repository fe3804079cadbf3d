"""Terms of the glossary, and what supersedes what, in the tables. Runs inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Sequence

from findling.domain.records import GlossaryTerm
from findling.stores.sqlite.reads import batched, placeholders
from findling.stores.sqlite.rows import check_row, row_sum, scan_predecessors, stored_time
from findling.stores.sqlite.schema import GLOSSARY_FORMAT, GLOSSARY_VERSION, SUMS_FORMAT, read_header

__all__ = ["GLOSSARY_COLUMNS", "find_successors", "find_superseded", "load_glossary", "store_glossary"]

_IDS_PER_STATEMENT = 500

GLOSSARY_COLUMNS = '"group", key, surface, status, source, snippet, decided_at'


def load_glossary(connection: sqlite3.Connection) -> list[GlossaryTerm]:
    """All terms, ordered by group and key; none in a store that is older than the glossary."""
    try:
        rows = connection.execute(f'SELECT {GLOSSARY_COLUMNS}, sum FROM glossary ORDER BY "group", key').fetchall()
    except sqlite3.OperationalError:
        # Asked only now: nearly all stores have the column.
        if _is_older(connection):
            return []
        if read_header(connection).format >= SUMS_FORMAT:
            raise
        rows = connection.execute(f'SELECT {GLOSSARY_COLUMNS}, NULL FROM glossary ORDER BY "group", key').fetchall()
    for *row, noted in rows:
        check_row(f"the term {row[2]!r} of the glossary", row, noted)
    return [GlossaryTerm(*row[:-1]) for row in rows]


def store_glossary(
    connection: sqlite3.Connection, terms: Sequence[GlossaryTerm], dropped: Sequence[tuple[str, str]]
) -> None:
    """Drop terms by group and key, then put terms in, and count that it was done."""
    connection.executemany('DELETE FROM glossary WHERE "group" = ? AND key = ?', dropped)
    connection.executemany(
        f"INSERT OR REPLACE INTO glossary ({GLOSSARY_COLUMNS}, sum) VALUES (?,?,?,?,?,?,?,?)",
        [(*term, _sum_of(term)) for term in terms],
    )
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1",
        (GLOSSARY_VERSION,),
    )


def find_successors(
    connection: sqlite3.Connection, rids: Iterable[str], among: Container[int] | None
) -> dict[str, str]:
    """Those of the resources that another one supersedes, each with the one that does and was changed last.

    Only numbers `among` those given count, if they are.
    """
    wanted = list(dict.fromkeys(rids))
    rows: list[tuple[int, str, str]] = []
    if _is_older(connection):
        rows += scan_predecessors(connection)
    else:
        for batch in batched(wanted, _IDS_PER_STATEMENT):
            rows += connection.execute(
                f"SELECT id, rid, supersedes FROM resources WHERE supersedes IN ({placeholders(batch)}) ORDER BY seq",
                batch,
            )
    latest = {replaced: rid for number, rid, replaced in rows if among is None or number in among}
    return {rid: latest[rid] for rid in wanted if rid in latest}


def find_superseded(connection: sqlite3.Connection, among: Container[int] | None) -> list[str]:
    """Every id that some other resource supersedes, in order; `among` as above."""
    if _is_older(connection):
        pairs = [(number, replaced) for number, _, replaced in scan_predecessors(connection)]
    else:
        pairs = connection.execute("SELECT id, supersedes FROM resources WHERE supersedes IS NOT NULL").fetchall()
    return sorted({replaced for number, replaced in pairs if among is None or number in among})


def _sum_of(term: GlossaryTerm) -> int:
    *row, decided_at = term
    return row_sum((*row, stored_time(decided_at)))


def _is_older(connection: sqlite3.Connection) -> bool:
    """Whether the store is one that we may read but not migrate."""
    return read_header(connection).format < GLOSSARY_FORMAT
