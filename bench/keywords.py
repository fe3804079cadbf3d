"""Indexing and keyword search against local-semantic-search 0.5.7 (its BM25 mode), interleaved in one run.

    python bench/keywords.py [--work DIR] [--rounds 3] [--every 1] [--only index]

Prints CPU seconds (user + system, all threads, the process and those it started), peak memory of the largest process
and sizes of both, and their ratio beside the bar. CPU time is the figure to read: wall time on a shared machine says
little. Each figure is the best of the rounds, since noise only ever adds. The peer always makes 20 hits of a query;
findling's default is 10.

findling indexes twice: with its default settings, which make an instant vector of every passage, and with words only,
which is all that the peer's mode makes. Only the model's reading in the background is off in both. Queries ask words.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import os
import shutil
import statistics
import subprocess
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.corpus import make_tree

REPOSITORY = Path(__file__).resolve().parent.parent
PEER = "local-semantic-search==0.5.7"
CHANGED_FILES = 100
QUERIES = (
    "database connection pool timeout", "register a custom template tag", "class based view mixin",
    "parse directive options", "integration of rational functions", "reactor shutdown event", "protocol inference",
    "squash migrations dependencies", "shortest path weight", "fixture scope teardown", "query set prefetch related",
    "user authentication backend", "HTTP request headers", "thread local storage", "install plugin entry point",
    "file descriptor leak", "unicode decode error", "regular expression match group", "date and time zone conversion",
    "cache invalidation key prefix", "session cookie expiry", "load balancing of workers", "serialize to json",
    "foreign key constraint on delete", "command line option parser", "test client post form", "stack trace formatting",
    "matrix determinant", "polynomial factorization", "abstract syntax tree visitor", "type annotation of decorators",
    "async generator close", "ssl certificate verification", "logging handler level", "configuration file precedence",
    "role variable defaults", "inventory host pattern", "node edge attributes", "connected components",
    "deferred callback chain", "transaction isolation level", "lazy loading relationship", "column default value",
    "sphinx extension setup", "table of contents depth", "cross reference role", "footnote citation",
    "assert rewriting", "temporary directory", "parametrize ids",
)  # fmt: skip

PEER_QUERIES = """
import json, sys, time
from semantic_search import semantic_search
tree, database, queries = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
def ask(query):
    return semantic_search(tree, [query], db_path=database, indexed_only=True)
ask("warm up")
for query in queries:
    before = time.process_time(); ask(query); print(time.process_time() - before)
"""
OUR_QUERIES = """
import json, sys, time
import findling
tree, limit, queries = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
with findling.open(tree) as engine:
    engine.search("warm up", limit=limit, refresh=False)
    for query in queries:
        before = time.process_time()
        engine.search(query, limit=limit, refresh=False)
        print(time.process_time() - before)
"""


WAYS = {"default settings": {}, "words only": {"FINDLING_SEMANTIC_INSTANT": "off", "FINDLING_SEARCH_MODE": "keyword"}}
"""The ways in which findling indexes, and their settings."""

STEPS = {"first index": (0.75, 0.6), "unchanged tree": (0.5, 0.5), f"{CHANGED_FILES} changed files": (0.05, 0.05)}
"""What is measured of indexing, with the bar for each way."""


class Run(NamedTuple):
    """The cost of one process and of those it started."""

    cpu_s: float
    peak_mb: float
    output: str


class Row(NamedTuple):
    """One comparison; `bar` is the share of the peer's figure that must not be exceeded."""

    name: str
    ours: float
    theirs: float
    bar: float
    unit: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="index every n-th file of the tree only")
    parser.add_argument("--only", choices=["index"], help="leave queries out")
    arguments = parser.parse_args()
    work: Path = arguments.work
    tree = make_tree(work, arguments.every)
    files = [file for file in tree.rglob("*") if file.is_file() and file.name != ".complete"]
    source_mb = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files):,} files, {source_mb:.0f} MB; best of {arguments.rounds} rounds, interleaved")
    bench = Bench(work, tree)
    for number in range(arguments.rounds):
        print(f"round {number + 1} …", file=sys.stderr, flush=True)
        bench.index(files)
        if arguments.only is None:
            bench.ask()
    _print_table(bench.rows(source_mb))


