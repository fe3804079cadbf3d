"""`findling move`: the content of a workspace goes to a server and comes back, whole or not at all."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import psycopg
import pytest

from tests.counts import sample
from tests.faces.test_cli_postgres import Computer, url
from tests.postgres_servers import PostgresServer
from tests.processes import BoundedProcess, on_mains

__all__ = ["url"]

WORDS = "harbour ferry lighthouse bakery island timetable captain anchor rope storm pier net gull tide".split()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a computer, whose workspace `notes` has files, items and a memory, and with the tree of files."""
    chance = random.Random(5)
    folder = tmp_path_factory.mktemp("move")
    tree = folder / "tree"
    tree.mkdir()
    for number in range(30):
        lines = [" ".join(chance.choices(WORDS, k=8)) for _ in range(6)]
        (tree / f"file{number}.md").write_text(f"# {' '.join(chance.choices(WORDS, k=2))}\n\n" + "\n\n".join(lines))
    first = Computer(folder / "a", FINDLING_SEARCH_MODE="keyword")
    first.run("index", "--workspace", "notes", str(tree))
    first.run("remember", "the captain prefers the early ferry", "--workspace", "notes")
    items = [{"type": "decision", "title": f"Rope {number}", "body": f"We buy rope {number}."} for number in range(9)]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    first.run("add", str(folder / "items.jsonl"), "--workspace", "notes")
    (tree / "file3.md").write_text("# Storm\n\nA late change about anchors.\n")
    first.run("late change", "--workspace", "notes")
    first.run("compact", "--full", "--workspace", "notes")
    return folder


@pytest.fixture
def computer(made: Path, tmp_path: Path) -> Computer:
    """A copy of that computer, which takes 2 s less than another one."""
    shutil.copytree(made / "a", tmp_path / "a")
    return Computer(tmp_path / "a")


def answers(computer: Computer) -> list[object]:
    asked = computer.folder / "questions.txt"
    asked.write_text("\n".join((*WORDS, "late change", '"early ferry"', "rope type:decision", "storm -gull")) + "\n")
    said = computer.run("search", "--workspace", "notes", "-Q", str(asked), "--json")
    found, _ = json.JSONDecoder().raw_decode(said)
    return [[(hit["id"], hit["score"], hit["line"]) for hit in answer["hits"]] for answer in found]


def test_there_and_back(computer: Computer, made: Path, url: str, postgres: PostgresServer) -> None:
    before, folder = answers(computer), computer.folder / "workspaces" / "notes"
    place = f"{url}#moved"
    said = computer.run("workspaces", "set", "notes", "--to", place)
    assert "200 of 200 answers are the same" in said
    assert (folder / "place.url").read_text() == place
    assert not list(folder.glob("index.sqlite*"))
    assert answers(computer) == before
    assert "already" in computer.run("workspaces", "set", "notes", "--to", place)
    other = Computer(computer.folder.with_name("b"))
    assert "captain prefers" in other.run("--store", place, "recall", "captain")
    # Its files are still followed from here.
    (made / "tree" / "new.md").write_text("A submarine.\n")
    assert "new.md" in computer.run("--workspace", "notes", "submarine")
    (made / "tree" / "new.md").unlink()
    computer.run("--workspace", "notes", "submarine", code=1)
    assert answers(computer) == before

    assert "200 of 200" in computer.run("workspaces", "set", "notes", "--to", "home")
    assert not (folder / "place.url").exists()
    with sqlite3.connect(folder / "index.sqlite") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert answers(computer) == before
    assert "already" in computer.run("workspaces", "set", "notes", "--to", "home")
    assert not list(folder.parent.glob(".moving-*"))
    # Nobody else goes on with what was left there, and it can be deleted.
    assert "no workspace" in other.run("--store", place, "ferry", code=2)
    left = "SELECT name FROM findling.workspaces WHERE name LIKE 'moved.aside-%'"
    with psycopg.connect(postgres.dsn, autocommit=True) as database:
        ((aside,),) = database.execute(left).fetchall()
        other.run("--store", f"{url}#{aside}", "forget", "--everything", "--force")
        assert database.execute(left).fetchall() == []


@pytest.fixture
def _more(made: Path) -> Iterator[None]:
    """Sixty files more, which is more than one batch."""
    folder = made / "tree" / "more"
    folder.mkdir()
    for number in range(60):
        text = " ".join(random.Random(number).choices(WORDS, k=40))
        (folder / f"{number}.md").write_text(f"# More\n\n{text}\n")
    yield
    shutil.rmtree(folder)


UNHINDERED = """
import os, runpy

os.nice = lambda step: 0  # beside the other workers of a run, its priority would leave it no CPU for minutes
runpy.run_module("findling", run_name="__main__")
"""


@pytest.mark.usefixtures("_more")
@on_mains
def test_a_reader_in_the_background_gives_way(computer: Computer, url: str) -> None:
    computer.run("index", "--workspace", "notes")
    before = answers(computer)
    command = [sys.executable, "-c", UNHINDERED, "refine", "--gently", "--workspace", "notes"]
    slowly = {**computer.environment, "FINDLING_SEMANTIC_CPU_SHARE": "0.001"}
    with BoundedProcess(command, cwd=computer.folder, env=slowly, stdout=PIPE, stderr=PIPE) as reader:
        while " 0 of" in (status := computer.run("status", "--workspace", "notes")):
            assert reader.poll() is None, reader.communicate()
            time.sleep(0.1)
        assert "read on" in status
        assert "200 of 200" in computer.run("workspaces", "set", "notes", "--to", f"{url}#read")
        assert reader.wait() == 0
    assert "read 0 of" not in computer.run("status", "--workspace", "notes"), "vectors move, too"
    assert answers(computer) == before


def test_a_place_with_other_content_is_refused(computer: Computer, url: str) -> None:
    other = Computer(computer.folder.with_name("b"))
    other.run("workspaces", "create", "theirs", "--place", f"{url}#theirs")
    other.run("remember", "this is theirs", "--workspace", "theirs")
    assert "holds other content" in computer.run("workspaces", "set", "notes", "--to", f"{url}#theirs", code=2)
    assert "captain" in computer.run("--workspace", "notes", "recall", "captain")
    assert "this is theirs" in other.run("--workspace", "theirs", "recall", "theirs")


def test_a_wrong_place_is_a_clear_error(computer: Computer, url: str) -> None:
    for to, said in (("nowhere", "is no place"), (url, "names no workspace"), ("file:///tmp/x", "is no place")):
        assert said in computer.run("workspaces", "set", "notes", "--to", to, code=2)
    assert "there is no workspace" in computer.run("workspaces", "set", "nothing", "--to", f"{url}#x", code=2)


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_killed_move_loses_nothing_and_continues(computer: Computer, url: str, way: str) -> None:
    before = answers(computer)
    place = f"{url}#killed-{way}"
    to = place
    if way == "back":
        computer.run("workspaces", "set", "notes", "--to", place)
        to = "home"
    command = [sys.executable, "-m", "findling", "workspaces", "set", "notes", "--to", to]
    for wait_s in sample((0.7, 1.1, 1.5, 2.0, 2.5), short=2):
        with BoundedProcess(command, cwd=computer.folder, env=computer.environment) as mover:
            time.sleep(wait_s)
            mover.send_signal(signal.SIGKILL)
        assert answers(computer) == before
    said = computer.run("workspaces", "set", "notes", "--to", to)
    assert re.search(r"200 of 200|already", said)
    assert answers(computer) == before
    assert not list(computer.folder.glob("workspaces/.moving-*"))
