"""A first search of a large folder from the shell: scripts wait or are quick, a person reads a first answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.faces.mcp.transport import server
from findling.pipelines.indexing import first_run
from tests.faces.mcp_desks import call, served
from tests.processes import PATIENCE_S, BoundedProcess

Findling = Callable[..., tuple[int, str, str]]

_FILES = 400
_MAIN = (
    "import sys; from findling.pipelines.indexing import first_run; first_run.FIRST_S = 100.0;"
    "from findling.faces.cli.main import run; sys.exit(run())"
)

_HOLD = """
import sys, time
from pathlib import Path
from findling.stores.lock import WriteLock
lock = WriteLock(Path(sys.argv[1], "write.lock"))
lock.acquire(60)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""

_INDEX = """
import sys
import findling
begun = []
def tell(event):
    if not begun:
        begun.append(print("held", flush=True))
with findling.open(sys.argv[1]) as engine:
    engine.index(on_progress=tell)
"""


@pytest.fixture
def forest(tmp_path: Path) -> Path:
    root = tmp_path / "forest"
    for number in range(_FILES):
        file = root / f"part{number % 9}" / f"leaf{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"bark and moss {number} on branch {line}\n" for line in range(200)]
        file.write_text(f"# Leaf {number}\n\n" + "".join(lines))
    (root / "zoo.md").write_text("# Zoo\n\nThe okapi sleeps.\n")
    return root


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_run, "FIRST_S", 100.0)  # however busy the machine is
    monkeypatch.setenv("FINDLING_SEMANTIC_INSTANT", "off")


def test_a_script_waits_for_the_whole_answer(forest: Path, findling: Findling) -> None:
    code, out, err = findling("search", "--json", "okapi", str(forest))
    answer = json.loads(out)
    assert (code, err, "indexed" in answer["plan"], answer["degraded"]) == (0, "", False, [])


def test_quick_answers_from_a_part_and_says_so(forest: Path, findling: Findling) -> None:
    code, out, err = findling("search", "--quick", "--json", "okapi", str(forest))
    answer = json.loads(out)
    assert (code, answer["hits"][0]["path"]) == (0, "zoo.md")
    indexed = answer["plan"]["indexed"]
    assert 0 < indexed["files"] < indexed["of"] == _FILES + 1
    assert f"{indexed['files']} of {indexed['of']} files are indexed so far" in err
    code, out, err = findling("search", "--quick", "okapi", str(forest))
    assert (code, "okapi" in out, "files are indexed so far" in err) == (0, True, True), "it goes on with others"


def test_quick_leaves_the_rest_to_a_process_in_the_background(
    forest: Path, findling: Findling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, notes = tmp_path / "interpreter", tmp_path / "notes"
    script.write_text(f'#!/bin/sh\necho "$*" >> "{notes}"\n')
    script.chmod(0o700)
    notes.touch()
    assert findling("search", "--quick", "okapi", str(forest))[0] == 0
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "background")
    assert findling("search", "--quick", "moss", str(forest))[0] == 0
    deadline = time.monotonic() + PATIENCE_S
    while not notes.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert notes.read_text().splitlines() == [f"-P -m findling index {forest} --yes"]


