"""What a SQLite store keeps besides documents and vectors: glossary, supersession, relations, accesses, values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from findling.domain.records import GlossaryTerm
from findling.stores import schema
from findling.stores.admission import check_accesses, check_glossary, check_relations
from findling.stores.sqlite_connections import Connections
from findling.stores.sqlite_files import StoreErrors
from findling.stores.sqlite_reads import count_made, load_counts

if TYPE_CHECKING:
    from findling.domain.permissions import Relation
    from findling.domain.records import Access

__all__ = ["SqliteRecords"]


class SqliteRecords:
    """The part of `SqliteStore` that is small tables; each has its statements in a module of its own."""

    _connections: Connections
    _errors: StoreErrors

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        """Those of the resources that another one supersedes, each with that one; of several the one changed last.

        Only resources whose number is `among` those given count as successors, if they are given.
        """
        from findling.stores.sqlite_glossary import find_successors

        with self._connections.reading() as connection:
            return find_successors(connection, rids, among)

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        """Every id that some other resource supersedes, in order; there need be no resource that has it."""
        from findling.stores.sqlite_glossary import find_superseded

        with self._connections.reading() as connection:
            return find_superseded(connection, among)

    def glossary(self) -> list[GlossaryTerm]:
        """All terms of the glossary, ordered by group and key."""
        from findling.stores.sqlite_glossary import load_glossary

        with self._connections.glancing() as connection:
            return load_glossary(connection)

    def glossary_version(self) -> int:
        """A number that rises with every `write_glossary`, whoever it is by; 0 before the first."""
        return self._version(schema.GLOSSARY_VERSION)

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms by group and key, then put terms in, in one transaction; makes no change.

        Raises InvalidValueError for a term that cannot be kept; then nothing has been written.
        """
        from findling.stores.sqlite_glossary import store_glossary

        kept, gone = list(terms), list(dropped)
        check_glossary(kept, gone)
        with self._connections.writing() as connection, self._errors:
            store_glossary(connection, kept, gone)

    def relations(self) -> list[Relation]:
        """All relations, in order."""
        from findling.stores.sqlite_relations import load_relations

        with self._connections.reading() as connection, self._errors:
            return load_relations(connection)

    def relations_version(self) -> int:
        """A number that rises with every `write_relations`, whoever it is by; 0 before the first."""
        return self._version(schema.RELATIONS_VERSION)

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in, in one transaction; makes no change.

        Raises InvalidValueError for a relation that cannot be; then nothing has been written.
        """
        from findling.stores.sqlite_relations import store_relations

        kept, gone = list(added), list(dropped)
        check_relations(kept)
        with self._connections.writing() as connection, self._errors:
            store_relations(connection, kept, gone)

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        """How often those of the resources were accessed that were, and when last."""
        from findling.stores.sqlite_relations import load_accesses

        with self._connections.glancing() as connection:
            return load_accesses(connection, rids)

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Count accesses in: the numbers add up, the latest time stays; makes no change."""
        from findling.stores.sqlite_relations import store_accesses

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
