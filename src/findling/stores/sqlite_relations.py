"""Relations between principals and resources, and accesses, in the tables. Runs inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from findling.domain.errors import StoreDamagedError
from findling.domain.permissions import RELATIONS, Relation
from findling.domain.records import Access
from findling.stores.schema import RELATIONS_FORMAT, RELATIONS_VERSION, SUMS_FORMAT, read_header
from findling.stores.sqlite_reads import batched, placeholders
from findling.stores.sums import check_row, row_sum

__all__ = ["load_accesses", "load_relations", "store_accesses", "store_relations"]

_IDS_PER_STATEMENT = 500


def load_relations(connection: sqlite3.Connection) -> list[Relation]:
    """All relations, in order; none in a store that is older than they are."""
    if _is_older(connection):
        return []
    columns = f"subject, relation, object, {'sum' if read_header(connection).format >= SUMS_FORMAT else 'NULL'}"
    try:
        rows = connection.execute(f"SELECT {columns} FROM relations ORDER BY 1, 2, 3").fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        raise StoreDamagedError("the index has lost its relations", hint="findling snapshot list") from error
    for *row, noted_sum in rows:
        check_row(f"the relation {' '.join(map(str, row))}", row, noted_sum)
    if unknown := {row[1] for row in rows}.difference(RELATIONS):
        # A denial that is not understood must not be passed over.
        raise StoreDamagedError(f"the index holds relations called {min(unknown)!r}", hint="findling snapshot list")
    return [Relation(*row[:3]) for row in rows]


def store_relations(connection: sqlite3.Connection, added: Sequence[Relation], dropped: Sequence[Relation]) -> None:
    """Drop relations, then put relations in, and count that it was done."""
    connection.executemany("DELETE FROM relations WHERE subject = ? AND relation = ? AND object = ?", dropped)
    connection.executemany(
        "INSERT OR IGNORE INTO relations VALUES (?, ?, ?, ?)", [(*one, row_sum(one)) for one in added]
    )
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1",
        (RELATIONS_VERSION,),
    )


def load_accesses(connection: sqlite3.Connection, rids: Iterable[str]) -> dict[str, Access]:
    """The accesses of those resources that have any."""
    if _is_older(connection):
        return {}
    found: dict[str, Access] = {}
    for batch in batched(dict.fromkeys(rids), _IDS_PER_STATEMENT):
        rows = connection.execute(
            f"SELECT rid, count, last_at FROM accesses WHERE rid IN ({placeholders(batch)})", batch
        )
        found |= {rid: Access(count, last_at) for rid, count, last_at in rows}
    return found


def store_accesses(connection: sqlite3.Connection, accesses: Mapping[str, Access]) -> None:
    """Count accesses in."""
    connection.executemany(
        "INSERT INTO accesses VALUES (?, ?, ?) ON CONFLICT (rid) DO UPDATE"
        " SET count = count + excluded.count, last_at = max(last_at, excluded.last_at)",
        [(rid, access.count, access.last_at) for rid, access in accesses.items()],
    )


def _is_older(connection: sqlite3.Connection) -> bool:
    """Whether the store is one that we may read but not migrate."""
    return read_header(connection).format < RELATIONS_FORMAT
