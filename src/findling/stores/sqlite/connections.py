"""The connections of a store: a few readers, which threads take in turns, and one writer."""

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
"""Reading is a tenth of a search: more threads seldom read at once, and each costs two open files."""

_READER_CACHE_KIB = 2_000
"""The cache of every reader but the first; the system caches the same pages."""


class Connections:
    """Separate connections for reads and writes, so that a reader sees whole writes only and waits for none.

    The writer is opened with the first write, a further reader when all others are in use.
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
        """A connection that sees one state of the store for as many statements as it takes."""
        with self.glancing() as connection, transaction(connection):
            yield connection

    @contextmanager
    def glancing(self) -> Iterator[sqlite3.Connection]:
        """A connection for a single statement, which sees one state of the store without a transaction."""
        connection = self._take()
        try:
            with self.read_errors:
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def writing(self, patience_s: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction that lands when the block ends and leaves no trace when it fails.

        `patience_s` limits the wait for another thread, and that for another process. Raises LockedError after it, and
        ReadOnlyError in a store that is only read.
        """
        if self._readonly:
            raise ReadOnlyError(f"{self._path} is open for reading only", hint="open it without readonly")
        if not self._write_lock.acquire(timeout=-1 if patience_s is None else patience_s):
            raise LockedError(f"{self._path} is being written by another thread", hint="try again in a moment")
        try:
            with self.errors:
                if self.writer is None:
                    self.writer = connect(self._path)
                _begin(self.writer, patience_s)
            # The block runs outside `errors`: what a caller's iterable raises in it passes through as it is.
            try:
                yield self.writer
                with self.errors:
                    self.writer.execute("COMMIT")
            except BaseException:
                if self.writer.in_transaction:
                    self.writer.execute("ROLLBACK")
                raise
        finally:
            self._write_lock.release()

    def close(self) -> None:
        """Release all connections as soon as nobody uses them; closing twice is fine."""
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
        """Take a reader that is idle, open another one, or wait for one."""
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
        """One more reader; `None` when it cannot be opened, or the path leads to another file by now."""
        if not self._is_there():
            return None  # to open the other file with the log of this one would harm both
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
            pass  # the open ones will do
        connection.close()
        return None

    def _is_there(self) -> bool:
        return self._file is not None and self._file == _identity(self._path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None when there is none."""
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
