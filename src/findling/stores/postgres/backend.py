"""A workspace in PostgreSQL: the truth in the database, legs in a folder of each host."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.backends import BackendLock, Capabilities, StoreIdentity
from findling.domain.errors import NotIndexedError, ReadOnlyError, WorkspaceError
from findling.stores.local.backend import LocalLegs
from findling.stores.local.legs import legs_in
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.fences import writes_of
from findling.stores.postgres.server.places import parse_place

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.domain.reports import Check
    from findling.stores.postgres.truth.records import PinnedState
    from findling.stores.postgres.truth.store import PostgresStore

_OF_HOST = frozenset({"legs", "snapshot", "upkeep", "waiting"})
"""Locks of work on the files of one host."""

_TRUSTED_S = 1.0
"""Seconds for which a workspace that was there is taken to be there: one question asks ten times."""

_VERSION = """
SELECT w.seq, w.mark, (
    SELECT string_agg(m.key || '=' || m.value, ',' ORDER BY m.key) FROM findling.meta m
    WHERE m.ws = w.ws AND m.key IN ('glossary_version', 'relations_version', 'store_id'))
FROM findling.workspaces w WHERE w.ws = current_setting('findling.ws')::integer
"""

_VERSIONED = ("glossary_version", "relations_version", "store_id")

_TABLES = """
SELECT quote_ident(c.relname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'ws'
WHERE c.relnamespace = 'findling'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname = 'workspaces', c.relname
"""
"""All tables with rows of a workspace, its own row last."""

_BORN = "born"
"""Name of the small value that says in which life of which database the id was given."""


class _SeenWorkspace(NamedTuple):
    """The number of a workspace, the id of its store and the format of its database, and when they were looked up.

    Beside them stands what it indexes, after so many writes of this process.
    """

    at: float
    number: int | None
    store_id: str | None = None
    format: int = 0
    writes: int = 0
    root: str | None = None


_looked_up: dict[tuple[str, str], _SeenWorkspace] = {}
"""Workspaces as this process has looked them up, by database and name: a command has several backends of one place."""


class PostgresBackend(LocalLegs):
    """Implements `Backend` at `postgresql://…/DATABASE#WORKSPACE`; its `folder` holds the legs of this host."""

    capabilities = Capabilities(check=True, statistics="visible", vectors="ann")
    snapshot_bytes = 0

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(folder)
        self.place = parse_place(url)
        self.url = self.place.shown  # messages name it
        self._key = self.place.dsn, self.place.workspace
        self._connected: PostgresConnections | None = None
        self._opened: _SeenWorkspace | None = None
        self._before: Hashable = None
        """The version when the write lock was taken."""
        self._fetching: tuple[int, TruthStore] | None = None
        """The thread that holds the lock of the legs, and the state of the truth that they catch up with."""
        self._looked_for = set[str]()
        """Legs of which this process has looked for a copy."""

    def __repr__(self) -> str:
        return f"PostgresBackend({self.place.shown})"

    def lock(self, name: str = "write") -> BackendLock:
        if name in _OF_HOST:
            # Writers of this host hold the file of its legs as well.
            return super().lock("write" if name == "legs" else name)
        from findling.stores.lock import WriteLock
        from findling.stores.postgres.locks import PostgresLock

        return PostgresLock(self.place, name, WriteLock(self.folder / f"{name}.lock"))

    def exists(self) -> bool:
        return self._look().number is not None

    def identity(self) -> StoreIdentity | None:
        try:
            with closing(self.open_store(readonly=True)) as store:
                store_id = store.get_meta("store_id")
                return StoreIdentity(store_id, store.seq()) if store_id else None
        except NotIndexedError:
            return None

    def open_store(self, *, readonly: bool = False, accepts_older: bool = False) -> PostgresStore:
        from findling.stores.postgres.server.formats import newest_format
        from findling.stores.postgres.truth.store import PostgresStore

        seen = self._look()
        if seen.number is not None and seen.format == newest_format():
            self._opened = self._opened if readonly else seen
            connections = PostgresConnections(self.place, readonly=readonly)
            # Whoever only reads asks for the root, and has looked the workspace up for that.
            is_known = readonly and seen.writes == writes_of(self.place)
            connections.know(seen.number, seen.format, store_id=seen.store_id, root=seen.root if is_known else None)
            return PostgresStore(connections, seen.format)
        try:
            store = PostgresStore.open(self.place, readonly=readonly)
        except ReadOnlyError as older:  # a database of an older findling
            from findling.stores.postgres.server.migrations import migrate

            try:
                migrate(self.place)
            except ReadOnlyError:
                raise older from None  # which names the formats, and who may change them
            store = PostgresStore.open(self.place, readonly=readonly)
        if readonly:
            return store
        self._opened = self._look()
        if self._opened.number != store.connections.ws:  # another one has its name since
            _looked_up.pop(self._key, None)
            self._opened = self._look()
        return store

    def create_store(self, *, anew: bool = False, before: Callable[[], None] = lambda: None) -> None:
        if self.exists():
            return
        from findling.stores.postgres.server.migrations import create_workspace

        before()
        create_workspace(self.place)
        _looked_up.pop(self._key, None)

    def identify(self, store: TruthStore, *, accepts_older: bool = False) -> None:
        if (life := self._unknown_life(store)) is not None:
            store.set_meta("store_id", os.urandom(8).hex())
            store.set_meta(_BORN, life)
            _looked_up.pop(self._key, None)
            self._opened = self._look()
        self._before = self._version_of(store)
        self._fetching = get_ident(), store

    def frozen(self, store: TruthStore) -> AbstractContextManager[TruthStore] | None:
        from findling.stores.postgres.truth.store import PostgresStore

        known = isinstance(store, PostgresStore) and self._unknown_life(store) is None
        return self._frozen(store) if known and isinstance(store, PostgresStore) else None

    @contextmanager
    def _frozen(self, store: PostgresStore) -> Iterator[TruthStore]:
        with store.frozen() as frozen:
            self._fetching = get_ident(), frozen
            try:
                yield frozen
            finally:
                self._fetching = None

    def offer_legs(self, store: TruthStore) -> None:
        from findling.stores.lock import taken
        from findling.stores.postgres.leg_copies import LEAST_CHANGES, read_shipped, ship, write_shipped

        shipped = read_shipped(self.folder)
        legs = list(legs_in(self.folder))
        if all(leg.seq - shipped.get((leg.folder.name, leg.owner), 0) < LEAST_CHANGES for leg in legs):
            return
        store_id = store.get_meta("store_id") or ""
        with taken(self.lock("copies"), 0.0) as is_ours:
            if store_id and is_ours:
                ours = [leg for leg in legs if store_id in leg.owner]
                write_shipped(self.folder, ship(self._connections, ours, store_id))

    def _prepare(self, folder: Path, owner: str) -> None:
        """Have a leg that is not there be a copy from the database, once: one that is damaged then is made anew."""
        if self._fetching is None or self._fetching[0] != get_ident() or folder.name in self._looked_for:
            return  # only whoever holds the lock of the legs
        from findling.stores.lock import is_held
        from findling.stores.postgres.leg_copies import fetch

        is_here = any((leg.folder, leg.owner) == (folder, owner) for leg in legs_in(self.folder))
        if is_here or not is_held(self.folder / "write.lock"):
            return
        self._looked_for.add(folder.name)
        fetch(self._connections, folder, owner, self._fetching[1].seq())

    def _unknown_life(self, store: TruthStore) -> str | None:
        """The life of the database, if the id was given in another: numbers of lost changes come again then."""
        from findling.stores.postgres.truth.records import LIFE

        known = _known(store)
        life = known.life if known else self._connections.rows(f"SELECT {LIFE}")[0][0]
        is_known = store.get_meta("store_id") is not None and life in (None, store.get_meta(_BORN))
        return None if is_known else life

    def forget_identity(self) -> None:
        """Drop the copies of legs instead: the database has the identity, and this host no note of it."""
        from findling.stores.postgres.leg_copies import drop_copies

        drop_copies(self._connections, self.folder)

    def version(self) -> Hashable:
        return self._connections.row(_VERSION) if self.exists() else None

    def _version_of(self, store: TruthStore) -> Hashable:
        """The version of a truth, by what is known of it while this process holds its write lock."""
        known = _known(store)
        return (known.seq, known.mark, *map(known.meta.get, _VERSIONED)) if known else self.version()

    def put_store_aside(self) -> str | None:
        """Rename the workspace; its rows stay for a person to look into."""
        number = self._look().number
        if number is None:
            return None
        aside = f"{self.place.workspace}.aside-{number}"
        with self._connections.writing() as connection, self._connections.errors:
            connection.execute("UPDATE findling.workspaces SET name = %s WHERE ws = %s", (aside, number))
        self._let_go()
        return aside

    def drop_store(self) -> None:
        number = self._look().number
        if number is None:
            return
        with self._connections.writing() as connection, self._connections.errors:
            for (table,) in connection.execute(_TABLES).fetchall():
                connection.execute(f"DELETE FROM findling.{table} WHERE ws = {number:d}".encode())
        self._let_go()

    def is_replaced(self) -> bool:
        return self._opened is not None and self._look()[1:4] != self._opened[1:4]

    def write_refusal(self) -> None:
        return None

    def settle(self, store: TruthStore) -> None:
        super().settle(store)
        before, self._before = self._before, None
        if before is not None and before != self._version_of(store):
            from findling.stores.postgres.notify import tell_others
            from findling.stores.postgres.truth.store import PostgresStore

            tell_others(self._connections)
            if isinstance(store, PostgresStore):
                with suppress(WorkspaceError):  # what was written stands; the next write looks again
                    store.forget_old_changes()

    def listen(self) -> AbstractContextManager[Callable[[float], object]] | None:
        number = self._look().number
        if number is None or self.place.is_pooled:
            return None
        from findling.stores.postgres.notify import listening

        return listening(self.place, number)

    def examine(self) -> Iterator[Check]:
        from findling.stores.postgres.checks import examine_server

        return examine_server(self.place, self._connections)

    @property
    def _connections(self) -> PostgresConnections:
        if self._connected is None:
            self._connected, seen = PostgresConnections(self.place), _looked_up.get(self._key)
            if seen is not None and seen.number is not None:
                self._connected.know(seen.number, seen.format, store_id=seen.store_id)
        return self._connected

    def _look(self) -> _SeenWorkspace:
        """The workspace as it was a moment ago at most."""
        seen = _looked_up.get(self._key)
        is_fresh = seen is not None and time.monotonic() - seen.at < _TRUSTED_S
        if seen and is_fresh and (self._connected is None or (seen.number and self._connected.is_of(seen.number))):
            return seen
        writes, connections = writes_of(self.place), self._connections
        number, noted = connections.find_workspace(), connections.noted
        if number is None or not connections.is_of(number):
            self._let_go()
        if number is None:
            return _SeenWorkspace(time.monotonic(), None)  # asked anew each time: others may create it now
        known = number, noted.get("store_id"), connections.format, writes, noted.get("root")
        seen = _looked_up[self._key] = _SeenWorkspace(time.monotonic(), *known)
        return seen

    def _let_go(self) -> None:
        """Forget the number of the workspace."""
        connected, self._connected = self._connected, None
        _looked_up.pop(self._key, None)
        if connected is not None:
            connected.close()


def _known(store: TruthStore) -> PinnedState | None:
    """The state of a truth that nobody else can change now."""
    from findling.stores.postgres.truth.store import PostgresStore

    return store.known() if isinstance(store, PostgresStore) else None
