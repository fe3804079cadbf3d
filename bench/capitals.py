"""What a collection loses when its questions are shouted: NDCG@10 as they are, and in capitals.

    python bench/capitals.py FOLDER... [--limit-queries N] [--speed instant]

Each FOLDER is a collection in BEIR layout. Every question is asked twice of one index, by words alone and by words and
meaning. Questions with an identifier (`get_user`, `getUser`, `os.path`) are left out: in capitals it is another name.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
import re
import tempfile
from pathlib import Path

from findling.pipelines.evaluation.evaluation import MAIN_MEASURE
from findling.ranking.metrics import mean
from findling.service.export.evaluating import EvaluationPlan, evaluate
from findling.service.settings.settings import Settings

IDENTIFIER = re.compile(r"_|[a-z]{2}\.[a-z]{2}|[a-z][A-Z]")
SHOUTED = "#shouted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--limit-queries", type=int)
    parser.add_argument("--speed", default="instant")
    given = parser.parse_args()
    for folder in given.folders:
        with tempfile.TemporaryDirectory() as place:
            twice = Path(place) / folder.name
            kept = ask_twice(folder, twice, given.limit_queries)
            plan = EvaluationPlan(profiles=("keyword", "hybrid"), speed=given.speed)
            found = evaluate(twice, plan, Settings())
        for run in found.runs:
            values = run.values(MAIN_MEASURE)
            plain = [value for qid, value in values.items() if not qid.endswith(SHOUTED)]
            shouted = [value for qid, value in values.items() if qid.endswith(SHOUTED)]
            print(
                f"{folder.name:20} {run.label:18} {kept:6,} questions  as they are {mean(plain):.4f}"
                f"  in capitals {mean(shouted):.4f}  {mean(shouted) - mean(plain):+.4f}",
                flush=True,
            )


def ask_twice(folder: Path, twice: Path, limit: int | None) -> int:
    """A collection with every question twice, and how many questions that are."""
    (twice / "qrels").mkdir(parents=True)
    (twice / "corpus.jsonl").symlink_to((folder / "corpus.jsonl").resolve())
    judged = (folder / "qrels" / "test.tsv").read_text().splitlines()
    asked = {line.split("\t")[0] for line in judged[1:]}
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines() if line.strip()]
    kept = [one for one in queries if str(one["_id"]) in asked and not IDENTIFIER.search(one["text"])][:limit]
    loud = [{**one, "_id": f"{one['_id']}{SHOUTED}", "text": one["text"].upper()} for one in kept]
    (twice / "queries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in (*kept, *loud)))
    names = {str(one["_id"]) for one in kept}
    rows = [line for line in judged[1:] if line.split("\t")[0] in names]
    repeated = [line.replace("\t", f"{SHOUTED}\t", 1) for line in rows]
    (twice / "qrels" / "test.tsv").write_text("\n".join([judged[0], *rows, *repeated]) + "\n")
    return len(kept)


if __name__ == "__main__":
    main()
