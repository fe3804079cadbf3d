"""The connections of a store, a few readers in turns and one writer, and SQLite's errors in findling's words."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from findling.domain.errors import (
    FindlingError,
    InvalidValueError,
    LockedError,
    NotIndexedError,
    ReadOnlyError,
    ReplacedError,
    StoreDamagedError,
    WorkspaceError,
)
from findling.stores.validation import batched

BUSY_SECONDS = 30.0
"""The patience of one connection with another."""

_CACHE_KIB = 16_384
"""Holds the pages that a batch of 8 MB changes, so that none is written to the log twice."""

_MOST_CACHE_KIB = 131_072
_CACHE_SHARE = 8
"""Of a large store an eighth is cached: the indexes of ids and digests, which are written at random places. A batch of
24,000 chunks then takes 0.46 s instead of 0.61 behind 800,000 others."""

_CHECKPOINT_PAGES = 4_000
"""Merges the log when it holds 16 MB; it then stays below that plus one batch. Twice as much is not faster."""

_SCARCE_BYTES = 1 << 20
"""With less space than this, an I/O error is a full disk: not every file system says so in so many words."""

_NO_SIDE_FILE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
"""Errors of SQLite when it cannot create the index of its log."""

_UNREADABLE_ROW = (ValueError, TypeError, AttributeError, LookupError)
"""Errors of decoding a row that holds something else than was written."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection that may write to an existing file."""
    connection = _connect(path, "mode=rw")
    # Content that was acknowledged must outlive a power cut: some of it (memories, decisions) has no other source, and
    # a leg may never know a number that the store has forgotten. The price is one sync per commit.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {_CHECKPOINT_PAGES * 4096}")
    return connection


