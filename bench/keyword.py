"""Indexing and keyword search against local-semantic-search 0.5.7 (its BM25 mode), interleaved in one run.

    python bench/keyword.py [--work DIR] [--rounds 3]

Prints CPU seconds (user + system, all threads, whole process), peak memory and sizes of both, and their ratio beside
the bar. CPU time is the figure to read: wall time on a shared machine says little. Each figure is the best of the
rounds, since noise only ever adds. The peer always makes 20 hits of a query; findling's default is 10.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path, and this one holds a `keyword` that the standard library would import.
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


class Run(NamedTuple):
    """What one process cost."""

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
    arguments = parser.parse_args()
    work: Path = arguments.work
    tree = make_tree(work)
    files = [file for file in tree.rglob("*") if file.is_file() and file.name != ".complete"]
    source_mb = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files):,} files, {source_mb:.0f} MB; best of {arguments.rounds} rounds, interleaved")
    bench = Bench(work, tree)
    for number in range(arguments.rounds):
        print(f"round {number + 1} …", file=sys.stderr, flush=True)
        bench.round(files)
    _print_table(bench.rows(source_mb))


class Bench:
    """Both programs in environments of their own, and the best figures seen of each."""

    def __init__(self, work: Path, tree: Path) -> None:
        self._tree = tree
        self._peer = _environment(work / "peer-env", PEER)
        self._ours = _environment(work / "findling-env", str(REPOSITORY), "--force-reinstall", "--no-deps")
        _environment(work / "findling-env", str(REPOSITORY))
        self._peer_home, self._home = work / "peer-home", work / "findling-home"
        self._best: dict[str, float] = {}

    def round(self, files: list[Path]) -> None:
        """Measure everything once, the two programs in turn."""
        peer = [self._peer / "lss"]
        ours = [self._ours / "findling"]
        for home in (self._peer_home, self._home):
            shutil.rmtree(home, ignore_errors=True)
        for step in ("index", "unchanged"):
            self._note(f"peer {step}", self._run([*peer, "index", self._tree]))
            self._note(f"ours {step}", self._run([*ours, "index", self._tree]))
        with _changed(files[:: len(files) // CHANGED_FILES][:CHANGED_FILES]):
            self._note("peer changed", self._run([*peer, "index", self._tree]))
            self._note("ours changed", self._run([*ours, "index", self._tree]))
        self._run([*ours, "index", self._tree])
        self._run([*peer, "index", self._tree])
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
        self._keep("ours size", _folder_mb(self._home))
        self._keep("peer size", _folder_mb(self._peer_home))

    def rows(self, source_mb: float) -> list[Row]:
        """The comparisons of the best figures."""
        best = self._best
        return [
            Row("index", best["ours index"], best["peer index"], 1 / 4, "CPU s"),
            Row("index, unchanged", best["ours unchanged"], best["peer unchanged"], 1 / 2, "CPU s"),
            Row(f"index, {CHANGED_FILES} changed files", best["ours changed"], best["peer changed"], 1 / 5, "CPU s"),
            Row("peak memory of indexing", best["ours index peak"], best["peer index peak"], 1 / 2, "MB"),
            Row("query in process, 10 hits, p50", best["ours query 10 p50"], best["peer query p50"], 1 / 40, "CPU s"),
            Row("query in process, 10 hits, p95", best["ours query 10 p95"], best["peer query p95"], 1 / 40, "CPU s"),
            Row("query in process, 20 hits, p50", best["ours query 20 p50"], best["peer query p50"], 1 / 40, "CPU s"),
            Row("search from the shell", best["ours cli"], best["peer cli"], 1 / 8, "CPU s"),
            Row("… against a bare python", best["ours cli"], best["bare python"], 3, "CPU s"),
            Row("index size against source", best["ours size"], source_mb, 1.5, "MB"),
            Row("(the peer's size)", best["peer size"], source_mb, float("inf"), "MB"),
        ]

    def _run(self, command: list[str | Path]) -> Run:
        environment = {
            **os.environ,
            "LSS_DIR": str(self._peer_home),
            "FINDLING_HOME": str(self._home),
            "FINDLING_CONFIG": os.devnull,
            # Words against words; what meaning costs besides is told by bench/hybrid.py.
            "FINDLING_SEARCH_MODE": "keyword",
            "FINDLING_SEMANTIC_INSTANT": "off",
            "FINDLING_SEMANTIC_REFINE": "never",
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
    show(f"{'':32} {'findling':>10} {'peer':>10} {'ratio':>8} {'bar':>8}")
    for name, ours, theirs, bar, unit in rows:
        ratio = ours / theirs
        verdict = "ok" if ratio <= bar else "MISSED"
        show(f"{name:32} {ours:10.4f} {theirs:10.4f} {ratio:8.3f} {bar:8.3f} {unit:6} {verdict}")


if __name__ == "__main__":
    main()
