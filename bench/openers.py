"""What a collection loses when its questions are asked politely: NDCG@10 alone, and behind openers such as "how do I".

    python bench/openers.py HOME FOLDER... [--language en|de|tr] [--held-back] [--only words instant read]
                            [--limit-queries N]

Each FOLDER is a collection in BEIR layout whose questions are in that language; HOME keeps the indexes, as
`bench/development.py` does, and may be the same. Every question is asked alone and behind each opener of
`data/openers.toml`: six in English and three in German and Turkish. `--held-back` asks as many others, on which nothing
was tuned. Default settings. It prints the fall for each collection, the worst opener, and the mean over collections.
The bar: .005 in the mean, .01 on any collection.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import tomllib
from collections import defaultdict
from pathlib import Path

from bench.development import RUNS, opened, prepare
from findling.pipelines.evaluation.evaluation import MAIN_MEASURE, evaluate_query
from findling.pipelines.evaluation.evaluation_collections import JudgedCollection, read_collection
from findling.ranking.metrics import mean
from findling.service.engine.engine import Engine

OPENERS = tomllib.loads((Path(__file__).parent / "data" / "openers.toml").read_text("utf-8"))
HITS = 30


def main() -> None:
    """Ask every question alone and behind every opener, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--language", choices=list(OPENERS), default="en")
    parser.add_argument("--held-back", action="store_true", help="the openers that nobody tunes with")
    parser.add_argument("--only", nargs="+", choices=list(RUNS), default=["words", "instant"])
    parser.add_argument("--limit-queries", type=int)
    given = parser.parse_args()
    which = "held_back" if given.held_back else "seen"
    openers = OPENERS[given.language][which]
    print(f"{len(openers)} openers, {given.language}, {which}")
    falls: dict[str, list[float]] = defaultdict(list)
    for folder in given.folders:
        collection = read_collection(folder, limit=given.limit_queries)
        prepare(given.home, collection, "read" in given.only)
        for label in given.only:
            changed: dict[str, object] = {**RUNS[label]}
            with opened(given.home, collection, changed) as engine:
                engine.search("warm up", limit=HITS, refresh=False)
                alone = ask(engine, collection, "")
                behind = {opener: ask(engine, collection, opener) for opener in openers}
            falls[label].append(alone - mean(list(behind.values())))
            worst = min(behind, key=lambda opener: behind[opener])
            print(
                f"{collection.name:20} {label:8} {len(collection.queries):6,} questions  alone {alone:.4f}  behind"
                f" {mean(list(behind.values())):.4f}  {-falls[label][-1]:+.4f}  worst {behind[worst]:.4f} ({worst})",
                flush=True,
            )
    for label, own in falls.items():
        print(f"{'mean':20} {label:8} {len(own)} collections  {-mean(own):+.4f}, worst {-max(own):+.4f}", flush=True)


def ask(engine: Engine, collection: JudgedCollection, opener: str) -> float:
    """The mean measure of the questions behind an opener."""
    values = []
    for query in collection.queries:
        answer = engine.search(f"{opener} {query.text}".strip(), limit=HITS, refresh=False)
        outcome = evaluate_query(query, [hit.rid for hit in answer], gain="linear")
        values.append(outcome.measures[MAIN_MEASURE])
    return mean(values)


if __name__ == "__main__":
    main()
