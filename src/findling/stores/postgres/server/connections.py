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
    "SELECT ws, (SELECT coalesce(max(min_reader), 0) FROM findling.migrations),"
    " (SELECT coalesce(max(number), 0) FROM findling.migrations) FROM findling.workspaces WHERE name = %s"
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
        self.place = parse_place(place) if isinstance(place, str) else place
        self.errors = PostgresErrors(self.place)
        self.read_errors = PostgresErrors(self.place, reads=True)
        self._readonly = readonly
        self._ws: int | None = None
        self.format = 0
        """The format of the database when the workspace was last looked up."""
        self._pool: _Pool | None = _pool_of(self.place)

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

    def find_workspace(self) -> int | None:
        """The number that the name of the workspace has now, asked anew; None without one.

        Raises FormatError when a newer findling has changed the tables so that ours does not understand them.
        """
        try:
            found = self._once(_FIND_WORKSPACE, (self.place.workspace,))
        except StoreDamagedError as error:
            code = getattr(error.__cause__, "sqlstate", "")
            if code in ("42P01", "3F000"):
                return None  # no table, no schema
            if code == "42703":
                raise foreign_schema(self.place) from error
            raise
        if not found:
            return None
        ws, min_reader, theirs = found[0]
        if min_reader > newest_format():
            raise newer_format(self.place.shown, theirs, newest_format())
        if self._ws is None:
            self._ws = int(ws)
        self.format = int(theirs)
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
        connection, _ = self._begin(self._to_read())
        try:
            with self.read_errors:
                yield connection
                # A rollback would have psycopg forget all statements that the server has planned: 1 ms a question.
                connection.execute("COMMIT")
        finally:
            self._end(connection)

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
            " SELECT holder, (SELECT coalesce(max(number), 0) FROM findling.migrations) FROM findling.workspaces"
            f" WHERE ws = {self.ws:d}"
        )
        count_write(self.place)
        try:
            if found is None:
                raise ReplacedError(f"{self.place.shown} was removed by another process", hint="try again")
            holder, number = found
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
            self._end(connection)
            count_write(self.place)

    @contextmanager
    def frozen(self) -> Iterator[PostgresConnections]:
        """The same workspace in the state of this moment, for as long as the block takes; it can only be read."""
        connection, _ = self._begin(f"{self._to_read()}; {ENDLESS}")
        try:
            yield _FrozenConnections(self, connection)
        finally:
            self._end(connection)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection outside of any transaction and workspace."""
        connection, _ = self._begin("SELECT 1")
        try:
            yield connection
        finally:
            self._end(connection)

    def analyze(self, *tables: str) -> None:
        """Tell the planner how large tables have become; the server does so by itself, but a minute later."""
        names = ", ".join(f"findling.{table}" for table in tables)
        # A role that does not own them is told so, and nothing is lost; nor is it when the server goes away now.
        with suppress(load_psycopg().Error, WorkspaceError), self.session() as connection:
            connection.execute(f"ANALYZE (SKIP_LOCKED) {names}")

    def close(self) -> None:
        """Give the connections up; closing twice is fine."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.release()

    def _to_read(self) -> str:
        return f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SAFE_PATH}; SET LOCAL findling.ws = {self.ws:d}"

    def _once(self, statement: str, values: Sequence[object], ws: int | None = None) -> list[tuple[Any, ...]]:
        connection, rows = self._used_for(lambda one: one.rows(statement, values, ws), self.read_errors)
        self._end(connection)
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
        """A connection after its first use, and what that gave. An idle one that was lost is replaced."""
        while True:
            connection, is_new = self._take()
            try:
                with errors:
                    return connection, use(connection)
            except BaseException as error:
                self._end(connection)
                if is_new or not isinstance(error, WorkspaceError) or not _is_lost(error):
                    raise
                self._all_gone()

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

    def _take(self) -> tuple[Connection, bool]:
        if self._pool is None:
            raise ReplacedError(f"{self.place.shown} was closed while it was used", hint="ask again")
        return self._pool.take()

    def _all_gone(self) -> None:
        if self._pool is not None:
            self._pool.close_idle()

    def _end(self, connection: Connection) -> None:
        """Roll back what was not committed, and keep the connection for others."""
        pool, psycopg = self._pool, load_psycopg()
        status = connection.info.transaction_status
        if status != psycopg.pq.TransactionStatus.IDLE and not connection.closed:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            status = connection.info.transaction_status
        if pool is None or connection.closed or status != psycopg.pq.TransactionStatus.IDLE:
            connection.close()
        else:
            pool.give_back(connection)


class _FrozenConnections(PostgresConnections):
    """One connection that stays in its transaction; the one who began it ends it."""

    def __init__(self, of: PostgresConnections, connection: Connection) -> None:
        self.place, self.errors, self.read_errors = of.place, of.errors, of.read_errors
        self._readonly, self._ws, self._pool, self._connection = True, of.ws, None, connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.read_errors:
            yield self._connection

    def _once(self, statement: str, values: Sequence[object], ws: int | None = None) -> list[tuple[Any, ...]]:
        with self.read_errors:
            return self._connection.ask(statement, values).fetchall()


def _is_lost(error: BaseException) -> bool:
    """Whether an error in our words says that the connection is gone."""
    return error.__cause__ is not None and is_lost(error.__cause__)


class _Pool:
    """Open connections to one database that nobody uses at the moment, counted by their users."""

    def __init__(self, place: PostgresPlace) -> None:
        self._place = place
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._users = 0

    def hold(self) -> None:
        with self._lock:
            self._users += 1

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            is_unused = self._users == 0
        if is_unused:
            self.close_idle()

    def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it was opened for this."""
        with self._lock:
            if self._process != os.getpid():
                # A child must not use the sockets of its parent; psycopg leaves them open when it forgets them here.
                self._process, self._idle = os.getpid(), []
            if self._idle:
                return self._idle.pop(), False
        return connect(self._place), True

    def give_back(self, connection: Connection) -> None:
        with self._lock:
            if self._users and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def close_idle(self) -> None:
        """Close what nobody uses: after one connection was lost, the others are, too."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._process == os.getpid():
            for connection in idle:
                connection.close()


_pools: dict[tuple[str, bool], _Pool] = {}
_pools_lock = threading.Lock()


def _pool_of(place: PostgresPlace) -> _Pool:
    key = place.dsn, place.is_pooled
    with _pools_lock:
        pool = _pools.setdefault(key, _Pool(place))
        pool.hold()
        return pool


def _close_pools() -> None:
    for pool in list(_pools.values()):
        pool.close_idle()


atexit.register(_close_pools)
