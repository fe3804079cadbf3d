"""The small tables: values, glossary, supersession, relations, accesses."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.errors import ReplacedError, StoreDamagedError
from findling.domain.resources import ALL, Share
from findling.stores.postgres.server.arrays import bigints, byteas, floats, texts
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.fences import held_since
from findling.stores.postgres.truth.values import escape, hash_of, unescape
from findling.stores.rows import GLOSSARY_COLUMNS, Row, check_row, row_sum, stored_time
from findling.stores.validation import check_accesses, check_glossary, check_relations

if TYPE_CHECKING:
    from findling.domain.permissions import Relation
    from findling.domain.records import Access, GlossaryTerm
    from findling.stores.postgres.server.connections import Connection

_GLOSSARY_VERSION = "glossary_version"
_RELATIONS_VERSION = "relations_version"
_STORE_ID = "store_id"

_HEADER = (
    "SELECT w.seq, w.log_floor, w.mark,"
    " ARRAY(SELECT key FROM findling.meta WHERE ws = w.ws ORDER BY key_hash),"
    " ARRAY(SELECT CASE WHEN length(value) < 2000 THEN value END FROM findling.meta WHERE ws = w.ws ORDER BY key_hash)"
)

LIFE = """CASE WHEN NOT pg_is_in_recovery() THEN
    (SELECT oid FROM pg_database WHERE datname = current_database()) || '.' ||
    'findling.workspaces'::regclass::oid || '.' || left(pg_walfile_name(pg_current_wal_lsn()), 8) END"""
"""Another one after a restored dump, and after a backup or a replica has taken over: each may have lost changes.

