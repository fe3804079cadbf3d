"""The connections of a store: a few to read with, taken in turns by the threads, and one to write."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from findling.domain.errors import LockedError, ReadOnlyError, ReplacedError
from findling.stores.sqlite.files import BUSY_SECONDS, StoreErrors, connect, connect_readonly, transaction

__all__ = ["Connections"]

_MOST_READERS = 4
"""Reading is a tenth of a search: more threads than that are seldom at it at once, and each costs two open files."""

_READER_CACHE_KIB = 2_000
"""Of every reader but the first: what is read again is in the cache of the system, too."""


class Connections:
    """Reads and writes use connections of their own, so that a reader sees whole writes only and waits for none.

    The connection that writes is opened with the first write, a further one to read when all others are in use.
    """

    def __init__(
        self, path: Path, reader: sqlite3.Connection, *, readonly: bool, way_back: Callable[[], str] | None = None
    ) -> None:
        self.errors = StoreErrors(path, way_back)
        self.read_errors = StoreErrors(path, way_back, reads=True)
        self.writer: sqlite3.Connection | None = None
        self._path = path
        self._file = _identity(path)
        self._readonly = readonly
        self._reader = reader
        self._idle = [reader]
        self._readers = 1
        self._most_readers = _MOST_READERS
        self._given_back = threading.Condition()
        self._is_closed = False
        self._write_lock = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One state of the store for as many statements as it takes."""
        connection = self._take()
        try:
            with self.read_errors, transaction(connection):
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def glancing(self) -> Iterator[sqlite3.Connection]:
        """For a single statement, which sees one state of the store without a transaction around it."""
        connection = self._take()
        try:
            with self.read_errors:
                yield connection
        finally:
            self._give_back(connection)

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
        """Release all connections when nobody uses them any more; closing twice is fine."""
        with self._write_lock:
            with self._given_back:
                self._is_closed = True
                self._given_back.notify_all()
                self._given_back.wait_for(lambda: len(self._idle) == self._readers)
                for reader in self._idle:
                    reader.close()
            if self.writer is not None:
                self.writer.close()

    def _take(self) -> sqlite3.Connection:
        """A connection that nobody else uses until it is given back; waits for one when there are enough of them."""
        with self._given_back:
            while not self._is_closed:
                if self._idle:
                    return self._idle.pop()
                if self._readers < self._most_readers:
                    if (another := self._another()) is not None:
                        self._readers += 1
                        return another
                    self._most_readers = self._readers
                self._given_back.wait()
        raise ReplacedError(f"{self._path} was closed while it was read", hint="ask again")

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._given_back:
            self._idle.append(connection)
            self._given_back.notify_all() if self._is_closed else self._given_back.notify()

    def _another(self) -> sqlite3.Connection | None:
        """One more connection that reads; `None` when it is not to be had, or the path leads to another file by now."""
        if not self._is_there():
            return None  # whoever opened the other file with the log of this one would harm both
        try:
            connection = connect_readonly(self._path) if self._readonly else connect(self._path)
        except (OSError, sqlite3.Error):
            return None
        try:
            connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
            # The log is opened with the first statement: by then it must still be the one of this file.
            connection.execute("SELECT * FROM header").fetchone()
            if self._is_there():
                return connection
        except sqlite3.Error:
            pass  # those that are there will do
        connection.close()
        return None

    def _is_there(self) -> bool:
        return self._file is not None and self._file == _identity(self._path)


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one at the same path; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _begin(connection: sqlite3.Connection, patience_s: float | None) -> None:
    if patience_s is None:
        connection.execute("BEGIN IMMEDIATE")
        return
    connection.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
