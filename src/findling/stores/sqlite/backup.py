"""Copies of a store: taken while others read and write it, examined, and put back in one step."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from findling.domain.errors import FindlingError, WorkspaceError
from findling.stores.filesystem import create_private
from findling.stores.sqlite import schema
from findling.stores.sqlite.files import StoreErrors, connect, connect_readonly, transaction
from findling.stores.sqlite.integrity import find_problems
from findling.stores.sqlite.reads import load_counts

__all__ = [
    "CopyFacts",
    "Lineage",
    "connect_copy",
    "copy_made",
    "copy_store",
    "find_damage",
    "made_bytes",
    "made_state",
    "put_back",
    "read_facts",
    "read_lineage",
    "stamp",
    "sync_copy",
]


_MADE = "type != 'file'"

_TABLES = {
    "resources": _MADE,
    "bodies": f"id IN (SELECT id FROM resources WHERE {_MADE})",
    "chunks": f"resource IN (SELECT id FROM resources WHERE {_MADE})",
    "glossary": "1",
    "relations": "1",
    "accesses": "1",
    "meta": "1",
}
"""Table → which of its rows are taken; what follows from the files, or from a model, is not."""


def copy_made(source: Path, target: Path) -> None:
    """Write what of one state of a store is no file to a new store of the same format, durably.

    Raises as `copy_store` does.
    """
    with StoreErrors(source), closing(connect_readonly(source)) as reader, transaction(reader):
        header = schema.read_header(reader)
        with StoreErrors(target):
            create_private(target)
            writer = connect_copy(target, "mode=rw")
        with closing(writer):
            writer.execute("PRAGMA synchronous = OFF")
            schema.prepare(writer, str(target), readonly=False, migrations=schema.MIGRATIONS[: header.format])
            # A plain file, without a log beside it.
            writer.execute("PRAGMA journal_mode = DELETE")
            with transaction(writer):
                for table, condition in _TABLES.items():
                    _copy_rows(reader, writer, table, condition)
                # The legs of no other state fit it, and a leg of its own starts from nothing.
                writer.execute("UPDATE header SET feature = ?, seq = ?, log_floor = seq", (header.feature, header.seq))
                # A time that no folder has: whoever restores it looks at the files closely.
                writer.execute("INSERT OR REPLACE INTO folders VALUES ('', -1)")
    with StoreErrors(target):
        sync_copy(target)


def made_state(path: Path, *, is_copy: bool = False) -> int:
    """A number that tells one state of what is no file from another one."""
    with StoreErrors(path), closing(connect_copy(path) if is_copy else connect_readonly(path)) as connection:
        rows = connection.execute(f"SELECT rid, seq FROM resources WHERE {_MADE} ORDER BY rid").fetchall()
        rows += connection.execute("SELECT key, value FROM meta WHERE key LIKE '%_version' ORDER BY key").fetchall()
        return crc32(repr(rows).encode("utf-8", "surrogatepass"))


def made_bytes(path: Path) -> int:
    """About how large a copy would be."""
    with StoreErrors(path), closing(connect_readonly(path)) as connection:
        columns = "coalesce(sum(characters), 0), count(*)"
        characters, count = connection.execute(f"SELECT {columns} FROM resources WHERE {_MADE}").fetchone()
    # Text of one or two bytes a character, and some 300 bytes of rows for every resource.
    return int(characters * 1.5) + 300 * int(count)


def _copy_rows(reader: sqlite3.Connection, writer: sqlite3.Connection, table: str, condition: str) -> None:
    names = [f'"{row[1]}"' for row in writer.execute(f"PRAGMA table_info({table})")]
    if not names:
        return  # an older format
    columns, marks = ", ".join(names), ", ".join("?" * len(names))
    rows = reader.execute(f"SELECT {columns} FROM {table} WHERE {condition}")
    writer.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


_PAGES_AT_A_TIME = 1_024
"""4 MB between two looks at whether to go on."""

_FAULTS_OF_SOURCE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class CopyFacts(NamedTuple):
    """What a copy says about itself."""

    format: int
    seq: int
    counts: Mapping[str, int]


class Lineage(NamedTuple):
    """The numbers by which others notice that a store has changed: none of them may ever come again."""

    seq: int
    versions: Mapping[str, int]


def copy_store(source: Path, target: Path, *, on_step: Callable[[int, int], None] | None = None) -> None:
    """Write one state of a store to a new file, durably, while others read and write the store.

    `on_step` is told the pages that are left and those there are. Raises DiskFullError or ReadOnlyError for the target,
    NotIndexedError or CorruptError for the source; the target is then to be deleted.
    """
    with StoreErrors(source), closing(connect_readonly(source)) as reader, transaction(reader):
        # One state for the whole copy: without this, whoever writes meanwhile would have it start over, for ever.
        reader.execute("SELECT * FROM header").fetchone()
        with StoreErrors(target):
            create_private(target)
            writer = connect_copy(target, "mode=rw")
        with closing(writer):
            # Nobody knows the file yet, so it needs no way back; it is synced as a whole below.
            writer.execute("PRAGMA journal_mode = OFF")
            writer.execute("PRAGMA synchronous = OFF")
            _back_up(reader, writer, source, target, on_step)
    with StoreErrors(target):
        sync_copy(target)


def read_facts(path: Path) -> CopyFacts:
    """What a copy holds. Raises CorruptError for a file that is no copy of a store."""
    with StoreErrors(path), closing(connect_copy(path)) as connection:
        header = schema.read_header(connection)
        return CopyFacts(header.format, header.seq, load_counts(connection))


def find_damage(path: Path) -> list[str]:
    """What is wrong with a copy, one sentence each; empty when it can be put back.

    A copy of a newer format is looked at as far as SQLite itself understands it.
    """
    try:
        with StoreErrors(path), closing(connect_copy(path)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
            if found != ["ok"]:
                return found
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != schema.APPLICATION_ID:
                return ["it is no store of findling"]
            return find_problems(connection) if schema.read_header(connection).format == schema.FORMAT else []
    except (FindlingError, sqlite3.DatabaseError) as error:
        return [str(error)]


def read_lineage(path: Path) -> Lineage:
    """The numbers that a store has reached. Raises CorruptError for a damaged one."""
    with StoreErrors(path), closing(connect_readonly(path)) as connection:
        return _lineage(connection)


def stamp(path: Path, meta: Mapping[str, str | None], after: Lineage | None) -> None:
    """Make a copy a store of its own that comes `after` another one: no leg of any other state fits it.

    `meta` are the small values that are not those of the copy; None is one that it must not have, and a new `store_id`
    is one of them. The copy must have our format.
    """
    with StoreErrors(path), closing(connect(path)) as connection:
        own = _lineage(connection)
        earlier = after or Lineage(0, {})
        seq = max(own.seq, earlier.seq) + 1
        names = own.versions.keys() | earlier.versions.keys()
        versions = {name: 1 + max(own.versions.get(name, 0), earlier.versions.get(name, 0)) for name in names}
        with transaction(connection, "BEGIN IMMEDIATE"):
            connection.execute("UPDATE header SET seq = ?", (seq,))
            values = {**meta, **{name: str(version) for name, version in versions.items()}}
            connection.executemany("DELETE FROM meta WHERE key = ?", [(key,) for key in values])
            connection.executemany(
                "INSERT INTO meta (key, value) VALUES (?, ?)",
                [(key, value) for key, value in values.items() if value is not None],
            )


def put_back(copy: Path, store: Path, *, on_step: Callable[[int, int], None] | None = None) -> None:
    """Give a store the content of a copy, in one transaction: others see what was there, and then what is there.

    Raises DiskFullError, ReadOnlyError, LockedError; the store then is as it was.
    """
    with StoreErrors(store), closing(connect_copy(copy)) as reader, closing(connect(store)) as writer:
        sizes = {connection.execute("PRAGMA page_size").fetchone() for connection in (reader, writer)}
        if len(sizes) > 1:
            raise WorkspaceError(
                f"{copy} has pages of another size than {store}", hint="delete the store, then restore again"
            )
        _back_up(reader, writer, copy, store, on_step)


def _back_up(
    reader: sqlite3.Connection,
    writer: sqlite3.Connection,
    source: Path,
    target: Path,
    on_step: Callable[[int, int], None] | None,
) -> None:
    def tell(_: int, remaining: int, total: int) -> None:
        if on_step is not None:
            on_step(remaining, total)

    try:
        reader.backup(writer, pages=_PAGES_AT_A_TIME, progress=tell, sleep=0.05)
    except sqlite3.Error as error:
        is_source = getattr(error, "sqlite_errorcode", 0) & 0xFF in _FAULTS_OF_SOURCE
        with StoreErrors(source if is_source else target):
            raise


def _lineage(connection: sqlite3.Connection) -> Lineage:
    rows = connection.execute("SELECT key, value FROM meta WHERE key LIKE '%\\_version' ESCAPE '\\'")
    versions = {key: int(value) for key, value in rows if str(value).isdecimal()}
    return Lineage(schema.read_header(connection).seq, versions)


def connect_copy(path: Path, mode: str = "mode=ro&immutable=1") -> sqlite3.Connection:
    """A connection to a copy, by default one that only reads."""
    # Nobody writes to a copy, and it must not get side files: it is read as it lies there.
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)


def sync_copy(path: Path) -> None:
    """Bring a copy to the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
