"""What a minus is worth: questions that exclude something in words, and the same questions with the minus instead.

    python bench/exclusions.py FOLDER [--refine]

FOLDER is a collection in BEIR layout whose queries exclude something ("…, excluding X", "… without X"). The peer is
findling itself with the query as it was written. Rewriting is mechanical: the clause is taken out of the query and put
behind it as -"X". Prints NDCG@10 by words, and by words and meaning; with --refine the model reads all passages first.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from findling.domain.resources import Resource
from findling.pipelines.evaluation.evaluation import evaluate_query
from findling.pipelines.evaluation.evaluation_collections import JudgedCollection, read_collection, read_documents
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

SAYS = r"(?:excluding|exclude|not including|do not mention|don't mention|except for|avoiding|avoid|without(?: \w+ing)?)"
CLAUSES = (
    re.compile(rf"\s*\((?:but )?{SAYS}\s+([^()]*)\)", re.IGNORECASE),
    re.compile(rf",?\s*(?:but )?{SAYS}\s+([^,.?()]*)", re.IGNORECASE),
)


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--refine", action="store_true")
    given = options.parse_args()
    collection = read_collection(given.folder)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place, "root")
        root.mkdir()
        own = {"store.home": str(Path(place, "home")), "search.refresh": "never", "semantic.query_budget_ms": 0.0}
        with open_engine(root, settings=Settings().override(own, "benchmark")) as engine:
            engine.add(
                (Resource(rid=document.rid, type="document", title=document.title), document.text)
                for document in read_documents(collection)
            )
            if given.refine:
                engine.refine()
            print(f"{collection.name}: {len(collection.queries)} queries; vectors {engine.reading()}")
            for profile in ("keyword", "hybrid"):
                plain, minus = (_ndcg(engine, collection, profile, write) for write in (str, with_minus))
                print(f"{profile}: as written {plain:.4f}, with minus {minus:.4f}, ratio {minus / plain:.3f}")
    return 0


def with_minus(question: str) -> str:
    """The question without what it excludes in words, and that behind a minus."""
    excluded: list[str] = []
    for clause in CLAUSES:
        excluded += [found.strip() for found in clause.findall(question)]
        question = clause.sub(" ", question)
    return " ".join([*question.split(), *[f'-"{what}"' for what in excluded if what]])


def _ndcg(engine: Engine, collection: JudgedCollection, profile: str, write: Callable[[str], str]) -> float:
    total = 0.0
    for query in collection.queries:
        answer = engine.search(write(query.text), refresh=False, limit=100, profile=profile)
        ranking = list(dict.fromkeys(hit.rid for hit in answer))
        total += evaluate_query(query, ranking, gain="linear").measures["NDCG@10"]
    return total / len(collection.queries)


if __name__ == "__main__":
    sys.exit(main())