def fit_cache(connection: sqlite3.Connection) -> None:
    """Let the cache of a connection that writes grow with its store."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    share = pages * 4 // _CACHE_SHARE
    connection.execute(f"PRAGMA cache_size = -{min(max(_CACHE_KIB, share), _MOST_CACHE_KIB)}")


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also in a read-only directory. Raises NotIndexedError for a missing file."""
    is_there = path.exists()
    try:
        connection = _connect(path, "mode=ro")
    except sqlite3.OperationalError:
        # Looking afterwards could meet the file of a writer that has just created it.
        if is_there:
            raise
        raise _missing(path) from None
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        connection.close()
        # A log-mode database needs its -shm file, which SQLite cannot create in a read-only directory or on a full
        # disk. Without a log everything is in the main file and nobody here can be changing it, so it may be read as
        # immutable; with a log that would silently hide what was committed last.
        if error.sqlite_errorcode & 0xFF not in _NO_SIDE_FILE or _has_log(path):
            raise
        return _connect(path, "mode=ro&immutable=1")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN") -> Iterator[None]:
    """Statements that land together, or not at all."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_VALUES_PER_STATEMENT = 500
"""SQLite takes 32,766 values; the gain is flat long before."""

_VALUES_STEP = 10


def rows_in(connection: sqlite3.Connection, statement: str, values: Iterable[Any]) -> Iterator[Any]:
    """The rows of a statement whose `IN ({})` lists the values, in as many turns as it takes."""
    listed = list(values)
    if len(listed) <= _VALUES_PER_STATEMENT:
        return _rows_in(connection, statement, listed)
    batches = batched(listed, _VALUES_PER_STATEMENT)
    return chain.from_iterable(_rows_in(connection, statement, batch) for batch in batches)


def _rows_in(connection: sqlite3.Connection, statement: str, values: list[Any]) -> Iterator[Any]:
    # The last value fills up: a statement for every number of values would be prepared again and again, 0.03 ms each.
    missing = -len(values) % _VALUES_STEP
    return connection.execute(statement.format(",".join("?" * (len(values) + missing))), values + values[-1:] * missing)


class StoreErrors:
    """A context that translates errors of SQLite and the file system; it may be entered many times.

    `way_back` names the command for a damaged file. With `reads`, a row that cannot be decoded is damage, too.
    """

    def __init__(self, path: Path, way_back: Callable[[], str] | None = None, *, reads: bool = False) -> None:
        self._path = path
        self._way_back = way_back
        self._reads = reads

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        translated = None if error is None else _translate(error, self._path, reads=self._reads)
        if translated is None:
            return
        if self._way_back is not None and isinstance(translated, StoreDamagedError):
            translated.hint = self._way_back()
        raise translated from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # Transactions are ours to begin and end; connections are shared between threads under a lock of their own.
    uri = f"{path.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _has_log(path: Path) -> bool:
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _translate(error: BaseException, path: Path, *, reads: bool) -> FindlingError | None:
    if isinstance(error, StoreDamagedError):
        return None if str(path) in error.message else _damaged(path, error.message)
    from findling.stores.filesystem import translate_file_error  # only errors need it

    if (translated := translate_file_error(error, path)) is not None:
        return translated
    if isinstance(error, sqlite3.Error):
        return _translate_sqlite_error(error, path)
    if reads and isinstance(error, _UNREADABLE_ROW):
        return _damaged(path, f"a row cannot be read: {error!r}")
    return None


def _translate_sqlite_error(error: sqlite3.Error, path: Path) -> FindlingError | None:
    from findling.stores.filesystem import disk_full, read_only

    # The low byte is the kind of error, the rest its detail. What Python's module itself finds carries no code: text
    # that is not UTF-8 is damage, anything else is a bug of ours.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return _damaged(path, error) if "decode" in str(error) else None
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return disk_full(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return read_only(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_SCHEMA | sqlite3.SQLITE_MISMATCH:
            return _damaged(path, error)
        case sqlite3.SQLITE_ERROR if "syntax" not in str(error):  # an unknown format, or a missing table
            return _damaged(path, error)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LockedError(f"{path} is being written by another process", hint="try again when it has finished")
        case sqlite3.SQLITE_CONSTRAINT:
            return InvalidValueError(f"{path} does not take this: {error}", hint="chunk ids must differ everywhere")
        case sqlite3.SQLITE_TOOBIG:
            return InvalidValueError(f"{path} does not take a text this large: {error}", hint="split the resource")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR if not path.exists():
            return _missing(path)
        case sqlite3.SQLITE_CANTOPEN:
            return WorkspaceError(f"{path} cannot be opened", hint="check who may read it and its folder")
        case sqlite3.SQLITE_IOERR if _is_disk_full(path):
            return disk_full(path)
        case sqlite3.SQLITE_IOERR:
            return WorkspaceError(f"{path} cannot be read or written: {error}", hint="check the disk")
    return None


def _missing(path: Path) -> NotIndexedError:
    return NotIndexedError(f"{path} is not there", hint="findling index PATH")


def _damaged(path: Path, why: object) -> StoreDamagedError:
    return StoreDamagedError(f"{path} is damaged: {why}", hint="findling index --rebuild")


def _is_disk_full(path: Path) -> bool:
    from shutil import disk_usage  # 2 ms to load, and only an error needs it

    return disk_usage(path.parent).free < _SCARCE_BYTES


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
        self._file = stamp_of(path)[:2]
        self._readonly = readonly
        self.refusal: FindlingError | None = None
        """The reason why it is only read, where nobody has asked for that."""
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

    def row(self, statement: str, *values: object) -> Any:
        """The first row of a statement, `None` without one. A question asks for five: `glancing` is twice as slow."""
        connection = self._take()
        try:
            with self.read_errors:
                return connection.execute(statement, values).fetchone()
        finally:
            self._give_back(connection)

    @contextmanager
    def writing(self, patience_s: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction that lands when the block ends and leaves no trace when it fails.

        `patience_s` limits the wait for another thread, and that for another process. Raises LockedError after it, and
        ReadOnlyError in a store that is only read.
        """
        if self._readonly:
            usual = ReadOnlyError(f"{self._path} is open for reading only", hint="open it without readonly")
            raise self.refusal or usual
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
        return bool(self._file) and self._file == stamp_of(self._path)[:2]


def stamp_of(path: Path) -> tuple[int, ...]:
    """Device, inode, time of change and size of a file; empty for one that is not there."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _begin(connection: sqlite3.Connection, patience_s: float | None) -> None:
    if patience_s is None:
        connection.execute("BEGIN IMMEDIATE")
        return
    connection.execute(f"PRAGMA busy_timeout = {round(patience_s * 1000)}")
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}")
