"""Locks between all hosts that use a workspace: one of this host's files, then an advisory lock of the server.

An open transaction holds the advisory lock, so it works behind a pooler in transaction mode, too. The server releases
it with the connection, however its holder ends. Such a transaction has neither a number nor a snapshot: it keeps no
row from being cleaned up. A thread of the holder speaks every 2 s; the server ends the transaction of one that has
been silent for 10 s, as a host that sleeps is.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

from findling.domain.errors import LockedError
from findling.stores.postgres.server.connections import ENDLESS, SAFE_PATH, pool_of
from findling.stores.postgres.server.errors import PostgresErrors
from findling.stores.postgres.server.fences import draw_fence, drop_fence, end_stopped_writes, forget_fences
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg

if TYPE_CHECKING:
    from findling.stores.lock import WriteLock
    from findling.stores.postgres.server.connections import Connection

_T = TypeVar("_T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.02

_WRITE_S = 1.0
"""The least patience with a write of an earlier holder that is under way."""

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
        self._place, self._local, self._pool = place, local, pool_of(place)
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
                self._pool.give_back(connection)

    def lend(self) -> None:
        """Leave the lock to other hosts until it is acquired again; other processes of this one stay excluded."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._is_fenced:
                drop_fence(self._place)
            _be_silent(connection)
            self._pool.give_back(connection)

    def release(self) -> None:
        """Release the lock; fine when it is not held."""
        self.lend()
        self._let_go()

    def held_by(self) -> str:
        """The host and the process that hold the lock, and for how long, for messages; empty when nobody does."""
        if (process := self.holder()) is not None:
            return f"process {process} of this host"
        other, row = self._used_for(lambda one: one.execute(_HOLDER.format(self._key).encode()).fetchone())
        self._pool.give_back(other)
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
        begin = "" if connection is not None else f"{_beginning()}; "

        def ask(one: Connection) -> bool:
            # Without parameters: those would leave a portal open, and that a snapshot.
            cursor = one.execute(f"{begin}SELECT pg_catalog.pg_try_advisory_xact_lock({self._key:d})".encode())
            while cursor.nextset():
                pass
            return cursor.fetchone() == (True,)

        if connection is None:
            return self._used_for(ask)
        with self._errors:
            return connection, ask(connection)

    def _turned_away(self, connection: Connection, deadline: float) -> bool:
        """Turn away an earlier holder that has lost the lock, which the caller has just taken."""
        while self._is_fenced:
            try:
                self._pool.give_back(self._used_for(lambda one: draw_fence(one, self._place, _WRITE_S))[0])
                break
            except LockedError:  # an earlier holder writes, or sleeps in the middle of it
                if time.monotonic() > deadline:
                    raise
                self._pool.give_back(self._used_for(lambda one: end_stopped_writes(one, self._place))[0])
                with self._errors:
                    connection.execute("")
        return True

    def _used_for(self, use: Callable[[Connection], _T]) -> tuple[Connection, _T]:
        return self._pool.used_for(use, self._errors)


def _beginning() -> str:
    """The statements that begin a transaction which lasts as long as its host is awake."""
    host = "".join(one for one in socket.gethostname() if one.isalnum() or one in "-.")[:25]
    return _KEPT_ALIVE + _NAMED.format(f"{host} ({os.getpid()})")


_guard = threading.Lock()
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


def _leave_to_parent() -> None:
    global _guard, _speaker
    _guard, _speaker = threading.Lock(), None
    _leased.clear()
    forget_fences()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
