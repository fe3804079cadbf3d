"""Copies of a store: taken while others read and write it, examined, and restored in one step."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from findling.domain.errors import FindlingError, WorkspaceError
from findling.stores.filesystem import create_private, sync_file
from findling.stores.sqlite import schema
from findling.stores.sqlite.connections import StoreErrors, connect, connect_readonly, transaction
from findling.stores.sqlite.integrity import find_problems
from findling.stores.sqlite.loads import load_counts

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
"""Table → condition on the rows to copy; files and models give back the others."""


@contextmanager
def _copying(source: Path, target: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection, schema.StoreHeader]]:
    """A reader of one state, a writer of a new file, and the header; syncs the file in the end."""
    # Without one transaction for the whole copy, every write of others would start it over.
    with StoreErrors(source), closing(connect_readonly(source)) as reader, transaction(reader):
        header = schema.read_header(reader)
        with StoreErrors(target):
            create_private(target)
            writer = _connect_copy(target, "mode=rw")
        with closing(writer):
            # Nobody knows the file yet, so it needs no way back; it is synced as a whole below.
            writer.execute("PRAGMA synchronous = OFF")
            yield reader, writer, header
    with StoreErrors(target):
        sync_file(target)


def copy_made(source: Path, target: Path) -> None:
    """Write the resources of a store that are no files to a new store of the same format, durably.

    Raises as `copy_store` does.
    """
    with _copying(source, target) as (reader, writer, header):
        schema.prepare(writer, str(target), readonly=False, migrations=schema.MIGRATIONS[: header.format])
        # A plain file, without a log beside it.
        writer.execute("PRAGMA journal_mode = DELETE")
        with transaction(writer):
            for table, condition in _TABLES.items():
                _copy_rows(reader, writer, table, condition)
            # The legs of no other state fit it, and a leg of its own starts from nothing.
            writer.execute("UPDATE header SET feature = ?, seq = ?, log_floor = seq", (header.feature, header.seq))
            # A time that no folder has, so that a restored store looks at the files closely.
            writer.execute("INSERT OR REPLACE INTO folders VALUES ('', -1)")


def made_state(path: Path, *, is_copy: bool = False) -> int:
    """A checksum of the resources that are no files, and of the versions."""
    with StoreErrors(path), closing(_connect_copy(path) if is_copy else connect_readonly(path)) as connection:
        rows = connection.execute(f"SELECT rid, seq FROM resources WHERE {_MADE} ORDER BY rid").fetchall()
        rows += connection.execute("SELECT key, value FROM meta WHERE key LIKE '%_version' ORDER BY key").fetchall()
        return crc32(repr(rows).encode("utf-8", "surrogatepass"))


def made_bytes(path: Path) -> int:
    """The approximate size of a copy."""
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
"""4 MB between two calls of `on_step`."""

_FAULTS_OF_SOURCE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Lineage(NamedTuple):
    """The numbers by which others notice a change of the store: none of them may ever repeat."""

    seq: int
    versions: Mapping[str, int]


def copy_store(source: Path, target: Path, *, on_step: Callable[[int, int], None] | None = None) -> None:
    """Write one state of a store to a new file, durably, while others read and write the store.

    `on_step` gets the pages left and the pages in all. Raises DiskFullError or ReadOnlyError for the target,
    NotIndexedError or CorruptError for the source; the caller deletes the target then.
    """
    with _copying(source, target) as (reader, writer, _):
        writer.execute("PRAGMA journal_mode = OFF")
        _back_up(reader, writer, source, target, on_step)


def read_facts(path: Path) -> tuple[schema.StoreHeader, dict[str, int]]:
    """The header and the counts of a copy. Raises CorruptError for a file that is no copy of a store."""
    with StoreErrors(path), closing(_connect_copy(path)) as connection:
        return schema.read_header(connection), load_counts(connection)


def find_damage(path: Path) -> list[str]:
    """The damage of a copy, one sentence each; empty when it can be restored.

    SQLite alone examines a copy of a newer format.
    """
    try:
        with StoreErrors(path), closing(_connect_copy(path)) as connection:
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
    """Make a copy of our format a store of its own that comes `after` another one: no leg of another state fits it.

    `meta` replaces small values of the copy, among them `store_id`; None deletes one.
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
            kept = [(key, value) for key, value in values.items() if value is not None]
            connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", kept)


def put_back(copy: Path, store: Path, *, on_step: Callable[[int, int], None] | None = None) -> None:
    """Give a store the content of a copy, in one transaction.

    Raises DiskFullError, ReadOnlyError, LockedError; the store then is as it was.
    """
    with StoreErrors(store), closing(_connect_copy(copy)) as reader, closing(connect(store)) as writer:
        sizes = {connection.execute("PRAGMA page_size").fetchone() for connection in (reader, writer)}
        if len(sizes) > 1:
            what = f"{copy} has pages of another size than {store}"
            raise WorkspaceError(what, hint="delete the store, then restore again")
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


def _connect_copy(path: Path, mode: str = "mode=ro&immutable=1") -> sqlite3.Connection:
    # Nobody writes to a copy, and it must not get side files.
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
