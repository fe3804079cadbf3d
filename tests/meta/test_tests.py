"""The rules that keep the suite from hanging."""

from __future__ import annotations

import ast
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks, memory_disk, processes
from tests.forks import Program
from tests.memory_disk import memory_folder
from tests.processes import BoundedProcess, run_process, small_disk

TESTS = Path(__file__).resolve().parents[1]
UNBOUNDED = {
    "subprocess": {"Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "run"},
    "os": {"popen", "system"},
}
ALLOWED = {"processes.py"}
REACTIONS = """
import os, signal, sys
from tests.processes import hear_signals, run_process
hear_signals()
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    os.kill(os.getpid(), number)
ask = "import signal as s; print([int(n) for n in (s.SIGINT, s.SIGHUP, s.SIGQUIT) if s.getsignal(n) is s.SIG_IGN])"
print(run_process([sys.executable, "-c", ask], check=True).stdout)
"""


def unbounded_calls(tree: ast.AST) -> set[str]:
    """The ways to start a process that have no time limit, as `module.name`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module, names = node.value.id, {node.attr}
        elif isinstance(node, ast.ImportFrom):
            module, names = node.module or "", {alias.name for alias in node.names}
        else:
            continue
        found |= {f"{module}.{name}" for name in names & UNBOUNDED.get(module, set())}
    return found


def _parsed(code: str) -> ast.AST:
    """The tree of a file, empty where no word in it can start a process: all 400 files take 3 s."""
    return ast.parse(code if re.search("subprocess|popen|system", code) else "")


def test_every_process_is_started_by_the_one_helper() -> None:
    found = {
        path.relative_to(TESTS).as_posix(): names
        for path in TESTS.rglob("*.py")
        if path.name not in ALLOWED and (names := unbounded_calls(_parsed(path.read_text("utf-8"))))
    }
    assert found == {}, "start processes with BoundedProcess or run_process of tests/processes.py"


@pytest.mark.parametrize("code", ["subprocess.run([])", "from subprocess import Popen", "x = os.system"])
def test_an_unbounded_process_is_noticed(code: str) -> None:
    assert unbounded_calls(ast.parse(code))


@pytest.mark.parametrize("data", [gzip.compress(b"holds the time"), b""])
def test_every_worker_calls_a_case_by_the_same_name(data: bytes, request: pytest.FixtureRequest) -> None:
    assert request.node.name.partition("[")[2] in ("data0]", "data1]")


def test_no_test_runs_for_ever(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("timeout")) > 0


def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    for wait in (BoundedProcess.wait, BoundedProcess.communicate):
        with BoundedProcess([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
            with monkeypatch.context() as patch, pytest.raises(subprocess.TimeoutExpired):
                patch.setattr(processes, "PATIENCE_S", 0.01)
                wait(process)
            assert process.wait() < 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_signals_reach_processes_even_under_nohup() -> None:
    ignoring = ["sh", "-c", 'trap "" INT HUP QUIT; exec "$0" -c "$1"', sys.executable, REACTIONS]
    assert run_process(ignoring, cwd=TESTS.parent, check=True).stdout.strip() == "[]"


def test_a_command_in_a_fork_does_what_a_process_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "note.md").write_text("The ferry leaves at nine.\n")
    own = {"FINDLING_HOME": str(tmp_path / "home"), "FINDLING_SERVE_AUTO": "never", "FINDLING_SEARCH_MODE": "keyword"}
    env = {**os.environ, **own, "FINDLING_SEMANTIC_REFINE": "never", "FINDLING_CONFIG": str(tmp_path / "none.toml")}
    program, stdin = Program(), '{"type": "decision", "title": "A tide", "body": "It turns at six."}\n'
    try:
        for words in (["index"], ["add", "-"]):
            done = program.run(*words, env=env, cwd=tmp_path, stdin=stdin)
            assert done.returncode == 0, done.stderr
        for words in (["tide"], ["--nosuch"], ["add", "-"]):
            forked = program.run(*words, env=env, cwd=tmp_path, stdin=stdin)
            alone = run_process([sys.executable, "-m", "findling", *words], env=env, cwd=tmp_path, stdin=stdin)
            assert (forked.returncode, forked.stdout, forked.stderr) == (alone.returncode, alone.stdout, alone.stderr)
        with monkeypatch.context() as patch, pytest.raises(subprocess.TimeoutExpired):
            patch.setattr(forks, "PATIENCE_S", 0.01)
            program.run("serve", "--port", "0", env=env, cwd=tmp_path)
        assert "note.md" in program.run("ferry", env=env, cwd=tmp_path).stdout, "another process takes its place"
    finally:
        program.close()


def test_folders_lie_in_memory_where_there_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_disk, "_DISK", tmp_path)
    monkeypatch.setattr(memory_disk, "_LEAST_FREE", 1 << 62)
    assert memory_folder() is None
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(memory_disk, "_LEAST_FREE", 0)
    assert [memory_folder()] == list(tmp_path.iterdir())


def test_no_folder_lies_in_memory_where_no_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "1M"):
        run_process(["mount", "-o", "remount,noexec", str(disk)], check=True)
        monkeypatch.setattr(memory_disk, "_DISK", disk)
        monkeypatch.setattr(memory_disk, "_LEAST_FREE", 0)
        assert memory_folder() is None
        assert not list(disk.iterdir())
