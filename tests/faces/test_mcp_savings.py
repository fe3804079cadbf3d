"""The log of what answers saved: numbers alone, whoever writes, and `findling agents savings`."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.service.agents import savings
from findling.service.agents.savings import note_answer, read_savings
from tests.faces.mcp_desks import call, make_project, served
from tests.processes import PATIENCE_S, BoundedProcess

Call = Callable[..., tuple[int, str, str]]

WRITER = """
import sys
from pathlib import Path
from findling.service.agents import savings
savings._FULL_BYTES = int(sys.argv[3])
for at in range(int(sys.argv[2])):
    savings.note_answer(Path(sys.argv[1]), "search", 10, 1000)
"""


def test_answers_are_noted_without_texts(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    (root / "src" / "long.py").write_text("def login():\n    pass\n" + "x = 1\n" * 4_000)
    home = tmp_path / "indexes"
    with served(root) as (_, server):
        found = call(server, "search", query="login")
        text = call(server, "fetch", id="src/auth.py:4")
        call(server, "status")
    told = {row.tool: row for row in read_savings(home).tools}
    assert set(told) == {"search", "fetch", "status"}
    assert {result["path"] for result in found["results"]} >= {"src/long.py", "src/auth.py"}
    assert told["search"].file_tokens > 4_000 * len("x = 1\n") // 4 > told["search"].tokens > 0
    assert told["fetch"].file_tokens < 100 < told["fetch"].tokens and text["id"] == "file:src/auth.py"
    assert told["status"].file_tokens == 0
    log = b"".join(path.read_bytes() for path in (home / ".agents").iterdir())
    assert not any(word in log for word in (b"login", b"auth", b"src", str(tmp_path).encode()))
    assert all(path.stat().st_mode & 0o077 == 0 for path in (home / ".agents").iterdir())


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with served(make_project(tmp_path / "project"), mcp__savings=False) as (_, server):
        call(server, "search", query="login")
    assert read_savings(tmp_path / "indexes").tools == ()
    assert not (tmp_path / "indexes" / ".agents").exists()


def test_a_place_that_cannot_be_written_costs_no_answer(tmp_path: Path) -> None:
    with served(make_project(tmp_path / "project")) as (_, server):
        call(server, "search", query="login")
        log = tmp_path / "indexes" / ".agents" / "savings.log"
        log.unlink()
        log.mkdir()
        assert call(server, "search", query="login")["results"]


def test_writers_at_once_lose_no_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path), "500", str(1 << 30)]
    writers = [BoundedProcess(command) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert read_savings(tmp_path).total[1:] == (2_000, 20_000, 2_000_000)


def test_a_writer_that_is_killed_spoils_no_line(tmp_path: Path) -> None:
    for _ in range(3):
        writer = BoundedProcess([sys.executable, "-c", WRITER, str(tmp_path), "100000000", str(1 << 16)])
        before, deadline = read_savings(tmp_path).total.answers, time.monotonic() + PATIENCE_S
        while read_savings(tmp_path).total.answers in (0, before) and time.monotonic() < deadline:
            time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        total = read_savings(tmp_path).total
        assert total.answers and (total.tokens, total.file_tokens) == (10 * total.answers, 1000 * total.answers)
    with (tmp_path / ".agents" / "savings.log").open("ab") as log:
        log.write(b"\n1763400000\tsear")
    was = read_savings(tmp_path).total.answers
    assert note_answer(tmp_path, "search", 10, 1000)
    assert read_savings(tmp_path).total.answers == was + 1
    assert sum(path.stat().st_size for path in (tmp_path / ".agents").iterdir()) < 3 << 16


def test_the_log_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savings, "_FULL_BYTES", 1000)
    for at in range(200):
        note_answer(tmp_path, "search", 1, 2, clock=lambda at=at: 1_700_000_000 + at)  # type: ignore[misc]
    assert sum(path.stat().st_size for path in (tmp_path / ".agents").iterdir()) < 2_200
    found = read_savings(tmp_path)
    assert 30 < found.total.answers < 200
    assert found.since is not None and found.since > 1_700_000_000


def test_savings_are_told(findling: Call, project: Path, tmp_path: Path) -> None:
    code, out, err = findling("agents", "list", "--savings")
    assert (code, out) == (1, "") and "findling agents install" in err
    assert json.loads(findling("agents", "list", "--savings", "--json")[1])["answers"] == 0
    home = tmp_path / "workspaces"
    note_answer(home, "search", 500, 10_000)
    note_answer(home, "status", 100, 0)
    code, out, err = findling("agents", "list", "--savings")
    rows = [" ".join(line.split()) for line in out.splitlines()[1:]]
    assert rows == ["search 1 500 10,000 5.0%", "status 1 100 0 -", "all 2 600 10,000 6.0%"]
    assert code == 0 and "since 20" in err
    document = json.loads(findling("agents", "list", "--savings", "--json")[1])
    assert (document["answers"], document["tokens"], document["file_tokens"]) == (2, 600, 10_000)
    assert document["tools"]["search"] == {"answers": 1, "tokens": 500, "file_tokens": 10_000}
