"""What a SQLite store keeps besides documents and vectors: glossary, supersession, relations, accesses, values."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping, Sequence

from findling.domain.errors import StoreDamagedError
from findling.domain.permissions import RELATIONS, Relation
from findling.domain.records import Access, GlossaryTerm
from findling.stores.sqlite import schema
from findling.stores.sqlite.connections import Connections
from findling.stores.sqlite.files import StoreErrors
from findling.stores.sqlite.reads import batched, count_made, load_counts, placeholders
from findling.stores.sqlite.rows import check_row, row_sum
from findling.stores.sqlite.schema import RELATIONS_FORMAT, RELATIONS_VERSION, SUMS_FORMAT, read_header
from findling.stores.validation import check_accesses, check_glossary, check_relations

__all__ = ["SqliteRecords", "load_accesses", "load_relations", "store_accesses", "store_relations"]


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


class SqliteRecords:
    """The part of `SqliteStore` that is small tables; each has its statements in a module of its own."""

    _connections: Connections
    _errors: StoreErrors

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        """Those of the resources that another one supersedes, each with that one; of several the one changed last.

        Only resources whose number is `among` those given count as successors, if they are given.
        """
        from findling.stores.sqlite.glossary import find_successors

        with self._connections.reading() as connection:
            return find_successors(connection, rids, among)

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        """Every id that some other resource supersedes, in order; there need be no resource that has it."""
        from findling.stores.sqlite.glossary import find_superseded

        with self._connections.reading() as connection:
            return find_superseded(connection, among)

    def glossary(self) -> list[GlossaryTerm]:
        """All terms of the glossary, ordered by group and key."""
        from findling.stores.sqlite.glossary import load_glossary

        with self._connections.glancing() as connection:
            return load_glossary(connection)

    def glossary_version(self) -> int:
        """A number that rises with every `write_glossary`, whoever it is by; 0 before the first."""
        return self._version(schema.GLOSSARY_VERSION)

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms by group and key, then put terms in, in one transaction; makes no change.

        Raises InvalidValueError for a term that cannot be kept; then nothing has been written.
        """
        from findling.stores.sqlite.glossary import store_glossary

        kept, gone = list(terms), list(dropped)
        check_glossary(kept, gone)
        with self._connections.writing() as connection, self._errors:
            store_glossary(connection, kept, gone)

    def relations(self) -> list[Relation]:
        """All relations, in order."""

        with self._connections.reading() as connection, self._errors:
            return load_relations(connection)

    def relations_version(self) -> int:
        """A number that rises with every `write_relations`, whoever it is by; 0 before the first."""
        return self._version(schema.RELATIONS_VERSION)

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in, in one transaction; makes no change.

        Raises InvalidValueError for a relation that cannot be; then nothing has been written.
        """

        kept, gone = list(added), list(dropped)
        check_relations(kept)
        with self._connections.writing() as connection, self._errors:
            store_relations(connection, kept, gone)

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        """How often those of the resources were accessed that were, and when last."""

        with self._connections.glancing() as connection:
            return load_accesses(connection, rids)

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Count accesses in: the numbers add up, the latest time stays; makes no change."""

        check_accesses(accesses)
        if accesses:
            with self._connections.writing() as connection, self._errors:
                store_accesses(connection, accesses)

    def get_meta(self, key: str) -> str | None:
        """A small named value, kept with the data."""
        with self._connections.glancing() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Set a small named value."""
        with self._connections.writing() as connection, self._errors:
            connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    def counts(self) -> dict[str, int]:
        """`resources`, `chunks`, `characters`, `skipped`."""
        with self._connections.reading() as connection:
            return load_counts(connection)

    def made_counts(self) -> dict[str, int]:
        """How many there are of each type that is no file, of relations and of terms: what the store alone holds."""
        with self._connections.reading() as connection:
            return count_made(connection)

    def _version(self, key: str) -> int:
        with self._connections.glancing() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return 0 if row is None else int(row[0])
