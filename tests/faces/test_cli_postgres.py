"""A workspace in PostgreSQL, as people use it: several hosts, each with a home of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from tests.faces import test_cli_end_to_end
from tests.forks import run_findling
from tests.postgres_servers import PostgresServer
from tests.processes import PATIENCE_S, BoundedProcess

PASSWORD = "s3cret-of-the-team"
TERMINAL = test_cli_end_to_end.TestOnATerminal


class Computer:
    """One computer: a home of workspaces, and commands that run there."""

    def __init__(self, folder: Path, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.told = folder, ""
        own = {"FINDLING_HOME": str(folder / "workspaces"), "FINDLING_CONFIG": str(folder / "config.toml")}
        usual = {"FINDLING_SEMANTIC_REFINE": "never", "FINDLING_SERVE_AUTO": "never", "FINDLING_SERVE_USE": "never"}
        self.environment = {**os.environ, **usual, **own, "HOME": str(folder), **environment}

    def run(self, *words: str, code: int | None = 0, cwd: Path | None = None) -> str:
        """The output of a command; the password is in none."""
        done = run_findling(*words, cwd=cwd or self.folder, env=self.environment)
        said = done.stdout + done.stderr
        assert code is None or done.returncode == code, said
        assert PASSWORD not in said, f"{words} shows the password"
        self.told += said
        return said


@pytest.fixture(scope="module")
def url(postgres: PostgresServer) -> str:
    """The URL of the database for a role whose password is nobody's name."""
    with psycopg.connect(postgres.dsn) as connection:
        # Two files use it, and one worker may get both.
        if connection.execute("SELECT FROM pg_roles WHERE rolname = 'team'").fetchone() is None:
            connection.execute(f"CREATE ROLE team SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    return postgres.dsn.replace("postgres:postgres", f"team:{PASSWORD}")


@pytest.fixture
def place(url: str) -> str:
    return f"{url}#docs-{uuid4().hex[:8]}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at nine.\n")
    (root / "island.md").write_text("# Island\n\nA lighthouse and a bakery.\n")
    return root


@pytest.fixture
def computers(tmp_path: Path) -> Iterator[tuple[Computer, Computer]]:
    yield Computer(tmp_path / "a"), Computer(tmp_path / "b")


