"""Definition first: is the passage that defines a name the first hit for that name?

    python bench/definitions.py FOLDER... [--names 100] [--seed 17] [--speed words|instant] [--code auto] [--misses]

Each FOLDER is indexed alone, with default settings; no model reads. Names are those that one place of the folder
defines, longer than three letters, drawn at random. Python's own `ast` finds them in Python, Universal Ctags (a program
of the system) elsewhere; neither shares anything with the patterns and grammars of findling. `passage` counts a first
hit whose lines hold the definition, `file` one of its file, `top 3` the file among the first three hits.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import ast
import json
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import findling
from findling.service.settings.settings import Settings

MODES = {"words": "keyword", "instant": "hybrid"}
CTAGS = ("ctags", "--recurse", "--output-format=json", "--fields=+nKl", "--extras=-F", "--exclude=.git", "-f", "-", ".")
KINDS = frozenset(
    "class function method struct interface trait enum type typedef macro module singletonMethod func talias constant "
    "const var union implementation namespace package constructor generator".split()
)
NO_KINDS = frozenset("implementation namespace package constructor".split())
"""Kinds of a language whose names are written elsewhere, too: an `impl` block of Rust names its type."""
LANGUAGES = frozenset("C C++ C# Go Java JavaScript Kotlin Lua PHP Ruby Rust Scala Swift TypeScript".split())
LEAST_LETTERS = 4


class Place(NamedTuple):
    """A definition of a name."""

    name: str
    path: str
    line: int


class Judged(NamedTuple):
    """A name that was asked for, and whether its passage was first, its file first, its file in the top 3."""

    place: Place
    passage: bool
    file: bool
    top3: bool
    first: str


def main() -> None:
    """Index each folder, ask for its names, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--names", type=int, default=100, help="names of each folder")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--speed", choices=[*MODES], default="instant")
    parser.add_argument("--code", choices=("auto", "patterns", "syntax"), default="auto", help="how code is cut")
    parser.add_argument("--misses", action="store_true", help="print every name whose passage is not first")
    given = parser.parse_args()
    judged: list[Judged] = []
    for folder in given.folders:
        names = sorted(unique_names(folder))
        chosen = random.Random(given.seed).sample(names, min(given.names, len(names)))
        own = list(ask(folder, chosen, MODES[given.speed], given.code))
        report(folder.name, own)
        judged += own
        for one in own if given.misses else ():
            if not one.passage:
                name, path, line = one.place
                print(f"    {name}  {path}:{line}  first: {one.first}{'' if one.top3 else '  (not in 3)'}")
    report("all", judged)


def unique_names(folder: Path) -> Iterator[Place]:
    """The names that one place of a folder defines."""
    places = [*_python_names(folder), *_tagged_names(folder)]
    times = Counter(place.name for place in places)
    for place in places:
        if times[place.name] == 1 and len(place.name) >= LEAST_LETTERS and not place.name.startswith("__"):
            yield place


def _python_names(folder: Path) -> Iterator[Place]:
    for file in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(file.read_text("utf-8"))
        except (SyntaxError, ValueError):
            continue
        path = str(file.relative_to(folder))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield Place(node.name, path, node.lineno)
        for node in tree.body:
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Name):
                    yield Place(target.id, path, node.lineno)


def _tagged_names(folder: Path) -> Iterator[Place]:
    done = subprocess.run(CTAGS, cwd=folder, capture_output=True, text=True, check=True, timeout=600)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        name = re.split(r"[.:]", tag["name"])[-1]  # Lua has M.setup
        # Ctags makes names for functions that have none.
        is_written = name.isidentifier() and name in tag["pattern"]
        if is_written and tag.get("language") in LANGUAGES and tag.get("kind") in KINDS - NO_KINDS:
            yield Place(name, tag["path"].removeprefix("./"), tag["line"])


def ask(folder: Path, places: list[Place], mode: str, code: str) -> Iterator[Judged]:
    """The verdict on each name."""
    with tempfile.TemporaryDirectory() as home:
        own = {"store.home": home, "semantic.refine": "never", "semantic.query_budget_ms": 0, "chunk.code": code}
        with findling.open(folder, settings=Settings().override(own, "benchmark")) as engine:
            engine.index()
            for place in places:
                hits = engine.search(place.name, limit=10, mode=mode, refresh=False).hits
                first = hits[0] if hits else None
                is_file = first is not None and first.path == place.path
                holds = is_file and first is not None and first.line_start <= place.line <= first.line_end
                top3 = any(hit.path == place.path for hit in hits[:3])
                yield Judged(place, holds, is_file, top3, f"{first.path}:{first.line}" if first else "nothing")


def report(name: str, judged: list[Judged]) -> None:
    """Print one line of figures."""
    count = len(judged) or 1
    passage, file, top3 = (sum(getattr(one, field) for one in judged) / count for field in ("passage", "file", "top3"))
    print(f"{name:<16} {len(judged):>5} names  passage {passage:.3f}  file {file:.3f}  top 3 {top3:.3f}", flush=True)


if __name__ == "__main__":
    main()
