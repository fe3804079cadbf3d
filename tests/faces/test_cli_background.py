"""Work after the end of a command: every command that has written gives unused space back."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.stores.sqlite.store import SqliteStore
from findling.stores.sqlite.vacuum import count_pages
from tests.processes import PATIENCE_S

Findling = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a script in the place of the interpreter")


@pytest.fixture
def store(project: Path, findling: Findling, tmp_path: Path) -> Path:
    """A store of which a good part is unused."""
    assert findling("index")[0] == 0
    (path,) = (tmp_path / "workspaces").glob("*/index.sqlite")
    with SqliteStore.open(path) as opened:
        opened.put_vectors("m", {number.to_bytes(16, "big"): b"\0" * 60_000 for number in range(100)})
        opened.drop_vectors("m")
    (path.parent / "write.lock").write_text("0")  # as if another process had done that
    return path


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Have commands start a script that notes what it was started with; waits until that was so often."""
    script, notes = tmp_path / "interpreter", tmp_path / "notes"
    script.write_text(f'#!/bin/sh\necho "$*" >> "{notes}"\n')
    script.chmod(0o700)
    notes.touch()
    monkeypatch.setattr(sys, "executable", str(script))

    def wait(count: int) -> list[str]:
        deadline = time.monotonic() + PATIENCE_S
        while len(lines := notes.read_text().splitlines()) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return lines

    return wait


def chat(tmp_path: Path) -> str:
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps({"thread": "t", "id": "1", "author": "ada", "at": 1.0, "text": "ahoy"}) + "\n")
    return str(file)


def item(tmp_path: Path) -> str:
    file = tmp_path / "items.json"
    file.write_text(json.dumps({"type": "decision", "title": "Use SQLite"}))
    return str(file)


def synced(project: Path) -> None:
    folder = project / ".ai" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "harbour.md").write_text("# Harbour\n\nIt closes at nine.\n")


def test_every_command_that_has_written_gives_space_back(
    project: Path, findling: Findling, store: Path, tmp_path: Path, started: Callable[[int], list[str]]
) -> None:
    synced(project)
    commands = [
        ("search", "login"),
        ("index",),
        ("add", item(tmp_path)),
        ("sync",),
        ("chats", "import", chat(tmp_path)),
        ("chats", "delete", "jsonl/t"),
        ("remember", "--here", "the harbour closes at nine"),
        ("forget", "docs/index.md", "--force"),
    ]
    for count, command in enumerate(commands, 1):
        (project / "docs" / "guide.md").write_text(f"# Guide\n\nlogin {count}\n")  # else a run writes nothing
        (store.parent / "write.lock").write_text("0")
        code, _, err = findling(*command)
        assert code == 0, err
        assert started(count) == [f"-P -m findling compact {project} --if-worthwhile"] * count, command


def test_nothing_is_started_without_a_write_or_against_the_settings(
    project: Path,
    findling: Findling,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Callable[[int], list[str]],
) -> None:
    assert findling("search", "--no-index", "login")[0] == 0
    assert findling("recall", "harbour")[0] == 1
    monkeypatch.setenv("FINDLING_COMPACT_AUTO", "false")
    assert findling("remember", "--here", "the harbour closes at nine")[0] == 0
    (project / "docs" / "guide.md").write_text("# Guide\n\nanother login\n")
    assert findling("search", "login")[0] == 0
    monkeypatch.delenv("FINDLING_COMPACT_AUTO")
    assert findling("remember", "--here", "the harbour opens at six")[0] == 0
    assert len(started(1)) == 1, "the last one alone"


def test_nothing_is_started_where_the_folder_is_gone(
    project: Path, findling: Findling, store: Path, tmp_path: Path, started: Callable[[int], list[str]]
) -> None:
    assert findling("index", "--workspace", "away", str(project / "docs"))[0] == 0
    away = tmp_path / "workspaces" / "away" / "index.sqlite"
    with SqliteStore.open(away) as opened:
        opened.put_vectors("m", {number.to_bytes(16, "big"): b"\0" * 60_000 for number in range(100)})
        opened.drop_vectors("m")
    (project / "docs").rename(project / "moved")
    code, _, err = findling("add", item(tmp_path), "--workspace", "away")
    assert (code, "Traceback" in err) == (0, False)
    assert findling("remember", "--here", "the harbour closes at nine")[0] == 0
    assert [line.rsplit(" ", 1)[-1] for line in started(1)] == ["--if-worthwhile"]


def test_it_really_gets_smaller(findling: Findling, store: Path) -> None:
    assert count_pages(store).free_share > 0.25
    assert findling("remember", "--here", "the harbour closes at nine")[0] == 0
    deadline = time.monotonic() + PATIENCE_S
    while count_pages(store).free_share > 0.25 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert count_pages(store).free_share < 0.25


@pytest.mark.parametrize("auto", [True, False])
def test_reading_gently_gives_space_back_in_the_end(
    findling: Findling, store: Path, monkeypatch: pytest.MonkeyPatch, auto: bool
) -> None:
    monkeypatch.setenv("FINDLING_COMPACT_AUTO", str(auto).lower())
    monkeypatch.setattr(os, "nice", lambda _: None)  # the other tests go on in this process
    assert findling("refine", "--gently")[0] == 0
    assert (count_pages(store).free_share < 0.25) == auto