def test_a_second_host_sees_what_the_first_has_indexed(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, second = computers
    first.run("--store", place, "index", str(tree))
    assert "harbour.md:3" in first.run("--store", place, "ferry")
    assert "harbour.md:3" in second.run("--store", place, "ferry")
    second.run("remember", "the bakery opens at six", "--store", place)
    assert "bakery opens" in first.run("--store", place, "recall", "bakery")
    name = place.partition("#")[2]
    assert "harbour.md:3" in second.run("--workspace", name, "ferry")
    listed = json.loads(second.run("workspaces", "list", "--json"))["workspaces"]
    assert [(one["name"], one["place"].partition("@")[0]) for one in listed] == [(name, "postgresql://team")]
    assert (second.folder / "workspaces" / name / "place.url").stat().st_mode & 0o777 == 0o600


def test_a_host_without_the_folder_deletes_nothing(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, second = computers
    first.run("--store", place, "index", str(tree))
    (tree / "harbour.md").unlink()
    # The path is there, but its files are those of another host.
    assert "harbour.md" in second.run("--store", place, "ferry")
    assert "another host indexes the files" in second.run("--store", place, "index", code=2)
    assert "another host indexes the files" in second.run("--store", place, "index", "--rebuild", code=2)
    hidden = tree.rename(tree.with_name("away"))
    assert "harbour.md" in second.run("--store", place, "ferry")
    second.run("--store", place, "index", code=2)
    # Its own host does not delete either while the folder is away.
    assert "harbour.md" in first.run("--store", place, "ferry")
    hidden.rename(tree)
    first.run("--store", place, "ferry", code=1)
    assert "island.md" in second.run("--store", place, "lighthouse")


def test_a_host_that_follows_no_files_makes_the_legs_that_it_misses(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, second = computers
    (tree / "long.md").write_text("# Long\n\n" + "The lighthouse of Borkum is old. " * 12_000)
    first.run("--store", place, "index", str(tree))
    assert "not there yet" in second.run("--store", place, "related", "Borkum", code=1)
    # What a search starts in the background when it has missed a leg.
    second.run("--store", place, "index", code=2)
    assert "long.md" in second.run("--store", place, "related", "Borkum")


def test_another_host_takes_the_files_over(computers: tuple[Computer, Computer], place: str, tree: Path) -> None:
    first, second = computers
    first.run("--store", place, "index", str(tree))
    second.run("--store", place, "ferry")
    moved = tree.rename(tree.with_name("moved"))
    second.run("workspaces", "set", place.partition("#")[2], "--root", str(moved))
    (moved / "pier.md").write_text("# Pier\n\nAnglers at dawn.\n")
    assert "pier.md" in second.run("--store", place, "anglers")
    assert "pier.md" in first.run("--store", place, "anglers")
    assert "another host indexes the files" in first.run("--store", place, "index", code=2)


def test_the_setting_and_the_environment_name_it_and_no_project_does(
    tmp_path: Path, place: str, tree: Path, computers: tuple[Computer, Computer]
) -> None:
    first, _ = computers
    first.run("config", "set", "store.url", place)
    assert (first.folder / "config.toml").stat().st_mode & 0o777 == 0o600
    assert "postgresql://team@" in first.run("config", "show", "store.url")
    assert "postgresql://team@" in first.run("config", "show", "--json")
    first.run("index", str(tree))
    assert "harbour.md:3" in first.run("ferry")
    other = Computer(tmp_path / "c", FINDLING_STORE_URL=place)
    assert "harbour.md:3" in other.run("ferry")
    assert "no workspace elsewhere" in other.run("--workspace", "elsewhere", "ferry", code=2)
    (tree / ".findling.toml").write_text(f'[store]\nurl = "{place}"\n')
    stranger = Computer(tmp_path / "d")
    assert "which a project may not set" in stranger.run("ferry", cwd=tree, code=2)
    assert not (tmp_path / "d" / "workspaces").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: url.partition("#")[0], "names no workspace"),
        (lambda url: url + "-typo", "there is no workspace"),
        (lambda url: url.replace(PASSWORD, PASSWORD[:-1]), "password authentication failed"),
        (lambda url: url.replace("/postgres#", "/nowhere#"), 'database "nowhere" does not exist'),
        (lambda url: url.replace("#", "?nosuch=1#"), "nosuch"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"), ""),
        (lambda url: url.replace("#", f"?password={PASSWORD}#").replace(f":{PASSWORD}@", "@") + "x", "there is no"),
        (lambda url: url.replace("postgresql://", "nosql://"), "no installed package"),
        (lambda url: url.replace("@", "@["), ""),
        (lambda url: url.replace(":" + PASSWORD, f":a#{PASSWORD}"), "needs an escape"),
        (lambda url: url.replace(":" + PASSWORD, f":a/{PASSWORD}"), "needs an escape"),
        (lambda url: url.replace(":" + PASSWORD, ""), "PGPASSWORD"),
        (lambda url: f"host=localhost password={PASSWORD}", "named by a URL"),
        (lambda url: url.replace("#never", "#"), "/postgres#NAME"),
    ],
)
def test_a_wrong_url_is_a_clear_error(tmp_path: Path, url: str, change: object, said: str) -> None:
    assert callable(change)
    host = Computer(tmp_path / "a")
    told = host.run("--store", change(f"{url}#never"), "ferry", code=2)
    assert said in told
    assert "Traceback" not in told
    assert not list((tmp_path / "a").glob("workspaces/*/place.url"))


def test_nothing_shows_the_password(computers: tuple[Computer, Computer], place: str, tree: Path) -> None:
    first, _ = computers
    first.run("--store", place, "index", str(tree))
    for words in (
        ["status", "--json"],
        ["doctor", "--json"],
        ["ferry", "--json", "--explain"],
        ["export", str(first.folder / "bundle")],
        ["mcp", "--print", "claude"],
        ["serve", "--print-unit", "systemd"],
    ):
        first.run(*words, "--store", place)
    assert "without snapshots" in first.run("snapshot", "create", "--store", place, code=2)
    holding = [file for file in first.folder.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()]
    assert [file.name for file in holding] == ["place.url"]


def test_doctor_examines_the_server(computers: tuple[Computer, Computer], place: str, tree: Path) -> None:
    first, _ = computers
    told = first.run("doctor", "--store", place, code=1)
    assert "BAD  index: " in told
    assert "ok   server: PostgreSQL 18" in told
    first.run("--store", place, "index", str(tree))
    told = first.run("doctor", "--store", place)
    for name in ("server", "encoding", "collation", "rights", "legs", "truth store", "keyword leg"):
        assert f"ok   {name}: " in told
    assert "legs: on this host; copies for others: none yet" in told


def test_doctor_examines_a_server_that_lets_nobody_in(
    tmp_path: Path, place: str, tree: Path, postgres: PostgresServer
) -> None:
    host = Computer(tmp_path / "a")
    told = host.run("doctor", "--store", place.replace(PASSWORD, "wrong"), code=1)
    assert "BAD  server: " in told
    assert "password authentication failed" in told
    host.run("--store", place, "index", str(tree))
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
    stranger = Computer(tmp_path / "b")
    told = stranger.run("doctor", "--store", place.replace(f"team:{PASSWORD}", "stranger:stranger"), code=1)
    assert "BAD  rights: stranger lacks the right to use the schema findling" in told
    assert "ok   encoding: UTF8" in told


def test_key_value_pairs_in_the_environment_show_no_password(tmp_path: Path) -> None:
    host = Computer(tmp_path / "a", FINDLING_STORE_URL=f"host=localhost password = '{PASSWORD} #2'")
    assert "is no place of a store" in host.run("ferry", code=2)


def test_dropping_forgets_here_and_forgetting_deletes_for_all(
    computers: tuple[Computer, Computer], place: str, tree: Path, postgres: PostgresServer
) -> None:
    first, second = computers
    name = place.partition("#")[2]
    first.run("--store", place, "index", str(tree))
    assert "stays as it is" in first.run("workspaces", "drop", name, "--yes")
    assert "harbour.md" in second.run("--store", place, "ferry")
    second.run("--store", place, "forget", "--everything", "--force")
    assert "there is no workspace" in first.run("--store", place, "ferry", code=2)
    with psycopg.connect(postgres.dsn) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'findling' AND column_name = 'ws'"
        ).fetchall()
        kept = [number for (number,) in connection.execute("SELECT ws FROM findling.workspaces").fetchall()]
        for (table,) in tables:
            connection.execute(f"SET findling.ws = '{0}'".encode())
            rows = connection.execute(f"SELECT count(*) FROM findling.{table} WHERE NOT ws = ANY(%s)".encode(), (kept,))
            assert rows.fetchone() == (0,), table


