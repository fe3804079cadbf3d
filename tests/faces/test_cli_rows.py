"""`findling import --from-postgres` against a real server: rows as resources, followed by a cursor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from findling.domain.resources import Document
from findling.service.engine.engine import open_engine
from tests.postgres_servers import PostgresServer

Run = Callable[..., tuple[int, str, str]]
TICKETS = """
    create table tickets (
        id integer primary key, subject text, body text, answer text, labels text[], owner text,
        updated_at timestamptz not null default now()
    );
    insert into tickets values
        (1, 'Ferry late', 'The ferry left at ten.', 'We refund the crossing.', '{harbour,refund}', 'Ann',
         '2026-03-01 12:00+02'),
        (2, 'Login broken', 'No login makes a session.', null, '{}', 'Bob', '2026-03-02 12:00Z')
"""


@pytest.fixture
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a database of its own."""
    name = f"rows_{abs(hash(request.node.name))}"
    with psycopg.connect(postgres.dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name}")
        admin.execute(f"create database {name}")
    with psycopg.connect(postgres.dsn.removesuffix("/postgres") + f"/{name}", autocommit=True) as connection:
        yield connection


def url_of(database: psycopg.Connection[Any]) -> str:
    info = database.info
    return f"postgresql://{info.user}:{info.password}@{info.host}:{info.port}/{info.dbname}"


def mapped(*pairs: str) -> list[str]:
    return [part for pair in pairs for part in ("--mapping", pair)]


def stored(project: Path, rid: str) -> Document:
    with open_engine(project) as engine:
        found = engine.writer.store.document(rid)
    assert found is not None, rid
    return found


def rids(project: Path) -> list[str]:
    with open_engine(project) as engine:
        return [rid for rid in engine.writer.store.rids() if rid.startswith("postgres:")]


def test_rows_are_found_beside_files(project: Path, findling: Run, database: psycopg.Connection[Any]) -> None:
    database.execute(TICKETS)
    columns = mapped("text=body,answer", "title=subject", "time=updated_at", "tags=labels")
    code, out, err = findling("import", "--from-postgres", url_of(database), *mapped("table=tickets"), *columns)
    assert (code, out) == (0, "postgres:public.tickets: 2 rows read, 2 new or changed, 0 deleted\n"), err
    code, out, _ = findling("login session")
    assert "postgres:public.tickets/2" in out
    assert "auth.py" in out
    assert "postgres:public.tickets/1" in findling("refund", "--type", "row")[1]
    found = stored(project, "postgres:public.tickets/1")
    assert found.text == "The ferry left at ten.\n\n## Answer\n\nWe refund the crossing."
    assert (found.resource.title, found.resource.tags) == ("Ferry late", ("harbour", "refund"))
    assert (found.resource.type, found.resource.updated_at) == ("row", 1772359200.0)  # 10:00 UTC


def test_a_cursor_reads_on_and_a_full_pass_notices_what_is_gone(
    project: Path, findling: Run, database: psycopg.Connection[Any]
) -> None:
    database.execute(TICKETS)
    command = [
        "import",
        "--from-postgres",
        url_of(database),
        *mapped("table=public.tickets", "text=body"),
        "--json",
    ]
    command += mapped("cursor=updated_at")

    def report(*more: str) -> tuple[int, int, int]:
        code, out, err = findling(*command, *more)
        assert code == 0, err
        told = json.loads(out)
        return told["read"], told["changed"], told["deleted"]

    assert report() == (2, 2, 0)
    assert report() == (1, 0, 0)  # the last value may come again
    database.execute("insert into tickets(id, body, updated_at) values (0, 'A tie.', '2026-03-02 12:00Z')")
    assert report() == (2, 1, 0)
    database.execute("update tickets set body = 'The steamer left.', updated_at = '2026-03-03' where id = 1")
    database.execute("delete from tickets where id = 2")
    assert report() == (2, 1, 0)
    assert rids(project) == [f"postgres:public.tickets/{number}" for number in (0, 1, 2)]
    assert report("--full") == (2, 0, 1)
    assert rids(project) == [f"postgres:public.tickets/{number}" for number in (0, 1)]
    database.execute("update tickets set body = '', updated_at = '2026-03-04' where id = 1")
    assert report() == (1, 1, 0)
    assert rids(project) == ["postgres:public.tickets/0"]
    assert report(*mapped("title=subject"))[0] == 2  # other columns make other resources of every row


