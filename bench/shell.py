"""A search from the shell, alone and through the warm process, against a bare interpreter in the same run.

    python bench/shell.py [--work DIR] [--rounds 20]

Prints the CPU time of the shell's process, the CPU time of the fork that answers, the wall time, and the CPU time as a
multiple of `python -c "import click, sqlite3"`. All of them take turns. Each figure is the best of the rounds, since
noise only ever adds; that of forks is a mean, because the kernel counts it in steps of 10 ms. The tree is a part of
Python's standard library.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import compileall
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import findling
from findling.service.client.warm_process import WARM_PROCESS
from findling.service.client.warm_shell import FOLDER, SOCKET, reach

PARTS = ("asyncio", "collections", "concurrent", "email", "http", "importlib", "json", "logging", "unittest", "xml")
BARE = [sys.executable, "-c", "import click, sqlite3"]
SHELL = [sys.executable, "-P", "-m", "findling", "search", "connection timeout"]
TICKS = os.sysconf("SC_CLK_TCK")
BARS = {"keyword, warm": 0.06, "hybrid, warm": 0.06, "keyword, alone": 0.18, "hybrid, alone": 0.40}


class Cost(NamedTuple):
    """CPU seconds of a process, its wall time, and the mean of what forks took."""

    cpu: float
    wall: float
    forks: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for tree and index; by default one that is deleted")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given.work or Path(folder), given.rounds)


def measure(work: Path, rounds: int) -> None:
    """Make the tree, its index and a warm process, and print what a search costs."""
    compileall.compile_dir(str(Path(findling.__file__).parent), quiet=2)  # as an installer does
    tree, home = work / "tree", work / "home"
    for part in PARTS:
        shutil.copytree(Path(os.__file__).parent / part, tree / part, dirs_exist_ok=True)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_") and name != "CI"}
    environ |= {
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": str(work / "none.toml"),
        "FINDLING_SEMANTIC_MODEL": "none",
    }
    subprocess.run([*SHELL[:4], "index", str(tree)], env=environ, check=True, stderr=subprocess.DEVNULL)
    commands = {"bare interpreter": (BARE, environ)}
    for mode in ("keyword", "hybrid"):
        for way, wish in (("warm", "always"), ("alone", "never")):
            commands[f"{mode}, {way}"] = [*SHELL, str(tree), "--mode", mode], environ | {"FINDLING_SERVE_AUTO": wish}
    with warm_process(home, environ) as pid:
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for turn in range(-3, rounds):  # three rounds to learn from
            for name, (command, variables) in commands.items():
                cost = spent(command, variables, pid)
                if turn >= 0:
                    costs[name].append(cost)
    report(costs, rounds)


@contextmanager
def warm_process(home: Path, environ: dict[str, str]) -> Iterator[int]:
    """A warm process, until the block ends; yields its number."""
    own = environ | {"FINDLING_SERVE_AUTO": "always"}
    with subprocess.Popen([*WARM_PROCESS, str(home)], env=own, stdin=subprocess.DEVNULL) as process:
        try:
            while (line := reach(str(home / FOLDER), SOCKET)) is None:
                time.sleep(0.05)
            line.close()
            yield process.pid
        finally:
            process.terminate()


def spent(command: list[str], environ: dict[str, str], warm: int) -> Cost:
    """The cost of one command."""
    before, started = forks_of(warm), time.perf_counter()
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    time.sleep(0.1)  # the fork says what it has loaded, and is counted when it has ended
    if line := reach(str(Path(environ["FINDLING_HOME"]) / FOLDER), SOCKET):
        line.close()  # which wakes the warm process, so that it counts
        time.sleep(0.05)
    return Cost(usage.ru_utime + usage.ru_stime, wall, forks_of(warm) - before)


def forks_of(pid: int) -> float:
    """CPU seconds of all forks that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def report(costs: dict[str, list[Cost]], rounds: int) -> None:
    """Print the best of each."""
    bare = min(cost.cpu for cost in costs["bare interpreter"])
    print(f"best of {rounds} rounds, {os.uname().machine}; seconds")
    print(f"{'':20}{'CPU':>8}{'x bare':>8}{'fork':>8}{'wall':>8}{'bar':>8}")
    for name, found in costs.items():
        cpu, wall = min(cost.cpu for cost in found), min(cost.wall for cost in found)
        forks = sum(cost.forks for cost in found) / len(found) if "warm" in name else 0.0
        print(f"{name:20}{cpu:8.3f}{cpu / bare:8.2f}{forks:8.3f}{wall:8.3f}{BARS.get(name, 0):8.2f}")


if __name__ == "__main__":
    main()
