"""Words that do not stand in the text they mean: 50 of a person's notes, and 50 of strangers' documents.

    python bench/lay_words.py WORK [--only notes strangers] [--states words instant read]
                              [--save FILE] [--beside FILE] [--misses] [--check]

Each pair is one or two words and the file that they stand for: *insomnia* for a note on lying awake. The notes are
those of `bench/no_answer.py`, which may share its WORK; the documents are the reStructuredText of 16 packages (5,400
passages), which the model reads for half an hour. Default settings. It counts the judged file among the first three
hits, as any of 30 hits, and where the answer is empty as the passage that the answer names nearest. Bars, once read:
notes 45 in the first three or nearest and 35 as hits; strangers 30 in the first three or nearest. `--check` looks
whether a word does occur in its file: it compares the beginnings of words.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.corpus import source_tree
from bench.no_answer import DATA, STATES, notes_tree, opened, words_of
from findling.domain.results import Hit, SearchAnswer
from findling.service.engine.engine import Engine

PAIRS = tomllib.loads((DATA / "lay_words.toml").read_text("utf-8"))
HITS = 30
SHORTEST = 4
"""Letters that two words have in common at their beginning when they may be forms of one."""


class Found(NamedTuple):
    """The rank of the judged file among the hits, 0 without one; whether it was named nearest; the hits."""

    rank: int
    nearest: bool
    hits: int


def main() -> int:
    """Ask for every pair and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(TREES), default=list(TREES))
    parser.add_argument("--states", nargs="+", choices=list(STATES), default=["read"])
    parser.add_argument("--save", type=Path, help="write every outcome, for --beside")
    parser.add_argument("--beside", type=Path, help="the outcomes of another version")
    parser.add_argument("--misses", action="store_true", help="name the pairs that are neither in three nor nearest")
    parser.add_argument("--check", action="store_true", help="look at the pairs, ask nothing")
    given = parser.parse_args()
    former = json.loads(given.beside.read_text()) if given.beside else {}
    outcomes: dict[str, dict[str, Found]] = {}
    for name in given.only:
        tree = TREES[name](given.work / name)
        pairs = dict(read_pairs(name))
        if given.check:
            print("\n".join(find_problems(tree, pairs)) or f"{name}: no word of {len(pairs)} pairs occurs in its file")
            continue
        for state in given.states:
            with opened(given.work / name, tree, state) as engine:
                found = {words: ask(engine, words, judged) for words, judged in pairs.items()}
            outcomes[key := f"{name} {state}"] = found
            report(key, found, former.get(key, {}), given.misses)
    if given.save:
        given.save.write_text(json.dumps(outcomes, indent=0))
    return 0


def strangers_tree(work: Path) -> Path:
    """The documentation of the packages."""
    return source_tree(work, PAIRS["packages"], frozenset({".rst"}))


TREES = {"notes": notes_tree, "strangers": strangers_tree}


def read_pairs(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The words and the files that they stand for."""
    for line in PAIRS[name].strip().splitlines():
        words, _, files = line.partition(" -> ")
        yield words, tuple(files.split(" | "))


def find_problems(tree: Path, pairs: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Words that their own file holds in some form, and files that are not there."""
    for asked, files in pairs.items():
        for path in files:
            if not (tree / path).is_file():
                yield f"{asked}: there is no {path}"
                continue
            there = words_of((tree / path).read_text("utf-8")) | words_of(path)
            alike = [f"{word} ~ {own}" for word in words_of(asked) for own in there if are_forms(word, own)]
            if alike:
                yield f"{asked}: {path} has {', '.join(sorted(alike))}"


def are_forms(one: str, other: str) -> bool:
    """Whether the longer one of two words begins as the shorter one without its last letters."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) >= SHORTEST and long.startswith(short[: max(SHORTEST, len(short) - 3)]))


def ask(engine: Engine, words: str, judged: tuple[str, ...]) -> Found:
    """The place of the judged file in one answer; places count by file."""
    answer = engine.search(words, limit=HITS, refresh=False)
    files = list(dict.fromkeys(hit.path for hit in answer.hits))
    rank = next((place for place, path in enumerate(files, 1) if path in judged), 0)
    is_nearest = any(place.path in judged for place in nearest(answer))
    return Found(rank, is_nearest, len(answer.hits))


def nearest(answer: SearchAnswer) -> tuple[Hit, ...]:
    """The passages that an empty answer names nearest."""
    return () if answer.hits else answer.related


def report(key: str, found: dict[str, Found], former: dict[str, list[float]], misses: bool) -> None:
    """Print one line, and the pairs that went wrong if wanted."""
    three = {words for words, one in found.items() if 1 <= one.rank <= 3}
    named = {words for words, one in found.items() if one.nearest}
    print(
        f"{key:18} {len(found)} pairs  in three {len(three)}, nearest {len(named)}, both {len(three | named)}"
        f"  as hits {sum(one.rank > 0 for one in found.values())}"
        f"  empty {sum(not one.hits for one in found.values())}",
        flush=True,
    )
    if former:
        before = {words for words, (rank, is_nearest, _) in former.items() if 1 <= rank <= 3 or is_nearest}
        print(f"{'':18} lost {sorted(before - three - named)}; gained {sorted((three | named) - before)}", flush=True)
    for words, one in found.items() if misses else ():
        if words not in three | named:
            print(f"    {words}: {f'rank {one.rank}' if one.rank else 'not'} among {one.hits} hits")


if __name__ == "__main__":
    raise SystemExit(main())
