"""What a search among items costs, and what it costs to put them in: CPU time, one process, a warm engine.

    python bench/items.py [--items 1000] [--rounds 5]

The items are decisions with every field filled; a tenth of them supersede an earlier one. Each way of searching is
measured as a share of the bar of 10 ms of CPU a query; the peer in the same run is a plain scan of all texts.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from findling.service.content.items import WorkspaceItems
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

BAR_MS = 10.0
_SYLLABLES = "ba ko ri lu me ta no si pe du fa gi ho ja ke lo mu na po ra".split()
WORDS = [one + two + three for one in _SYLLABLES for two in _SYLLABLES for three in _SYLLABLES[:5]]
COMMONNESS = [1 / (rank + 5) for rank in range(len(WORDS))]
ASKED = slice(20, 600)
"""Ranks of the words that queries are made of: neither what everything has nor what nothing has."""

WAYS: dict[str, dict[str, Any]] = {
    "keyword": {"profile": "keyword"},
    "hybrid, instant vectors": {"profile": "hybrid"},
    "profile decisions": {"profile": "decisions"},
}


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--items", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    chance = random.Random(6)
    items = [_decision(number, chance) for number in range(given.items)]
    queries = [" ".join(chance.sample(WORDS[ASKED], 1 + number % 3)) for number in range(40)]
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        own = {"store.home": str(Path(place, "home")), "search.refresh": "never", "semantic.refine": "never"}
        own |= {"semantic.model": "none"}
        with open_engine(root, settings=Settings().override(own, "benchmark")) as engine:
            written = WorkspaceItems(engine.writer)
            first = _cpu(lambda: written.add(items))
            again = _cpu(lambda: written.add(items))
            print(f"{len(items)} decisions: {first / len(items) * 1e3:.2f} ms CPU to add one, "
                  f"{again / len(items) * 1e3:.2f} ms when it is there already")  # fmt: skip
            texts = [document.text.lower() for rid in engine.writer.store.rids() if (document := written.get(rid))]
            peer = _cpu(lambda: _scan(texts, queries)) / len(queries) * 1e3
            for name, way in WAYS.items():
                _ask(engine, queries, way)
                rounds = [_each(engine, queries, way) for _ in range(given.rounds)]
                spent = [min(times) * 1e3 for times in zip(*rounds, strict=True)]
                slowest = max(spent)
                verdict = "met" if slowest < BAR_MS else "missed"
                print(f"{name:<24}{median(spent):6.2f} ms CPU a query, slowest {slowest:.2f}; "
                      f"{median(spent) / peer:.1f} × a scan of all texts; bar {BAR_MS:g} ms {verdict}")  # fmt: skip
    return 0


def _decision(number: int, chance: random.Random) -> dict[str, Any]:
    def words(count: int) -> str:
        """Words as common as those of any language: the second is half as frequent as the first, and so on."""
        return " ".join(chance.choices(WORDS, COMMONNESS, k=count))

    item: dict[str, Any] = {
        "type": "decision",
        "id": f"{number:08x}",
        "title": words(6).capitalize(),
        "body": words(120),
        "rationale": words(60),
        "alternatives": [words(8) for _ in range(3)],
        "tags": words(2).split(),
        "system": [words(1)],
        "context": {"team": {"size": number % 9 + 1}, "concerns": words(3)},
        "links": [{"to": f"decision:{number // 2:08x}", "type": "depends", "note": words(6)}],
    }
    if number % 10 == 9:
        item["supersedes"] = f"decision:{number - 5:08x}"
    return item


def _ask(engine: Engine, queries: list[str], way: dict[str, Any]) -> None:
    for query in queries:
        engine.search(query, refresh=False, **way)


def _each(engine: Engine, queries: list[str], way: dict[str, Any]) -> list[float]:
    return [_cpu(lambda query=query: engine.search(query, refresh=False, **way)) for query in queries]  # type: ignore[misc]


def _scan(texts: list[str], queries: list[str]) -> None:
    for query in queries:
        words = query.split()
        sorted(texts, key=lambda text: -sum(text.count(word) for word in words))[:10]


def _cpu(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


if __name__ == "__main__":
    raise SystemExit(main())
