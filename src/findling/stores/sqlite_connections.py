"""The connections of a store: one to read and one to write, each shared between threads under a lock."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from findling.domain.errors import LockedError, ReadOnlyError
from findling.stores.sqlite_files import BUSY_SECONDS, StoreErrors, connect, transaction

__all__ = ["Connections"]


class Connections:
    """Reads and writes use a connection each, so that a reader sees whole writes only and does not wait for one.

    The second connection is opened with the first write.
    """

    def __init__(self, path: Path, reader: sqlite3.Connection, *, readonly: bool) -> None:
        self.errors = StoreErrors(path)
        self.writer: sqlite3.Connection | None = None
        self._path = path
        self._readonly = readonly
        self._reader = reader
        self._read_lock = threading.RLock()
        self._write_lock = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the store for as many statements as it takes."""
        with self._read_lock, self.errors, transaction(self._reader):
            yield self._reader

    @contextmanager
    def glancing(self) -> Iterator[sqlite3.Connection]:
        """For a single statement, which sees one state of the store without a transaction around it."""
        with self._read_lock, self.errors:
            yield self._reader

    @contextmanager
    def writing(self, patience_s: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction that lands when the block ends and leaves no trace when it fails.

        `patience_s` limits how long it waits for another thread, and how long for another process. Raises LockedError
        when one of them does not finish, and ReadOnlyError in a store that is only read.
        """
        with self.exclusive(patience_s) as connection:
            with self.errors:
                _begin(connection, patience_s)
            # The block runs outside `errors`: what a caller's iterable raises in it passes through as it is.
            try:
                yield connection
                with self.errors:
                    connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def exclusive(self, patience_s: float | None = None) -> Iterator[sqlite3.Connection]:
        """The connection that writes, outside a transaction and for no other thread. Raises as `writing` does."""
        if self._readonly:
            raise ReadOnlyError(f"{self._path} is open for reading only", hint="open it without readonly")
        if not self._write_lock.acquire(timeout=-1 if patience_s is None else patience_s):
            raise LockedError(f"{self._path} is being written by another thread", hint="try again in a moment")
        try:
            if self.writer is None:
                with self.errors:
                    self.writer = connect(self._path)
            yield self.writer
        finally:
            self._write_lock.release()

    def close(self) -> None:
        """Release both connections; closing twice is fine."""
        with self._write_lock, self._read_lock:
            self._reader.close()
            if self.writer is not None:
                self.writer.close()


def _begin(connection: sqlite3.Connection, patience_s: float | None) -> None:
    if patience_s is None:
        connection.execute("BEGIN IMMEDIATE")
        return
    connection.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
