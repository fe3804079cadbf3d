"""Threads of chats: how well the right ones are found, by their best passage and by several passages together.

    python bench/threads.py COLLECTION [--mode hybrid] [--split test] [--refined]

COLLECTION is a folder in BEIR layout. Its documents are conversations as in `bench/chats.py`, or turns such as
`talk/D3:17`, turn 17 of the session `talk/D3`, with the time as their title. A session is relevant when one of its
turns is. `search.group=thread` ranks by the best passage. The other ways pool the strengths of a thread's passages,
which receipts tell. The digest of its text puts a query into one of two halves: choose a way on the first, and report
the second.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from math import exp
from pathlib import Path

from bench.chats import in_workspace, threads_of
from findling.domain.plans import MODES, Plan
from findling.domain.queries import SearchRequest
from findling.domain.records import Message, Thread
from findling.domain.results import Hit
from findling.pipelines.evaluation.evaluation_collections import (
    CollectedDocument,
    JudgedCollection,
    JudgedQuery,
    read_collection,
    read_documents,
)
from findling.ranking.metrics import mean, ndcg, recall, reciprocal_rank
from findling.service.content.chats import WorkspaceChats

PASSAGES = 60
"""Best passages of an answer that count."""

POOLINGS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "best passage": lambda own: own[0],
    "sum": sum,
    "1, 1/10, 1/20": lambda own: sum([weight * one for weight, one in zip((1, 0.1, 0.05), own, strict=False)]),
    "1, 1/2, 1/4": lambda own: sum([weight * one for weight, one in zip((1, 0.5, 0.25), own, strict=False)]),
    "norm 6": lambda own: sum([one**6 for one in own]),
    "norm 8": lambda own: sum([one**8 for one in own]),
    "log-sum 0.1": lambda own: sum([exp(one / 0.1) for one in own]),
    "log-sum 0.2": lambda own: sum([exp(one / 0.2) for one in own]),
}
"""Ways to pool the strengths of a thread's passages, best first, as shares of the best strength of the answer."""

_UNMOVED = ("order", "scale")
"""Steps that bring scores into line and tell nothing of a passage."""

_TURN = re.compile(r"(.+):\d+")
_TIME = "%I:%M %p on %d %B, %Y"


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("collection", type=Path)
    options.add_argument("--mode", choices=MODES, default="hybrid")
    options.add_argument("--split", help="file of judgements, instead of `test`")
    options.add_argument("--refined", action="store_true", help="have the model read everything first")
    given = options.parse_args()
    collection = read_collection(given.collection, split=given.split)
    with in_workspace() as engine:
        report = WorkspaceChats(engine.writer).add(talks(collection))
        if given.refined:
            engine.refine()
        print(f"{report.threads} threads, {report.added} messages, {len(collection.queries)} queries")
        rows: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
        for query in collection.queries:
            request = SearchRequest(query=query.text, limit=PASSAGES, plan=Plan(mode=given.mode))
            said = _strengths(engine.search(request, refresh=False).hits)
            for name, pool in POOLINGS.items():
                ranking = sorted(said, key=lambda thread: -pool(said[thread]))
                rows.setdefault((_half(query), name), []).append(_measures(ranking, query))
    for half, told in enumerate(("chosen on", "kept")):
        for name in POOLINGS:
            found = rows[half, name]
            one, two, three = map(mean, zip(*found, strict=True))
            print(f"{told:9} {len(found):5} {name:13} NDCG@10 {one:.4f} R@5 {two:.4f} MRR@10 {three:.4f}", flush=True)
    return 0


def _strengths(hits: Sequence[Hit]) -> dict[str, list[float]]:
    """The strengths of passages by thread, in the order of the hits, as shares of the best."""
    said: dict[str, list[float]] = {}
    for hit in hits:
        strength = sum([part.value for part in hit.receipt.parts])
        for step in hit.receipt.steps:
            strength *= 1.0 if step.name in _UNMOVED else step.factor
        said.setdefault(hit.rid.split("/")[1], []).append(strength)
    best = max([own[0] for own in said.values()], default=0.0) or 1.0
    return {thread: [strength / best for strength in own] for thread, own in said.items()}


def _half(query: JudgedQuery) -> int:
    return sha256(query.text.encode()).digest()[-1] % 2


def _measures(ranking: Sequence[str], query: JudgedQuery) -> tuple[float, float, float]:
    grades = dict.fromkeys([_session(rid) for rid, grade in query.grades.items() if grade > 0], 1)
    return ndcg(ranking, grades, 10), recall(ranking, grades, 5), reciprocal_rank(ranking, grades, 10)


def _session(rid: str) -> str:
    """The name of the thread that a document is, or is a turn of."""
    turn = _TURN.fullmatch(rid)
    return turn[1].replace("/", "-") if turn else rid


def talks(collection: JudgedCollection) -> Iterator[Thread]:
    """The conversations of a collection, each a thread."""
    first = next(read_documents(collection))
    if _session(first.rid) == first.rid:
        yield from threads_of(collection)
        return
    for session, turns in groupby(read_documents(collection), key=lambda turn: _session(turn.rid)):
        yield Thread("talk", session, _messages(list(turns)))


def _messages(turns: Sequence[CollectedDocument]) -> list[Message]:
    """The turns of a session, a minute apart."""
    begin = datetime.strptime(turns[0].title, _TIME).replace(tzinfo=UTC).timestamp()
    said = [turn.text.partition(": ") for turn in turns]
    return [Message(str(at), text, author, begin + 60 * at) for at, (author, _, text) in enumerate(said)]


if __name__ == "__main__":
    sys.exit(main())
