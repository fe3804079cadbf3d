"""Tables and columns of a PostgreSQL database by the names that people type, and their columns as SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from findling.domain.errors import InvalidValueError, NotFoundError, UsageError
from findling.domain.values import closest_name

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composed, Identifier

_NAME = re.compile(r'(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^"]+)')
"""A table with or without its schema, each with or without quotes."""

_KINDS = ["r", "v", "m", "f", "p"]
"""Tables, views, materialised views, foreign tables, partitioned tables."""

_MOST_NAMES = 5_000


class FoundColumn(NamedTuple):
    """A column: its type as SQL writes it, the kind of its values, and whether this user may read it.

    `category` is that of `pg_type`: A array, B boolean, D time, E enum, N number, S text, U other.
    """

    name: str
    sql_type: str
    base_type: str
    category: str
    is_readable: bool

    @property
    def identifier(self) -> Identifier:
        """The column as SQL names it."""
        from psycopg.sql import Identifier

        return Identifier(self.name)

    @property
    def is_binary(self) -> bool:
        """Whether its values are bytes, which have no words."""
        return self.base_type in ("bytea", "bytea[]")


class FoundTable(NamedTuple):
    """A table or view with its columns; `key` are those of the primary key."""

    schema: str
    name: str
    columns: tuple[FoundColumn, ...]
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def find_table(connection: psycopg.Connection[Any], written: str) -> FoundTable:
    """The table or view of a name, as written or else in small letters. Raises NotFoundError or UsageError."""
    match = _NAME.fullmatch(written.strip())
    if match is None:
        raise InvalidValueError(f"{written!r} is no name of a table", hint="--mapping table=SCHEMA.NAME")
    schemas, names = ([] if part is None else _spellings(part) for part in match.groups())
    found = connection.execute(
        "select c.oid, n.nspname, c.relname, has_schema_privilege(n.oid, 'USAGE') from pg_catalog.pg_class c"
        " join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
        ' where c.relkind = any(%s::"char"[]) and c.relname = any(%s::name[])'
        " and case when %s then n.nspname = any(%s::name[]) else pg_catalog.pg_table_is_visible(c.oid) end"
        " order by c.relname = %s desc, n.nspname = any(%s::name[]) desc limit 1",
        [_KINDS, names, bool(schemas), schemas, names[0], schemas[:1]],
    ).fetchone()
    if found is None:
        raise NotFoundError(f"there is no table {written}", hint=_near(connection, written))
    oid, schema, name, may_enter = found
    if not may_enter:
        raise UsageError(
            f"{_user(connection)} may not use the schema {schema}",
            hint=f"GRANT USAGE ON SCHEMA {schema} TO {_user(connection)}",
        )
    columns = connection.execute(
        "select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
        " pg_catalog.format_type(case when t.typtype = 'd' then t.typbasetype else t.oid end, null),"
        " t.typcategory::text, has_column_privilege(a.attrelid, a.attnum, 'SELECT')"
        " from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid"
        " where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum",
        [oid],
    ).fetchall()
    key = connection.execute(
        "select a.attname from pg_catalog.pg_index i cross join unnest(i.indkey) with ordinality k(number, place)"
        " join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number"
        " where i.indrelid = %s and i.indisprimary order by k.place",
        [oid],
    ).fetchall()
    return FoundTable(schema, name, tuple(FoundColumn(*row) for row in columns), tuple(row[0] for row in key))


def find_column(connection: psycopg.Connection[Any], table: FoundTable, written: str) -> FoundColumn:
    """The column of a name, as written or else in small letters. Raises NotFoundError or UsageError."""
    known = {column.name: column for column in table.columns}
    found = next((known[name] for name in _spellings(written) if name in known), None)
    if found is None:
        raise NotFoundError(f"{table} has no column {written}", hint=closest_name(written, known))
    if not found.is_readable:
        raise UsageError(
            f"{_user(connection)} may not read the column {found.name} of {table}",
            hint=f"GRANT SELECT ON {table} TO {_user(connection)}",
        )
    return found


def text_of(column: FoundColumn, most: int) -> Composed:
    """The text of a column, its first `most` characters."""
    from psycopg.sql import SQL, Literal

    return SQL("left({}::text, {})").format(column.identifier, Literal(most))


def time_of(column: FoundColumn, zone: str) -> Composed:
    """Seconds since the epoch, or the text of a column of texts; times without a zone are those of `zone`."""
    from psycopg.sql import SQL, Literal

    name, base = column.identifier, column.base_type
    if base == "timestamp with time zone":
        return SQL("extract(epoch from {})::float8").format(name)
    if base in ("timestamp without time zone", "date"):
        return SQL("extract(epoch from ({}::timestamp at time zone {}))::float8").format(name, Literal(zone))
    if column.category == "N":
        return SQL("{}::float8").format(name)
    if column.category == "S":
        return SQL("{}::text").format(name)
    raise InvalidValueError(
        f"the column {column.name} is of the type {column.sql_type}, which is no time",
        hint="name a column of timestamps, dates, seconds since 1970, or ISO 8601",
    )


def tags_of(column: FoundColumn) -> Composed:
    """The JSON of an array, and the text of any other column."""
    from psycopg.sql import SQL

    return SQL("to_json({})::text" if column.category == "A" else "{}::text").format(column.identifier)


def _spellings(written: str) -> list[str]:
    """The names that may be meant: a quoted one alone, another as it is and in small letters."""
    name = written.strip()
    if len(name) > 2 and name.startswith('"') and name.endswith('"'):
        return [name[1:-1].replace('""', '"')]
    return list(dict.fromkeys((name, name.lower())))


def _near(connection: psycopg.Connection[Any], written: str) -> str:
    from difflib import get_close_matches

    rows = connection.execute(
        "select n.nspname, c.relname from pg_catalog.pg_class c"
        ' join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind = any(%s::"char"[])'
        " and n.nspname not in ('pg_catalog', 'information_schema') order by 1, 2 limit %s",
        [_KINDS, _MOST_NAMES],
    ).fetchall()
    # Names without a schema are compared, too: it is the part that people leave out.
    known = {name: f"{schema}.{name}" for schema, name in rows} | {f"{s}.{name}": f"{s}.{name}" for s, name in rows}
    near = dict.fromkeys(known[name] for name in get_close_matches(written.replace('"', ""), known, n=3, cutoff=0.6))
    return f"{' or '.join(near)} instead" if near else "--mapping table=SCHEMA.NAME"


def _user(connection: psycopg.Connection[Any]) -> str:
    row = connection.execute("select current_user").fetchone()
    return "this user" if row is None else str(row[0])
