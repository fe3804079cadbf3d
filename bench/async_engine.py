"""How many warm searches a second an AsyncEngine answers, and what each costs, beside one after another.

    python bench/async_engine.py [--path DIR] [--files 600] [--mode keyword,hybrid] [--tasks 1,2,4,8] [--rounds 5]

The peer is `Engine.search` in a plain loop, in the same process and over the same index. All queries of a round differ
from those of every other round in one word, so that no vector of a query is found in the cache; `--again` asks the same
ones each time. CPU time is that of the whole process; queries a second depend on what else the machine does meanwhile.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import asyncio
import itertools
import os
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

from findling.domain.plans import Plan
from findling.service.engine.async_engine import AsyncEngine
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings, load_settings

QUERIES = (
    "parse a url with a query string", "session cookie expires", "how are retries handled", "connection pool timeout",
    "raise an error for invalid json", "async event loop close", "unicode decode error", "argument parser subcommand",
    "load configuration from file", "http redirect limit", "database transaction rollback", "temporary directory",
)  # fmt: skip
WORDS = (
    "first",
    "last",
    "open",
    "close",
    "start",
    "stop",
    "read",
    "write",
    "copy",
    "move",
    "list",
    "name",
    "type",
    "path",
)


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--path", help="what is indexed already; without it the standard library is")
    options.add_argument("--files", type=int, default=600)
    options.add_argument("--mode", default="keyword,hybrid")
    options.add_argument("--tasks", default="1,2,4,8")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--again", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root, settings = (Path(given.path), load_settings(given.path)) if given.path else _tree(place, given.files)
        settings = settings.override({"search.refresh": "never", "semantic.query_budget_ms": 0}, "benchmark")
        with open_engine(root, settings=settings) as engine:
            if not engine.is_indexed():
                engine.index()
            chunks = engine.status().chunks
        print(f"{chunks:,} chunks, {len(QUERIES)} queries, {given.rounds} rounds, {os.cpu_count()} cores")
        for mode in given.mode.split(","):
            _compare(root, settings, mode, [int(tasks) for tasks in given.tasks.split(",")], given.rounds, given.again)
    return 0


def _tree(place: str, files: int) -> tuple[Path, Settings]:
    root = Path(place, "root")
    root.mkdir()
    for number, file in enumerate(sorted(Path(sysconfig.get_path("stdlib")).glob("**/*.py"))[:files]):
        copy(file, root / f"{number}-{file.name}")
    own = {"store.home": str(Path(place, "home")), "semantic.refine": "never"}
    return root, Settings().override(own, "benchmark")


def _compare(root: Path, settings: Settings, mode: str, tasks: list[int], rounds: int, again: bool) -> None:
    plan = Plan(mode=mode, budget_ms=0.0)
    queries = _queries(again)
    with open_engine(root, settings=settings) as engine:
        _ask_in_turn(engine, plan, list(QUERIES))
        asked = [query for _ in range(rounds) for query in next(queries)]
        started, cpu = time.perf_counter(), time.process_time()
        _ask_in_turn(engine, plan, asked)
        _tell(f"{mode}, one after another", len(asked), started, cpu)
    for count in tasks:
        asyncio.run(_at_once(root, settings, plan, count, rounds, queries))


def _ask_in_turn(engine: Engine, plan: Plan, queries: list[str]) -> None:
    for query in queries:
        engine.search(query, refresh=False, plan=plan)


async def _at_once(
    root: Path, settings: Settings, plan: Plan, tasks: int, rounds: int, queries: Iterator[list[str]]
) -> None:
    async with AsyncEngine.open(root, settings=settings) as engine:

        async def ask(own: list[str]) -> None:
            for query in own:
                await engine.search(query, refresh=False, plan=plan)

        await ask(list(QUERIES))
        shares = [[query for _ in range(rounds) for query in next(queries)] for _ in range(tasks)]
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(ask, shares))
        _tell(f"{plan.mode}, {tasks} at once", sum(map(len, shares)), started, cpu)


def _queries(again: bool) -> Iterator[list[str]]:
    """The queries of one round after another, each with two words that no other round has in this order."""
    for one, other in itertools.cycle(itertools.permutations(WORDS, 2)):
        yield list(QUERIES) if again else [f"{query} {one} {other}" for query in QUERIES]


def _tell(what: str, queries: int, started: float, cpu: float) -> None:
    seconds, cpu_ms = time.perf_counter() - started, 1000 * (time.process_time() - cpu) / queries
    print(f"{what:28} {queries / seconds:7.1f} queries/s  {cpu_ms:6.2f} ms CPU a query")


if __name__ == "__main__":
    raise SystemExit(main())
