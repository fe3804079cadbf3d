"""Quality of the keyword leg on collections in BEIR layout, through the very path that users run.

    python bench/quality.py FOLDER... [--unit chunk|page] [--set keyword.k1=1.5]

Every document becomes one resource (title and text) in a fresh workspace, every judged query one search with default
settings; the best chunk of a resource decides its rank. Prints the settings that differ from the defaults, NDCG@10,
Recall@100 and CPU milliseconds a query.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path, and this one holds a `keyword` that the standard library would import.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import findling
from findling.service.settings import get_setting, parse_text

Judgements = dict[str, dict[str, int]]
DEPTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--unit", default="chunk", choices=("chunk", "page"))
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", dest="changes")
    arguments = parser.parse_args()
    settings = findling.Settings().override({"keyword.unit": arguments.unit}, "flag --unit")
    for change in arguments.changes:
        name, _, text = change.partition("=")
        settings = settings.override({name: parse_text(get_setting(name), text, "flag --set")}, "flag --set")
    print("settings:", ", ".join(arguments.changes) or "default", f"(unit {arguments.unit})")
    print(
        f"{'collection':24} {'documents':>9} {'chunks':>8} {'queries':>7} {'NDCG@10':>8} {'R@100':>7} {'ms/query':>8}"
    )
    for folder in arguments.folders:
        print(measure(folder, settings), flush=True)


def measure(folder: Path, settings: findling.Settings) -> str:
    """One row of the table."""
    judgements = read_judgements(folder / "qrels" / "test.tsv")
    queries = {row["_id"]: row["text"] for row in read_lines(folder / "queries.jsonl")}
    with tempfile.TemporaryDirectory() as home:
        settings = settings.override({"store.home": home, "search.refresh": "never"}, "bench")
        with findling.open(folder, settings=settings) as engine:
            documents = engine.add(
                (findling.Resource(rid=row["_id"], type="document", title=row.get("title") or ""), row["text"])
                for row in read_lines(folder / "corpus.jsonl")
            )
            started = time.process_time()
            runs = {query: search(engine, queries[query]) for query in judgements}
            milliseconds = 1000 * (time.process_time() - started) / len(runs)
            chunks = engine.status().chunks
    ndcg = sum(ndcg_at_10(runs[query], judgements[query]) for query in runs) / len(runs)
    recall = sum(recall_at_100(runs[query], judgements[query]) for query in runs) / len(runs)
    return f"{folder.name:20} {documents:9} {chunks:8} {len(runs):7} {ndcg:8.4f} {recall:7.4f} {milliseconds:8.2f}"


def search(engine: findling.Engine, query: str) -> list[str]:
    """The ids of the resources found, best first, each once."""
    return list(dict.fromkeys(hit.rid for hit in engine.search(query, limit=DEPTH)))


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def read_judgements(path: Path) -> Judgements:
    judgements: Judgements = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        judgements.setdefault(query, {})[document] = int(grade)
    return judgements


def ndcg_at_10(run: list[str], grades: dict[str, int]) -> float:
    gain = sum(_gain(grades.get(rid, 0), rank) for rank, rid in enumerate(run[:10]))
    ideal = sum(_gain(grade, rank) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:10]))
    return gain / ideal if ideal else 0.0


def recall_at_100(run: list[str], grades: dict[str, int]) -> float:
    relevant = {rid for rid, grade in grades.items() if grade > 0}
    return len(relevant.intersection(run[:100])) / len(relevant) if relevant else 0.0


def _gain(grade: int, rank: int) -> float:
    return float((2**grade - 1) / math.log2(rank + 2))


if __name__ == "__main__":
    main()
