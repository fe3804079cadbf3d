"""The small tables of a SQLite store: glossary, supersession, relations, accesses."""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from findling.domain.errors import StoreDamagedError
from findling.stores.rows import GLOSSARY_COLUMNS, check_row, row_sum, stored_time
from findling.stores.sqlite import schema
from findling.stores.sqlite.connections import Connections, StoreErrors, rows_in
from findling.stores.validation import check_accesses, check_glossary, check_relations

if TYPE_CHECKING:
    from findling.domain.permissions import Relation
    from findling.domain.records import Access, GlossaryTerm


class SqliteRecords:
    """The part of `SqliteStore` that is small tables. A read-only store may be older than some of them."""

    _connections: Connections
    _errors: StoreErrors

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        wanted = list(dict.fromkeys(rids))
        with self._connections.reading() as connection:
            if schema.is_older(connection, schema.GLOSSARY_FORMAT):
                rows = list(schema.scan_predecessors(connection))
            else:
                columns = "SELECT id, rid, supersedes FROM resources"
                rows = list(rows_in(connection, f"{columns} WHERE supersedes IN ({{}}) ORDER BY seq", wanted))
        latest = {replaced: rid for number, rid, replaced in rows if among is None or number in among}
        return {rid: latest[rid] for rid in wanted if rid in latest}

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        with self._connections.reading() as connection:
            if schema.is_older(connection, schema.GLOSSARY_FORMAT):
                rows = list(schema.scan_predecessors(connection))
            else:
                named = "SELECT id, rid, supersedes FROM resources WHERE supersedes IS NOT NULL"
                rows = connection.execute(named).fetchall()
        return sorted({replaced for number, _, replaced in rows if among is None or number in among})

    def glossary(self) -> list[GlossaryTerm]:
        with self._connections.glancing() as connection:
            terms = f'SELECT {GLOSSARY_COLUMNS}, {{}} FROM glossary ORDER BY "group", key'
            try:
                rows = connection.execute(terms.format("sum")).fetchall()
            except sqlite3.OperationalError:
                # Asked only now: nearly all stores have the column.
                if schema.is_older(connection, schema.GLOSSARY_FORMAT):
                    return []
                if not schema.is_older(connection, schema.SUMS_FORMAT):
                    raise
                rows = connection.execute(terms.format("NULL")).fetchall()
            for *row, noted in rows:
                check_row(f"the term {row[2]!r} of the glossary", row, noted)
            from findling.domain.records import GlossaryTerm

            return [GlossaryTerm(*row[:-1]) for row in rows]

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms by group and key, then put terms in. Raises InvalidValueError and writes nothing."""
        kept, gone = list(terms), list(dropped)
        check_glossary(kept, gone)
        with self._connections.writing() as connection, self._errors:
            connection.executemany('DELETE FROM glossary WHERE "group" = ? AND key = ?', gone)
            connection.executemany(
                f"INSERT OR REPLACE INTO glossary ({GLOSSARY_COLUMNS}, sum) VALUES (?,?,?,?,?,?,?,?)",
                [(*term, row_sum((*term[:-1], stored_time(term.decided_at)))) for term in kept],
            )
            _count_up(connection, schema.GLOSSARY_VERSION)

    def relations(self) -> list[Relation]:
        with self._connections.reading() as connection, self._errors:
            if schema.is_older(connection, schema.RELATIONS_FORMAT):
                return []
            columns = f"subject, relation, object, {schema.sum_column(connection)}"
            try:
                rows = connection.execute(f"SELECT {columns} FROM relations ORDER BY 1, 2, 3").fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                raise StoreDamagedError("the index has lost its relations", hint="findling snapshot list") from error
            for *row, noted in rows:
                check_row(f"the relation {' '.join(map(str, row))}", row, noted)
            from findling.domain.permissions import RELATIONS, Relation

            if unknown := {row[1] for row in rows}.difference(RELATIONS):
                # Skipping an unknown denial would grant a right.
                what = f"the index holds relations called {min(unknown)!r}"
                raise StoreDamagedError(what, hint="findling snapshot list")
            return [Relation(*row[:3]) for row in rows]

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in. Raises InvalidValueError and writes nothing."""
        kept, gone = list(added), list(dropped)
        check_relations(kept)
        with self._connections.writing() as connection, self._errors:
            connection.executemany("DELETE FROM relations WHERE subject = ? AND relation = ? AND object = ?", gone)
            rows = [(*one, row_sum(one)) for one in kept]
            connection.executemany("INSERT OR IGNORE INTO relations VALUES (?, ?, ?, ?)", rows)
            _count_up(connection, schema.RELATIONS_VERSION)

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        with self._connections.glancing() as connection:
            if schema.is_older(connection, schema.RELATIONS_FORMAT):
                return {}
            named = "SELECT rid, count, last_at FROM accesses WHERE rid IN ({})"
            from findling.domain.records import Access

            return {rid: Access(*row) for rid, *row in rows_in(connection, named, dict.fromkeys(rids))}

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        check_accesses(accesses)
        if accesses:
            with self._connections.writing() as connection, self._errors:
                connection.executemany(
                    "INSERT INTO accesses VALUES (?, ?, ?) ON CONFLICT (rid) DO UPDATE"
                    " SET count = count + excluded.count, last_at = max(last_at, excluded.last_at)",
                    [(rid, access.count, access.last_at) for rid, access in accesses.items()],
                )


def _count_up(connection: sqlite3.Connection, key: str) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1", (key,)
    )
