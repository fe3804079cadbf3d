"""Chats: how well they are found, and what a message costs to import.

    python bench/chats.py COLLECTION [--messages 100000] [--window TOKENS] [--skip-refined]

COLLECTION is a folder in BEIR layout whose documents are conversations: lines `Time: 20260408_08:38` and
`Alice: what she says`. Each becomes a thread of its own, every query is asked with default settings, and threads are
ranked by their best passage. The bar is an NDCG@10 of 0.79.

Then so many messages of one thread are imported in 1, 10 and 100 goes, each into a new workspace. The CPU time of a
message must not depend on how long its thread is already: the bar is 20 % either way of what it is in one go.
"""

from __future__ import annotations

import sys

# A script's own folder comes first on the path; its modules are those of the package `bench`.
sys.path[0] = f"{__file__.rpartition('/')[0] or '.'}/.."

import argparse
import random
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from findling.domain.queries import SearchRequest
from findling.domain.records import Message, Thread
from findling.pipelines.evaluation.evaluation_collections import JudgedCollection, read_collection, read_documents
from findling.ranking.metrics import mean, ndcg
from findling.service.content import chats as service
from findling.service.content.chats import WorkspaceChats
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

BAR_NDCG = 0.79
BAR_COST = 0.20
DEPTH = 50
WORDS = (
    "the a we I you it can will should did deploy server review ticket release coffee lunch meeting failed green red"
    " branch merge later today tomorrow morning thanks sure maybe customer invoice contract draft logo font test slow"
    " fast cache index query page link photo train late early room booked cancelled moved done open closed why how"
).split()
"""What the messages of the second part are made of."""

_TIME = re.compile(r"Time: (\d{8})_(\d\d:\d\d)")
_SAID = re.compile(r"([^:\n]{1,64}): (.*)")


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("collection", type=Path)
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--window", type=int, default=0, help="tokens of a passage, instead of the default")
    options.add_argument("--skip-refined", action="store_true", help="do not have the model read everything")
    given = options.parse_args()
    if given.window:
        service._WINDOW = given.window
    collection = read_collection(given.collection)
    with in_workspace() as engine:
        report = WorkspaceChats(engine.writer).add(threads_of(collection))
        chunks = engine.status().chunks
        print(
            f"{report.threads} threads, {report.added} messages, {chunks} passages, {len(collection.queries)} queries"
        )
        # Without a budget the model reads nothing while a query waits.
        _tell_quality("instant", _ndcg(engine, collection))
        if not given.skip_refined:
            engine.refine()
            _tell_quality("refined", _ndcg(engine, collection))
    if given.messages:
        _measure_cost(given.messages)
    return 0


def threads_of(collection: JudgedCollection) -> Iterator[Thread]:
    """Every document of the collection as a thread."""
    for document in read_documents(collection):
        yield Thread("lihua", document.rid, list(_messages(document.text)), title=document.title)


def _messages(text: str) -> Iterator[Message]:
    at: float | None = None
    said: list[Message] = []
    for line in text.split("\n"):
        if found := _TIME.fullmatch(line.strip()):
            at = datetime.strptime(f"{found[1]} {found[2]}", "%Y%m%d %H:%M").replace(tzinfo=UTC).timestamp()
        elif found := _SAID.match(line):
            said.append(Message(str(len(said)), found[2], found[1], at))
        elif said:
            said[-1] = said[-1]._replace(text=f"{said[-1].text}\n{line}")
    return iter(said)


def _ndcg(engine: Engine, collection: JudgedCollection) -> float:
    scores = []
    for query in collection.queries:
        answer = engine.search(SearchRequest(query=query.text, limit=DEPTH), refresh=False)
        ranking = [hit.rid.split("/")[1] for hit in answer.hits]
        scores.append(ndcg(ranking, query.grades, 10))
    return mean(scores)


def _tell_quality(speed: str, found: float) -> None:
    print(f"NDCG@10 {speed}: {found:.4f} (bar {BAR_NDCG})", flush=True)


def _measure_cost(count: int) -> None:
    """The CPU time of a message, imported with few or many others at once."""
    first = 0.0
    for goes in (1, 10, 100):
        size = count // goes
        with in_workspace() as engine:
            chats = WorkspaceChats(engine.writer)
            costs = []
            for go in range(goes):
                messages = list(made_messages(go * size, size))
                started = time.process_time()
                chats.add([Thread("bench", "talk", messages, title="Talk")])
                costs.append((time.process_time() - started) / size)
        cost = mean(costs)
        first = first or cost
        tenth = max(goes // 10, 1)
        print(
            f"{goes * size:,} messages in {goes:>3} goes: {cost * 1e6:6.1f} µs CPU a message, {cost / first:.2f} of one"
            f" go (bar {1 - BAR_COST:.1f} to {1 + BAR_COST:.1f}); first tenth {mean(costs[:tenth]) * 1e6:.1f},"
            f" last tenth {mean(costs[-tenth:]) * 1e6:.1f}",
            flush=True,
        )


def made_messages(start: int, count: int) -> Iterator[Message]:
    """Messages that are the same for the same numbers."""
    for number in range(start, start + count):
        chance = random.Random(number)
        said = " ".join(chance.choices(WORDS, k=chance.randint(3, 24)))
        # Two minutes between messages, and a night after every two hundred.
        at = 1_767_225_600.0 + number * 120 + number // 200 * 40_000
        yield Message(str(number), said, chance.choice(("Ann", "Bob", "Cem")), at)


@contextmanager
def in_workspace() -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        root = Path(place, "root")
        root.mkdir()
        own = {"store.home": str(Path(place, "home")), "search.refresh": "never", "semantic.refine": "never"}
        own_settings = Settings().override({**own, "semantic.query_budget_ms": 0.0}, "benchmark")
        with open_engine(root, settings=own_settings) as engine:
            yield engine


if __name__ == "__main__":
    sys.exit(main())
