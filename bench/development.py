"""The development sets in one table: NDCG@10 by words, instant and read, from indexes that are kept between runs.

    python bench/development.py HOME FOLDER... [--only words instant read] [--limit-queries N] [--set NAME=VALUE]
                                [--save FILE] [--beside FILE] [--openers TEXT...] [--upper] [--measure R@5]

Each FOLDER is a collection in BEIR layout. HOME keeps one index for each, so that the model reads a passage once; copy
it for a state of the code that writes other files. `--beside` prints the difference from a saved table, with its 95 %
interval by a paired bootstrap. Instant is asked of the same index without the vectors of the model.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from findling.domain.resources import Resource
from findling.faces.cli.request.options import apply_changes
from findling.pipelines.evaluation.evaluation import MAIN_MEASURE, evaluate_query
from findling.pipelines.evaluation.evaluation_collections import JudgedCollection, read_collection, read_documents
from findling.ranking.metrics import compare, mean
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

RUNS: dict[str, dict[str, object]] = {
    "words": {"search.mode": "keyword"},
    "instant": {"semantic.query_budget_ms": 0.0, "semantic.model": "none"},
    "read": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--limit-queries", type=int)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--measure", default=MAIN_MEASURE)
    parser.add_argument("--openers", nargs="*", default=[""], help="asked before each question")
    parser.add_argument("--upper", action="store_true", help="questions in capitals")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--beside", type=Path)
    given = parser.parse_args()
    former = json.loads(given.beside.read_text()) if given.beside else {}
    table: dict[str, dict[str, dict[str, float]]] = {}
    for folder in given.folders:
        collection = read_collection(folder, limit=given.limit_queries)
        prepare(given.home, collection, "read" in given.only)
        row = table.setdefault(collection.name, {})
        for label in given.only:
            started = time.process_time()
            row[label] = ask(given, collection, label)
            spent = 1000 * (time.process_time() - started) / len(row[label])
            print(
                line(collection.name, label, row[label], former.get(collection.name, {}).get(label), spent), flush=True
            )
            if given.save:
                given.save.write_text(json.dumps(table))


def line(name: str, label: str, values: dict[str, float], before: dict[str, float] | None, spent: float) -> str:
    text = f"{name:20} {label:8} {len(values):6,} {mean(list(values.values())):.4f}"
    if before:
        both = [qid for qid in values if qid in before]
        outcome = compare([values[qid] for qid in both], [before[qid] for qid in both])
        text += f"  was {mean([before[qid] for qid in both]):.4f}  {outcome.difference:+.4f}"
        text += f" [{outcome.low:+.4f} {outcome.high:+.4f}]"
    return f"{text}  {spent:5.1f} ms"


def opened(home: Path, collection: JudgedCollection, changed: dict[str, object], more: Iterable[str] = ()) -> Engine:
    root = home / "roots" / collection.name
    root.mkdir(parents=True, exist_ok=True)
    own = {
        "workspace.name": "",
        "search.refresh": "never",
        "semantic.refine": "never",
        "store.home": str(home / "home"),
    }
    return open_engine(root, settings=apply_changes(Settings().override({**own, **changed}, "bench"), more))


def prepare(home: Path, collection: JudgedCollection, read: bool) -> None:
    """Index and read what is not there yet."""
    marks = home / "roots"
    with opened(home, collection, {}) as engine:
        if not (indexed := marks / f"{collection.name}.indexed").exists():
            engine.add(resources(collection))
            indexed.touch()
        if read and not (done := marks / f"{collection.name}.read").exists():
            engine.refine()
            done.touch()


def resources(collection: JudgedCollection) -> Iterator[tuple[Resource, str]]:
    for document in read_documents(collection):
        yield Resource(rid=document.rid, type="document", title=document.title), document.text


def ask(given: argparse.Namespace, collection: JudgedCollection, label: str) -> dict[str, float]:
    values: dict[str, float] = {}
    with opened(given.home, collection, RUNS[label], given.set) as engine:
        engine.search("warm up", limit=30, refresh=False)
        if engine.opened.lazy("graph").is_able:
            with engine.opened.files.writing():
                engine.opened.lazy("graph").level()
        for opener in given.openers:
            for query in collection.queries:
                text = f"{opener} {query.text}".strip()
                answer = engine.search(text.upper() if given.upper else text, limit=30, refresh=False)
                values[f"{opener}\t{query.qid}" if opener else query.qid] = evaluate_query(
                    query, [hit.rid for hit in answer], gain="linear"
                ).measures[given.measure]
    return values


if __name__ == "__main__":
    main()
