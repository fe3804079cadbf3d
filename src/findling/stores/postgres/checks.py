"""Checks of a place in PostgreSQL for `findling doctor`: the server, its extensions, rights, one distance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from findling.domain.errors import FindlingError
from findling.domain.reports import Check
from findling.stores.postgres.server.connections import SAFE_PATH, connect
from findling.stores.postgres.server.errors import PostgresErrors

if TYPE_CHECKING:
    from findling.stores.postgres.server.connections import Connection
    from findling.stores.postgres.server.places import PostgresPlace

__all__ = ["examine_server"]

_OLDEST_SERVER = 150000
_OLDEST_VECTORS, _GOOD_VECTORS = (0, 8), (0, 8, 4)
"""Iterative scans of HNSW came with 0.8.0; 0.8.4 mends wrong answers of parallel builds."""

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

_EXTENSIONS = """
SELECT name, installed_version, default_version,
       (SELECT quote_ident(nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname = name)
FROM pg_available_extensions WHERE name IN ('vector', 'pg_trgm')
"""


def examine_server(place: PostgresPlace, legs: str) -> Iterator[Check]:
    """Examine the server of a place; `legs` are `local` or `server`. It never raises: an error is a check, too."""
    try:
        connection = connect(place)
    except FindlingError as error:
        yield Check(name="server", ok=False, detail=error.message, hint=error.hint)
        return
    try:
        with PostgresErrors(place), connection.transaction():
            connection.execute(SAFE_PATH)
            yield from _server(connection, place)
            yield from _extensions(connection, legs)
        with PostgresErrors(place):
            yield from _pooler(place)
    except FindlingError as error:
        yield Check(name="server", ok=False, detail=error.message, hint=error.hint)
    finally:
        connection.close()
    where = "on this host, in step by the numbers of changes" if legs == "local" else "in the database"
    yield Check(name="legs", ok=True, detail=f"{legs}: {where}", hint="")


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


def _extensions(connection: Connection, legs: str) -> Iterator[Check]:
    known = {name: rest for name, *rest in connection.execute(_EXTENSIONS)}
    installed, offered, schema = known.get("vector", (None, None, None))
    version = tuple(int(part) for part in (installed or "0").split(".") if part.isdecimal())
    without = "vectors are compared one by one" if legs == "server" else "legs on this host do without"
    if installed is None:
        way = "; CREATE EXTENSION vector has the database do it" if offered and legs == "server" else ""
        yield _check("pgvector", f"not installed: {without}{way}")
    elif version < _OLDEST_VECTORS:
        yield _check("pgvector", f"{installed} is older than 0.8: {without}; ALTER EXTENSION vector UPDATE")
    elif schema:
        old = "" if version >= _GOOD_VECTORS else "; 0.8.4 mends faults: ALTER EXTENSION vector UPDATE"
        yield _check("pgvector", f"{installed}{old}")
        yield _distance(connection, schema)
    installed = known.get("pg_trgm", (None,))[0]
    yield _check("pg_trgm", f"{installed}, not needed" if installed else "not installed, not needed")


def _distance(connection: Connection, schema: str) -> Check:
    """Compute one distance: on a processor that lacks an instruction, the server ends with it."""
    statement = f"SELECT '[3,4]'::{schema}.halfvec OPERATOR({schema}.<=>) '[4,3]'::{schema}.halfvec"
    found = (connection.execute(statement.encode()).fetchone() or (None,))[0]
    wrong = (
        "" if found is not None and abs(found - 0.04) < 1e-3 else f"the distance of two vectors is {found}, not 0.04"
    )
    return _check("distance", "computed", wrong, "reinstall pgvector on the server")


def _check(name: str, detail: str, problem: str = "", hint: str = "") -> Check:
    return Check(name=name, ok=not problem, detail=problem or detail, hint=hint if problem else "")
