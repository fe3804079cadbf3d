"""Connections to one workspace: single questions, snapshots, writes. All state ends with its transaction.

Connections of one process to one database are shared by all its workspaces. The setting `findling.ws` tells the
policies of the tables which workspace a transaction is about.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from findling.domain.errors import (
    NotIndexedError,
    ReadOnlyError,
    ReplacedError,
    StoreDamagedError,
    UnreachableError,
    WorkspaceError,
)
from findling.stores.postgres.server.errors import PostgresErrors, foreign_schema, is_lost
from findling.stores.postgres.server.fences import count_write, pass_fence
from findling.stores.postgres.server.formats import newer_format, newest_format
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg, parse_place

if TYPE_CHECKING:
    from findling.stores.postgres.server.round_trips import ServerConnection

    Connection = ServerConnection

_T = TypeVar("_T")

BUSY_SECONDS = 30.0
"""The patience of one writer with another."""

SAFE_PATH = "SET LOCAL search_path = pg_catalog"
"""Has names without a schema mean the server's own: a stranger's `public.unnest(bigint[])` would fit better."""

_CONNECT_SECONDS = 10
"""The patience with a server that does not answer, unless the URL or the environment says another."""

ENDLESS = """
SELECT set_config(name, '0', true) FROM pg_settings
WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')
"""
"""For a transaction that may take longer than ordinary ones should: an index run, or a leg that catches up with one."""

_SILENCE = "'60s'"
"""The silence of a writer after which the server ends its write, where nobody who waits may end it sooner."""

_MOST_IDLE = 4
"""Connections that are kept open without use: each is a process of the server, of 5 to 10 MB."""

_PREPARED_AFTER = 3
"""Uses of a statement after which the server keeps its plan; behind a pooler it must not."""

_FIND_WORKSPACE = (
    "SELECT ws, (SELECT coalesce(max(min_reader), 0) FROM findling.migrations), (SELECT coalesce(max(number), 0)"
    " FROM findling.migrations), ARRAY(SELECT ARRAY[key, value] FROM findling.meta m WHERE m.ws = w.ws"
    " AND key IN ('root', 'store_id')) FROM findling.workspaces w WHERE name = %s"
)


def connect(place: PostgresPlace) -> Connection:
    """A connection of its own, in autocommit, for the one who calls; to be closed there."""
    psycopg = load_psycopg()
    # A connection knows the ways to send an array that were registered before it was made.
    import findling.stores.postgres.server.arrays  # noqa: F401
    from findling.stores.postgres.server.round_trips import ServerConnection

    options: dict[str, Any] = {"client_encoding": "UTF8", "fallback_application_name": "findling"}
    if "connect_timeout" not in psycopg.conninfo.conninfo_to_dict(place.dsn) and "PGCONNECT_TIMEOUT" not in os.environ:
        options["connect_timeout"] = _CONNECT_SECONDS
    threshold = None if place.is_pooled else _PREPARED_AFTER
    with PostgresErrors(place):
        return ServerConnection.connect(place.dsn, autocommit=True, prepare_threshold=threshold, **options)


class PostgresConnections:
    """The connections of one workspace; threads may share them."""

    def __init__(self, place: PostgresPlace | str, *, readonly: bool = False) -> None:
        self.place = parse_place(place)
        self.errors = PostgresErrors(self.place)
        self.read_errors = PostgresErrors(self.place, reads=True)
        self._readonly = readonly
        self._ws: int | None = None
        self.format, self.noted = 0, dict[str, str]()
        """The format of the database, root and id of the store when the workspace was last looked up."""
        self.given = dict[str, str]()
        """Small values that need not be asked for, such as the id: where it changes, the store is opened anew."""
        self._is_closed = False
        self._pool = pool_of(self.place)
        self._pool.hold()

    def __repr__(self) -> str:
        return f"PostgresConnections({self.place.shown})"

    @property
    def ws(self) -> int:
        """The number of the workspace. Raises NotIndexedError when the database has none of its name."""
        if self._ws is None and self.find_workspace() is None:
            raise NotIndexedError(f"{self.place.shown} is empty", hint="findling index PATH")
        assert self._ws is not None, "it was found"
        return self._ws

    def is_of(self, ws: int) -> bool:
        """Whether these connections are, or can still become, those of a workspace by its number."""
        return self._ws in (None, ws)

    def know(self, ws: int, format_: int, **given: str | None) -> None:
        """Take the number of the workspace and what belongs to it from whoever has just looked it up."""
        self._ws, self.format, self.given = ws, format_, {key: value for key, value in given.items() if value}

    def find_workspace(self) -> int | None:
        """The number that the name of the workspace has now, asked anew; None without one.

        Raises FormatError when a newer findling has changed the tables so that ours does not understand them.
        """
        try:
            found = self._once(_FIND_WORKSPACE, (self.place.workspace,), self.place.workspace)
        except StoreDamagedError as error:
            code = getattr(error.__cause__, "sqlstate", "")
            if code in ("42P01", "3F000"):
                return None  # no table, no schema
            if code == "42703":
                raise foreign_schema(self.place) from error
            raise
        if not found:
            return None
        ws, min_reader, theirs, noted = found[0]
        if min_reader > newest_format():
            raise newer_format(self.place.shown, theirs, newest_format())
        self._ws, self.format, self.noted = self._ws or int(ws), int(theirs), dict(noted)
        return int(ws)

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement that reads, in one round trip and one state of the workspace."""
        return self._once(statement, values, self.ws)

    def row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        """The first row of one statement, None without one."""
        return next(iter(self.rows(statement, values)), None)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees one state of the workspace for as many statements as it takes."""
        with self.session(self._to_read()) as connection, self.read_errors:
            yield connection
            # A rollback would have psycopg forget all statements that the server has planned: 1 ms a question.
            connection.execute("COMMIT")

    @contextmanager
    def writing(self, patience_s: float | None = None) -> Iterator[Connection]:
        """A transaction that lands when the block ends and leaves no trace when it fails.

        It holds the row of the workspace, so that numbers are taken by one writer at a time. `patience_s` limits the
        wait for another one. Raises LockedError after it, or when this process has lost the write lock to another,
        ReadOnlyError in a store that is only read, ReplacedError when the workspace is gone, FormatError when a newer
        findling has changed the tables meanwhile. Statements in the block run under `errors`, errors of the caller as
        they are.
        """
        if self._readonly:
            raise ReadOnlyError(f"{self.place.shown} is open for reading only", hint="open it without readonly")
        patience_ms = max(round((BUSY_SECONDS if patience_s is None else patience_s) * 1000), 1)  # 0 has no end
        # The format is asked for behind the lock, for which a migration may have made us wait.
        connection, found = self._begin(
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {SAFE_PATH}; SET LOCAL findling.ws = {self.ws:d};"
            f" SET LOCAL lock_timeout = {patience_ms:d}; SET LOCAL idle_in_transaction_session_timeout = {_SILENCE};"
            f" SELECT FROM findling.workspaces WHERE ws = {self.ws:d} FOR UPDATE;"
            " SELECT holder, (SELECT coalesce(max(number), 0) FROM findling.migrations), seq, number,"
            " (SELECT reltuples::bigint FROM pg_class WHERE oid = 'findling.resources'::regclass)"
            f" FROM findling.workspaces WHERE ws = {self.ws:d}"
        )
        count_write(self.place)
        try:
            if found is None:
                raise ReplacedError(f"{self.place.shown} was removed by another process", hint="try again")
            holder, number, *connection.counted = found
            if number > newest_format():
                raise newer_format(self.place.shown, number, newest_format())
            with self.errors:
                pass_fence(connection, self.place, self.ws, holder)
            kept = "nothing of it was kept, only what the command had written before"
            with self._told_if_lost(f"during a write: {kept}"):
                yield connection
            with self._told_if_lost("while a write was being confirmed: all of it has landed, or nothing"), self.errors:
                connection.execute("COMMIT")
        finally:
            self._pool.give_back(connection)
            count_write(self.place)

    @contextmanager
    def frozen(self) -> Iterator[PostgresConnections]:
        """The same workspace in the state of this moment, for as long as the block takes; it can only be read."""
        with self.session(f"{self._to_read()}; {ENDLESS}") as connection:
            yield _FrozenConnections(self, connection)

    @contextmanager
    def session(self, begin: str = "SELECT 1") -> Iterator[Connection]:
        """A connection outside of any transaction and workspace, unless it begins one."""
        connection, _ = self._begin(begin)
        try:
            yield connection
        finally:
            self._pool.give_back(connection)

    def analyze(self, *tables: str) -> None:
        """Tell the planner how large tables have become; the server does so by itself, but a minute later."""
        names = ", ".join(f"findling.{table}" for table in tables)
        # A role that does not own them is told so, and nothing is lost; nor is it when the server goes away now.
        with suppress(load_psycopg().Error, WorkspaceError), self.session() as connection:
            connection.execute(f"ANALYZE (SKIP_LOCKED) {names}")

    def close(self) -> None:
        """Give the connections up; closing twice is fine."""
        if not self._is_closed:
            self._is_closed = True
            self._pool.release()

    def _to_read(self) -> str:
        return f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SAFE_PATH}; SET LOCAL findling.ws = {self.ws:d}"

    def _once(self, statement: str, values: Sequence[object], ws: int | str | None = None) -> list[tuple[Any, ...]]:
        connection, rows = self._used_for(lambda one: one.rows(statement, values, ws), self.read_errors)
        self._pool.give_back(connection)
        return rows

    def _begin(self, statements: str) -> tuple[Connection, tuple[Any, ...] | None]:
        """A connection in a transaction, and a row of the last statement."""

        def begin(connection: Connection) -> tuple[Any, ...] | None:
            cursor = connection.execute(statements)
            while cursor.nextset():
                pass
            return cursor.fetchone() if cursor.description else None

        return self._used_for(begin, self.errors)

    def _used_for(self, use: Callable[[Connection], _T], errors: PostgresErrors) -> tuple[Connection, _T]:
        if self._is_closed:
            raise ReplacedError(f"{self.place.shown} was closed while it was used", hint="ask again")
        return self._pool.used_for(use, errors)

    @contextmanager
    def _told_if_lost(self, when: str) -> Iterator[None]:
        """Say when the connection was lost, and what has become of the write."""
        try:
            yield
        except WorkspaceError as error:
            if not _is_lost(error):
                raise
            hint = "see that the server runs and has space on its disk, then do the same again"
            raise UnreachableError(f"{self.place.shown} was lost {when}", hint=hint) from error


class _FrozenConnections(PostgresConnections):
    """One connection that stays in its transaction; the one who began it ends it."""

    def __init__(self, of: PostgresConnections, connection: Connection) -> None:
        self.place, self.errors, self.read_errors, self.given = of.place, of.errors, of.read_errors, of.given
        self._readonly, self._ws, self._is_closed, self._connection = True, of.ws, True, connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.read_errors:
            yield self._connection

    def _once(self, statement: str, values: Sequence[object], ws: int | str | None = None) -> list[tuple[Any, ...]]:
        with self.read_errors:
            return self._connection.ask(statement, values).fetchall()


def _is_lost(error: BaseException) -> bool:
    """Whether an error in our words says that the connection is gone."""
    return error.__cause__ is not None and is_lost(error.__cause__)


class ConnectionPool:
    """The connections to one database that are in use, and those that nobody uses, counted by their users."""

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._idle: list[Connection] = []
        self._used: set[Connection] = set()
        self._lock = threading.Lock()
        self._users = 0

    def hold(self) -> None:
        """Keep idle connections until it is released as often."""
        with self._lock:
            self._users += 1

    def release(self) -> None:
        """Close idle connections if nobody else holds it."""
        with self._lock:
            self._users -= 1
            is_unused = self._users == 0
        if is_unused:
            self.close_idle()

    def used_for(self, use: Callable[[Connection], _T], errors: PostgresErrors) -> tuple[Connection, _T]:
        """A connection after its first use, and what that gave. An idle one that was lost is replaced."""
        while True:
            connection, is_new = self.take()
            try:
                with errors:
                    return connection, use(connection)
            except BaseException as error:
                self.give_back(connection)
                if is_new or not isinstance(error, WorkspaceError) or not _is_lost(error):
                    raise
                self.close_idle()

    def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it was opened for this."""
        with self._lock:
            if self._idle:
                connection = self._idle.pop()
                self._used.add(connection)
                return connection, False
        connection = connect(self._place)
        with self._lock:
            self._used.add(connection)
        return connection, True

    def give_back(self, connection: Connection) -> None:
        """End its transaction, and keep it for others; one that cannot is closed, which ends the transaction as well.

        A child does neither with a connection of its parent.
        """
        psycopg = load_psycopg()
        with self._lock:
            if connection not in self._used:
                return
            self._used.discard(connection)
        idle = psycopg.pq.TransactionStatus.IDLE
        if connection.info.transaction_status != idle and not connection.closed:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        is_usable = not connection.closed and connection.info.transaction_status == idle
        with self._lock:
            if is_usable and self._users and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close_idle(self) -> None:
        """Close what nobody uses: after one connection was lost, the others are, too."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def leave_to_parent(self) -> None:
        """Close the sockets that a forked child shares, without a word to the server: a lock would outlive the parent.

        psycopg itself leaves them to the parent.
        """
        self._lock = threading.Lock()
        for connection in (*self._used, *self._idle):
            with suppress(Exception):  # closed already
                os.close(connection.fileno())
        self._used.clear()
        self._idle.clear()


_pools: dict[tuple[str, bool], ConnectionPool] = {}


def pool_of(place: PostgresPlace) -> ConnectionPool:
    """The connections of this process to the database of a place."""
    return _pools.setdefault((place.dsn, place.is_pooled), ConnectionPool(place))


@atexit.register
def _close_pools() -> None:
    for pool in list(_pools.values()):
        pool.close_idle()


def _leave_to_parent() -> None:
    for pool in _pools.values():
        pool.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
