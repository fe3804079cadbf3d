"""Rows of a PostgreSQL table or view, as a stream of batches out of one read-only transaction.

All state lasts as long as the transaction, and no statement is prepared: a pooler may stand in between.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from findling.domain.errors import FindlingError, InvalidValueError, MissingExtraError, UsageError
from findling.sources.databases.postgres_catalogue import (
    FoundColumn,
    FoundTable,
    find_column,
    find_table,
    tags_of,
    text_of,
    time_of,
)

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composable, Composed

_BATCH_ROWS, _BATCH_CHARACTERS = 1_000, 4_000_000
"""Size of a batch, which is held in memory; wide rows make batches of fewer."""

_FIRST_ROWS = 16
_CONNECT_S = 15
_LATEST = 253_402_300_800.0  # the end of the year 9999
_MILLISECONDS = 1e11  # seconds would be the year 5138
_ENDLESS = ("infinity", "-infinity", "nan")


class RowColumns(NamedTuple):
    """The columns that are read, by their use. Without `id` it is the primary key."""

    text: tuple[str, ...]
    id: tuple[str, ...] = ()
    title: str = ""
    time: str = ""
    tags: tuple[str, ...] = ()
    author: str = ""
    created: str = ""
    cursor: str = ""


class TableRow(NamedTuple):
    """One row; its id is fit for a URL, and empty for a row that has none. `cursor` is a text that SQL reads."""

    id: str
    texts: tuple[str, ...]
    title: str
    author: str
    tags: tuple[str, ...]
    created_at: float | None
    updated_at: float | None
    cursor: str | None


class PostgresTable:
    """A table within a transaction. `notes` say which columns are left out, `headings` name those of text."""

    def __init__(
        self, connection: psycopg.Connection[Any], written: str, columns: RowColumns, zone: tzinfo, longest: int
    ) -> None:
        self._connection = connection
        self.notes: list[str] = []
        self._zone = zone
        table = find_table(connection, written)
        self.name = str(table)
        info = connection.info
        self.database = f"{info.host}:{info.port}/{info.dbname}"
        self._table = table
        if not (columns.id or table.key):
            raise UsageError(f"{table} has no primary key", hint="--mapping id=COLUMN, one whose values never repeat")
        self._ids = self._found(columns.id or table.key)
        texts = self._of_words(columns.text)
        if not texts:
            raise UsageError(f"no column of {table} holds text", hint="--mapping text=COLUMN")
        self.headings = tuple(column.name for column in texts)
        cursors = self._found([columns.cursor] if columns.cursor else [])
        self._cursor = cursors[0] if cursors else None
        tags = self._of_words(columns.tags)
        titles, authors = (self._of_words([name] if name else []) for name in (columns.title, columns.author))
        times = [self._found([name] if name else []) for name in (columns.created, columns.time)]
        zone_name = str(zone)
        self._groups: list[list[Composed]] = [
            *([text_of(column, longest) for column in group] for group in (self._ids, texts, titles, authors, cursors)),
            [tags_of(column) for column in tags],
            *([time_of(column, zone_name) for column in group] for group in times),
        ]

    def rows(self, since: str | None = None) -> Iterator[list[TableRow]]:
        """All rows, or those whose cursor is at least `since`, in its order; rows without a cursor come first."""
        from psycopg.sql import SQL, Literal

        order: Composable = SQL("")
        parts: list[Composable] = [SQL("")]
        if self._cursor is not None:
            own = self._cursor.identifier
            by = SQL(", ").join([own, *(column.identifier for column in self._ids)])
            order = SQL(" order by {}").format(by)
            later = SQL(" where {} >= {}::{}").format(own, Literal(since), SQL(self._cursor.sql_type))
            some = SQL(" where {} is not null").format(own)
            # Two statements: with `or` no index would be used.
            parts = [SQL(" where {} is null").format(own), some if since is None else later]
        selected = SQL(", ").join([column for group in self._groups for column in group])
        source = SQL("{}.{}").format(*_identifiers(self._table))
        for part in parts:
            yield from self._fetched(SQL("select {} from {}").format(selected, source) + part + order)

    def _fetched(self, query: Composed) -> Iterator[list[TableRow]]:
        widths = [len(group) for group in self._groups]
        count = _FIRST_ROWS
        with self._connection.cursor(name="findling_rows") as cursor:
            cursor.execute(query)
            while raw := cursor.fetchmany(count):
                rows = [self._row(_split(values, widths)) for values in raw]
                mean = sum(len(text) for row in rows for text in row.texts) // len(rows) + 1
                count = max(1, min(_BATCH_ROWS, _BATCH_CHARACTERS // mean))
                yield rows

    def _row(self, groups: list[Sequence[Any]]) -> TableRow:
        ids, texts, titles, authors, cursors, tags, created, updated = groups
        cursor = cursors[0] if cursors else None
        return TableRow(
            "" if None in ids else ",".join(quote(value, safe=_SAFE) for value in ids),
            tuple(text or "" for text in texts),
            " ".join((titles[0] or "").split()) if titles else "",
            " ".join((authors[0] or "").split()) if authors else "",
            tuple(dict.fromkeys(tag for value in tags for tag in _tags(value))),
            self._moment(created),
            self._moment(updated),
            None if cursor is None or cursor.lower() in _ENDLESS else cursor,
        )

    def _moment(self, values: Sequence[float | str | None]) -> float | None:
        value = values[0] if values else None
        if isinstance(value, str):
            try:
                read = datetime.fromisoformat(value.strip())
                value = (read if read.tzinfo else read.replace(tzinfo=self._zone)).timestamp()
            except (ValueError, OverflowError):
                return None
        if value is None or not math.isfinite(value):
            return None
        seconds = value / 1000 if abs(value) >= _MILLISECONDS else value
        return seconds if abs(seconds) < _LATEST else None

    def _found(self, names: Sequence[str]) -> list[FoundColumn]:
        return [find_column(self._connection, self._table, name) for name in names]

    def _of_words(self, names: Sequence[str]) -> list[FoundColumn]:
        found = self._found(names)
        binary = [column.name for column in found if column.is_binary]
        self.notes += [f"{self.name}: the column {name} holds bytes and is left out" for name in binary]
        return [column for column in found if not column.is_binary]


@contextmanager
def opened_table(
    url: str, name: str, columns: RowColumns, *, zone: tzinfo = UTC, longest: int
) -> Iterator[PostgresTable]:
    """A table of the database at `url` in one read-only transaction; texts end after `longest` characters.

    Raises UsageError for whatever is wrong with the URL, the names or the rights, and when the server goes away.
    No message holds the password.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("PostgreSQL needs psycopg", hint="pip install 'findling[postgres]'") from error
    if not re.match(r"postgres(ql)?://", url):
        raise InvalidValueError("the URL names no PostgreSQL database", hint="postgresql://USER@HOST/DATABASE")
    given = re.sub(r"#[^@/]*$", "", url)  # the name of a workspace; in a password it stays
    try:
        wanted = psycopg.conninfo.conninfo_to_dict(given)
    except psycopg.ProgrammingError:  # whose text may hold the password
        message = "the URL of the database cannot be read"
        raise InvalidValueError(message, hint="postgresql://USER@HOST:PORT/DATABASE, odd letters as %40") from None
    hide = _hider(str(wanted.get("password") or ""))
    ours: dict[str, Any] = {"connect_timeout": _CONNECT_S, "fallback_application_name": "findling"}
    try:
        connection = psycopg.connect(
            given, autocommit=True, prepare_threshold=None, **{key: ours[key] for key in ours if key not in wanted}
        )
    except (psycopg.Error, UnicodeError) as error:
        said = _words(error) if isinstance(error, psycopg.Error) else "it names no host"
        raise UsageError(f"cannot connect to the database: {hide(said)}", hint=_CONNECT_HINT) from None
    try:
        with connection, connection.transaction():
            connection.execute(_BEGINNING)
            yield PostgresTable(connection, name, columns, zone, longest)
    except psycopg.Error as error:
        raise _told(error, hide) from None
    except UnicodeDecodeError as error:
        hint = "convert the database to UTF-8, or read a view that leaves them out"
        raise UsageError(f"{name} holds texts that are not UTF-8: {error.reason}", hint=hint) from None
    finally:
        connection.close()


