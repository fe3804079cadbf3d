"""One name as the query: does every file that holds it come before any other, and is it counted exactly?

    python bench/names.py WORK [--names 500] [--seed 28] [--states words instant] [--plain] [--failures 40]

500 identifiers are drawn from the sources of six packages: functions, classes, constants, dotted names, names with
digits, short and long ones, stems of files. All look like identifiers: `parse_commit`, `TreeEntry`, `MAX_LEN`, `a.b`.
`--plain` draws lower-case and capitalised words instead (`update`, `Client`); for them nothing is promised. A file
holds a name where `rg -w -F` finds it: no letter, digit or underscore stands beside it, and case counts if the name has
a capital. ripgrep is asked, too, if it is installed. Default settings, no model reads; WORK keeps packages and index.

`files`: all files that hold the name stand before any other; a file with the name in its path may stand anywhere.
`total`: the total of the answer is the count of passages that hold the name, or of these and those that have it in
their heading or path. The bar: all names, in both.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import ast
import random
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.corpus import source_tree
from bench.no_answer import opened
from findling.domain.resources import Document
from findling.service.engine.engine import Engine

PACKAGES = (
    "ansible_lint==26.10.1",
    "attrs==26.1.0",
    "dulwich==1.2.21",
    "httpx==0.28.1",
    "scapy==2.8.0",
    "zeep==4.3.3",
)
KINDS = {"function": 24, "class": 16, "constant": 14, "dotted": 14, "digits": 10, "short": 6, "long": 10, "stem": 6}
"""Percent of each kind."""
SHORT, LONG = 4, 20
LIMIT = 1_000_000
DOTTED = re.compile(r"(?<![\w.])[A-Za-z_]\w+(?:\.[A-Za-z_]\w+){1,3}(?![\w.(])")
SHAPED = re.compile(r"[_.\d]|[a-z][A-Z]|^[A-Z]{2,}$")


class Held(NamedTuple):
    """The files and the numbers of passages that hold a name, and the same with headings and paths."""

    files: frozenset[str]
    named: frozenset[str]
    passages: int
    with_headings: int


class Judged(NamedTuple):
    """A name, its kind, and what is wrong with its answer, if anything is."""

    kind: str
    name: str
    order: str
    total: str


def main() -> int:
    """Draw names, ask for them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--names", type=int, default=500)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--states", nargs="+", choices=("words", "instant"), default=["words", "instant"])
    parser.add_argument("--plain", action="store_true", help="words that do not look like identifiers")
    parser.add_argument("--failures", type=int, default=40, help="print so many of them")
    given = parser.parse_args()
    tree = source_tree(given.work, PACKAGES)
    names = draw(tree, given.names, given.seed, given.plain)
    for state in given.states:
        with opened(given.work, tree, state) as engine:
            store = engine.opened.files.store
            documents = [one for rid in store.rids() if (one := store.document(rid))]
            holding = {name: held(documents, name) for name in names}
            if state == given.states[0]:
                check_with_ripgrep(tree, holding)
            report(state, [judge(engine, kind, name, holding[name]) for name, kind in names.items()], given.failures)
    return 0


