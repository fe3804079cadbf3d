"""Locks between all hosts that use a workspace: one of this host's files, then an advisory lock of the server.

An open transaction holds the advisory lock, so it works behind a pooler in transaction mode, too. The server releases
it with the connection, however its holder ends. Such a transaction has neither a number nor a snapshot: it keeps no
row from being cleaned up.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from findling.domain.errors import LockedError, WorkspaceError
from findling.stores.postgres.server.connections import ENDLESS, SAFE_PATH, connect
from findling.stores.postgres.server.errors import PostgresErrors, is_lost
from findling.stores.postgres.server.fences import draw_fence, drop_fence, forget_fences
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg

if TYPE_CHECKING:
    from findling.stores.lock import WriteLock
    from findling.stores.postgres.server.connections import Connection

__all__ = ["PostgresLock"]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.02

_WRITE_S = 1.0
"""The least patience with a write of an earlier holder that is under way."""

_MOST_IDLE = 2
"""Connections that a process keeps for its next lock: to open one takes 5 ms, a write 10."""

_KEPT_ALIVE = (
    f"BEGIN; {SAFE_PATH}; SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10;"
    " SET LOCAL tcp_keepalives_count = 3"
)
"""A host that is cut off holds nobody up for longer than a minute."""


class PostgresLock:
    """One lock of a workspace, by its name. `local` excludes the processes of this host, and names the holder."""

    def __init__(self, place: PostgresPlace, name: str, local: WriteLock) -> None:
        self._place, self._local = place, local
        self._key = int.from_bytes(blake2b(f"{place.workspace}\0{name}".encode(), digest_size=8).digest(), signed=True)
        self._is_fenced = name == "write"
        self._connection: Connection | None = None
        self._errors = PostgresErrors(place)

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting up to `timeout_s` seconds; return whether it was taken."""
        deadline = time.monotonic() + timeout_s
        connection, pause = None, _FIRST_PAUSE_S
        try:
            while self._local.acquire(max(deadline - time.monotonic(), 0.0)):
                try:
                    connection = connection or self._used_for(_begin)
                    if self._try(connection, deadline):
                        self._connection = connection
                        return True
                except LockedError:  # a write of an earlier holder
                    return False
                finally:
                    if self._connection is None:
                        self._let_go()
                # While it waits for another host, others of this one may bring up its legs.
                if (remaining := deadline - time.monotonic()) <= 0:
                    break
                time.sleep(min(pause, remaining))
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            return False
        finally:
            if connection is not None and self._connection is None:
                _give_back(self._place, connection)

    def release(self) -> None:
        """Release the lock; fine when it is not held."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._is_fenced:
                drop_fence(self._place)
            _give_back(self._place, connection)
        self._let_go()

    def holder(self) -> int | None:
        """The process of this host that holds the lock; None when another host may, or nobody does."""
        if self._connection is None and self._local.acquire(0.0):
            self._let_go()
        return self._local.holder()

    def _let_go(self) -> None:
        self._local.forget_holder()
        self._local.release()

    def _try(self, connection: Connection, deadline: float) -> bool:
        """Take the lock of the server if nobody has it, and turn away an earlier holder that has lost it."""
        # Without parameters: those would leave a portal open, and that a snapshot.
        with self._errors:
            row = connection.execute(f"SELECT pg_catalog.pg_try_advisory_xact_lock({self._key:d})".encode()).fetchone()
        if row is None or not row[0]:
            return False
        if self._is_fenced:
            patience_s = max(deadline - time.monotonic(), _WRITE_S)
            other = self._used_for(lambda one: draw_fence(one, self._place, patience_s))
            _give_back(self._place, other)
        return True

    def _used_for(self, use: Callable[[Connection], object]) -> Connection:
        """A connection after its first use; one that was lost while it was idle is replaced."""
        while True:
            connection, is_new = _take(self._place)
            try:
                with self._errors:
                    use(connection)
                return connection
            except WorkspaceError as error:
                _give_back(self._place, connection)
                if is_new or error.__cause__ is None or not is_lost(error.__cause__):
                    raise


def _begin(connection: Connection) -> None:
    """Begin a transaction that may last."""
    connection.execute(_KEPT_ALIVE)
    connection.execute(ENDLESS)


_guard = threading.Lock()
_idle: dict[tuple[str, bool], list[Connection]] = {}
_used: set[Connection] = set()


def _take(place: PostgresPlace) -> tuple[Connection, bool]:
    """A connection, and whether it was opened for this."""
    with _guard:
        kept = _idle.get((place.dsn, place.is_pooled))
        connection = kept.pop() if kept else None
        if connection is not None:
            _used.add(connection)
            return connection, False
    connection = connect(place)
    with _guard:
        _used.add(connection)
    return connection, True


def _give_back(place: PostgresPlace, connection: Connection) -> None:
    """End the transaction, and with it the lock; a connection that cannot is closed, which ends it as well."""
    psycopg = load_psycopg()
    with _guard:
        if connection not in _used:
            return  # the parent's
        _used.discard(connection)
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")
    is_idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    with _guard:
        kept = _idle.setdefault((place.dsn, place.is_pooled), [])
        if is_idle and len(kept) < _MOST_IDLE:
            kept.append(connection)
            return
    connection.close()


@atexit.register
def _close_idle() -> None:
    for kept in _idle.values():
        while kept:
            kept.pop().close()


def _leave_to_parent() -> None:
    # A forked child shares the sockets, so a lock would outlive the parent. psycopg itself leaves them to the parent.
    global _guard
    _guard = threading.Lock()
    forget_fences()
    for connection in (*_used, *(one for kept in _idle.values() for one in kept)):
        with suppress(Exception):  # closed already
            os.close(connection.fileno())
    _used.clear()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
