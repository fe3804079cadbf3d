"""Daemons that really run, each in a process of its own, for tests that ask them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from findling.service.client.daemon import ask_daemon, call_daemon
from findling.service.client.daemon_state import DaemonState, running
from tests.processes import PATIENCE_S, BoundedProcess


class Daemon(NamedTuple):
    """A running daemon, and where it is to be found."""

    process: BoundedProcess
    home: Path
    state: DaemonState

    def about(self) -> dict[str, Any]:
        """The daemon's own state."""
        answered = ask_daemon(self.home, "GET", "/local/status", patience_s=PATIENCE_S)
        assert answered is not None
        assert answered[0] == 200
        found: dict[str, Any] = answered[1]
        return found

    def stderr(self) -> str:
        """The output, once the process has ended."""
        return self.process.communicate(timeout=PATIENCE_S)[1]


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a client of this process wait for a daemon on a busy machine, and not search by itself after 2 s."""
    monkeypatch.setitem(call_daemon.__kwdefaults__ or {}, "patience_s", PATIENCE_S)


@contextmanager
def daemon_of(home: Path, root: Path, *args: str, environ: Mapping[str, str] | None = None) -> Iterator[Daemon]:
    """A daemon that serves a folder on any free port, until the block ends."""
    command = [sys.executable, "-m", "findling", "serve", str(root), "--port", "0", *args]
    own = {**(environ or os.environ), "FINDLING_HOME": str(home)}
    process = BoundedProcess(command, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield Daemon(process, home, wait_for(process, home))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(process: BoundedProcess, home: Path) -> DaemonState:
    """Wait until the process listens."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        state = running(home)
        if state is not None and state.pid == process.pid:
            return state
        time.sleep(0.02)
    raise AssertionError(f"no daemon: {process.communicate()[1] if process.poll() is not None else 'it hangs'}")


def search_processes(pid: int) -> set[int]:
    """The search processes that a daemon has started, and that still run."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found.update(map(int, task.read_text().split()))
    return {one for one in found if b"search_process" in _command(one)}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""
