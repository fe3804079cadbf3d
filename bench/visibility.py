"""Callers who may see 50, 10, 2 or 1 percent of a collection: what they find, and what an edit costs them.

    python bench/visibility.py COLLECTION… [--queries N] [--passages N] [--only-edits]

A COLLECTION is a folder in the format of BEIR; several count as one. The vectors nearest to a random document are what
may be seen, which is the hardest case for an index that filters afterwards. Recall is that of the ten nearest passages,
against all cosines of what may be seen, reckoned in full with numpy. The peer for cost is the owner of the workspace.

The second part, of N passages, has 1, 5 and 20 callers, then 200 classes of visibility. It prints by how much CPU the
next search of a caller exceeds a search without a write before it, after an edit and after changes of rights.
"""

from __future__ import annotations

import sys

sys.path[0] = ""  # the folder above: its package is `bench`

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

import findling
from findling.domain.resources import Resource
from findling.service.index.model_choice import instant_embedder
from findling.service.settings.settings import load_settings

SHARES = (0.5, 0.1, 0.02, 0.01)
SEED = 7


def main() -> int:
    """Print one line for each share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, nargs="+")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--only-edits", action="store_true")
    given = parser.parse_args()
    documents = [one for folder in given.collections for one in _lines(folder / "corpus.jsonl") if one["text"].strip()]
    queries = [one["text"] for one in _lines(given.collections[0] / "queries.jsonl")][: given.queries]
    if not given.only_edits:
        _report_finds(documents, queries)
    random.Random(SEED).shuffle(documents)
    for classes, callers in ((1, 1), (5, 5), (20, 20), (200, 20)):
        _report_edits(documents[: given.passages], queries, classes, callers)
    return 0


def _report_finds(documents: list[dict[str, str]], queries: list[str]) -> None:
    embedder = instant_embedder()
    texts = [f"{one.get('title', '')}\n{one['text']}" for one in documents]
    vectors = np.concatenate([embedder.embed(texts[at : at + 500]) for at in range(0, len(texts), 500)])
    print(f"{len(documents):,} documents, {len(queries)} queries, instant vectors, seed {SEED}")
    with _workspace() as engine:
        visible = _visible(vectors)
        engine.add(_resource(number, one, visible) for number, one in enumerate(documents))
        owner = _cost(lambda query: engine.search(query, refresh=False), queries)
        print(f"owner: {owner * 1000:.1f} ms CPU a query")
        for share in SHARES:
            _report(engine, share, queries, owner)


@contextmanager
def _workspace() -> Iterator[findling.Engine]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tree").mkdir()
        # Nothing is read during a search, which a caller does not have done either.
        own = {"store.home": str(Path(folder) / "home"), "semantic.query_budget_ms": 0.0}
        with findling.open(Path(folder) / "tree", settings=load_settings(folder).override(own, "bench")) as engine:
            yield engine


def _report_edits(documents: list[dict[str, str]], queries: list[str], classes: int, callers: int) -> None:
    """Half of all is of the first class; each caller sees all classes but one, so that no two see the same."""

    def resource(number: int, audience: str, more: str = "") -> tuple[Resource, str]:
        given = documents[number % len(documents)]
        kept = Resource(rid=f"doc:{number}", type="document", title=given.get("title", ""), visibility=(audience,))
        return kept, given["text"] + more

    with _workspace() as engine:
        audiences = [f"group:{0 if number % 2 else number // 2 % classes}" for number in range(len(documents))]
        engine.add(resource(number, audience) for number, audience in enumerate(audiences))
        owner = _cost(lambda query: engine.search(query, refresh=False), queries[:20])
        seen = [[one for one in range(classes) if one != caller + 1] for caller in range(callers)]
        viewers = [engine.as_caller(f"user:{who}", *map("group:{}".format, some)) for who, some in enumerate(seen)]
        firsts = [_timed(viewer.search, queries[0]) for viewer in viewers]
        usual = median(_cost(viewer.search, queries[:20]) for viewer in viewers[:3])
        print(
            f"{classes} classes, {callers} callers, {len(documents):,} passages: {usual * 1000:.1f} ms CPU a query, "
            f"{usual / owner:.2f} of the owner's; first search of the first caller {firsts[0]:.2f} s, "
            f"of the latest {firsts[-1] * 1000:.0f} ms"
        )
        changes: dict[str, Callable[[int], object]] = {
            "an edit": lambda turn: engine.add([resource(101 + 2 * turn, "group:0", f" edit {turn}")]),
            "a new resource": lambda turn: engine.add([resource(len(documents) + turn, "group:0")]),
            "another list": lambda turn: engine.add([resource(301 + 2 * turn, "user:nobody")]),
            "a revoked right": lambda turn: engine.permissions.deny(f"doc:{501 + 2 * turn}", "everyone"),
            "another group": lambda turn: engine.permissions.join("user:0", f"group:new{turn}"),
            "a deletion": lambda turn: engine.writer.put((), [f"doc:{701 + 2 * turn}"]),
        }
        for name, change in changes.items():
            nexts, others = [], []
            for turn in range(7):
                query = queries[turn % 20]
                known = [min(_timed(viewer.search, query) for _ in range(3)) for viewer in viewers[:3]]
                change(turn)
                engine.search(query, refresh=False)  # the owner's own legs are level then
                more = [_timed(viewer.search, query) - cost for viewer, cost in zip(viewers, known, strict=False)]
                nexts.append(more[0])
                others += more[1:]
            told = f", of another one by {median(others) * 1000:.0f} ms" if others else ""
            print(f"  {name}: the next search costs {median(nexts) * 1000:.0f} ms CPU more{told}")
        print(
            f"  views on disk: {_bytes(engine.home / 'views') / _bytes(engine.home / 'keyword'):.1f} of the owner's leg"
        )


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


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
    legs = engine.opened.at(viewer.principals)
    assert legs.meaning is not None
    (space,) = legs.meaning().spaces
    allowed = engine.opened.views.sight(viewer.principals or ()).numbers
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
