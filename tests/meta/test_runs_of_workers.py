"""Workers report every test once, whatever it does to its process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import CompletedProcess

from tests.meta.structure import PACKAGE
from tests.processes import run_process

ONE = """
import os, signal, subprocess, sys
def test_early(capfd, at=sys.stderr):  # as it was when the tests were collected
    subprocess.run(["echo", "loud"], stdout=at, timeout=60)
    assert at.fileno() > 2
def test_first(tmp_path): (tmp_path / "own").write_text("1")
def test_wrong(): assert 1 == 2, "as it should"
def test_end(): os.kill(os.getpid(), signal.SIGKILL)
def test_after(tmp_path): assert tmp_path.exists()
"""
OTHER = """
import pytest
@pytest.fixture(scope="session")
def shared():
    print("made")
    yield 1
    raise RuntimeError("not taken back")
@pytest.fixture
def broken(): raise RuntimeError("not made")
@pytest.mark.parametrize("at", range(20))
def test_many(at, tmp_path): assert not (tmp_path / "own").exists()
def test_broken(broken): pass
@pytest.mark.skip("for a reason")
def test_skipped(): pass
def test_shared(shared): assert shared == 1
"""


def test_every_test_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(ONE)
    (tmp_path / "test_other.py").write_text(OTHER)
    done = _run(tmp_path, "-rA")
    assert done.returncode == 1, done.stdout
    assert "2 failed, 24 passed, 1 skipped, 2 errors" in done.stdout, done.stdout
    said = [line.split(" - ")[0] for line in done.stdout.splitlines() if "::" in line]
    ends = [f"{line.split()[0]} {line.rpartition('::')[2]}" for line in said]
    assert {end: ends.count(end) for end in ("FAILED test_wrong", "FAILED test_end", "PASSED test_after")} == {
        "FAILED test_wrong": 1, "FAILED test_end": 1, "PASSED test_after": 1,
    }  # fmt: skip
    assert "as it should" in done.stdout
    assert "the worker ended with code -9 in this test" in done.stdout


def test_a_run_ends_with_the_first_failure_when_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_wrong(): assert False\n")
    (tmp_path / "test_two.py").write_text("import time\ndef test_long(): time.sleep(600)\n")
    done = _run(tmp_path, "-x")
    assert (done.returncode, "1 failed" in done.stdout) == (2, True), done.stdout


def _run(folder: Path, *options: str) -> CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "tests.workers", "--workers", "2"]
    place = ["-c", str(folder / "pytest.ini"), "--rootdir", str(folder), str(folder)]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take 5 s of CPU, and nothing here uses them
    return run_process([*command, *options, *place], cwd=PACKAGE.parents[1], env=env)
