"""`findling add` and `findling sync` as they are typed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.service.engine.engine import open_engine
from findling.service.settings.settings import load_settings
from tests.counts import tries
from tests.processes import BoundedProcess

Run = Callable[..., tuple[int, str, str]]
MAIN = "import sys; from findling.faces.cli.main import run; sys.exit(run())"


@pytest.fixture
def pipe(findling: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line with something on stdin."""

    def call(text: str, *args: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return findling(*args)

    return call


def line(number: int, **more: object) -> str:
    return json.dumps({"type": "decision", "id": f"{number}", "title": f"Decision {number}", **more}) + "\n"


def test_an_item_is_added_and_found(project: Path, pipe: Run, findling: Run) -> None:
    assert pipe(line(1, rationale="Backups stay simple."), "add") == (0, "", "findling: 1 added\n")
    assert pipe(line(1, rationale="Backups stay simple."), "add")[2] == "findling: 1 unchanged\n"
    code, out, _ = findling("search", "--profile", "decisions", "backups")
    assert code == 0
    assert "decision:1" in out
    assert "Decision 1" in out


def test_a_report_for_programs(project: Path, pipe: Run) -> None:
    code, out, _ = pipe(line(1) + line(2) + '{"delete": "decision:3"}\n', "add", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["added"], report["deleted"], report["missing"]) == (2, 0, ["decision:3"])


def test_a_file_an_array_and_a_type_for_all(project: Path, findling: Run) -> None:
    Path("notes.json").write_text(json.dumps([{"title": "Rotate keys"}, {"title": "Rotate logs"}], indent=1))
    assert findling("add", "notes.json", "--type", "task")[::2] == (0, "findling: 2 added\n")
    assert findling("search", "-l", "type:task rotate")[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (line(1) + '{"type": "decision", "titel": "x"}\n', "line 2: items of type decision have no 'titel'"),
        (line(1) + "{oops\n", "line 2: no JSON"),
        (line(1) + '{"title": "x"}\n', "line 2: the item does not say its type"),
        (line(1) + '{"type": "desicion", "title": "x"}\n', "decision instead?"),
        (line(1) + line(1, body="other"), 'add a new one with "supersedes": "decision:1"'),
        (line(1) + "3\n", "line 2: 3 is no item"),
    ],
)
def test_a_fault_names_its_line_and_nothing_before_it_is_lost(
    project: Path, pipe: Run, findling: Run, text: str, said: str
) -> None:
    code, out, err = pipe(text, "add")
    assert (code, out) == (2, "")
    assert said in err
    assert "(before it: 1 added)" in err
    assert "decision:1" in findling("ls")[1]


def test_of_an_array_with_a_fault_nothing_is_added(project: Path, pipe: Run, findling: Run) -> None:
    code, _, err = pipe(f"[{line(1)},{line(2, supersedes='decision:9')}]", "add")
    assert (code, "item 2: it supersedes decision:9, which is not there" in err) == (2, True)
    findling("index")
    assert "decision:" not in findling("ls")[1]


def test_deleting_by_ids_and_by_items(project: Path, pipe: Run, findling: Run) -> None:
    pipe("".join(line(number) for number in range(5)), "add")
    assert pipe("decision:0\n1\n" + line(2), "add", "--delete", "--type", "decision")[::2] == (
        0,
        "findling: 3 deleted\n",
    )
    listed = findling("ls")[1].split()
    assert [rid for rid in listed if rid.startswith("decision:")] == ["decision:3", "decision:4"]
    code, _, err = pipe("decision:0\n", "add", "--delete")
    assert (code, err) == (1, "findling: not there: decision:0\nfindling: 1 not there\n")


def test_no_file_and_nothing_on_stdin(project: Path, findling: Run, pipe: Run) -> None:
    assert findling("add", "nowhere.json")[::2] == (
        2,
        "findling: there is no file nowhere.json\n  try: name a file of JSON, or - for stdin\n",
    )
    assert pipe("", "add")[::2] == (1, "findling: nothing to do\n")


