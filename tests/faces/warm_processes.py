"""Warm processes for tests, each a child of the test, and shells that ask them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from findling.service.client.warm_process import WARM_PROCESS
from findling.service.client.warm_shell import FOLDER, SOCKET, reach
from tests.processes import PATIENCE_S, BoundedProcess, run_process

ALONE = 99
"""The exit code of `ASK` when the warm process has not done the command."""

ASK = [
    sys.executable,
    "-c",
    "import os; from findling.__main__ import ask_warm; from findling.service.client import warm_shell as asking; "
    f"asking._BEGIN_S = asking._SILENCE_S = {PATIENCE_S}; code = ask_warm(); "
    f"os._exit({ALONE} if code is None else code)",
]
"""A patient shell, which gives up where a real one does the command by itself."""

SHELL = [sys.executable, "-m", "findling"]

Shown = tuple[int, str, str]


class Warm(NamedTuple):
    """A warm process, its home, and the variables of its shells."""

    process: BoundedProcess
    home: Path
    environ: dict[str, str]

    def asked(self, *args: str, stdin: str = "", cwd: Path | None = None, **variables: str) -> Shown:
        """The outcome of a command in the warm process."""
        done = run_process([*ASK, *args], stdin=stdin, cwd=cwd, env=self.environ | variables)
        return done.returncode, done.stdout, done.stderr

    def alone(self, *args: str, stdin: str = "", cwd: Path | None = None, **variables: str) -> Shown:
        """The outcome of the same command without it."""
        environ = self.environ | variables | {"FINDLING_SERVE_AUTO": "never"}
        done = run_process([*SHELL, *args], stdin=stdin, cwd=cwd, env=environ)
        return done.returncode, done.stdout, done.stderr


@contextmanager
def warm_of(home: Path, environ: Mapping[str, str], idle_s: float = 600.0) -> Iterator[Warm]:
    """The warm process of a home, until the block ends."""
    own = {**environ, "FINDLING_HOME": str(home), "FINDLING_SERVE_AUTO": "always"}
    process = BoundedProcess(
        [*WARM_PROCESS, str(home), str(idle_s)], env=own, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        listens(home)
        yield Warm(process, home, own)
    finally:
        process.kill()
        process.wait()


def listens(home: Path) -> None:
    """Wait for a warm process."""
    assert eventually(lambda: is_warm(home)), "no warm process"


def is_warm(home: Path) -> bool:
    """Whether a warm process listens."""
    line = reach(str(home / FOLDER), SOCKET)
    if line is not None:
        line.close()
    return line is not None


def eventually(holds: Callable[[], object]) -> bool:
    """Whether something holds in the end."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def in_terminal(command: list[str], environ: Mapping[str, str], cwd: Path | None = None) -> tuple[int, str]:
    """The exit code of a command in a terminal, and all that the terminal shows."""
    import pty

    outer, inner = pty.openpty()
    with BoundedProcess(command, env=environ, cwd=cwd, stdin=inner, stdout=inner, stderr=inner) as process:
        os.close(inner)
        shown = b""
        try:
            while piece := os.read(outer, 1 << 16):
                shown += piece
        except OSError:  # the last process that had it open has ended
            pass
        finally:
            os.close(outer)
        return process.wait(), shown.decode()
