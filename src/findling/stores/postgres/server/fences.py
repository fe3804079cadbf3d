"""Fences: a process whose lock was lost writes nothing more, once another one has taken it.

A process that takes the write lock draws a number and leaves it in the row of the workspace. Each of its writes holds
that row, and compares. A connection that holds a lock may die alone: its process does not hear of it.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from findling.domain.errors import LockedError
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg

if TYPE_CHECKING:
    import psycopg

_drawn: dict[tuple[str, str], int] = {}
"""Database and workspace → the number of the write lock that this process holds."""

_writes: Counter[tuple[str, str]] = Counter()
"""Database and workspace → the writes that this process has begun and ended."""

_NO_ROW = frozenset({"42P01", "3F000", "42703", "42501", "25006"})
"""Codes of a database without tables, or of an older format, or that this role cannot write: nothing to guard."""


def draw_fence(connection: psycopg.Connection[Any], place: PostgresPlace, patience_s: float) -> None:
    """Turn away earlier holders, after the write of theirs that is under way. The caller has just taken the lock.

    Raises psycopg.Error, LockNotAvailable when that write takes longer than `patience_s`.
    """
    number, psycopg = int.from_bytes(os.urandom(7)) + 1, load_psycopg()
    try:
        # One transaction. No sync of the disk: a number that a crash loses was that of a lock that the crash has ended.
        connection.execute(
            "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true),"
            " pg_catalog.set_config('synchronous_commit', 'off', true),"
            f" pg_catalog.set_config('lock_timeout', '{max(round(1000 * patience_s), 1)}', true);"
            f" UPDATE findling.workspaces SET holder = {number:d}"
            f" WHERE name = {psycopg.sql.Literal(place.workspace).as_string(connection)}"
        )
    except psycopg.Error as error:
        if error.sqlstate not in _NO_ROW:
            raise
    _drawn[_key(place)] = number


_END_STOPPED = """
SELECT pg_catalog.pg_terminate_backend(pid) FROM findling.workspaces
JOIN pg_catalog.pg_locks ON locktype = 'transactionid' AND granted AND transactionid = workspaces.xmax
JOIN pg_catalog.pg_stat_activity USING (pid)
WHERE name = %s AND wait_event_type = 'Client' AND clock_timestamp() - state_change > interval '5 seconds'
"""
"""The writer waits for its host, and that for more than 5 s. Of another role's, the server tells neither."""


def end_stopped_writes(connection: psycopg.Connection[Any], place: PostgresPlace) -> None:
    """End a write in whose middle its host has stopped. The caller has the lock. Raises psycopg.Error."""
    connection.execute(_END_STOPPED, (place.workspace,))


def pass_fence(connection: psycopg.Connection[Any], place: PostgresPlace, ws: int, holder: int) -> None:
    """Raise LockedError when another process has taken the lock that this one held.

    `holder` is the number in the row, which the caller holds. A workspace that was made under the lock has none yet.
    """
    number = _drawn.get(_key(place), holder)
    if number == holder:
        return
    if holder:
        raise LockedError(
            f"{place.shown} is being written by another process: the server has ended the lock of this one,"
            " and nothing of this write was kept, only what the command had written before",
            hint="do the same again",
        )
    connection.execute("UPDATE findling.workspaces SET holder = %s WHERE ws = %s", (number, ws))


def count_write(place: PostgresPlace) -> None:
    """Count the beginning or the end of a write."""
    _writes[_key(place)] += 1


def writes_of(place: PostgresPlace) -> int:
    """A number that each write of this process changes."""
    return _writes[_key(place)]


def held_since(place: PostgresPlace) -> tuple[int, int] | None:
    """A value that stays equal as long as this process holds the write lock and writes nothing; None without it."""
    number = _drawn.get(_key(place))
    return None if number is None else (number, _writes[_key(place)])


def drop_fence(place: PostgresPlace) -> None:
    """Hold no lock any more."""
    _drawn.pop(_key(place), None)


def forget_fences() -> None:
    """Forget the locks of the parent, in a child."""
    _drawn.clear()


def _key(place: PostgresPlace) -> tuple[str, str]:
    return place.dsn, place.workspace
