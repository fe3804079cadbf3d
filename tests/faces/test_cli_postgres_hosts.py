"""Hosts of a workspace in PostgreSQL whose files, rights or server are elsewhere: every message names a next step."""

from __future__ import annotations

import time
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.faces.test_cli_postgres import Computer
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "harbour.md").write_text("# Harbour\n\nGrace Hopper takes the ferry to Borkum.\n")
    return root


@pytest.fixture
def first(tmp_path: Path) -> Computer:
    return Computer(tmp_path / "a")


def test_a_host_without_the_files_gets_its_graph_behind_a_question(
    tmp_path: Path, postgres: PostgresServer, first: Computer, tree: Path
) -> None:
    place = postgres.place()
    (tree / "long.md").write_text("# Long\n\n" + "The lighthouse of Borkum is old. " * 12_000)
    first.run("--store", place, "index", str(tree))
    tree.rename(tree.with_name("away"))
    usual = {"FINDLING_SEMANTIC_REFINE": "background", "FINDLING_SEMANTIC_MODEL": "none"}
    second = Computer(tmp_path / "b", **usual)
    told = second.run("--store", place, "related", "Borkum", code=1)
    assert "ask again in a moment" in told
    assert "findling index" not in told, "which this host refuses"
    assert "rebuilt" not in told, "a first use is no damage"
    deadline = time.monotonic() + PATIENCE_S
    while "long.md" not in (told := second.run("--store", place, "related", "Borkum", code=None)):
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def test_a_role_that_may_only_read_is_told_that_no_graph_will_come(
    tmp_path: Path, postgres: PostgresServer, first: Computer, tree: Path
) -> None:
    place, role = postgres.place(), f"visitor_{uuid4().hex[:8]}"
    first.run("--store", place, "index", str(tree))
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'visitor'".encode())
        connection.execute(f"GRANT USAGE ON SCHEMA findling TO {role}".encode())
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA findling TO {role}".encode())
    visitor = Computer(tmp_path / "b")
    asked = "--store", place.replace("postgres:postgres@", f"{role}:visitor@")
    writer = Computer(tmp_path / "c")
    writer.run("--store", place, "ferry")
    told = visitor.run(*asked, "related", "Borkum", code=1)
    assert "nothing can be written here" in told
    assert "a user who may write" in told
    writer.run("--store", place, "related", "Borkum")
    assert "harbour.md" in visitor.run(*asked, "related", "Borkum")
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_workspace_whose_server_lets_nobody_in_is_examined_and_dropped(
    postgres: PostgresServer, first: Computer, tree: Path
) -> None:
    role = f"team_{uuid4().hex[:8]}"
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'before'".encode())
    place = postgres.place().replace("postgres:postgres@", f"{role}:before@")
    name = place.partition("#")[2]
    first.run("--store", place, "index", str(tree))
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"ALTER ROLE {role} PASSWORD 'after'".encode())
    for asked in (["--store", place], ["--workspace", name]):
        told = first.run("doctor", *asked, code=1)
        assert "BAD  server: " in told
        assert "password authentication failed" in told
    assert "stays as it is" in first.run("workspaces", "drop", name, "--yes")
    assert not (first.folder / "workspaces" / name).exists()
    assert "harbour.md" in first.run("--store", place.replace(":before@", ":after@"), "ferry")
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"REASSIGN OWNED BY {role} TO postgres; DROP ROLE {role}".encode())


def test_a_host_is_itself_under_another_name_of_the_server(
    tmp_path: Path, postgres: PostgresServer, first: Computer, tree: Path
) -> None:
    place = postgres.place()
    first.run("--store", place, "index", str(tree))
    renamed = place.replace("@127.0.0.1:", "@localhost:")
    (tree / "pier.md").write_text("# Pier\n\nAnglers at dawn.\n")
    assert "pier.md" in first.run("--store", renamed, "anglers")
    first.run("--store", renamed, "index")
    (tree / "island.md").write_text("# Island\n\nA bakery.\n")
    assert "island.md" in first.run("--store", place, "bakery"), "the old name stays good"
    other = Computer(tmp_path / "b")
    assert "another host indexes the files" in other.run("--store", renamed, "index", code=2)


def test_what_the_server_does_itself_has_a_next_step(postgres: PostgresServer, first: Computer, tree: Path) -> None:
    place = postgres.place()
    first.run("--store", place, "index", str(tree))
    assert "findling export DIR" in first.run("snapshot", "create", "--store", place, code=2)
    assert "by itself" in first.run("compact", "--store", place, code=2)
    assert f"postgresql://127.0.0.1:{postgres.port}/postgres#" in first.run("status", "--store", place)


def test_a_workspace_that_another_host_has_moved_away_is_missed(
    tmp_path: Path, postgres: PostgresServer, first: Computer, tree: Path
) -> None:
    place = postgres.place()
    name = place.partition("#")[2]
    first.run("--store", place, "index", str(tree))
    second = Computer(tmp_path / "b")
    second.run("--store", place, "ferry")
    second.run("workspaces", "set", name, "--to", "home")
    for words in (["ferry"], ["remember", "a secret"], ["doctor"], ["status"], ["grep", "ferry"]):
        told = first.run(*words, "--workspace", name, code=2)
        assert "there is no workspace any more at postgresql://postgres@127.0.0.1" in told
        assert f"findling workspaces drop {name}" in told
    assert "there is no workspace any more" in first.run("workspaces", "set", name, "--to", "home", code=2)
    with psycopg.connect(postgres.dsn) as connection:
        assert not connection.execute("SELECT FROM findling.workspaces WHERE name = %s", (name,)).fetchall()
    first.run("workspaces", "drop", name, "--yes")
    assert "harbour.md" in second.run("--workspace", name, "ferry")


def test_a_replica_is_searched(tmp_path: Path, first: Computer, tree: Path) -> None:
    server = PostgresServer()
    try:
        place = server.place()
        first.run("--store", place, "index", str(tree))
        behind = Computer(tmp_path / "b")
        behind.run("--store", place, "ferry")
        first.run("--store", place, "remember", "The ferry is painted green.")
        server.become_replica()
        for host in (first, behind, Computer(tmp_path / "c")):
            said = host.run("--store", place, "ferry")
            assert "harbour.md" in said
            assert "painted green" in said
            assert "server that takes writes" in host.run("--store", place, "remember", "No.", code=2)
    finally:
        server.close()
