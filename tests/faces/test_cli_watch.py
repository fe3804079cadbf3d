"""`findling watch` as people use it: a list, and a process that follows it until it is told, or forced, to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from findling.domain.errors import FindlingError
from findling.stores.sqlite.store import SqliteStore
from tests.processes import PATIENCE_S, BoundedProcess, on_mains

Findling = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDLING_SEMANTIC_INSTANT", "false")


class Runner:
    """`findling watch run` in a process, and what it has told so far."""

    def __init__(self, *paths: str, interpreter: str = sys.executable) -> None:
        # The interpreter starts background processes.
        code = f"import sys; sys.executable = {interpreter!r}; from findling.faces.cli.main import run; sys.exit(run())"
        self.process = BoundedProcess(
            [sys.executable, "-c", code, "watch", "run", *paths],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.told: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def tells(self, text: str) -> None:
        """Wait until it has told something that holds this text."""
        eventually(lambda: any(text in line for line in self.told))

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        assert self.process.stdout.read() == "", "stdout is for answers"
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told.append(line.rstrip("\n"))


@pytest.fixture
def runner() -> Iterator[Callable[..., Runner]]:
    started: list[Runner] = []

    def start(*paths: str, interpreter: str = sys.executable) -> Runner:
        started.append(Runner(*paths, interpreter=interpreter))
        return started[-1]

    yield start
    for each in started:
        if each.process.returncode is None:
            each.end(signal.SIGKILL)


def eventually(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def watched(findling: Findling) -> dict[str, dict[str, object]]:
    _, out, _ = findling("status", "--list", "watched", "--json")
    return {each["root"]: each for each in json.loads(out)["watched"]}


def test_the_list_is_kept(findling: Findling, project: Path) -> None:
    code, out, err = findling("status", "--list", "watched")
    assert (code, out) == (1, "")
    assert "findling watch add PATH" in err
    code, out, err = findling("watch", "add")
    assert (code, out) == (0, "")
    assert f"{project} is on the list" in err
    assert "findling watch run" in err
    assert "already" in findling("watch", "add", ".")[2]
    assert findling("watch", "add", "docs/guide.md")[0] == 0
    code, out, _ = findling("status", "--list", "watched")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [str(project), str(project / "docs" / "guide.md")]
    assert out.count("nobody is watching") == 2
    assert findling("watch", "add", "--remove", "docs/guide.md")[0] == 0
    assert list(watched(findling)) == [str(project)]


def test_a_part_of_an_index_is_watched_as_a_whole(findling: Findling, project: Path) -> None:
    assert findling("index")[0] == 0
    _, _, err = findling("watch", "add", "docs")
    assert f"{project} is on the list: docs belongs to its index" in err
    assert list(watched(findling)) == [str(project)]
    assert findling("watch", "add", "--remove", "docs")[0] == 0


def test_a_workspace_is_watched_by_its_name(findling: Findling, project: Path) -> None:
    assert findling("workspaces", "create", "guides", "--root", "docs")[0] == 0
    assert findling("watch", "add", "--workspace", "guides")[0] == 0
    assert list(watched(findling)) == [str(project / "docs")]
    assert findling("workspaces", "create", "team")[0] == 0
    code, _, err = findling("watch", "add", "--workspace", "team")
    assert code == 2
    assert "has no files to watch" in err
    assert findling("watch", "add", "--workspace", "nobody")[0] == 2


def test_what_cannot_be_watched_is_an_error(findling: Findling, project: Path, home: Path) -> None:
    code, _, err = findling("watch", "add", "nowhere")
    assert code == 2
    assert "there is no nowhere" in err
    assert not (project / "nowhere").exists()
    code, _, err = findling("watch", "add", "--remove", "docs")
    assert code == 2
    assert "is not on the list" in err
    code, _, err = findling("watch", "add", str(home))
    assert code == 2
    assert "large place" in err
    assert findling("watch", "run", "nowhere")[0] == 2
    assert findling("watch", "run", "--nonsense")[0] == 2


def test_a_folder_that_is_gone_still_comes_off_the_list(findling: Findling, project: Path) -> None:
    (project / "old").mkdir()
    assert findling("watch", "add", "old")[0] == 0
    (project / "old").rmdir()
    assert "is gone" in findling("status", "--list", "watched")[1]
    assert findling("watch", "add", "--remove", "old")[0] == 0
    assert watched(findling) == {}


def test_run_follows_the_list(findling: Findling, project: Path, runner: Callable[..., Runner]) -> None:
    watcher = runner()
    watcher.tells("nothing is on the list yet")
    assert findling("watch", "add")[0] == 0
    watcher.tells(f"{project}: 4 new")
    (project / "docs" / "new.md").write_text("A zebra crossing.\n")
    watcher.tells(f"{project}: 1 new")
    account = watched(findling)[str(project)]
    assert account["pid"] == watcher.process.pid
    assert account["by"] == "findling watch run"
    assert account["taken_in"] == {"added": 1, "updated": 0, "removed": 0}
    assert f"watched by findling watch run ({watcher.process.pid})" in findling("status", "--list", "watched")[1]
    _, _, err = findling("watch", "add", "src")
    assert "nobody is watching" not in err
    second = runner(str(project))
    second.tells(f"{project} is watched by process {watcher.process.pid} (findling watch run)")
    assert second.end(signal.SIGINT) == 0
    assert findling("watch", "add", "--remove", ".")[0] == 0
    watcher.tells("is no longer watched")
    assert watcher.end(signal.SIGTERM) == 0
    assert watcher.told[-1] == "findling: watching has ended"


def test_a_burst_that_is_cut_short_by_kill_9_loses_nothing(
    findling: Findling, project: Path, runner: Callable[..., Runner], tmp_path: Path
) -> None:
    watcher = runner(".")
    watcher.tells("4 new")
    (store,) = (tmp_path / "workspaces").glob("*/index.sqlite")
    filling = "and much of what is said on a page is not said for the first time. " * 30
    count = 2_000
    for number in range(count):
        (project / "docs" / f"{number}.md").write_text(f"Page number{number} of many. {filling}\n")
    eventually(lambda: resources(store) > 4)
    assert watcher.end(signal.SIGKILL) == -signal.SIGKILL
    assert resources(store) < count, "it was to be killed in the middle"
    assert watched(findling) == {}
    code, out, _ = findling("search", f"number{count - 1}", "--json")
    assert code == 0
    assert json.loads(out)["hits"][0]["path"] == f"docs/{count - 1}.md"
    assert resources(store) == count + 4
    assert findling("doctor")[0] == 0
    again = runner(".")
    again.tells("watching")
    (project / "docs" / "zebra.md").write_text("A zebra.\n")
    again.tells("1 new")
    assert again.end() == 0


def resources(store: Path) -> int:
    try:
        with SqliteStore.open(store, readonly=True) as opened:
            return opened.counts()["resources"]
    except FindlingError:  # just being written
        return 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks for zombies in /proc")
@on_mains
def test_the_model_reads_on_after_each_run_and_leaves_no_zombies(
    findling: Findling,
    project: Path,
    runner: Callable[..., Runner],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script in place of the interpreter notes each background process, which is reaped when it has ended."""
    assert findling("index")[0] == 0
    script, notes = tmp_path / "interpreter", tmp_path / "notes"
    script.write_text(f'#!/bin/sh\necho "$*" >> "{notes}"\n')
    script.chmod(0o700)
    notes.touch()
    monkeypatch.setenv("FINDLING_SEMANTIC_REFINE", "background")
    monkeypatch.setenv("FINDLING_SEMANTIC_INSTANT", "true")
    watcher = runner(".", interpreter=str(script))
    for number in range(1, 5):
        # At the start, and then with each change.
        eventually(lambda wanted=number: len(notes.read_text().splitlines()) >= wanted)  # type: ignore[misc]
        (project / "docs" / "new.md").write_text(f"Number {number}.\n")
    eventually(lambda: len(notes.read_text().splitlines()) >= 5)
    started = [line.split()[3:6] for line in notes.read_text().splitlines()]
    assert started == [["refine", str(project), "--gently"]] * len(started)
    assert len(zombies_of(watcher.process.pid)) <= 1, "each run lets go of what the one before has started"
    assert watcher.end() == 0


def zombies_of(pid: int) -> list[str]:
    """The processes that have ended and that their parent has not let go of."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = file.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has just ended
            continue
        if state == "Z" and int(parent) == pid:
            found.append(file.parent.name)
    return found
