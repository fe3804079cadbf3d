"""A daemon with search processes: an endless question ends alone, and nothing outlives the daemon."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from tests.faces.daemons import Daemon, daemon_of, search_processes
from tests.processes import PATIENCE_S, in_time

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")

ENDLESS = {"query": "needle", "exclude_pattern": "(a+)+$"}
"""The owner may ask with any pattern; one that never ends is ended with its time."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    (made / "notes.md").write_text(f"A needle in {'a' * 60}b.\n")
    (made / "plan.md").write_text("The roadmap for autumn.\n")
    return made


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "FINDLING_INDEX_WORKERS": "2", "FINDLING_SEMANTIC_MODEL": "none", **more}


def ask(daemon: Daemon, **body: Any) -> tuple[int, dict[str, Any]]:
    address = f"http://127.0.0.1:{daemon.state.port}/v1/search"
    request = urllib.request.Request(address, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def is_loaded(pid: int) -> bool:
    """Whether a search process has opened an index."""
    try:
        return any("index.sqlite" in str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not come to that"
        time.sleep(0.1)


def indexed(daemon: Daemon) -> bool:
    status, answer = ask(daemon, query="roadmap")
    return status == 200 and bool(answer["hits"]) and not answer["degraded"]


def loaded(daemon: Daemon) -> set[int]:
    """The search processes, once both have opened the index."""
    wait_until(lambda: indexed(daemon) and sum(map(is_loaded, search_processes(daemon.state.pid))) == 2)
    return search_processes(daemon.state.pid)


def busy_with(daemon: Daemon, question: dict[str, str], other: ThreadPoolExecutor) -> set[int]:
    """The search processes, while one of them has a question."""
    before = loaded(daemon)
    other.submit(_or_none, lambda: ask(daemon, **question))
    return before


def test_an_endless_question_ends_alone(root: Path, home: Path) -> None:
    in_time(lambda seconds: endless_ends_alone(root, home, environ(FINDLING_SERVE_TIMEOUT_S=str(seconds))), 4.0)


def endless_ends_alone(root: Path, home: Path, limited: dict[str, str]) -> None:
    with daemon_of(home, root, "--yes", environ=limited) as daemon, ThreadPoolExecutor(1) as other:
        before = loaded(daemon)
        endless = other.submit(ask, daemon, **ENDLESS)
        answered: list[int] = []
        while not endless.done():
            answered.append(ask(daemon, query="roadmap", limit=len(answered) % 50 + 1)[0])
            wait([endless], timeout=0.05)
        status, answer = endless.result()
        assert status == 200
        assert any("(a+)+$" in one["what"] for one in answer["degraded"]), answer
        assert set(answered) == {200}
        assert before <= search_processes(daemon.state.pid)


def test_no_process_outlives_a_daemon_that_is_killed(root: Path, home: Path) -> None:
    limited = environ(FINDLING_SERVE_TIMEOUT_S="3600")
    with daemon_of(home, root, "--yes", environ=limited) as daemon, ThreadPoolExecutor(1) as other:
        busy = busy_with(daemon, ENDLESS, other)
        daemon.process.kill()
        daemon.process.wait()
        wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in busy))


def test_a_daemon_that_stops_ends_what_never_does(root: Path, home: Path) -> None:
    limited = environ(FINDLING_SERVE_TIMEOUT_S="3600")
    with daemon_of(home, root, "--yes", environ=limited) as daemon, ThreadPoolExecutor(1) as other:
        busy = busy_with(daemon, ENDLESS, other)
        daemon.process.terminate()
        assert daemon.process.wait() == 0
        wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in busy))


def _or_none(call: Callable[[], object]) -> object:
    try:
        return call()
    except OSError:
        return None
