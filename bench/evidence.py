"""Questions to chats whose evidence lies in several messages: passages, threads and messages that hits name.

    python bench/evidence.py COLLECTION [--mode keyword] [--refined] [--save FILE] [--beside FILE]

COLLECTION is a folder in BEIR layout whose documents are turns such as `talk/D3:17`, turn 17 of the session `talk/D3`,
with the time as their title: locomo10 is one. Each session is imported as a thread. A passage or a thread is relevant
when it holds evidence, a hit names one message. Every second conversation is `chosen on`, the others are `kept`.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from bench.chats import in_workspace
from bench.threads import talks
from findling.domain.plans import MODES, Plan
from findling.domain.queries import SearchRequest
from findling.domain.records import Thread
from findling.domain.results import Hit
from findling.pipelines.evaluation.evaluation_collections import JudgedCollection, JudgedQuery, read_collection
from findling.ranking.metrics import compare, mean, ndcg, recall
from findling.service.content.chats import WorkspaceChats
from findling.service.engine.engine import Engine

MEASURES = ("passages", "threads", "messages", "R@100")
SHOWN = 100

Turn: TypeAlias = tuple[str, str]
"""The thread and the id of a message."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("collection", type=Path)
    options.add_argument("--mode", choices=MODES, default="hybrid")
    options.add_argument("--refined", action="store_true", help="have the model read everything first")
    options.add_argument("--save", type=Path)
    options.add_argument("--beside", type=Path)
    given = options.parse_args()
    collection = read_collection(given.collection)
    threads = [thread._replace(messages=list(thread.messages)) for thread in talks(collection)]
    with in_workspace() as engine:
        WorkspaceChats(engine.writer).add(threads)
        if given.refined:
            engine.refine()
        values = _asked(engine, collection, threads, given.mode)
    if given.save:
        given.save.write_text(json.dumps(values))
    before = json.loads(given.beside.read_text()) if given.beside else {}
    for kind in sorted({kind for kind, _ in values.values()}, reverse=True):
        own = {qid: measures for qid, (of, measures) in values.items() if of == kind}
        print(f"{kind:19} {len(own):5}", *_figures(own, before), flush=True)


def _asked(
    engine: Engine, collection: JudgedCollection, threads: Sequence[Thread], mode: str
) -> dict[str, tuple[str, list[float]]]:
    """By question, its kind and its measures."""
    held = dict(_held(engine))
    said = {(one.id, message.author, message.at): message.id for one in threads for message in one.messages}
    talks_ = sorted({rid.partition("/")[0] for query in collection.queries for rid in query.grades})
    values = {}
    for query in collection.queries:
        hits = engine.search(SearchRequest(query=query.text, limit=SHOWN, plan=Plan(mode=mode)), refresh=False).hits
        wanted = _wanted(query)
        many = "several" if len(wanted) > 1 else "one"
        half = "kept" if talks_.index(next(iter(query.grades)).partition("/")[0]) % 2 else "chosen on"
        values[query.qid] = f"{many}, {half}", _measures(hits, wanted, held, said)
    return values


def _wanted(query: JudgedQuery) -> set[Turn]:
    turns = [rid.rpartition(":") for rid, grade in query.grades.items() if grade > 0]
    return {(session.replace("/", "-"), str(int(number) - 1)) for session, _, number in turns}


def _held(engine: Engine) -> Iterator[tuple[str, list[Turn]]]:
    """By the id of each passage, the messages in it."""
    store = engine.opened.files.store
    for resource in store.resources():
        document, thread = store.document(resource.rid), resource.rid.split("/")[1]
        assert document is not None
        rows = json.loads(resource.fields["messages"])
        ends = [*[row["start"] - 1 for row in rows[1:]], len(document.text)]
        for chunk in document.chunks:
            inside = [
                row for row, end in zip(rows, ends, strict=True) if row["start"] < chunk.end and end > chunk.start
            ]
            yield f"{chunk.cid:016x}", [(thread, row["id"]) for row in inside]


def _measures(
    hits: Sequence[Hit],
    wanted: set[Turn],
    held: dict[str, list[Turn]],
    said: dict[tuple[str, str, float | None], str],
) -> list[float]:
    """Those of passages, of threads and of the messages that hits name."""
    relevant = dict.fromkeys([cid for cid, turns in held.items() if not wanted.isdisjoint(turns)], 1)
    found = [hit.id for hit in hits]
    threads = [hit.rid.split("/")[1] for hit in hits]
    messages = [f"{thread}:{said.get((thread, hit.author, hit.at))}" for thread, hit in zip(threads, hits, strict=True)]
    return [
        ndcg(found, relevant, 10),
        ndcg(threads, dict.fromkeys([thread for thread, _ in wanted], 1), 10),
        ndcg(messages, dict.fromkeys(map(":".join, wanted), 1), 10),
        recall(found, relevant, SHOWN),
    ]


def _figures(own: dict[str, list[float]], before: dict[str, tuple[str, list[float]]]) -> Iterator[str]:
    for place, name in enumerate(MEASURES):
        values = [measures[place] for measures in own.values()]
        yield f"{name} {mean(values):.4f}"
        if before:
            change = compare(values, [before[qid][1][place] for qid in own])
            yield f"({change.difference:+.4f} [{change.low:+.4f} {change.high:+.4f}])"


if __name__ == "__main__":
    main()
