"""Two states of findling side by side, each in an environment of its own: what each costs, and whether they agree.

    python bench/against.py BEFORE AFTER [--files 2000] [--rounds 3] [--questions 2000] [--parts PART...]

BEFORE and AFTER are interpreters, such as `../former/.venv/bin/python`. Both sides work on one copy of Python's
standard library, by turns, with homes of their own. Every figure is CPU time of all processes, the best of the rounds,
and the ratio of AFTER to BEFORE.

| part | asks |
| --- | --- |
| index | a first run, one after 100 files have changed, one that finds nothing changed |
| warm | questions of a process that has asked before, by words, and by words and instant vectors |
| http | `findling serve` with eight connections; CPU of the server for an answer |
| answers | generated questions in every mode; exit code 1 when an answer differs in more than its times |

A model reads nothing meanwhile.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import os
import random
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.fuzz import sample_words
from bench.load import WORDS
from bench.serve import Daemon, own_client, wait_until_ready
from tests.text.query_grammar import any_query

PARTS = ("index", "warm", "http", "answers")
MODES = ("keyword", "semantic", "hybrid", "auto")

WARM = """
import json, sys, time
import findling
questions = json.load(sys.stdin)
with findling.open(sys.argv[1]) as engine:
    for mode in ("keyword", "hybrid"):
        for question in questions[:20]:
            engine.search(question, refresh=False, changes={"mode": mode})
        started = time.process_time()
        for question in questions[20:]:
            engine.search(question, refresh=False, changes={"mode": mode})
        print(1000 * (time.process_time() - started) / len(questions[20:]))
"""
ANSWERS = """
import json, sys
import findling
from findling.domain.errors import FindlingError
with findling.open(sys.argv[1]) as engine:
    for question, mode in json.load(sys.stdin):
        try:
            document = engine.search(question, refresh=False, changes={"mode": mode}).to_dict()
            del document["timings_ms"]
        except FindlingError as error:
            document = {"error": str(error)}
        print(json.dumps(document, default=str))
"""


class Side(NamedTuple):
    """One state of findling: its interpreter and its home."""

    name: str
    python: Path
    home: Path
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("FINDLING_", "PYTHONPATH"))}
        settings = {"HOME": self.home, "CONFIG": self.home / "config.toml"}
        never = {"SEMANTIC_REFINE": "never", "SEMANTIC_MODEL": "none", "SERVE_AUTO": "never", "SERVE_RATE": "0"}
        own.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles what nobody has compiled before
        return own | {f"FINDLING_{name}": str(value) for name, value in (settings | never).items()}

    def cpu_s(self, *words: str) -> float:
        """The CPU seconds of a command and of what it has waited for."""
        command = [str(self.python), "-m", "findling", *words]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{self.name}: {' '.join(words)} failed with {process.returncode}")
        return usage.ru_utime + usage.ru_stime

    def told(self, script: str, given: object) -> list[str]:
        """The lines that a script prints over the indexed tree."""
        command = [str(self.python), "-c", script, str(self.root)]
        asked = subprocess.run(
            command, env=self.environment, input=json.dumps(given), text=True, stdout=subprocess.PIPE, check=True
        )
        return asked.stdout.splitlines()

    @contextmanager
    def serving(self) -> Iterator[Daemon]:
        """Its daemon, which ends in the end."""
        command = [str(self.python), "-m", "findling", "serve", str(self.root), "--port", "0", "--no-watch", "--yes"]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield Daemon(process.pid, wait_until_ready(process, self.home), self.environment)
        finally:
            process.terminate()
            process.wait(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root = lay_out(Path(place, "root"), given.files)
        pythons = {"before": given.before, "after": given.after}
        sides = [Side(name, path.absolute(), Path(place, name), root) for name, path in pythons.items()]
        for part in PARTS:
            if part == "index" and part not in given.parts:
                for side in sides:
                    side.cpu_s("index", str(root))
            elif part in given.parts and part != "answers":
                globals()[f"measure_{part}"](sides, given.rounds)
        return compare_answers(sides, given.questions) if "answers" in given.parts else 0


def lay_out(root: Path, files: int) -> Path:
    """The first files of the standard library, without what is installed beside it."""
    library = Path(sysconfig.get_path("stdlib"))
    found = (path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts)
    for path in list(found)[:files]:
        target = root / path.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return root


def measure_index(sides: Sequence[Side], rounds: int) -> None:
    """Print the cost of a first run, of one after 100 changes, and of one without any."""
    times: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for side in sides:
            shutil.rmtree(side.home, ignore_errors=True)
            note(times, "first index, CPU s", side, side.cpu_s("index", str(side.root)))
        for path in sorted(sides[0].root.rglob("*.py"))[number :: max(1, 2_000 // 100)][:100]:
            with path.open("a") as file:
                file.write(f"\n# changed {number}\n")
        for side in sides:
            note(times, "100 changed, CPU s", side, side.cpu_s("index", str(side.root)))
        for _ in range(3):
            for side in sides:
                note(times, "unchanged, CPU s", side, side.cpu_s("index", str(side.root)))
    show(times)


def measure_warm(sides: Sequence[Side], rounds: int) -> None:
    """Print the cost of warm questions."""
    times: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        chance = random.Random(number)
        questions = [" ".join(chance.sample(WORDS, 3)) for _ in range(220)]
        for side in sides:
            keyword, hybrid = map(float, side.told(WARM, questions))
            note(times, "keyword, warm, CPU ms", side, keyword)
            note(times, "hybrid, warm, CPU ms", side, hybrid)
    show(times)


def measure_http(sides: Sequence[Side], rounds: int) -> None:
    """Print the cost of answers over HTTP to eight connections, in the server."""
    times: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for side in sides:
            with side.serving() as daemon:
                for mode in ("keyword", "hybrid"):
                    own_client(daemon, mode, "new", 8, 60.0, 1_000 + number, 100)
                    before = daemon.cpu_s()
                    asked = own_client(daemon, mode, "new", 8, 60.0, number, 1_000)
                    note(times, f"{mode}, HTTP, CPU ms", side, 1000 * (daemon.cpu_s() - before) / asked["asked"])
    show(times)


def compare_answers(sides: Sequence[Side], questions: int) -> int:
    """Print the questions whose answers differ in more than their times."""
    chance = random.Random(29)
    vocabulary = sample_words(sides[0].root, chance)
    asked = [(any_query(chance, vocabulary), MODES[number % len(MODES)]) for number in range(questions)]
    before, after = (side.told(ANSWERS, asked) for side in sides)
    differing = [one for one, former, latter in zip(asked, before, after, strict=True) if former != latter]
    for question, mode in differing[:20]:
        print(f"differs, {mode}: {question!r}")
    print(f"{questions:,} answers, {len(differing):,} differ")
    return 1 if differing else 0


def note(times: dict[str, dict[str, list[float]]], figure: str, side: Side, value: float) -> None:
    times.setdefault(figure, {}).setdefault(side.name, []).append(value)


def show(times: dict[str, dict[str, list[float]]]) -> None:
    for figure, of in times.items():
        before, after = min(of["before"]), min(of["after"])
        print(f"{figure:<28}{before:>10.3f}{after:>10.3f}{after / before:>8.2f} x", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
