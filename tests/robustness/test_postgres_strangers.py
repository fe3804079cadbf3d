"""Databases that others use, too: functions of strangers in front of the server's own, and odd settings of a role."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from findling.domain.reports import GrepRequest
from findling.domain.resources import Resource
from findling.service.engine.client import LocalClient
from findling.service.engine.engine import Engine, Viewer, open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspaces import create_workspace
from tests.postgres_servers import PostgresServer

STRANGE = """
unnest(bigint[])|bigint, unnest(integer[])|integer, unnest(text[])|text, unnest(bytea[])|bytea, to_regclass(text)|text,
current_setting(text)|text, set_config(text, text, boolean)|text, get_bit(bytea, bigint)|integer, length(bytea)|integer,
convert_to(text, name)|bytea, substr(text, integer, integer)|text, "left"(text, integer)|text, quote_ident(text)|text,
format(text, text)|text, pg_advisory_xact_lock(integer)|text, pg_try_advisory_xact_lock(bigint)|boolean,
int8send(bigint)|bytea, pg_notify(text, text)|text, trunc(double precision)|double precision,
pg_current_wal_lsn()|text, current_database()|text
"""
"""Functions with the names of the server's own; many fit what is asked for better than those."""

OPERATORS = ("text", "bigint", "integer", "bytea", "oid", "name", "double precision")

SETTINGS = {
    "search_path": "strange, pg_catalog, public",
    "standard_conforming_strings": "off",
    "extra_float_digits": "-5",
    "bytea_output": "escape",
    "timezone": "'Asia/Kathmandu'",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "sql_standard",
    "default_transaction_isolation": "serializable",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "enable_indexscan": "off",
    "jit": "on",
    "jit_above_cost": "0",
}

NOTES = [
    (Resource(rid=f"note:{number}", type="note", title=f"Pool {number}", tags=("a",), updated_at=1.7e9 + number / 7),
     f"the pool {number} of Marie Curie in Warsaw holds a \\ and 'quotes' {'x' * number}")
    for number in range(20)
]  # fmt: skip


def make_strangers(connection: psycopg.Connection[Any], role: str) -> None:
    """Make functions and operators that nobody may call, and have all sessions of a role find them first."""
    connection.execute(f"CREATE SCHEMA strange; GRANT USAGE ON SCHEMA strange TO {role}")
    for made in _split(STRANGE):
        name, _, gives = made.partition("|")
        connection.execute(
            f"CREATE FUNCTION strange.{name} RETURNS {gives} LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'a stranger was called'; END $$"
        )
    for kind in OPERATORS:
        connection.execute(
            f"CREATE FUNCTION strange.same({kind}, {kind}) RETURNS boolean LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'a stranger was called'; END $$;"
            f" CREATE OPERATOR strange.= (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = strange.same)"
        )
    for name, value in SETTINGS.items():
        connection.execute(f"ALTER ROLE {role} SET {name} = {value}")


def _split(functions: str) -> list[str]:
    """The functions of a list in which commas also stand between arguments."""
    found, depth, begun = [], 0, ""
    for letter in functions.replace("\n", " "):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append(begun.strip())
            begun = ""
        else:
            begun += letter
    return [*found, begun.strip()]


ASKED: list[Callable[[Engine], Any]] = [
    lambda engine: engine.search(
        "pool Curie", explain=True, facets=("tag", "type"), graph="on", refresh=False
    ).to_dict(),
    lambda engine: engine.search('"Marie Curie" tag:a after:2020', refresh=False).to_dict(),
    lambda engine: engine.search("war* pol~", refresh=False).to_dict(),
    lambda engine: Viewer(engine, ("user:ann",)).search("pool").to_dict(),
    lambda engine: LocalClient(engine).grep(GrepRequest(patterns=("of Marie",))).to_dict()["files"],
    lambda engine: engine.related("Marie Curie").to_dict(),
    lambda engine: [repr(resource) for resource in engine.ls()],
]


def told(engine: Engine) -> list[Any]:
    """All answers without times; scores to four digits, since legs in the server add in another order."""
    answers = [ask(engine) for ask in ASKED]
    for answer in answers:
        if isinstance(answer, dict):
            answer.pop("timings_ms", None)
    return [
        json.loads(json.dumps(one, default=str), parse_float=lambda number: f"{float(number):.4g}") for one in answers
    ]


def filled(engine: Engine) -> list[Any]:
    """All answers of a workspace that was filled, changed, and asked."""
    engine.add(NOTES)
    engine.add([(resource, f"{text} again") for resource, text in NOTES[:3]])
    engine.permissions.share("note:4", "user:ann")
    with engine.opened.files.writing():
        engine.opened.lazy("graph").level()
        engine.opened.lazy("exact").level()
        engine.opened.files.rebuild_leg()
    return told(engine)


def test_functions_and_settings_of_strangers_change_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    role = "tenant"
    with psycopg.connect(postgres.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'tenant'")
        admin.execute(f"CREATE DATABASE {role} OWNER {role}")
        with psycopg.connect(postgres.dsn, dbname=role, autocommit=True) as inside:
            make_strangers(inside, role)
    place = postgres.place().replace("postgres:postgres@", f"{role}:tenant@").replace("/postgres#", f"/{role}#")
    answers = []
    for name, own in (("home", "home"), ("there", place)):
        home = tmp_path / name
        home.mkdir()
        create_workspace("w", home=home, place=own)
        values = {"store.home": str(home), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
        with open_engine(".", workspace="w", settings=load_settings(home).override(values, "test")) as engine:
            answers.append(filled(engine))
            assert [check for check in engine.check() if not check.ok] == []
    assert answers[0] == answers[1]