class Bench:
    """Both programs in environments of their own, and the best figures seen of each."""

    def __init__(self, work: Path, tree: Path) -> None:
        self._tree = tree
        self._peer = _environment(work / "peer-env", PEER)
        self._ours = _environment(work / "findling-env", str(REPOSITORY), "--force-reinstall", "--no-deps")
        _environment(work / "findling-env", str(REPOSITORY))
        self._peer_home = work / "peer-home"
        self._homes = {way: work / f"findling-home-{way.split()[0]}" for way in WAYS}
        self._best: dict[str, float] = {}

    def index(self, files: list[Path]) -> None:
        """Measure indexing once, the two programs in turn."""
        for home in (self._peer_home, *self._homes.values()):
            shutil.rmtree(home, ignore_errors=True)
        first, unchanged, changed = STEPS
        self._index(first)
        for way, home in self._homes.items():
            self._keep(f"{way} size", _folder_mb(home))
        self._keep("peer size", _folder_mb(self._peer_home))
        self._index(unchanged)
        with _changed(files[:: len(files) // CHANGED_FILES][:CHANGED_FILES]):
            self._index(changed)
        self._index("")

    def _index(self, step: str) -> None:
        """Let both index the tree; a step without a name is not noted."""
        peer = self._run([self._peer / "lss", "index", self._tree])
        runs = {way: self._run([self._ours / "findling", "index", self._tree], way) for way in WAYS}
        for name, run in {"peer": peer, **runs}.items() if step else ():
            self._note(f"{name} {step}", run)

    def ask(self) -> None:
        """Measure queries once, the two programs in turn."""
        peer = [self._peer / "lss"]
        ours = [self._ours / "findling"]
        for query in QUERIES[:5]:
            self._note("peer cli", self._run([*peer, query, self._tree]))
            self._note("ours cli", self._run([*ours, query, self._tree]))
            self._note("bare python", self._run([self._ours / "python", "-c", "import sqlite3, click"]))
        database = self._peer_home / "lss.db"
        asked = json.dumps(QUERIES)
        self._times("peer query", self._run([self._peer / "python", "-c", PEER_QUERIES, self._tree, database, asked]))
        for limit in ("10", "20"):
            command: list[str | Path] = [self._ours / "python", "-c", OUR_QUERIES, self._tree, limit, asked]
            self._times(f"ours query {limit}", self._run(command))

    def rows(self, source_mb: float) -> list[Row]:
        """The comparisons of the best figures."""
        best = self._best
        first = next(iter(STEPS))
        rows = [
            Row(f"{step}, {way}", best[f"{way} {step}"], best[f"peer {step}"], bars[number], "CPU s")
            for number, way in enumerate(WAYS)
            for step, bars in STEPS.items()
        ]
        for way in WAYS:
            peaks = best[f"{way} {first} peak"], best[f"peer {first} peak"]
            rows.append(Row(f"peak memory, {way}", *peaks, float("inf"), "MB"))
            rows.append(Row(f"size against source, {way}", best[f"{way} size"], source_mb, 1.5, "MB"))
        rows.append(Row("(the peer's size)", best["peer size"], source_mb, float("inf"), "MB"))
        return [*rows, *self._query_rows()] if "ours cli" in best else rows

    def _query_rows(self) -> list[Row]:
        best = self._best
        return [
            Row("query in process, 10 hits, p50", best["ours query 10 p50"], best["peer query p50"], 1 / 40, "CPU s"),
            Row("query in process, 10 hits, p95", best["ours query 10 p95"], best["peer query p95"], 1 / 40, "CPU s"),
            Row("query in process, 20 hits, p50", best["ours query 20 p50"], best["peer query p50"], 1 / 40, "CPU s"),
            Row("search from the shell", best["ours cli"], best["peer cli"], 1 / 8, "CPU s"),
            Row("… against a bare python", best["ours cli"], best["bare python"], 3, "CPU s"),
        ]

    def _run(self, command: list[str | Path], way: str = "words only") -> Run:
        environment = {
            **os.environ,
            "LSS_DIR": str(self._peer_home),
            "FINDLING_HOME": str(self._homes[way]),
            "FINDLING_CONFIG": os.devnull,
            "FINDLING_SEMANTIC_REFINE": "never",
            **WAYS[way],
        }
        # Both programs run from byte code, as they do for their users.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return _measure(command, environment)

    def _note(self, name: str, run: Run) -> None:
        self._keep(name, run.cpu_s)
        self._keep(f"{name} peak", run.peak_mb)

    def _times(self, name: str, run: Run) -> None:
        times = sorted(float(line) for line in run.output.split() if line.replace(".", "").replace("e-", "").isdigit())
        self._keep(f"{name} p50", statistics.median(times))
        self._keep(f"{name} p95", times[int(len(times) * 0.95)])

    def _keep(self, name: str, value: float) -> None:
        self._best[name] = min(value, self._best.get(name, value))


def _environment(folder: Path, *packages: str) -> Path:
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    return folder / "bin"


def _measure(command: list[str | Path], environment: Mapping[str, str]) -> Run:
    process = subprocess.Popen(
        [str(part) for part in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{command} ended with {process.returncode}")
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


class _changed:  # noqa: N801 - reads as a word in its with statement
    """Files that are different inside the block and as before after it."""

    def __init__(self, files: list[Path]) -> None:
        self._before = {file: file.read_bytes() for file in files}

    def __enter__(self) -> None:
        for number, (file, data) in enumerate(self._before.items()):
            file.write_bytes(data + f"\nchanged line {number}\n".encode())

    def __exit__(self, *_: object) -> None:
        for file, data in self._before.items():
            file.write_bytes(data)


def _folder_mb(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _print_table(rows: list[Row], show: Callable[[str], None] = print) -> None:
    show(f"{'':38} {'findling':>10} {'peer':>10} {'ratio':>8} {'bar':>8}")
    for name, ours, theirs, bar, unit in rows:
        ratio = ours / theirs
        verdict = "ok" if ratio <= bar else "MISSED"
        show(f"{name:38} {ours:10.4f} {theirs:10.4f} {ratio:8.3f} {bar:8.3f} {unit:6} {verdict}")


if __name__ == "__main__":
    main()
