"""Commands of findling for tests, each in a process of its own: a fork of one that has loaded the program.

A process that loads the program and the client of PostgreSQL takes 0.4 s of CPU, a fork of one that has done so 0.03 s.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, CompletedProcess, TimeoutExpired

from tests.processes import PATIENCE_S, BoundedProcess, run_process

__all__ = ["Program", "run_findling"]

_LOADED = """
import atexit, gc, importlib, json, os, sys, time

from findling.service.client.warm_shell import ONE_THREAD
os.environ.update(ONE_THREAD)
from findling import __main__ as program
from findling.faces.cli import main
from findling.service.client import warm_kit

warm_kit._LIBRARIES |= {"psycopg", "psycopg_c", "psycopg_binary", "psycopg_pool"}
for name in sys.argv[1:]:
    importlib.import_module(name)
asked, replies, seen = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w"), set()

def learn(kit):
    '''Load what two commands have loaded; what one needs alone costs as much here.'''
    told = {(kind, json.dumps(one)): one for kind, ones in kit.items() for one in ones}
    again = {kind: [one for key, one in told.items() if key[0] == kind and key in seen] for kind in kit}
    seen.update(told)
    if any(again.values()):
        warm_kit.load_kit(again)
        gc.collect()
        gc.freeze()

for line in asked:
    request, lesson = json.loads(line), os.memfd_create("lesson")
    pid = os.fork()
    if not pid:
        break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    told = os.pread(lesson, 1 << 24, 0)
    os.close(lesson)
    print(code, file=replies, flush=True)
    if told:
        learn(json.loads(told))
else:
    sys.exit()

known = frozenset(sys.modules)
atexit.register(lambda: os.write(lesson, json.dumps(warm_kit.describe_kit(known)).encode()))
given, giving = os.pipe()
os.write(giving, request["stdin"].encode())
os.close(giving)
os.dup2(given, 0)
os.close(given)
for number, name in ((1, "stdout"), (2, "stderr")):
    file = os.open(request[name], os.O_WRONLY | os.O_APPEND)
    os.dup2(file, number)
    os.close(file)
os.environ.clear()
os.environ.update(request["env"])
time.tzset()
os.chdir(request["cwd"])
sys.argv = [program.__file__, *request["words"]]
sys.exit(program.main())
"""
"""A process that forks for every line of its input, and answers with the exit code."""

_MOST_STDIN = 1 << 16
"""Bytes that a pipe takes before anybody reads."""


class Program:
    """A process that has loaded findling, and carries out one command after the other in forks."""

    def __init__(self, *modules: str, env: Mapping[str, str] | None = None) -> None:
        """Load these modules, too; `env` matters to Python itself, a command has one of its own."""
        self._modules, self._env = modules, env
        self._process: BoundedProcess | None = None

    def run(
        self, *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: str = ""
    ) -> CompletedProcess[str]:
        """Run a command to its end. Raises TimeoutExpired."""
        env, cwd = dict(env or os.environ), cwd or Path.cwd()
        if not hasattr(os, "memfd_create"):
            return run_process([sys.executable, "-m", "findling", *words], env=env, cwd=cwd, stdin=stdin)
        assert len(stdin.encode()) < _MOST_STDIN
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            request = {"words": words, "env": env, "cwd": str(cwd), "stdin": stdin}
            code = self._ask({**request, "stdout": out.name, "stderr": err.name}, words)
            return CompletedProcess(words, code, _text(out.name), _text(err.name))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def _ask(self, request: Mapping[str, object], words: tuple[str, ...]) -> int:
        if self._process is None:
            command = [sys.executable, "-c", _LOADED, *self._modules]
            self._process = BoundedProcess(command, stdin=PIPE, stdout=PIPE, env=self._env, start_new_session=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], PATIENCE_S)[0]:
            os.killpg(self._process.pid, 9)  # the fork, too
            self.close()
            raise TimeoutExpired(words, PATIENCE_S)
        return int(self._process.stdout.readline())


def _text(file: str) -> str:
    return Path(file).read_text("utf-8")


_program = Program()
atexit.register(_program.close)


def run_findling(
    *words: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: str = ""
) -> CompletedProcess[str]:
    """Run a command in a fork of the one process of this run of the tests. Raises TimeoutExpired."""
    return _program.run(*words, env=env, cwd=cwd, stdin=stdin)
