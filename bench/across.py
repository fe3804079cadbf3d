"""What it costs to have a collection in several workspaces instead of one. For collections in BEIR layout.

    python bench/across.py FOLDER [--seeds 2] [--refine]     one collection, split at random into 60, 25, 10 and 5 %
    python bench/across.py FOLDER FOLDER... [--queries 80]   several collections, a workspace each

The peer is findling itself with everything in one workspace. Prints NDCG@10 by words, and by words and meaning (instant
vectors; with --refine a model reads all passages first), of one workspace, of all of them fused, and of what simpler
ways to merge the same answers give: by their scores, and by their ranks. Then the share that each workspace has in the
first ten hits, against its share in those of the single one.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from findling.domain.resources import Resource
from findling.domain.results import SearchAnswer
from findling.pipelines.evaluation.evaluation import MAIN_MEASURE, evaluate_query
from findling.pipelines.evaluation.evaluation_collections import (
    CollectedDocument,
    JudgedQuery,
    read_collection,
    read_documents,
)
from findling.pipelines.lookup.federated import RankedAcross, fuse_across
from findling.service.engine.engine import open_engine
from findling.service.settings.settings import Settings

SHARES = (0.6, 0.25, 0.1, 0.05)
DEPTH = 10
WHOLE = "whole"

Documents = list[tuple[str, CollectedDocument]]
Merge = Callable[[Sequence[SearchAnswer], int], Sequence[RankedAcross]]


class Trial(NamedTuple):
    """Workspaces, what each of them holds, and the queries that are asked of them."""

    parts: Mapping[str, Documents]
    queries: Sequence[tuple[str, JudgedQuery]]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--refine", action="store_true")
    given = parser.parse_args()
    trials = [collections(given.folders, given.queries)]
    if len(given.folders) == 1:
        trials = [split(given.folders[0], given.queries, seed) for seed in range(given.seeds)]
    for trial in trials:
        print(", ".join(f"{name} {len(documents):,}" for name, documents in trial.parts.items()))
        with tempfile.TemporaryDirectory() as place:
            measure(trial, Path(place), refine=given.refine)
    return 0


def split(folder: Path, queries: int, seed: int) -> Trial:
    """One collection, its documents dealt out at random."""
    collection = read_collection(folder, limit=queries)
    documents = [(document.rid, document) for document in read_documents(collection)]
    random.Random(seed).shuffle(documents)
    bounds = [0, *(round(len(documents) * sum(SHARES[: n + 1])) for n in range(len(SHARES)))]
    parts = {
        f"{share:.0%}".replace("%", "pc"): documents[start:end]
        for share, start, end in zip(SHARES, bounds[:-1], bounds[1:], strict=True)
    }
    return Trial(parts, [("", query) for query in collection.queries])


def collections(folders: Iterable[Path], queries: int) -> Trial:
    """A workspace for each collection; ids are told apart by its name."""
    parts: dict[str, Documents] = {}
    asked = []
    for folder in folders:
        collection = read_collection(folder, limit=queries)
        name = collection.name
        parts[name] = [(f"{name}/{document.rid}", document) for document in read_documents(collection)]
        asked += [(f"{name}/", query) for query in collection.queries]
    return Trial(parts, asked)


def measure(trial: Trial, place: Path, *, refine: bool) -> None:
    """Index, ask, and print a line for each way to answer."""
    everything = [entry for documents in trial.parts.values() for entry in documents]
    for name, documents in {WHOLE: everything, **trial.parts}.items():
        fill(name, documents, place, refine=refine)
    part_of = {rid: name for name, documents in trial.parts.items() for rid, _ in documents}
    for mode in ("keyword", "hybrid"):
        answers = {name: ask(name, trial, mode, place, refine=refine) for name in (WHOLE, *trial.parts)}
        whole = [[hit.rid for hit in answer.hits] for answer in answers[WHOLE]]
        print(f"{mode}: one workspace {ndcg(trial, whole):.4f}", end="")
        for name, merge in (("fused", fuse_across), ("by scores", by_scores), ("by ranks", by_ranks)):
            rankings = [
                [one.hit.rid for one in merge([answers[part][n] for part in trial.parts], 2 * DEPTH)]
                for n in range(len(trial.queries))
            ]
            print(f", {name} {ndcg(trial, rankings):.4f}", end="")
            if merge is fuse_across:
                shares = {"one": share(whole, part_of), "fused": share(rankings, part_of)}
        print()
        for part in trial.parts:
            print(f"  {part}: " + ", ".join(f"{told} {found[part]:.1%}" for told, found in shares.items()))


def by_scores(answers: Sequence[SearchAnswer], limit: int) -> list[RankedAcross]:
    """What the scores of the answers alone would make of them."""
    return sorted(_hits(answers), key=lambda one: (-one.hit.score, one.rank, one.answer))[:limit]


def by_ranks(answers: Sequence[SearchAnswer], limit: int) -> list[RankedAcross]:
    """Reciprocal rank fusion: every hit is in one answer only, so the first of each come first."""
    return sorted(_hits(answers), key=lambda one: (one.rank, one.answer))[:limit]


def fill(name: str, documents: Documents, place: Path, *, refine: bool) -> None:
    """Make a workspace of these documents."""
    with open_engine(place, workspace=name, settings=settings(place, refine)) as engine:
        engine.add(
            (Resource(rid=rid, type="document", title=document.title), document.text) for rid, document in documents
        )
        if refine:
            engine.refine()


def ask(name: str, trial: Trial, mode: str, place: Path, *, refine: bool) -> list[SearchAnswer]:
    """The answers of one workspace to all queries."""
    with open_engine(place, workspace=name, settings=settings(place, refine)) as engine:
        return [
            engine.search(query.text, limit=2 * DEPTH, profile=mode, explain=True, refresh=False)
            for _, query in trial.queries
        ]


def settings(place: Path, with_model: bool) -> Settings:
    """Everything in a home of its own; a model that has read nothing is not asked."""
    own = {"store.home": str(place / "home"), "search.refresh": "never", "semantic.query_budget_ms": 0.0}
    return Settings().override(own if with_model else {**own, "semantic.model": "none"}, "benchmark")


def ndcg(trial: Trial, rankings: Sequence[Sequence[str]]) -> float:
    """The mean NDCG@10 of all queries."""
    values = []
    for (prefix, query), ranking in zip(trial.queries, rankings, strict=True):
        judged = query._replace(grades={f"{prefix}{rid}": grade for rid, grade in query.grades.items()})
        values.append(evaluate_query(judged, ranking, gain="linear").measures[MAIN_MEASURE])
    return sum(values) / len(values)


def share(rankings: Iterable[Sequence[str]], part_of: Mapping[str, str]) -> dict[str, float]:
    """The share of each part in the first ten hits."""
    found = Counter(part_of[rid] for ranking in rankings for rid in ranking[:DEPTH])
    return {part: found[part] / found.total() for part in set(part_of.values())}


def _hits(answers: Sequence[SearchAnswer]) -> Iterable[RankedAcross]:
    for number, answer in enumerate(answers):
        for rank, hit in enumerate(answer.hits, start=1):
            yield RankedAcross(number, rank, hit.score, hit)


if __name__ == "__main__":
    sys.exit(main())
