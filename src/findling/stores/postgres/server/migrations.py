"""Migrations of a database to our format: forward only, each at most once, all in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, NotIndexedError, ReadOnlyError
from findling.stores.postgres.server.connections import SAFE_PATH, connect
from findling.stores.postgres.server.errors import PostgresErrors, foreign_schema
from findling.stores.postgres.server.formats import SqlMigration, load_migrations, newer_format
from findling.stores.postgres.server.places import PostgresPlace, load_psycopg

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection

_LOCK = 0x46444C47
"""The advisory lock of all migrations of a database: `FDLG`."""

_FEATURE = 1


def migrate(place: PostgresPlace, migrations: Sequence[SqlMigration] | None = None) -> None:
    """Bring the database to our format; two that try at once wait for each other.

    Raises FormatError for a database of a newer findling and StoreDamagedError for a schema that is not ours.
    """
    steps = load_migrations() if migrations is None else migrations
    with closing(connect(place)) as connection, PostgresErrors(place), connection.transaction():
        connection.execute(SAFE_PATH)
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        applied = _applied(connection, place)
        if applied is None:
            _begin_schema(connection, place)
        _check(applied or (), steps, place, readonly=False)
        lacking = _lacking(applied or (), steps)
        if applied and lacking:
            # Writers of the older format end first, and later ones find the newer one.
            connection.execute("LOCK TABLE findling.workspaces IN EXCLUSIVE MODE")
        for step in lacking:
            connection.execute(step.sql.encode())
            connection.execute(
                "INSERT INTO findling.migrations (number, name, min_reader, optional) VALUES (%s, %s, %s, %s)", step[:4]
            )


def check_format(
    connection: Connection, place: PostgresPlace, *, readonly: bool, migrations: Sequence[SqlMigration] | None = None
) -> int:
    """The format of a database. Raises FormatError, and ReadOnlyError for one that has to be migrated first.

    Raises NotIndexedError where nothing was ever written, StoreDamagedError for a schema that is not ours.
    """
    applied = _applied(connection, place)
    if not applied:
        raise NotIndexedError(f"{place.shown} is empty", hint="findling index PATH")
    steps = load_migrations() if migrations is None else migrations
    _check(applied, steps, place, readonly=readonly)
    lacking, present = _lacking(applied, steps), max(one.number for one in applied)
    if any(not step.is_optional for step in lacking) or (lacking and not readonly):
        raise ReadOnlyError(
            f"{place.shown} has format {present} and must be brought to format {steps[-1].number} first",
            hint="run `findling index` once as a role that may create tables in the schema findling",
        )
    return present


def create_workspace(place: PostgresPlace) -> None:
    """Create the tables and the workspace unless they are there."""
    migrate(place)
    with closing(connect(place)) as connection, PostgresErrors(place):
        connection.execute(
            "INSERT INTO findling.workspaces (name, feature) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING",
            (place.workspace, _FEATURE),
        )


def _lacking(applied: Sequence[SqlMigration], steps: Sequence[SqlMigration]) -> list[SqlMigration]:
    known = {one.number for one in applied}
    return [step for step in steps if step.number not in known]


def _check(
    applied: Sequence[SqlMigration], steps: Sequence[SqlMigration], place: PostgresPlace, *, readonly: bool
) -> None:
    ours = max(step.number for step in steps)
    theirs = max((one.number for one in applied), default=0)
    # A newer format that our readers still understand may hold what our writer would not keep up to date.
    if max((one.min_reader for one in applied), default=0) > ours or (theirs > ours and not readonly):
        raise newer_format(place.shown, theirs, ours)


def _applied(connection: Connection, place: PostgresPlace) -> list[SqlMigration] | None:
    """The migrations that the database has seen, None before the first."""
    ours, others = connection.execute(
        "SELECT pg_catalog.to_regclass('findling.migrations') IS NOT NULL, EXISTS (SELECT FROM pg_catalog.pg_class"
        " WHERE relnamespace OPERATOR(pg_catalog.=) pg_catalog.to_regnamespace('findling'))"
    ).fetchone() or (False, False)
    if ours:
        query = "SELECT number, name, min_reader, optional FROM findling.migrations ORDER BY number"
        with suppress(load_psycopg().errors.UndefinedColumn):
            return [SqlMigration(*row) for row in connection.execute(query)]
    if others:
        raise foreign_schema(place)
    return None


def _begin_schema(connection: Connection, place: PostgresPlace) -> None:
    (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        message = f"the database of {place.shown} has the encoding {encoding}, which lacks characters"
        raise InvalidValueError(message, hint="create one: `createdb --encoding UTF8 --template template0 NAME`")
    # Asked first: a role that may not create schemas can work in one that its owner has made for it.
    if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'findling'").fetchone():
        connection.execute("CREATE SCHEMA findling")
    connection.execute(
        "CREATE TABLE findling.migrations (number integer PRIMARY KEY, name text NOT NULL, min_reader integer NOT NULL,"
        " optional boolean NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
