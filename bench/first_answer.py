"""The first search of a folder without an index: how soon it is answered, and how good that answer is.

    python bench/first_answer.py [--files 8000] [--tree FOLDER] [--json FILE]

The tree is Python's standard library and the installed packages, copied. Every question is asked of it by a process of
its own with an empty home, `findling search --quick`: wall time from the start of the process to its end, and its CPU
time. The answers are compared with those of the complete index by the paths of their hits. `load` is the number of
processes that wanted a core meanwhile: times on a busy machine say more about it than about the search.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import os
import resource
import shutil
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

EXTENSIONS = frozenset(".py .pyi .rst .txt .md .js .css .toml .cfg .yml .yaml .ini .c .h .sh .html .json".split())
MOST_BYTES = 2_000_000
DEPTH = 5
QUESTIONS = (
    "how does asyncio cancel a task group",
    "TarFile extraction filter",
    "bisect insort implementation",
    "parse http cookies",
    "zip import hooks",
    "argparse subparsers required",
    "json decoder raw_decode",
    "email header folding policy",
    "LogRecord formatting with a style",
    "difflib sequence matcher ratio",
    "heapq merge several sorted inputs",
    "shelve open writeback",
    "TemporaryDirectory cleanup on windows",
    "urllib robots.txt parser",
    "csv sniffer detect delimiter",
    "Fraction from float limit_denominator",
    "unittest mock call_args_list",
    "configparser interpolation of values",
    "wsgi request handler environ",
    "sqlite3 dump iterator",
)


class Run(NamedTuple):
    """A process: the JSON that it printed, its wall time and its CPU time."""

    document: dict[str, Any]
    wall_s: float
    cpu_s: float


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--files", type=int, default=8_000)
    options.add_argument("--tree", type=Path)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        tree = given.tree or copied(Path(place, "tree"), given.files)
        firsts = [findling(Path(place, f"home{at}"), "--quick", one, tree) for at, one in enumerate(QUESTIONS)]
        whole = Path(place, "whole")
        complete = findling(whole, QUESTIONS[0], tree)
        finals = [complete, *[findling(whole, one, tree) for one in QUESTIONS[1:]]]
    rows = [compared(*pair) for pair in zip(QUESTIONS, firsts, finals, strict=True)]
    for row in rows:
        print(
            "{wall:5.2f} s  {cpu:4.2f} CPU s  {files:4} of {of:,} files  {same}/{best}  {hit:5}  {question}".format(
                **row
            )
        )
    figures = {
        "first answer, wall s, median": round(median(one.wall_s for one in firsts), 2),
        "first answer, wall s, worst": round(max(one.wall_s for one in firsts), 2),
        "first answer, CPU s, median": round(median(one.cpu_s for one in firsts), 2),
        "complete answer, wall s": round(complete.wall_s, 1),
        "complete answer, CPU s": round(complete.cpu_s, 1),
        "first hit is the first of the complete answer": sum(row["hit"] == "first" for row in rows),
        f"first hit is among its best {DEPTH}": sum(row["hit"] != "other" for row in rows),
        f"share of its best {DEPTH}": round(sum(row["same"] / row["best"] for row in rows) / len(rows), 2),
        "load": round(os.getloadavg()[1], 1),
    }
    for name, value in figures.items():
        print(f"{name:<50} {value:>8}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    return 0


def copied(target: Path, most: int) -> Path:
    """The text files of the standard library and of installed packages, as many as wanted."""
    count = 0
    for name in ("stdlib", "purelib"):
        base = Path(sysconfig.get_paths()[name])
        for file in sorted(base.rglob("*")):
            inside = file.relative_to(base)
            is_foreign = "__pycache__" in inside.parts or (name == "stdlib" and "site-packages" in inside.parts)
            if is_foreign or file.suffix not in EXTENSIONS or not 0 < file.stat().st_size < MOST_BYTES:
                continue
            (target / name / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target / name / inside)
            count += 1
            if count == most:
                return target
    return target


def findling(home: Path, *arguments: str | Path) -> Run:
    """Search in a process of its own, with the default settings but for work that goes on afterwards."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FINDLING_")}
    environ |= {"FINDLING_HOME": str(home), "FINDLING_SEMANTIC_REFINE": "never", "FINDLING_COMPACT_AUTO": "false"}
    command = [sys.executable, "-m", "findling", "search", "--json", "--set", "serve.use=never", *map(str, arguments)]
    before, began = _children_s(), time.perf_counter()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=3_600)
    wall_s = time.perf_counter() - began
    return Run(json.loads(done.stdout), wall_s, _children_s() - before)


def compared(question: str, first: Run, final: Run) -> dict[str, Any]:
    """A question with the figures of its first answer, against the complete one."""
    found, best = (_paths(run)[:DEPTH] for run in (first, final))
    indexed = first.document["plan"].get("indexed", {"files": 0, "of": 0})
    hit = "first" if found[:1] == best[:1] else "near" if found[:1] and found[0] in best else "other"
    same = len(set(found) & set(best))
    figures = {"wall": first.wall_s, "cpu": first.cpu_s, "same": same, "best": len(best), "hit": hit}
    return {"question": question, **figures, **indexed}


def _paths(run: Run) -> list[str]:
    return list(dict.fromkeys(hit["path"] for hit in run.document["hits"]))


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