_BEGINNING = (
    "set transaction isolation level repeatable read, read only;"
    "set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local intervalstyle = 'iso_8601';"
    "set local extra_float_digits = 1; set local client_encoding = 'UTF8'"
)
_CONNECT_HINT = "check host, port, database, user; PGPASSWORD or ~/.pgpass gives a password"
_AGAIN = "run it again: it continues behind what is imported"
_SAFE = "!$&'()*+-./:;=@_~"
"""Characters that an id keeps; a comma stands between the columns of a key."""


def _told(error: psycopg.Error, hide: Callable[[str], str]) -> FindlingError:
    """The error of a query for people."""
    import psycopg

    words = hide(_words(error))
    if isinstance(error, psycopg.errors.QueryCanceled):
        hint = f"raise statement_timeout for this user, or give the cursor an index; then {_AGAIN}"
        return UsageError(f"the server stopped the query: {words}", hint=hint)
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return UsageError(f"the server refuses: {words}", hint="GRANT SELECT on it, and on what a view reads")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return UsageError(f"the connection is lost: {words}", hint=_AGAIN)
    if isinstance(error, psycopg.errors.UndefinedFunction):
        return UsageError(f"the values of the cursor have no order: {words}", hint="--cursor with a column of times")
    return UsageError(f"the server cannot read the rows: {words}", hint="try the same SELECT in psql")


def _words(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split())


def _hider(password: str) -> Callable[[str], str]:
    """A function that takes a password out of a text."""
    return lambda text: text.replace(password, "…") if password else text


def _tags(value: str | None) -> Iterator[str]:
    """The tags in a JSON array, or in a list by commas."""
    text = (value or "").strip()
    entries: list[object] = list(text.split(","))
    if text[:1] in ("[", "{", '"'):
        try:
            read = json.loads(text)
            entries = read if isinstance(read, list) else list(read) if isinstance(read, dict) else [read]
        except ValueError:
            pass
    for entry in entries:
        is_plain = isinstance(entry, (str, int, float)) and not isinstance(entry, bool)
        if is_plain and (tag := " ".join(str(entry).split())):
            yield tag


def _split(values: Sequence[Any], widths: Sequence[int]) -> list[Sequence[Any]]:
    groups, start = [], 0
    for width in widths:
        groups.append(values[start : start + width])
        start += width
    return groups


def _identifiers(table: FoundTable) -> tuple[Any, Any]:
    from psycopg.sql import Identifier

    return Identifier(table.schema), Identifier(table.name)
