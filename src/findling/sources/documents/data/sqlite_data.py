"""SQLite databases: the rows of every table, read from a copy in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count

from findling.domain.values import counted
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder
from findling.sources.files.file_text import UnreadableError

# Names and messages that are no UTF-8 fail in Python, not in SQLite.
_ERRORS = (sqlite3.Error, UnicodeDecodeError, OverflowError)
_MAGIC = b"SQLite format 3\0"
_MAX_ROWS = 10_000
_MAX_COUNTED = 10_000_000
_STEPS_PER_CHECK = 1_000_000
_MAX_CHECKS = 500  # half a billion steps of the database engine, some ten seconds


def extract(source: Source) -> Extracted:
    """The rows of all tables, as `column: value | column: value`. Raises `UnreadableError`."""
    builder = TextBuilder(source.limit)
    broken: list[str] = []
    capped: list[str] = []
    with closing(_opened(source.data)) as database:
        for table in _tables(database):
            try:
                if _write_table(builder, database, table):
                    capped.append(table)
            except _ERRORS:  # a broken page, or a table whose columns need what this SQLite lacks
                broken.append(table)
            if builder.full:
                break
    notes = [f"cannot be read to the end: {', '.join(broken)}"] if broken else []
    notes += [f"the first {_MAX_ROWS:,} rows of {', '.join(capped)}"] if capped else []
    empty = ("damaged", "no table can be read") if broken else ("no-text", "holds no rows")
    return builder.extracted(Properties(fields={"incomplete": "; ".join(notes)}), empty=empty)


def _opened(data: bytes) -> sqlite3.Connection:
    if not data.startswith(_MAGIC):
        raise UnreadableError("damaged", "no SQLite database, or an encrypted one")
    # Bytes 18 and 19 say that a write-ahead log belongs to the file, which a database in memory cannot have.
    rollback_mode = data[:18] + b"\x01\x01" + data[20:]
    database = sqlite3.connect(":memory:")
    try:
        database.deserialize(rollback_mode)
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        checks = count()
        database.set_progress_handler(lambda: next(checks) >= _MAX_CHECKS, _STEPS_PER_CHECK)
        for setting in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
            database.execute(f"PRAGMA {setting}")
    except _ERRORS as error:
        database.close()
        raise UnreadableError("damaged", f"cannot be opened: {error}") from error
    return database


def _tables(database: sqlite3.Connection) -> list[str]:
    """The tables that hold what users stored: neither SQLite's own, nor virtual ones and the tables behind them."""
    try:
        rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    except _ERRORS as error:
        raise UnreadableError("damaged", f"the list of tables is broken: {error}") from error
    tables = {str(name): str(sql or "").upper().split(None, 2)[:2] == ["CREATE", "VIRTUAL"] for name, sql in rows}
    behind = tuple(f"{name}_" for name, is_virtual in tables.items() if is_virtual)
    own = (name for name, is_virtual in tables.items() if not is_virtual and not name.startswith(behind))
    return [name for name in own if not name.lower().startswith("sqlite_")]


def _write_table(builder: TextBuilder, database: sqlite3.Connection, table: str) -> bool:
    """Write the rows of a table; whether it has more than were read."""
    quoted = '"' + table.replace('"', '""') + '"'
    written = 0
    for label, text in _rows(database, quoted):
        if not written:
            builder.section(table)
        builder.place(f"{table} {label}")
        builder.line(text)
        written += 1
        if builder.full:
            return False
    if written == _MAX_ROWS:
        counting = f"SELECT count(*) FROM (SELECT 1 FROM {quoted} LIMIT {_MAX_COUNTED})"
        more = int(database.execute(counting).fetchone()[0]) - written
        if more > 0:
            builder.line(f"… {counted(more, 'more row')}")
            return True
    return False


def _rows(database: sqlite3.Connection, quoted: str) -> Iterator[tuple[str, str]]:
    """Name of a row and its values; a table without row ids uses its primary key."""
    try:
        cursor = database.execute(f"SELECT rowid, * FROM {quoted} LIMIT {_MAX_ROWS}")
        keys = [0]
    except sqlite3.OperationalError as error:
        if "rowid" not in str(error):
            raise
        cursor = database.execute(f"SELECT NULL, * FROM {quoted} LIMIT {_MAX_ROWS}")
        columns = database.execute(f"PRAGMA table_info({quoted})").fetchall()
        keys = [index + 1 for _, index in sorted((column[5], column[0]) for column in columns if column[5])]
    names = [str(column[0]) for column in cursor.description]
    for row in cursor:
        texts = zip(names[1:], map(_text, row[1:]), strict=True)
        label = ", ".join(_text(row[key]) for key in keys)
        yield f"row {label}", " | ".join(f"{name}: {text}" for name, text in texts if text)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"<{len(value):,} bytes>" if isinstance(value, bytes) else str(value)
