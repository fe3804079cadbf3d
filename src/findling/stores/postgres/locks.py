"""Locks between all hosts that use a workspace: one of this host's files, then an advisory lock of the server.

An open transaction holds the advisory lock, so it works behind a pooler in transaction mode, too. The server releases
it with the connection, however its holder ends. Such a transaction has neither a number nor a snapshot: it keeps no
row from being cleaned up. A thread of the holder speaks every 2 s; the server ends the transaction of one that has
been silent for 10 s, as a host that sleeps is.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING

from findling.domain.errors import LockedError, WorkspaceError
from findling.stores.postgres.server.connections import ENDLESS, SAFE_PATH, connect
from findling.stores.postgres.server.errors import PostgresErrors, is_lost
from findling.stores.postgres.server.fences import draw_fence, drop_fence, end_stopped_writes, forget_fences
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg

if TYPE_CHECKING:
    from findling.stores.lock import WriteLock
    from findling.stores.postgres.server.connections import Connection

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.02

_WRITE_S = 1.0
"""The least patience with a write of an earlier holder that is under way."""

_MOST_IDLE = 2
"""Connections that a process keeps for its next lock: to open one takes 5 ms, a write 10."""

_LEASE_S, _BEAT_S = 10, 2.0
"""Seconds of silence after which the server takes a lock away, and between two signs of life of its holder."""

_KEPT_ALIVE = (
    f"BEGIN; {SAFE_PATH}; SET LOCAL tcp_keepalives_idle = 30; SET LOCAL tcp_keepalives_interval = 10;"
    f" SET LOCAL tcp_keepalives_count = 3; {ENDLESS}; SET LOCAL idle_in_transaction_session_timeout = '{_LEASE_S}s'"
)
"""A host that is cut off holds nobody up for longer than a minute, one that sleeps not for longer than its lease."""

_NAMED = "; SELECT set_config('application_name', left(current_setting('application_name'), 20) || ' on {}', true)"
"""Has the server tell others who holds a lock."""

_HOLDER = """
SELECT application_name, extract(epoch FROM clock_timestamp() - coalesce(xact_start, query_start))::integer
FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND (classid::bigint << 32 | objid::bigint) = {}
"""


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
        if self._connection is not None:
            return True
        deadline = time.monotonic() + timeout_s
        connection, pause, was_lent = None, _FIRST_PAUSE_S, self._local.held
        try:
            while was_lent or self._local.acquire(max(deadline - time.monotonic(), 0.0)):
                try:
                    connection, is_taken = self._asked(connection)
                    if is_taken and self._turned_away(connection, deadline):
                        self._connection = connection
                        _speak_for(connection)
                        return True
                except LockedError:  # a write of an earlier holder
                    return False
                finally:
                    if self._connection is None and not was_lent:
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

    def lend(self) -> None:
        """Leave the lock to other hosts until it is acquired again; other processes of this one stay excluded."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._is_fenced:
                drop_fence(self._place)
            _be_silent(connection)
            _give_back(self._place, connection)

    def release(self) -> None:
        """Release the lock; fine when it is not held."""
        self.lend()
        self._let_go()

    def held_by(self) -> str:
        """The host and the process that hold the lock, and for how long, for messages; empty when nobody does."""
        if (process := self.holder()) is not None:
            return f"process {process} of this host"
        with self._errors:
            other, _ = _take(self._place)
            try:
                row = other.execute(_HOLDER.format(self._key).encode()).fetchone()
            finally:
                _give_back(self._place, other)
        return f"{row[0].partition(' on ')[2] or row[0]}, for {row[1] or 0} s" if row else ""

    def holder(self) -> int | None:
        """The process of this host that holds the lock; None when another host may, or nobody does."""
        if self._connection is None and self._local.acquire(0.0):
            self._let_go()
        return self._local.holder()

    def _let_go(self) -> None:
        self._local.forget_holder()
        self._local.release()

    def _asked(self, connection: Connection | None) -> tuple[Connection, bool]:
        """Ask the server for the lock, in a transaction that is begun with it; whether nobody had it."""
        answers: list[bool] = []
        begin = "" if connection is not None else f"{_beginning()}; "

        def ask(one: Connection) -> None:
            # Without parameters: those would leave a portal open, and that a snapshot.
            cursor = one.execute(f"{begin}SELECT pg_catalog.pg_try_advisory_xact_lock({self._key:d})".encode())
            while cursor.nextset():
                pass
            answers.append(bool((cursor.fetchone() or (False,))[0]))

        if connection is None:
            return self._used_for(ask), answers[-1]
        with self._errors:
            ask(connection)
        return connection, answers[-1]

    def _turned_away(self, connection: Connection, deadline: float) -> bool:
        """Turn away an earlier holder that has lost the lock, which the caller has just taken."""
        while self._is_fenced:
            try:
                _give_back(self._place, self._used_for(lambda one: draw_fence(one, self._place, _WRITE_S)))
                break
            except LockedError:  # an earlier holder writes, or sleeps in the middle of it
                if time.monotonic() > deadline:
                    raise
                _give_back(self._place, self._used_for(lambda one: end_stopped_writes(one, self._place)))
                with self._errors:
                    connection.execute("")
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


def _beginning() -> str:
    """The statements that begin a transaction which lasts as long as its host is awake."""
    host = "".join(one for one in socket.gethostname() if one.isalnum() or one in "-.")[:25]
    return _KEPT_ALIVE + _NAMED.format(f"{host} ({os.getpid()})")


_guard = threading.Lock()
_idle: dict[tuple[str, bool], list[Connection]] = {}
_used: set[Connection] = set()
_leased: dict[Connection, threading.Lock] = {}
"""Connections that hold a lock; each with a lock of its own for whoever uses it."""
_speaker: threading.Thread | None = None


def _speak_for(connection: Connection) -> None:
    """Have a thread give signs of life for a lock."""
    global _speaker
    with _guard:
        _leased[connection] = threading.Lock()
        if _speaker is None:
            _speaker = threading.Thread(target=_speak, name="findling-lease", daemon=True)
            _speaker.start()


def _be_silent(connection: Connection) -> None:
    with _guard:
        use = _leased.pop(connection, None)
    if use is not None:
        with use:  # until the last sign is given
            pass


def _speak() -> None:
    """Give signs of life as long as locks are held; the next lock starts another thread."""
    global _speaker
    psycopg = load_psycopg()
    while True:
        time.sleep(_BEAT_S)
        with _guard:
            held = list(_leased.items())
            if not held:
                _speaker = None
                return
        for connection, use in held:
            with use, suppress(psycopg.Error):  # lost: the next write of its holder meets the fence
                if connection in _leased:
                    connection.execute("")


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
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
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
    global _guard, _speaker
    _guard, _speaker = threading.Lock(), None
    _leased.clear()
    forget_fences()
    for connection in (*_used, *(one for kept in _idle.values() for one in kept)):
        with suppress(Exception):  # closed already
            os.close(connection.fileno())
    _used.clear()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