def draw(tree: Path, count: int, seed: int, plain: bool) -> dict[str, str]:
    """Names by chance, each with its kind."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for file in sorted(tree.rglob("*.py")):
        for kind, name in names_in(file):
            is_shaped = bool(SHAPED.search(name.strip("_")))
            if is_shaped != plain and len(name.strip("_")) > 1:
                kinds[kind].add(name)
                for also in extra_kinds(name):
                    kinds[also].add(name)
    chance = random.Random(seed)
    drawn: dict[str, str] = {}
    for kind, percent in {"plain": 100}.items() if plain else KINDS.items():
        source = set().union(*kinds.values()) if plain else kinds[kind]
        rest = sorted(source - drawn.keys())
        drawn |= dict.fromkeys(chance.sample(rest, min(len(rest), count * percent // 100)), kind)
    return drawn


def names_in(file: Path) -> Iterator[tuple[str, str]]:
    """The names that a file defines or writes with dots, and its own."""
    yield "stem", file.stem
    text = file.read_text("utf-8", errors="replace")
    yield from (("dotted", name) for name in DOTTED.findall(text) if not name.startswith("self."))
    try:
        parsed = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(parsed):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield "function", node.name
        elif isinstance(node, ast.ClassDef):
            yield "class", node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.isupper():
            yield "constant", node.id


def extra_kinds(name: str) -> Iterator[str]:
    """Kinds that a name has by its letters."""
    if any(letter.isdigit() for letter in name):
        yield "digits"
    if len(name) <= SHORT:
        yield "short"
    if len(name) >= LONG:
        yield "long"


def held(documents: list[Document], name: str) -> Held:
    """What holds a name."""
    is_any_case = name == name.lower()
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE if is_any_case else 0)
    files, named, passages, more = set(), set(), 0, 0
    for document in documents:
        path = document.resource.path
        is_named = bool(whole.search(path) or whole.search(Path(path).stem))
        named |= {path} if is_named else set()
        places = [match.span() for match in whole.finditer(document.text)] if _may_hold(document, name) else []
        files |= {path} if places else set()
        for chunk in document.chunks:
            is_inside = any(chunk.start <= start and end <= chunk.end for start, end in places)
            passages += is_inside
            more += is_inside or is_named or any(whole.search(part) for part in chunk.heading)
    return Held(frozenset(files), frozenset(named), passages, more)


def _may_hold(document: Document, name: str) -> bool:
    return name in document.text or (name == name.lower() and name in document.text.lower())


def check_with_ripgrep(tree: Path, holding: dict[str, Held]) -> None:
    """Compare with ripgrep, where it is installed."""
    if shutil.which("rg") is None:
        print("ripgrep is not installed: files were compared with nothing")
        return
    wrong = 0
    for name, one in holding.items():
        own = subprocess.run(["rg", "-wlFS", "--no-ignore", "--", name, "."], cwd=tree, capture_output=True, text=True)
        there = {path.removeprefix("./") for path in own.stdout.splitlines()}
        wrong += bool(one.files - there)
    print(f"ripgrep agrees on the files of {len(holding) - wrong} of {len(holding)} names")


def judge(engine: Engine, kind: str, name: str, one: Held) -> Judged:
    """What is wrong with the answer to a name."""
    # As many as hold it are enough for a right answer; all of them tell a wrong one from one that goes on for long.
    for limit in (2 * one.passages + 20, LIMIT):
        answer = engine.search(name, limit=limit, refresh=False)
        found = list(dict.fromkeys(hit.path for hit in answer.hits))
        foreign = next((path for path in found if path not in one.files | one.named), "")
        before = found[: found.index(foreign)] if foreign else found
        lacking = sorted(one.files - set(before))
        if not lacking or foreign:
            break
    order = f"{len(lacking)} of {len(one.files)} files behind {foreign or 'the end'}: {lacking[0]}" if lacking else ""
    is_counted = answer.total_is_exact and answer.total in (one.passages, one.with_headings)
    counted = f"{'' if answer.total_is_exact else 'at least '}{answer.total} counted, {one.passages} hold it"
    return Judged(kind, name, order, "" if is_counted else counted)


def report(state: str, judged: list[Judged], failures: int) -> None:
    """Print one line, one for each kind, and some failures."""
    print(f"{state:8} {len(judged)} names  files {share(judged, 'order')}  total {share(judged, 'total')}", flush=True)
    for kind in Counter(one.kind for one in judged):
        own = [one for one in judged if one.kind == kind]
        print(f"    {kind:9} {len(own):4}  files {share(own, 'order')}  total {share(own, 'total')}")
    for one in [one for one in judged if one.order or one.total][:failures]:
        print(f"    {one.kind} {one.name}: {'; '.join(filter(None, (one.order, one.total)))}", flush=True)


def share(judged: list[Judged], what: str) -> str:
    """How many have nothing wrong."""
    return f"{sum(not getattr(one, what) for one in judged)} of {len(judged)}"


if __name__ == "__main__":
    raise SystemExit(main())