@pytest.mark.skipif(os.name == "nt", reason="there is no pseudo terminal")
@pytest.mark.parametrize("question", ["okapi", "moss 7"])
def test_a_person_reads_a_first_answer_and_then_the_whole_one(forest: Path, question: str) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = BoundedProcess(
        [sys.executable, "-c", _MAIN, "search", "--set", "output.color=never", question, str(forest)],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait() == 0
    text = shown.decode()
    first, _, rest = text.partition("files are indexed so far")
    assert "leaf" in first or "okapi sleeps" in first, text
    assert "findling: indexed" in rest
    if question == "okapi":
        assert "the first answer stands" in rest
        assert text.count("The okapi sleeps.") == 1
    else:
        assert "leaf" in rest


def test_an_agent_is_answered_from_a_part_and_told_so(forest: Path) -> None:
    with served(forest, semantic__instant=False) as there:
        document = call(there.server, "search", query="okapi")
        assert document["results"][0]["path"].endswith("zoo.md")
        assert "files are indexed so far" in json.dumps(document)
        assert not there.engine.is_indexed()


def test_lines_that_an_agent_asks_for_first_are_those_of_a_part(forest: Path) -> None:
    with served(forest, semantic__instant=False) as there:
        document = call(there.server, "grep", pattern=r"okapi\s\w+")
        assert list(document["matches"]) == ["zoo.md"]
        assert " ".join(document["degraded"]).count("files are indexed so far") == 1
        there.engine.index()
        document = call(there.server, "grep", pattern=r"okapi\s\w+")
        assert (list(document["matches"]), document["degraded"]) == (["zoo.md"], [])


def test_uses_of_a_name_that_an_agent_asks_for_first_are_those_of_a_part(forest: Path) -> None:
    (forest / "zoo.py").write_text("def feed_okapi():\n    pass\n\n\nfeed_okapi()\n")
    with served(forest, semantic__instant=False) as there:
        document = call(there.server, "refs", name="feed_okapi")
        assert len(document["defines"]) == len(document["calls"]) == 1
        assert " ".join(document["degraded"]).count("files are indexed so far") == 1


def test_an_agent_that_waits_for_a_first_answer_waits_for_no_model(forest: Path) -> None:
    with served(forest, search__mode="hybrid") as there:
        assert call(there.server, "search", query="okapi")["search_type"] == "keyword"
        there.engine.index()
        assert call(there.server, "search", query="okapi")["search_type"] == "hybrid"


def test_a_quick_search_during_the_first_run_of_another_process_answers_from_what_is_there(
    forest: Path, findling: Findling
) -> None:
    assert findling("search", "--quick", "okapi", str(forest))[0] == 0
    (store,) = Path(os.environ["FINDLING_HOME"]).glob("*/index.sqlite")
    with BoundedProcess([sys.executable, "-c", _HOLD, str(store.parent), "100"], stdout=subprocess.PIPE) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            code, out, err = findling("search", "--quick", "okapi", str(forest))
        finally:
            other.kill()
    assert (code, "okapi" in out) == (0, True)
    assert "another process is indexing for the first time; " in err
    assert f" of {_FILES + 1} files are indexed so far" in err
    assert "was not completed" not in err


@pytest.mark.parametrize(
    ("asked", "lines"), [(("search", "-l", "okapi"), 1), (("grep", "-l", "bark"), _FILES), (("glob", "leaf*"), _FILES)]
)
def test_a_script_waits_for_the_first_run_of_another_process(
    forest: Path, findling: Findling, asked: tuple[str, ...], lines: int
) -> None:
    assert findling("search", "--quick", "okapi", str(forest))[0] == 0
    (store,) = Path(os.environ["FINDLING_HOME"]).glob("*/index.sqlite")
    with BoundedProcess([sys.executable, "-c", _HOLD, str(store.parent), "3"], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        code, out, err = findling(*asked, str(forest))
        other.kill()
    assert (code, len(out.splitlines())) == (0, lines)
    assert all(line.startswith("findling: waiting: ") for line in err.splitlines()), err


def test_an_agent_that_wants_all_lines_waits_for_the_first_run_of_another_process(
    forest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REFRESH_PATIENCE_S", PATIENCE_S)
    monkeypatch.setenv("FINDLING_HOME", str(forest.parent / "indexes"))  # as `served` has it
    with served(forest, semantic__instant=False) as there:
        assert call(there.server, "search", query="okapi")["results"]
        assert not there.engine.is_indexed()
        with BoundedProcess([sys.executable, "-c", _INDEX, str(forest)], stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            document = call(there.server, "grep", pattern="bark", gives="files", limit=1000)
            other.communicate()
        assert (document["files"], document["degraded"]) == (_FILES, [])


def test_an_agent_learns_once_that_another_process_indexes(forest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REFRESH_PATIENCE_S", 0.1)
    with served(forest, semantic__instant=False) as there:
        assert call(there.server, "search", query="okapi")["results"]
        hold = [sys.executable, "-c", _HOLD, str(there.engine.home), "100"]
        with BoundedProcess(hold, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                assert other.stdout.readline() == "held\n"
                asked = (("search", {"query": "okapi"}), ("grep", {"pattern": "okapi"}), ("refs", {"name": "okapi"}))
                for name, arguments in asked:
                    said = json.dumps(call(there.server, name, **arguments))
                    assert said.count("another process is indexing for the first time") == 1, said
                    assert "has not been completed" not in said
            finally:
                other.kill()