A replica has none: nobody writes there.
"""

_HELD = f"{_HEADER}, {LIFE} FROM findling.workspaces w WHERE w.ws = %s"

_STATE = (
    f"{_HEADER},"
    " ARRAY(SELECT fingerprint FROM findling.models WHERE ws = w.ws ORDER BY id),"
    " ARRAY(SELECT covered FROM findling.models WHERE ws = w.ws ORDER BY id),"
    # Counting takes some ms of 50,000 chunks.
    " CASE WHEN w.seq = %s THEN %s::bigint ELSE (SELECT count(*) FROM findling.chunks c WHERE c.ws = w.ws) END"
    " FROM findling.workspaces w WHERE w.ws = %s"
)

_SET_META = (
    "INSERT INTO findling.meta (ws, key_hash, key, value) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT (ws, key_hash) DO UPDATE SET value = excluded.value"
)


class PinnedState(NamedTuple):
    """The state of a truth by one statement. A value that is too long to be read with every answer is `None`."""

    seq: int
    log_floor: int
    mark: int
    meta: Mapping[str, str | None]
    covered: Mapping[str, int]
    chunks: int
    life: str | None = None


_Held = tuple[tuple[int, int], PinnedState]


class PostgresRecords:
    """The part of `PostgresStore` that is small tables."""

    _connections: PostgresConnections
    _state: PinnedState | None = None
    _is_frozen = False
    _held: _Held | None = None
    """The state that was read under the write lock, and the time since when it holds."""
    _counted: tuple[int, int] = -1, 0
    """A change, and the number of chunks after it."""

    def state(self) -> PinnedState:
        """The state that the store is pinned to, or that of now. Raises ReplacedError when the workspace is gone."""
        if self._state is not None:
            return self._state
        found = self._connections.row(_STATE, (*self._counted, self._connections.ws))
        if found is None:
            raise ReplacedError(f"{self._connections.place.shown} was removed by another process", hint="ask again")
        seq, floor, mark, keys, values, models, covered, chunks = found
        self._counted = seq, chunks
        covers = dict(zip(map(unescape, models), covered, strict=True))
        return PinnedState(seq, floor, mark, _meta(keys, values), covers, chunks)

    def known(self) -> PinnedState | None:
        """The state that nobody else can change now, without numbers of chunks: pinned, or under our write lock."""
        since = None if self._is_frozen else held_since(self._connections.place)
        if self._state is not None or since is None:
            return self._state
        if self._held is None or self._held[0] != since:
            found = self._connections.row(_HELD, (self._connections.ws,))
            if found is None:
                return None
            seq, floor, mark, keys, values, life = found
            self._held = since, PinnedState(seq, floor, mark, _meta(keys, values), {}, 0, life)
        return self._held[1]

    def coverage(self, model: str, of: Share = ALL) -> tuple[int, int]:
        state, counted = self.state(), of.counted
        counts = (
            "SELECT count(v.mark), count(*) FROM findling.chunks c LEFT JOIN findling.models m ON m.ws = c.ws"
            " AND m.fingerprint = %s LEFT JOIN findling.vectors v ON v.ws = c.ws AND v.model = m.id"
            " AND v.digest = c.digest WHERE c.ws = %s AND c.resource = ANY(%s)"
        )
        values = (escape(model), self._connections.ws, bigints(counted))
        return of.part(
            (state.covered.get(model, 0), state.chunks), self._connections.rows(counts, values) if counted else ()
        )

    def coverages(self) -> dict[str, int]:
        return dict(sorted(self.state().covered.items()))

    def get_meta(self, key: str) -> str | None:
        if (given := self._connections.given.get(key)) is not None:
            return unescape(given)
        known = self.known()
        if known is not None and known.meta.get(key, "") is not None:
            return known.meta.get(key)
        found = self._connections.row(
            "SELECT value FROM findling.meta WHERE ws = %s AND key_hash = %s", (self._connections.ws, hash_of(key))
        )
        return None if found is None else unescape(found[0])

    def set_meta(self, key: str, value: str) -> None:
        if self.get_meta(key) == value:
            return  # a transaction costs a sync of the disk
        before = self._held
        with self._connections.writing() as connection, self._connections.errors:
            connection.execute(_SET_META, (self._connections.ws, hash_of(key), escape(key), escape(value)))
        if key == _STORE_ID:
            self._connections.given[key] = value
        self._hold(before, lambda state: state._replace(meta={**state.meta, key: value}))

    def _hold(self, before: _Held | None, change: Callable[[PinnedState], PinnedState]) -> None:
        """Know the state behind a write of our own by the one `before`."""
        since = held_since(self._connections.place)
        # A write counts at its beginning and its end: then nobody else has written beside it.
        if before is not None and since == (before[0][0], before[0][1] + 2):
            self._held = since, change(before[1])

    def glossary_version(self) -> int:
        return int(self.get_meta(_GLOSSARY_VERSION) or 0)

    def relations_version(self) -> int:
        return int(self.get_meta(_RELATIONS_VERSION) or 0)

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        wanted = list(dict.fromkeys(rids))
        rows = self._all(
            "SELECT number, rid, supersedes FROM findling.resources"
            " WHERE ws = %s AND supersedes_hash = ANY(%s) ORDER BY seq",
            byteas(map(hash_of, wanted)),
        )
        latest = {
            unescape(replaced): unescape(rid) for number, rid, replaced in rows if among is None or number in among
        }
        return {rid: latest[rid] for rid in wanted if rid in latest}

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        rows = self._all(
            "SELECT number, supersedes FROM findling.resources WHERE ws = %s AND supersedes_hash IS NOT NULL"
        )
        return sorted({unescape(replaced) for number, replaced in rows if among is None or number in among})

    def glossary(self) -> list[GlossaryTerm]:
        from findling.domain.records import GlossaryTerm

        rows = self._all(f"SELECT {GLOSSARY_COLUMNS}, sum FROM findling.glossary WHERE ws = %s")
        terms = []
        with self._connections.read_errors:
            for *columns, decided_at, noted in rows:
                row = (*map(unescape, columns), decided_at)
                check_row(f"the term {row[2]!r} of the glossary", row, noted)
                terms.append(GlossaryTerm(*row))
        return sorted(terms, key=lambda term: term[:2])

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        """Drop terms, then put terms in. Raises InvalidValueError and writes nothing."""
        kept, gone = list(terms), list(dropped)
        check_glossary(kept, gone)
        # Of several with the same group and key, the last one stays.
        rows = {hash_of(*term[:2]): (*term[:6], stored_time(term.decided_at)) for term in kept}
        ws = self._connections.ws
        with self._connections.writing() as connection, self._connections.errors:
            connection.execute(
                "DELETE FROM findling.glossary WHERE ws = %s AND term_hash = ANY(%s)",
                (ws, byteas([*rows, *(hash_of(*term) for term in gone)])),
            )
            if rows:
                *columns, times = zip(*rows.values(), strict=True)
                connection.execute(
                    f"INSERT INTO findling.glossary (ws, term_hash, {GLOSSARY_COLUMNS}, sum)"
                    " SELECT %s, * FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                    (ws, byteas(rows), *map(_texts, columns), floats(times), bigints(map(row_sum, rows.values()))),
                )
            _count_up(connection, ws, _GLOSSARY_VERSION)

    def relations(self) -> list[Relation]:
        from findling.domain.permissions import RELATIONS, Relation

        rows = self._all("SELECT subject, relation, object, sum FROM findling.relations WHERE ws = %s")
        with self._connections.read_errors:
            found: list[Row] = []
            for *columns, noted in rows:
                row = tuple(map(unescape, columns))
                check_row(f"the relation {' '.join(row)}", row, noted)
                found.append(row)
            if unknown := {row[1] for row in found}.difference(RELATIONS):
                # Skipping an unknown denial would grant a right.
                what = f"the index holds relations called {min(unknown)!r}"
                raise StoreDamagedError(what, hint="findling doctor")
            return [Relation(*row) for row in sorted(found)]

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        """Drop relations, then put relations in. Raises InvalidValueError and writes nothing."""
        kept, gone = list(added), list(dropped)
        check_relations(kept)
        rows = {hash_of(*one): tuple(one) for one in kept}
        ws = self._connections.ws
        with self._connections.writing() as connection, self._connections.errors:
            if gone:
                connection.execute(
                    "DELETE FROM findling.relations WHERE ws = %s AND relation_hash = ANY(%s)",
                    (ws, byteas(hash_of(*one) for one in gone)),
                )
            if rows:
                columns = map(_texts, zip(*rows.values(), strict=True))
                connection.execute(
                    "INSERT INTO findling.relations (ws, relation_hash, subject, relation, object, sum)"
                    " SELECT %s, * FROM unnest(%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                    (ws, byteas(rows), *columns, bigints(map(row_sum, rows.values()))),
                )
            _count_up(connection, ws, _RELATIONS_VERSION)

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        from findling.domain.records import Access

        of_them, hashes = "WHERE ws = %s AND rid_hash = ANY(%s)", list(map(hash_of, dict.fromkeys(rids)))
        rows = (
            self._all(f"SELECT rid, count, last_at FROM findling.accesses {of_them}", byteas(hashes)) if hashes else ()
        )
        return {unescape(rid): Access(count, last_at) for rid, count, last_at in rows}

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        check_accesses(accesses)
        if not accesses:
            return
        hashes, counts = map(hash_of, accesses), [access.count for access in accesses.values()]
        times = [access.last_at for access in accesses.values()]
        with self._connections.writing() as connection, self._connections.errors:
            connection.execute(
                "INSERT INTO findling.accesses AS a (ws, rid_hash, rid, count, last_at)"
                " SELECT %s, * FROM unnest(%s, %s, %s, %s) ON CONFLICT (ws, rid_hash) DO UPDATE"
                " SET count = a.count + excluded.count, last_at = greatest(a.last_at, excluded.last_at)",
                (
                    self._connections.ws,
                    byteas(hashes),
                    _texts(accesses),
                    bigints(counts),
                    floats(times),
                ),
            )

    def _all(self, statement: str, *values: object) -> list[Any]:
        """All rows of one statement, whose first value is the number of the workspace."""
        return self._connections.rows(statement, (self._connections.ws, *values))


def _meta(keys: Sequence[str], values: Sequence[str | None]) -> dict[str, str | None]:
    return {unescape(key): None if value is None else unescape(value) for key, value in zip(keys, values, strict=True)}


def _texts(values: Iterable[str]) -> bytes:
    return texts(map(escape, values))


def _count_up(connection: Connection, ws: int, key: str) -> None:
    connection.execute(
        "INSERT INTO findling.meta AS m (ws, key_hash, key, value) VALUES (%s, %s, %s, '1')"
        " ON CONFLICT (ws, key_hash) DO UPDATE SET value = (m.value::bigint + 1)::text",
        (ws, hash_of(key), key),
    )
