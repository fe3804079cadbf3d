"""Checks of a place in PostgreSQL for `findling doctor`: the server, rights, a pooler, copies of legs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from findling.domain.errors import FindlingError
from findling.domain.reports import Check
from findling.stores.postgres.leg_copies import copy_states
from findling.stores.postgres.server.connections import SAFE_PATH, connect
from findling.stores.postgres.server.errors import PostgresErrors

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection, PostgresConnections
    from findling.stores.postgres.server.places import PostgresPlace

_OLDEST_SERVER = 150000

_FACTS = """
SELECT current_setting('server_version'), current_setting('server_version_num')::integer,
       current_setting('server_encoding'), datcollate, current_user,
       has_database_privilege(current_database(), 'CREATE'), to_regnamespace('findling') IS NOT NULL,
       coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
FROM pg_database WHERE datname = current_database()
"""

_RIGHTS = """
SELECT has_schema_privilege('findling', 'USAGE'), has_schema_privilege('findling', 'CREATE'),
       (SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
        WHERE relnamespace = 'findling'::regnamespace AND relkind IN ('r', 'p')
          AND NOT has_table_privilege(oid, 'SELECT')),
       (SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
        WHERE relnamespace = 'findling'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migrations'
          AND NOT (has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
                   AND has_table_privilege(oid, 'DELETE')))
"""

_OTHER_COLLATIONS = """
SELECT string_agg(c.relname || '.' || a.attname, ', ' ORDER BY c.relname, a.attname)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_collation o ON o.oid = a.attcollation
WHERE c.relnamespace = to_regnamespace('findling') AND c.relkind IN ('r', 'p') AND c.relname <> 'migrations'
  AND a.attnum > 0 AND NOT a.attisdropped AND o.collname <> 'C'
"""


def examine_server(place: PostgresPlace, workspace: PostgresConnections) -> Iterator[Check]:
    """Examine the server of a place, and copies of the legs of a workspace there. An error is a check, too."""
    try:
        with closing(connect(place)) as connection, PostgresErrors(place), connection.transaction():
            connection.execute(SAFE_PATH)
            yield from _server(connection, place)
        with PostgresErrors(place):
            yield from _pooler(place)
        yield _copies(workspace)
    except FindlingError as error:
        yield Check(name="server", ok=False, detail=error.message, hint=error.hint)


def _pooler(place: PostgresPlace) -> Iterator[Check]:
    """Two open connections that one process of the server answers: a pooler gives it to anybody in turns."""
    if place.is_pooled:
        return
    with connect(place) as one, connect(place) as other:
        answering = [each.execute("SELECT pg_catalog.pg_backend_pid()").fetchone() for each in (one, other)]
    if answering[0] == answering[1]:
        wrong = f"{place.shown} is behind a pooler in transaction mode, and the URL does not say so"
        yield _check("pooler", "", wrong, "add pooler=transaction to the URL, behind ? or &")


def _server(connection: Connection, place: PostgresPlace) -> Iterator[Check]:
    found = connection.execute(_FACTS).fetchone()
    assert found is not None, "a connection has a database"
    version, number, encoding, collation, role, may_create, has_schema, is_encrypted = found
    pooled = ", behind a pooler in transaction mode" if place.is_pooled else ""
    told = f"PostgreSQL {version} at {place.shown}, {'encrypted' if is_encrypted else 'not encrypted'}{pooled}"
    is_old = number < _OLDEST_SERVER
    yield _check("server", told, f"{told} is older than PostgreSQL 15" * is_old, "upgrade the server")
    wrong = f"the database has the encoding {encoding}" * (encoding != "UTF8")
    yield _check("encoding", encoding, wrong, "createdb --encoding UTF8 --template template0 NAME")
    others = (connection.execute(_OTHER_COLLATIONS).fetchone() or (None,))[0]
    wrong = f"another program has changed the collation of {others}" if others else ""
    yield _check("collation", f'"C" in every column, {collation} elsewhere', wrong, "restore the tables from a backup")
    if not has_schema:
        wrong = f"{role} may not create a schema, and there is no schema findling" * (not may_create)
        grant = f"its owner types: CREATE SCHEMA findling AUTHORIZATION {role}"
        yield _check("rights", f"{role} may create the schema findling", wrong, grant)
        return
    may_use, may_add, unread, unwritten = connection.execute(_RIGHTS).fetchone() or (False, False, None, None)
    lacks = "the schema findling" if not may_use else f"reading {unread}" if unread else ""
    grant = f"its owner grants {role} the rights to all tables in the schema findling"
    told = f"{role} may read and write" if not unwritten else f"{role} may only search: no writing of {unwritten}"
    told += "" if may_add else "; another role has to bring the tables to a newer format"
    yield _check("rights", told, f"{role} lacks the right to use {lacks}" if lacks else "", grant)


def _copies(workspace: PostgresConnections) -> Check:
    """The copies of legs that hosts without them fetch; a damaged one is passed over, and mended by the next."""
    copies = copy_states(workspace) if workspace.find_workspace() is not None else []
    told = [f"{one.leg} {one.size / 1e6:,.1f} MB, {one.latest - one.seq:,} changes behind" for one in copies]
    damaged = ", ".join(one.leg for one in copies if not one.is_sound)
    wrong = f"the copy of {damaged} is not what was written; hosts pass it over" if damaged else ""
    detail = f"on this host; copies for others: {'; '.join(told) or 'none yet'}"
    return _check("legs", detail, wrong, "nothing is lost; findling doctor --repair replaces it")


def _check(name: str, detail: str, problem: str = "", hint: str = "") -> Check:
    return Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")
