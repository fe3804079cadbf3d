"""A copy of the part of a store that no file can give back: what was added, remembered, imported, decided."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from zlib import crc32

from findling.stores import schema
from findling.stores.sqlite_backup import connect_copy, sync_copy
from findling.stores.sqlite_files import StoreErrors, connect_readonly, create_private, transaction

__all__ = ["copy_made", "made_bytes", "made_state"]

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
