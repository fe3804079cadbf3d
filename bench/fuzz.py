"""Generated queries of every kind through hybrid search over a real tree: errors, and what the slowest of them cost.

    python bench/fuzz.py [--queries 100000] [--seed 14] [--tree FOLDER] [--files 2000] [--least-ms 300] [--attack]

The tree is Python's standard library, by default as many files as give about 20,000 chunks, with instant vectors. Every
query that raises is printed, and so is every one above `--least-ms` of CPU time. With `--attack` the queries hold
expressions, phrases, globs and words, are asked with facets, offsets and steps, and the graph and the exact leg are
there. Exit code 1 when a query has raised.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import random
import re
import shutil
import sysconfig
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import findling
from findling.domain.queries import FACETS
from findling.service.index.lazy_legs import made_legs
from tests.text.query_grammar import any_query, attack


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--tree", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--least-ms", type=float, default=300.0)
    parser.add_argument("--attack", action="store_true")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    raised, degraded, costs = 0, Counter[str](), list[tuple[float, str]]()
    with engine_over(given.tree, given.files) as engine:
        vocabulary = sample_words(given.tree, rng)
        if given.attack:
            for query in ("who wrote the Zen of Python", "/def \\w+_handler/"):
                engine.search(query, refresh=False, changes={"graph": "on"})
            engine.opened.level_wanted()
            print(f"legs that were wanted: {', '.join(leg.name for leg in made_legs(engine.opened.files))}")
        started = time.process_time()
        for number in range(1, given.queries + 1):
            query = attack(rng, vocabulary) if given.attack else any_query(rng, vocabulary)
            options = attacking(rng) if given.attack else {"limit": rng.choice((1, 10, 100))}
            before = time.process_time()
            try:
                answer = engine.search(query, refresh=False, **options)
                degraded[kind_of(answer)] += 1
            except Exception:
                raised += 1
                print(f"raised: {query!r}\n{traceback.format_exc()}", flush=True)
            cost = (time.process_time() - before) * 1000
            costs.append((cost, query))
            if cost > given.least_ms:
                print(f"{cost:8.1f} ms  {query[:200]!r} {options if given.attack else ''}", flush=True)
            if number % 1_000 == 0:
                spent = time.process_time() - started
                print(
                    f"{number:,} queries, {raised} raised, {spent:.0f} CPU s, slowest {max(costs)[0]:.0f} ms,"
                    f" degraded {number - raised - degraded['']}",
                    flush=True,
                )
    costs.sort(reverse=True)
    slow = [cost for cost in costs if cost[0] > given.least_ms]
    print(f"{given.queries:,} queries: {raised} raised, {len(slow):,} above {given.least_ms:g} ms CPU")
    median, nearly_all, most = (costs[len(costs) * share // 1000][0] for share in (500, 1, 0))
    print(f"median {median:.1f} ms, 99.9 % {nearly_all:.1f} ms, most {most:.1f} ms")
    print(f"degraded: {dict(degraded.most_common())}")
    return 1 if raised else 0


def attacking(rng: random.Random) -> dict[str, Any]:
    """Everything beside the query that costs more."""
    is_rare = rng.random() < 0.01
    return {
        "limit": rng.choice((1, 10, 10, 100)),
        "offset": rng.choice((10, 1000)) if is_rare else 0,
        "facets": tuple(rng.sample(FACETS, k=rng.choice((0, 1, len(FACETS))))),
        "changes": {
            "graph": rng.choice(("auto", "on")),
            "group": rng.choice(("none", "resource")),
            "collapse": is_rare,
        },
    }


def kind_of(answer: findling.SearchAnswer) -> str:
    """The way in which an answer is incomplete, without what it names; empty for a whole one."""
    return re.sub(r"/.*/|'.*'|[\d,.]+", "…", answer.degraded[0].what)[:60] if answer.degraded else ""


@contextmanager
def engine_over(tree: Path, files: int) -> Iterator[findling.Engine]:
    """The first files of the tree, indexed in a place that goes away."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "root"
        kinds = {".py", ".md", ".rst", ".txt", ".toml", ".js", ".pyi"}
        found = (path for path in sorted(tree.rglob("*")) if path.suffix in kinds and path.is_file())
        sources = [path for path in found if "site-packages" not in path.relative_to(tree).parts][:files]
        for source in sources:
            target = root / source.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        own = {"store.home": f"{place}/home", "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
        with findling.open(root, settings=findling.Settings().override(own, "bench")) as engine:
            report = engine.index()
            print(f"{report.added:,} files, {engine.status().chunks:,} chunks", flush=True)
            yield engine


def sample_words(tree: Path, rng: random.Random) -> list[str]:
    """Words and identifiers of a few files."""
    texts = [path.read_text(errors="replace") for path in sorted(tree.rglob("*.py"))[:2_000:29]]
    words = sorted({word for text in texts for word in text.split() if word.isprintable() and len(word) < 40})
    return rng.sample(words, min(3_000, len(words)))


if __name__ == "__main__":
    raise SystemExit(main())