def test_sync_lists_what_shadows_what(project: Path, home: Path, findling: Run) -> None:
    assert findling("sync")[0] == 1
    for folder, text in ((project, "Release with the pipeline."), (home, "Release by hand.")):
        file = folder / ".ai" / "directives" / "release.md"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    code, out, err = findling("sync")
    assert (code, out) == (0, "directive:project/release shadows directive:user/release\n")
    assert err == "findling: 2 added, 1 shadowed\n"
    code, out, _ = findling("sync", "--json")
    assert json.loads(out)["shadows"] == [{"winner": "directive:project/release", "loser": "directive:user/release"}]
    other = project / "docs"
    assert findling("sync", "--user-folder", str(other))[2] == "findling: 1 changed, 1 deleted\n"
    assert findling("sync", "--user-folder", "nowhere")[0] == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_run_that_is_killed_has_lost_nothing_that_was_durable(project: Path, home: Path, findling: Run) -> None:
    count, rounds = tries(3000, short=2000), tries(2, short=1)
    Path("many.jsonl").write_text("".join(line(number, body="words " * 60) for number in range(count)))
    findling("index")
    kills = 0
    for _ in range(rounds):
        before = _stored(project)
        run = BoundedProcess([sys.executable, "-c", MAIN, "add", "many.jsonl"], stderr=subprocess.DEVNULL)
        while run.poll() is None and _stored(project) < before + 500:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        kills += run.wait() == -signal.SIGKILL
        assert _stored(project) >= before
        assert findling("search", "--no-index", "words")[0] == 0
        assert findling("doctor")[0] == 0
    assert kills == rounds, "so many lines take longer than the first batches of these runs"
    stored = _stored(project)
    code, _, err = findling("add", "many.jsonl")
    assert (code, err) == (0, f"findling: {count - stored:,} added, {stored:,} unchanged\n")
    assert findling("search", "-l", f"type:decision {count - 1}")[0] == 0


def _stored(project: Path) -> int:
    with open_engine(project, settings=load_settings(project)) as engine:
        return sum(1 for _ in engine.writer.store.rids("decision"))


def test_a_shortened_id_is_forgotten_and_explained(project: Path, pipe: Run, findling: Run) -> None:
    made = [json.dumps({"type": "decision", "id": f"3f2a91c0{n}", "title": f"Okapi {n}"}) + "\n" for n in "12"]
    named = '{"type": "task", "id": "release-2026", "title": "Okapi 3"}\n'
    assert pipe("".join(made) + named, "add")[0] == 0
    code, _, err = findling("forget", "-f", "decision:3f2a91c0")
    assert (code, "is the beginning of 2 ids: decision:3f2a91c01, decision:3f2a91c02" in err) == (2, True)
    assert findling("forget", "-f", "3f2a91c01") == (0, "", "findling: forgot 1\n")
    assert findling("fetch", "3f2a91c0")[1] == findling("fetch", "decision:3f2a91c0")[1] == "Okapi 2\n"
    assert findling("forget", "-f", "decision:3f2a91c0") == (0, "", "findling: forgot 1\n")
    code, _, err = findling("forget", "-f", "task:release", "decision:3f2a91c0", "3f2a91c0")
    assert (code, err.count("there is no ")) == (1, 3), "fewer than 8 characters are too few"
    assert findling("forget", "-f", "task:release-")[0] == 0


def test_an_error_repeats_no_more_than_the_beginning_of_a_name(project: Path, findling: Run) -> None:
    assert findling("index")[0] == 0
    for command, name in (("suggest", "!" * 100_000), ("fetch", "x" * 100_000), ("similar", "x" * 100_000)):
        code, _, err = findling(command, name)
        assert (code, len(err) < 400) == (2, True)