def test_values_of_odd_types(project: Path, findling: Run, database: psycopg.Connection[Any]) -> None:
    database.execute(
        """
        create type mood as enum ('calm', 'stormy');
        create schema "My Schema";
        create table "My Schema"."Odd.Things" (
            "Key" uuid, part text, doc jsonb, price numeric(30, 10), raw bytea, mood mood, words varchar(20)[],
            tags jsonb, list text, at timestamp, day date, number bigint, primary key ("Key", part)
        );
        insert into "My Schema"."Odd.Things" values
            ('00000000-0000-0000-0000-000000000007', 'a b/c,%', '{"deep": {"word": "anchor"}}', 12.5, '\\x00ff',
             'stormy', '{x}', '["red", "blue, sky", 7, null]', ' one, two ,', '2026-07-01 12:00',
             '2026-07-01', 1782900000),
            ('00000000-0000-0000-0000-000000000008', 'end', null, 'NaN', null, null, null, '{"k": 1}', null, 'infinity',
             null, null)
        """
    )
    mapping = project / "map.toml"
    lines = [
        'table = "\\"My Schema\\".\\"Odd.Things\\""', 'text = ["doc", "price", "raw", "mood"]',
        'tags = ["tags", "list"]', 'time = "at"', 'created = "number"', 'time_zone = "Europe/Berlin"',
        'name = "odd"', 'type = "thing"',
        'visibility = ["group:sea"]',
    ]  # fmt: skip
    mapping.write_text("\n".join(lines))
    code, out, err = findling("import", "--from-postgres", url_of(database), "--mapping", str(mapping))
    assert (code, out) == (0, "postgres:odd: 2 rows read, 2 new or changed, 0 deleted\n"), err
    assert "My Schema.Odd.Things: the column raw holds bytes and is left out" in err
    found = stored(project, "postgres:odd/00000000-0000-0000-0000-000000000007,a%20b/c%2C%25")
    assert "anchor" in found.text
    assert "12.5" in found.text
    assert "## Mood\n\nstormy" in found.text
    resource = found.resource
    assert resource.tags == ("red", "blue, sky", "7", "one", "two")
    assert (resource.updated_at, resource.created_at) == (1782900000.0, 1782900000.0)  # 12:00 in Berlin
    assert (resource.type, resource.visibility) == ("thing", ("group:sea",))
    other = stored(project, "postgres:odd/00000000-0000-0000-0000-000000000008,end").resource
    assert (other.updated_at, other.tags) == (None, ("k",))
    days = json.dumps({"table": "odd.things", "text": "doc", "time": "day"})
    (project / "map.json").write_text(days.replace("odd.things", '\\"My Schema\\".\\"Odd.Things\\"'))
    assert findling("import", "--from-postgres", url_of(database), "--mapping", str(project / "map.json"))[0] == 0
    again = stored(project, "postgres:My_Schema.Odd.Things/00000000-0000-0000-0000-000000000007,a%20b/c%2C%25")
    assert again.resource.updated_at == 1782864000.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [*mapped("table=tikets", "text=body")],
            ["there is no table tikets", "public.tickets instead"],
        ),
        (
            [*mapped("table=tickets", "text=bodi")],
            ["public.tickets has no column bodi", "body instead"],
        ),
        (
            [*mapped("table=tickets", "text=body", "time=labels")],
            ["labels", "text[], which is no time"],
        ),
        ([*mapped("table=tickets")], ["does not say its text", "--mapping text=COLUMN"]),
        ([*mapped("text=body")], ["does not say its table"]),
        (
            [*mapped("table=names", "text=subject")],
            ["public.names has no primary key", "--mapping id=COLUMN"],
        ),
        ([*mapped("table=tickets", "text=secret")], ["may not read the column secret"]),
        (
            [*mapped("table=hidden.notes", "text=note")],
            ["may not use the schema hidden", "GRANT USAGE"],
        ),
        ([*mapped("table=tickets", "text=raw")], ["no column of public.tickets holds text"]),
        (
            [*mapped("table=broken", "id=id", "text=body")],
            ["permission denied", "GRANT SELECT"],
        ),
        (
            [*mapped("table=tickets", "text=body", "cursor=place")],
            ["the cursor have no order"],
        ),
    ],
)
def test_a_wrong_name_or_right_is_named(
    project: Path, findling: Run, database: psycopg.Connection[Any], words: list[str], said: list[str]
) -> None:
    database.execute(TICKETS)
    database.execute(
        """
        alter table tickets add secret text, add raw bytea, add place point;
        create view names as select subject from tickets;
        create schema hidden; create table hidden.notes (id int primary key, note text);
        create table own (id int, body text); create view broken as select * from own;
        do $$ begin if not exists (select from pg_roles where rolname = 'reader')
        then create role reader login password 'pass word%'; end if; end $$;
        grant select (id, subject, body, labels, updated_at, raw, place) on tickets to reader;
        grant select on names, broken to reader;
        alter view broken set (security_invoker = on)
        """
    )
    info = database.info
    url = f"postgresql://reader:{quote('pass word%')}@{info.host}:{info.port}/{info.dbname}"
    code, out, err = findling("import", "--from-postgres", url, *words)
    assert (code, out) == (2, "")
    for words_said in said:
        assert words_said in err
    assert "pass" not in err


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://postgres:hush@127.0.0.1:1/x",
        "postgresql://nobody:hush@127.0.0.1:{port}/postgres",
        "postgresql://postgres@127.0.0.1:{port}/nowhere?password=hush&connect_timeout=5",
        "postgresql://postgres:hush@127.0.0.1:{port}x/postgres",
        "postgresql://postgres:hu%zzhush@127.0.0.1/postgres?nonsense=1",
        "postgresql://postgres:hu@hush@127.0.0.1:1/x",
        "postgresql://postgres:hu/hush@127.0.0.1:1/x",
        "postgresql://postgres:hu?hush@127.0.0.1:1/x",
        "postgresql://postgres:hu#hush@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?passwrod=hush",
        "mysql://root:hush@127.0.0.1/x",
    ],
)
def test_a_server_that_cannot_be_reached(project: Path, findling: Run, postgres: PostgresServer, place: str) -> None:
    url = place.format(port=postgres.port)
    code, out, err = findling("import", "--from-postgres", url, *mapped("table=t", "text=b"))
    assert (code, out) == (2, "")
    assert err
    assert "hush" not in err