def test_the_commands_of_the_page_work(tmp_path: Path, place: str, tree: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "postgres.md"
    first, others = re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.DOTALL)[:2]
    (tree / "tokens.md").write_text("Tokens are rotated weekly.\n")
    host = Computer(tmp_path / "a", FINDLING_STORE_URL=place)
    commands = [shlex.split(line) for line in first.splitlines() if line.startswith("findling ")]
    assert len(first.splitlines()) == 5
    for _, *words in commands:
        host.run(*[word.replace("~/handbook", str(tree)) for word in words])
    other = Computer(tmp_path / "b")
    for _, *words in (shlex.split(line) for line in others.splitlines()):
        known = {"postgresql://team@db.example/search#handbook": place, "handbook": place.partition("#")[2]}
        assert other.run(*[known.get(word, word) for word in words])


def test_a_role_that_may_only_read_searches(
    computers: tuple[Computer, Computer], place: str, tree: Path, postgres: PostgresServer
) -> None:
    first, second = computers
    first.run("--store", place, "index", str(tree))
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("DROP ROLE IF EXISTS visitor")
        connection.execute("CREATE ROLE visitor LOGIN PASSWORD 'visitor-pw'")
        connection.execute("GRANT USAGE ON SCHEMA findling TO visitor")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA findling TO visitor")
    visitor = place.replace(f"team:{PASSWORD}", "visitor:visitor-pw")
    assert "harbour.md:3" in second.run("--store", visitor, "ferry")
    assert "harbour.md:3" in second.run("--store", visitor, "ferry at nine")
    assert "visitor may only search" in second.run("doctor", "--store", visitor)
    assert "lacks rights" in second.run("--store", visitor, "remember", "a secret", code=2)
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute("DROP OWNED BY visitor")
        connection.execute("DROP ROLE visitor")


