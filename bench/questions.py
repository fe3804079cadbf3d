"""Questions in one process, by words and by both, beside SQLite's FTS5 on the same passages.

    python bench/questions.py [--work DIR] [--every 4] [--rounds 5]

Each round starts a new process for each way and asks the 50 queries of `bench/keywords.py`, each once, ten hits.
Printed are CPU milliseconds of all threads, p50 and p95, of the best round. All settings are the default, but the model
reads nothing. FTS5 ranks ids by BM25 and makes neither lines nor receipts: it is a floor, not a rival. `again` asks the
same queries a second time in the same process.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
from contextlib import closing
from pathlib import Path

import findling
from bench.corpus import make_tree
from bench.keywords import QUERIES

ASK = """
import json, sys, time
import findling
tree, mode, queries = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
with findling.open(tree) as engine:
    engine.search("warm up", mode=mode, refresh=False)
    for name in ("", " again"):
        times = []
        for query in queries:
            before = time.process_time()
            engine.search(query, mode=mode, refresh=False)
            times.append(time.process_time() - before)
        print(json.dumps([mode + name, times]))
"""
PEER = """
import json, re, sqlite3, sys, time
connection, queries = sqlite3.connect(sys.argv[1]), json.loads(sys.argv[3])
find = "SELECT rowid, bm25(passages) FROM passages WHERE passages MATCH ? ORDER BY bm25(passages) LIMIT 10"
times = []
for query in ["warm up", *queries]:
    words = " OR ".join('"' + word + '"' for word in re.findall(r"[a-zA-Z0-9_]+", query))
    before = time.process_time()
    connection.execute(find, (words,)).fetchall()
    times.append(time.process_time() - before)
print(json.dumps(["FTS5", times[1:]]))
"""
BARS = {"keyword": (2.5, 3.5), "hybrid": (6.0, 9.0)}
"""Milliseconds for some 20,000 and 78,000 passages."""


def main() -> None:
    """Index the tree, ask in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "findling-bench")
    parser.add_argument("--every", type=int, default=4, help="index every n-th file of the tree only")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    tree, home = make_tree(given.work, given.every), given.work / f"questions-{given.every}"
    environ = {
        **os.environ,
        "FINDLING_HOME": str(home),
        "FINDLING_CONFIG": os.devnull,
        "FINDLING_SEMANTIC_REFINE": "never",
        "FINDLING_SEMANTIC_QUERY_BUDGET_MS": "0",
    }
    os.environ.update(environ)
    passages = _prepare(tree, home)
    best: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        for program, place, mode in ((ASK, tree, "keyword"), (ASK, tree, "hybrid"), (PEER, home / "peer.db", "")):
            command = [sys.executable, "-P", "-c", program, str(place), mode, json.dumps(QUERIES)]
            done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True)
            for name, times in map(json.loads, done.stdout.splitlines()):
                best[name] = min(best.get(name, times), times, key=statistics.median)
    load = os.getloadavg()[0]
    print(f"{passages:,} passages, {len(QUERIES)} queries, best of {given.rounds} rounds, load {load:.1f}")
    peer = statistics.median(best["FTS5"])
    for name, times in best.items():
        p50, p95 = statistics.median(times), sorted(times)[int(len(times) * 0.95)]
        bars = BARS.get(name.split()[0])
        bar = f"bar {bars[passages > 50_000]:.1f}" if bars else ""
        print(f"{name:16} p50 {p50 * 1e3:6.2f} ms  p95 {p95 * 1e3:6.2f} ms  {p50 / peer:6.2f} of FTS5  {bar}")


def _prepare(tree: Path, home: Path) -> int:
    """Index the tree, and its passages with FTS5; the number of passages."""
    with findling.open(tree) as engine:
        engine.index()
        store = engine.writer.store
        cids = sorted(store.chunk_ids())
        with closing(sqlite3.connect(home / "peer.db")) as connection, connection:
            connection.execute("DROP TABLE IF EXISTS passages")
            connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text, content='', tokenize='porter')")
            for start in range(0, len(cids), 1_000):
                found = store.chunks(cids[start : start + 1_000]).items()
                rows = [(cid, re.sub(r"\0", " ", chunk.text)) for cid, chunk in found]
                connection.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", rows)
        return len(cids)


if __name__ == "__main__":
    main()