def test_flags_that_do_not_go_together(project: Path, findling: Run) -> None:
    assert "nothing to import" in findling("import")[2]
    assert "--mapping is for rows" in findling("import", "bundle.zip", *mapped("table=x"))[2]
    assert "goes with no bundle" in findling("import", "bundle.zip", "--from-postgres", "postgresql://x")[2]
    (project / "m.toml").write_text('tabel = "x"')
    flags = ["import", "--from-postgres", "postgresql://127.0.0.1:1/x", "--mapping"]
    assert "table instead" in findling(*flags, "m.toml")[2]
    assert "there is no file none.toml" in findling(*flags, "none.toml")[2]
    (project / "m.json").write_text("[1]")
    assert "holds no mapping" in findling(*flags, "m.json")[2]
    (project / "m.toml").write_text('table = "x"\ntext = "b"\ntime_zone = "Mars/Base"')
    assert "no time zone 'Mars/Base'" in findling(*flags, "m.toml")[2]


def test_nothing_is_written_and_a_timeout_of_the_server_holds(
    project: Path, findling: Run, database: psycopg.Connection[Any]
) -> None:
    database.execute(TICKETS)
    database.execute(
        """
        create table log (entry text);
        create function noted(t text) returns text language plpgsql as
            $$ begin insert into log values (t); return t; end $$;
        create view writing as select id, noted(body) as body from tickets;
        create view slow as select id, body from tickets, pg_sleep(30)
        """
    )
    url = url_of(database)
    code, _, err = findling("import", "--from-postgres", url, *mapped("table=writing", "id=id", "text=body"))
    assert code == 2
    assert "read-only transaction" in err
    assert database.execute("select count(*) from log").fetchone() == (0,)
    url += "?options=-c%20statement_timeout%3D300"
    code, _, err = findling("import", "--from-postgres", url, *mapped("table=slow", "id=id", "text=body"))
    assert code == 2
    assert "statement timeout" in err
    assert "raise statement_timeout" in err