def test_a_bundle_goes_from_one_tier_to_the_other(computers: tuple[Computer, Computer], place: str, tree: Path) -> None:
    first, second = computers
    first.run("index", "--workspace", "local", str(tree))
    first.run("remember", "the bakery opens at six", "--workspace", "local")
    first.run("export", str(first.folder / "one"), "--workspace", "local")
    first.run("import", str(first.folder / "one"), "--store", place)
    assert "harbour.md" in second.run("--store", place, "ferry")
    assert "opens at six" in second.run("--store", place, "recall", "bakery")
    second.run("export", str(second.folder / "two"), "--store", place)
    second.run("import", str(second.folder / "two"), "--workspace", "back")
    assert "opens at six" in second.run("--workspace", "back", "recall", "bakery")
    assert _texts(first.folder / "one") == _texts(second.folder / "two")


def test_a_merge_into_the_server_names_what_it_would_change(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, _ = computers
    first.run("index", "--store", place, str(tree))
    first.run("workspaces", "create", "stranger")
    first.run("remember", "the bakery opens at six", "--id", "bakery", "--store", place)
    first.run("remember", "the bakery is closed for good", "--id", "bakery", "--workspace", "stranger")
    bundle = str(first.folder / "forged")
    first.run("export", bundle, "--workspace", "stranger")
    refused = first.run("import", bundle, "--merge", "--store", place, code=2)
    assert "memory:bakery, 'the bakery opens at six', to 'the bakery is closed for good'" in refused
    assert "opens at six" in first.run("recall", "bakery", "--store", place)
    first.run("import", bundle, "--merge", "--replace", "--store", place)
    told = first.run("--store", place, "memory", "history", "memory:bakery")
    assert told.index("closed for good") < told.index("opens at six")


def _texts(bundle: Path) -> dict[str, str]:
    records = map(json.loads, (bundle / "resources.jsonl").read_text("utf-8").splitlines())
    return {record["rid"]: record["text"] for record in records}


def test_a_daemon_on_a_host_without_the_files_serves_and_hears_of_news(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, second = computers
    first.run("--store", place, "index", str(tree))
    hidden = tree.rename(tree.with_name("away"))
    command = [sys.executable, "-m", "findling", "serve", "--port", "0", "--store", place]
    environment = {**second.environment, "FINDLING_SERVE_USE": "auto"}
    log = (second.folder / "log").open("w+")
    with log, BoundedProcess(command, cwd=second.folder, env=environment, stderr=log) as daemon:
        try:
            deadline = time.monotonic() + PATIENCE_S
            leg = second.folder / "workspaces" / place.partition("#")[2] / "keyword"
            asking = Computer(second.folder, FINDLING_SERVE_USE="auto")
            while "serving" not in Path(log.name).read_text():
                assert daemon.poll() is None and time.monotonic() < deadline, Path(log.name).read_text()
                time.sleep(0.05)
            assert "harbour.md" in asking.run("--store", place, "ferry")
            before = {file.name for file in leg.iterdir()}
            first.run("--store", place, "remember", "the pilot boards at dawn")
            while {file.name for file in leg.iterdir()} == before:  # nobody has asked
                assert time.monotonic() < deadline, Path(log.name).read_text()
                time.sleep(0.05)
            # A search waits for no writer: what the daemon has not absorbed yet is found a moment later.
            while "pilot boards" not in asking.run("--store", place, "recall", "pilot", code=None):
                assert time.monotonic() < deadline, Path(log.name).read_text()
        finally:
            daemon.terminate()
            daemon.wait()
        assert PASSWORD not in Path(log.name).read_text()
    hidden.rename(tree)


def test_the_setting_for_legs_in_the_database_says_what_there_is_instead(tmp_path: Path, place: str) -> None:
    told = Computer(tmp_path / "b", FINDLING_SEARCH_LEGS="server").run("--store", place, "ferry", code=2)
    assert "FINDLING_SEARCH_LEGS sets nothing any more" in told
    assert "a fresh host fetches a copy" in told


def test_what_is_remembered_in_a_shared_place_is_no_personal_memory(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, second = computers
    name = place.partition("#")[2]
    first.run("remember", "The lighthouse keeper is my uncle.")
    first.run("--store", place, "index", str(tree))
    first.run("--store", place, "remember", "The lighthouse is lit at dusk.")
    asked = ("--store", place, "lighthouse")
    for computer in computers:
        assert "lit at dusk" in computer.run(*asked)
        assert "uncle" not in computer.run(*asked), "the name of a workspace means that one alone"
    for computer in computers:
        computer.environment["FINDLING_STORE_URL"] = place
    assert "uncle" not in second.run("lighthouse", "--everywhere")
    assert "lit at dusk" in second.run("recall", "lighthouse")
    found = json.loads(first.run("lighthouse", "--everywhere", "--json"))["hits"]
    assert {(hit["workspace"], hit["path"]) for hit in found} == {("personal", ""), (name, ""), (name, "island.md")}
    del first.environment["FINDLING_STORE_URL"]
    notes = first.folder / "notes"
    notes.mkdir()
    (notes / "trip.md").write_text("To the lighthouse on Sunday.\n")
    first.run("index", cwd=notes)
    found = json.loads(first.run("lighthouse", "--everywhere", "--json", cwd=notes))["hits"]
    assert {hit["workspace"] for hit in found} == {"personal", name, str(notes)}
    assert "uncle" in first.run("lighthouse", cwd=notes)
    assert "lit at dusk" not in first.run("lighthouse", cwd=notes)


def test_one_key_settles_two_memories_of_the_server(
    computers: tuple[Computer, Computer], place: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = computers
    first.run("--store", place, "index", str(tree))
    texts = [f"Tariq's e-mail is tariq@{host}.example." for host in ("home", "work")]
    for computer, text in zip(computers, texts, strict=True):
        computer.run("--store", place, "remember", text)
    listed = second.run("--store", place, "memory", "review")
    assert [text in listed for text in texts] == [True, True]
    for name, value in second.environment.items():
        monkeypatch.setenv(name, value)
    code, seen = TERMINAL.play("--store", place, "memory", "review", typed=b"n", each="q quit? ")
    assert (code, [text in seen for text in texts]) == (0, [True, True])
    assert "findling: decided: the newer one holds" in seen
    assert PASSWORD not in seen
    found = first.run("--store", place, "recall", "Tariq")
    assert [text in found for text in texts] == [False, True]


def test_a_server_that_is_away_keeps_no_other_workspace_from_answering(
    computers: tuple[Computer, Computer], place: str, tree: Path
) -> None:
    first, _ = computers
    first.run("--store", place, "index", str(tree))
    first.run("remember", "The lighthouse keeper is my uncle.")
    name = place.partition("#")[2]
    away = re.sub(r"@[^/]*/", "@127.0.0.1:1/", place)
    (first.folder / "workspaces" / name / "place.url").write_text(away)
    said = first.run("lighthouse", "--everywhere")
    assert "uncle" in said
    assert f"{name} is not searched" in said
    assert "uncle" in first.run("recall", "lighthouse")
