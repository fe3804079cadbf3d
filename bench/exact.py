"""The exact leg: its build, its size, the cost of patterns with it and without it, and matches against `re`.

    python bench/exact.py [--work DIR] [--megabytes 64] [--rounds 5] [--pairs 0]

The tree is a part of the one that `bench/corpus.py` fetches. Figures are CPU time, the best of the rounds. Every
pattern must match in the same files as `re` over all texts. With --pairs so many random pairs of a pattern and a small
tree are tried besides: pieces of real files, with letters exchanged, made optional, repeated or in the other case.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

from bench.corpus import make_tree
from findling.domain.queries import Filters, Pattern
from findling.domain.resources import Resource
from findling.pipelines.retrieve.legs import Retrievers
from findling.pipelines.retrieve.pattern_matches import KnownTexts, find_matches, narrowed
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings
from findling.stores.filesystem import file_size
from findling.text.query.patterns import compile_pattern, required_trigrams

PATTERNS = {
    "rare substring": Pattern("select_for_update_of", False, True),
    "rare substring, any case": Pattern("SELECT_FOR_UPDATE_OF", False, False),
    "common substring": Pattern("def get_", False, True),
    "regex with a literal": Pattern(r"def \w+_queryset\(", True, True),
    "alternatives": Pattern(r"raise (ImproperlyConfigured|FieldError)\(", True, True),
    "any case, common": Pattern("return none", False, False),
    "regex, any case, common": Pattern(r"return\s+none\b", True, False),
    "no trigram": Pattern(r"\b\d{7}\b", True, True),
}
TREE_FILES, TREE_PATTERNS = 30, 500
_T = TypeVar("_T")


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    options.add_argument("--megabytes", type=int, default=64)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pairs", type=int, default=0)
    given = options.parse_args()
    texts = _texts(make_tree(given.work), given.megabytes * 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), texts, given.rounds)
    if given.pairs:
        _compare(texts, given.pairs)
    return 0


def _texts(tree: Path, size: int) -> list[str]:
    texts = []
    for path in sorted(one for one in tree.rglob("*") if one.is_file()):
        texts.append(path.read_text("utf-8", errors="replace"))
        size -= path.stat().st_size
        if size < 0:
            break
    return texts


def _engine(folder: Path, texts: list[str]) -> Engine:
    own = {"store.home": str(folder / "home"), "semantic.instant": False, "semantic.model": "off"}
    (folder / "root").mkdir(parents=True)
    engine = open_engine(folder / "root", settings=Settings().override(own, "benchmark"))
    engine.add((Resource(rid=f"text:{number}", type="text"), text) for number, text in enumerate(texts))
    return engine


def _measure(folder: Path, texts: list[str], rounds: int) -> None:
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    with _engine(folder, texts) as engine:
        scans = {name: _best(rounds, partial(_files, engine, pattern)) for name, pattern in PATTERNS.items()}
        with engine.opened.files.writing():
            seconds, _ = _spent(partial(engine.opened.lazy("exact").level, anew=True))
        size = sum(map(file_size, (engine.home / "exact").rglob("*"))) / 1e6
        print(f"{len(texts):,} texts, {megabytes:.1f} MB")
        print(f"build {seconds / megabytes:.3f} CPU s a MB, {size:.1f} MB = {100 * size / megabytes:.1f} % of the text")
        print(f"{'pattern':26} {'files':>6} {'candidates':>11} {'narrow':>8} {'leg':>9} {'scan':>9}")
        for name, pattern in PATTERNS.items():
            legs = engine.opened.at()
            numbers = list(legs.store.matching(Filters()))
            required = required_trigrams(pattern)
            narrow, (candidates, _) = _best(rounds, partial(narrowed, legs, required, numbers))
            cost, found = _best(rounds, partial(_files, engine, pattern))
            expected = {f"text:{number}" for number, text in enumerate(texts) if compile_pattern(pattern).search(text)}
            assert found == scans[name][1] == expected, name
            times = [f"{1000 * one:.2f} ms" for one in (narrow, cost, scans[name][0])]
            print(f"{name:26} {len(found):6,} {len(candidates):11,} {times[0]:>8} {times[1]:>9} {times[2]:>9}")


def _files(engine: Engine, pattern: Pattern) -> set[str]:
    """The texts in which the pattern is found, as a search finds them, but for the lookup of their names."""
    legs = engine.opened.at()
    found, _ = find_matches(legs, pattern, Filters(), KnownTexts({}, {}))
    return {resource.rid for resource in legs.store.resources_of(list(found)).values()}


def _compare(texts: list[str], pairs: int) -> None:
    random, missed, matched, tried = Random(17), 0, 0, 0
    while tried < pairs:
        pieces = [_piece(random, random.choice(texts), 1_500) for _ in range(TREE_FILES)]
        with tempfile.TemporaryDirectory() as folder, _engine(Path(folder), pieces) as engine:
            with engine.opened.files.writing():
                engine.opened.lazy("exact").level(anew=True)
            legs = engine.opened.at()
            for _ in range(min(TREE_PATTERNS, pairs - tried)):
                wrong, right = _tried(legs, _random_pattern(random, random.choice(pieces)))
                missed, matched, tried = missed + wrong, matched + right, tried + 1
    print(f"{tried:,} pairs of a pattern and a tree of {TREE_FILES} texts: {matched:,} matches, {missed} missed")
    assert not missed


def _tried(legs: Retrievers, pattern: Pattern) -> tuple[int, int]:
    numbers = list(legs.store.matching(Filters()))
    candidates = set(narrowed(legs, required_trigrams(pattern), numbers)[0])
    matching = {one.number for one in legs.store.texts(numbers) if compile_pattern(pattern).search(one.text)}
    return len(matching - candidates), len(matching)


def _random_pattern(random: Random, text: str) -> Pattern:
    """A piece of a text as a pattern, which mostly matches there."""
    piece = _piece(random, text, random.randint(3, 24))
    if random.random() < 0.3:
        return Pattern(piece, False, random.random() < 0.5, random.random() < 0.1)
    parts = [_part(random, letter) for letter in piece]
    source = "".join(parts)
    if random.random() < 0.2:
        source = f"(?:{source}|{re.escape(_piece(random, text, 6))})"
    return Pattern(source, True, random.random() < 0.5, random.random() < 0.1)


def _part(random: Random, letter: str) -> str:
    escaped = re.escape(letter)
    chance = random.random()
    if chance < 0.75:
        return escaped if random.random() < 0.8 else re.escape(letter.swapcase())
    forms = (
        f"[{escaped}x]",
        f"{escaped}?",
        f"(?:{escaped}|zz)",
        f"{escaped}{{1,3}}",
        ".",
        r"\W" if letter == " " else escaped,
    )
    return random.choice(forms)


def _piece(random: Random, text: str, size: int) -> str:
    start = random.randrange(max(1, len(text) - size))
    return text[start : start + size]


def _best(rounds: int, work: Callable[[], _T]) -> tuple[float, _T]:
    runs = [_spent(work) for _ in range(rounds)]
    return min(seconds for seconds, _ in runs), runs[0][1]


def _spent(work: Callable[[], _T]) -> tuple[float, _T]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


if __name__ == "__main__":
    sys.exit(main())