def test_rows_without_cursor_or_id_and_ids_that_repeat(
    project: Path, findling: Run, database: psycopg.Connection[Any]
) -> None:
    database.execute(
        """
        create table t (id text, body text, at timestamptz);
        insert into t values ('a', 'one', null), ('a', 'two', null), (null, 'three', null), ('b', 'four', '2026-01-01'),
            (repeat('long', 300), 'five', 'infinity')
        """
    )
    command = [
        "import",
        "--from-postgres",
        url_of(database),
        *mapped("table=t", "id=id", "text=body"),
    ]
    code, out, err = findling(*command)
    assert (code, out) == (0, "postgres:public.t: 5 rows read, 3 new or changed, 0 deleted\n")
    assert "1 row left out" in err
    assert "1 row had the id of another one" in err
    assert max(map(len, rids(project))) < 450
    assert findling(*command, *mapped("cursor=at"))[0] == 0
    database.execute("insert into t values ('c', 'six', null)")
    code, out, _ = findling(*command, *mapped("cursor=at"), "--json")
    told = json.loads(out)
    assert (told["read"], told["changed"], told["cursor"]) == (6, 1, "2026-01-01 00:00:00+00")


def test_rows_of_another_database_do_not_mix(
    project: Path, findling: Run, database: psycopg.Connection[Any], postgres: PostgresServer
) -> None:
    database.execute(TICKETS)
    with psycopg.connect(postgres.dsn, autocommit=True) as other:
        other.execute("create table if not exists tickets (id int primary key, body text)")
        other.execute("insert into tickets values (7, 'Elsewhere.') on conflict do nothing")
    words = [*mapped("table=tickets", "text=body")]
    assert findling("import", "--from-postgres", url_of(database), *words)[0] == 0
    code, _, err = findling("import", "--from-postgres", postgres.dsn, *words)
    assert code == 2
    assert "--full replaces them" in err
    assert findling("import", "--from-postgres", postgres.dsn, *words, "--full")[0] == 0
    assert rids(project) == ["postgres:public.tickets/7"]


def test_rights_that_were_given_stay(project: Path, findling: Run, database: psycopg.Connection[Any]) -> None:
    database.execute(TICKETS)
    command = ["import", "--from-postgres", url_of(database), *mapped("table=tickets", "text=body")]
    assert findling(*command)[0] == 0
    with open_engine(project) as engine:
        document = engine.writer.store.document("postgres:public.tickets/1")
        assert document is not None
        engine.writer.put([document._replace(resource=replace(document.resource, visibility=("user:ann",)))])
    database.execute("update tickets set body = 'Other words.' where id = 1")
    assert findling(*command)[0] == 0
    found = stored(project, "postgres:public.tickets/1")
    assert (found.text, found.resource.visibility) == ("Other words.", ("user:ann",))
