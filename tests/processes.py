"""Processes for tests: no wait is without an end, and a signal does what it usually does.

A test starts every process through `BoundedProcess` or `run_process`; `tests/meta/test_tests.py` keeps it so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from findling.pipelines.indexing.embedding_run import is_on_battery

on_mains = pytest.mark.skipif(is_on_battery(), reason="nothing is read in the background on battery")

PATIENCE_S = 300.0 * float(os.environ.get("TEST_PATIENCE", "1"))
"""The longest wait for anything that must happen: long, because a passing test never waits for its end.

A daemon starts in 2 s on an idle machine, and in 50 s beside a load of 40. TEST_PATIENCE stretches the wait.
"""

_T = TypeVar("_T")


class BoundedProcess(subprocess.Popen[str]):
    """A process that speaks text, and is killed when somebody waits for it in vain."""

    def __init__(self, command: Sequence[str | Path], **options: Any) -> None:
        super().__init__(command, text=True, **options)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, PATIENCE_S unless told otherwise. Raises TimeoutExpired."""
        with self._killed_in_the_end(timeout):
            return super().wait(PATIENCE_S if timeout is None else timeout)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Read all output, PATIENCE_S unless told otherwise. Raises TimeoutExpired."""
        with self._killed_in_the_end(timeout):
            return super().communicate(input, PATIENCE_S if timeout is None else timeout)

    @contextmanager
    def _killed_in_the_end(self, timeout: float | None) -> Iterator[None]:
        try:
            yield
        except subprocess.TimeoutExpired:
            if timeout is None:
                self.kill()
            raise


def complaints(err: str) -> str:
    """Leave out of stderr the lines that depend on the moment: that an index run starts, how far it is, a wait."""
    usual = ("indexing ", "looking for files", "[", "waiting: another process is writing ")
    return "".join(line for line in err.splitlines(True) if not line.removeprefix("findling: ").startswith(usual))


def run_process(
    command: Sequence[str | Path],
    *,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = False,
    timeout: float = PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises TimeoutExpired, CalledProcessError."""
    done = subprocess.run(
        command, input=stdin, env=env, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )
    if check and done.returncode:
        failed = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        failed.add_note(done.stderr)
        raise failed
    return done


def in_time(check: Callable[[float], _T], seconds: float) -> _T:
    """Check something that has a limit of so many seconds, and again with five times as much where that fails.

    Such a limit is waited for, so it is short; then a busy machine does not do in time what must be done in time.
    """
    while True:
        try:
            return check(seconds)
        except (Exception, pytest.fail.Exception):
            seconds *= 5
            if seconds > PATIENCE_S:
                raise


def run_and_kill(script: str, argument: str, seconds: float) -> list[str]:
    """Run a script, kill it some time after its first report, and return what it reported."""
    process = BoundedProcess([sys.executable, "-c", script, argument], stdout=subprocess.PIPE)
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first, "the process could not start after the crash before"
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    lines = [first, *process.stdout.read().splitlines()]
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    # The line being written when the signal came may be cut short.
    return lines[:-1] or lines


def hear_signals() -> None:
    """Have children react to signals that this process ignores, as under nohup or in the background of a shell.

    A child inherits what is ignored, and its Python then installs no KeyboardInterrupt. A handler is not inherited
    over exec: one that does nothing keeps this process deaf and lets its children hear.
    """
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """Mount a file system of this size at a new folder; yields a function that gives it another size."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or run_process(mount).returncode:
        pytest.skip("a file system cannot be mounted here")

    def resize(size: str) -> None:
        run_process(["mount", "-o", f"remount,size={size}", str(folder)], check=True)

    try:
        yield resize
    finally:
        # Lazily: a process that a search has started in the background may hold a file for a moment.
        run_process(["umount", "--lazy", str(folder)], check=True)
