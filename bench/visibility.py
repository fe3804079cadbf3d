"""What a caller finds who may see 50, 10, 2 or 1 percent of a collection, all of it about one topic, and what it costs.

    python bench/visibility.py COLLECTION [--queries N]

COLLECTION is a folder in the format of BEIR. The vectors nearest to a random document are what may be seen, which is
the hardest case for an index that filters afterwards. Recall is that of the ten nearest passages, against all cosines
of what may be seen, reckoned in full with numpy. The peer for cost is the owner of the same workspace.
"""

from __future__ import annotations

import sys

sys.path[0] = ""  # not this folder: bench/keyword.py would stand in for a module of the standard library

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

import findling
from findling.domain.resources import Resource
from findling.service.index.embeddings import instant_embedder
from findling.service.settings.settings import load_settings

SHARES = (0.5, 0.1, 0.02, 0.01)
SEED = 7


def main() -> int:
    """Print one line for each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    documents = [*_lines(given.collection / "corpus.jsonl")]
    queries = [one["text"] for one in _lines(given.collection / "queries.jsonl")][: given.queries]
    embedder = instant_embedder()
    texts = [f"{one.get('title', '')}\n{one['text']}" for one in documents]
    vectors = np.concatenate([embedder.embed(texts[at : at + 500]) for at in range(0, len(texts), 500)])
    print(f"{len(documents):,} documents, {len(queries)} queries, instant vectors, seed {SEED}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tree").mkdir()
        settings = load_settings(folder).override(_own(folder), "bench")
        with findling.open(Path(folder) / "tree", settings=settings) as engine:
            visible = _visible(vectors)
            engine.add(_resource(number, one, visible) for number, one in enumerate(documents))
            owner = _cost(lambda query: engine.search(query, refresh=False), queries)
            print(f"owner: {owner * 1000:.1f} ms CPU a query")
            for share in SHARES:
                _report(engine, share, queries, owner)
    return 0


def _own(folder: str) -> dict[str, object]:
    # Nothing is read during a search, which a caller does not have done either.
    return {"store.home": str(Path(folder) / "home"), "semantic.query_budget_ms": 0.0}


def _lines(file: Path) -> Iterator[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _visible(vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> dict[float, set[int]]:
    """For each share the documents nearest to one of them."""
    middle = random.Random(SEED).randrange(len(vectors))
    order = np.argsort(-(vectors @ vectors[middle]))
    return {share: set(order[: int(len(vectors) * share)].tolist()) for share in SHARES}


def _resource(number: int, document: dict[str, str], visible: dict[float, set[int]]) -> tuple[Resource, str]:
    principals = tuple(_principal(share) for share in SHARES if number in visible[share])
    title = document.get("title", "")
    return Resource(rid=f"doc:{number}", type="document", title=title, visibility=principals), document["text"]


def _principal(share: float) -> str:
    return f"group:{share * 100:g}percent"


def _report(engine: findling.Engine, share: float, queries: list[str], owner: float) -> None:
    viewer = engine.as_caller(_principal(share))
    started = time.process_time()
    viewer.search(queries[0])
    first = time.process_time() - started
    legs = engine.opened.reader(viewer.principals).retrievers
    assert legs.meaning is not None
    (space,) = legs.meaning().spaces
    allowed = engine.opened.views.sight(viewer.principals or ()).changes.keys()
    recalls = []
    for query in queries:
        vector = space.embedder.embed([query], "query")[0]
        hits = space.leg.search(vector, 10).hits
        # Every row of what may be seen, asked for by name: the cosines come in full.
        cids = [chunk.cid for _, document in engine._files.store.documents(allowed) for chunk in document.chunks]
        scores = space.leg.search(vector, 0, also=cids).scores
        best = sorted(scores, key=lambda cid: (-scores[cid], cid))[:10]
        recalls.append(len(set(best) & {cid for cid, _ in hits}) / max(1, len(best)))
    cost = _cost(lambda query: viewer.search(query), queries)
    print(
        f"{share:>4.0%} visible, {legs.keyword.size():,} passages: recall@10 {sum(recalls) / len(recalls):.3f}, "
        f"{cost * 1000:.1f} ms CPU a query, {cost / owner:.2f} of the owner's; first search {first:.2f} s"
    )


def _cost(ask: Callable[[str], object], queries: list[str]) -> float:
    """Median CPU seconds of a query, each asked three times, of which the best counts."""
    ask(queries[0])
    return median(min(_timed(ask, query) for _ in range(3)) for query in queries)


def _timed(ask: Callable[[str], object], query: str) -> float:
    started = time.process_time()
    ask(query)
    return time.process_time() - started


if __name__ == "__main__":
    raise SystemExit(main())
