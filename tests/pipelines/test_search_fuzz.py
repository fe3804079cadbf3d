"""No query is an error: generated ones of every kind through hybrid search, as users run it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.plans import FUSIONS, Plan
from findling.text.analysis.stemming import function_words
from tests.counts import sample, tries
from tests.text.query_grammar import SENTENCES, any_query

QUERIES = tries(20_000, short=400)
NOTES = (
    "The connection pool of kubernetes waits for redis; a timeout ends it.",
    "def prefetch_related(self, *lookups):\n    return getUserName(node.js)",
    "foo bar baz alpha beta sign-in c++ x509 50대 데이터",
    "数据库 東京 ไทย א 😀",
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[findling.Engine]:
    root: Path = tmp_path_factory.mktemp("notes")
    texts = [
        *NOTES,
        *SENTENCES,
        *(" ".join(small) for small, _ in function_words().values()),
        *(f"note {number} on zebras" for number in range(12)),
    ]
    for number, text in enumerate(texts):
        (root / f"{number}.txt").write_text(text, encoding="utf-8")
    own = {"store.home": str(root.parent / "home"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    with findling.open(root, settings=findling.Settings().override(own, "test")) as opened:
        opened.index()
        yield opened


@pytest.mark.parametrize(
    "query", ["kubernetes OR -zebra", "timeout OR NOT redis", "foo | -bar", "-zebras", "NOT zebras OR NOT note"]
)
def test_what_matches_without_evidence_is_no_error(engine: findling.Engine, query: str) -> None:
    for fusion in FUSIONS:
        answer = engine.search(query, refresh=False, plan=Plan(fusion=fusion, budget_ms=0.0))
        assert answer.total >= 10
        assert all(0 <= hit.score <= 1 for hit in answer)


def test_small_words_of_all_languages_find_where_they_stand(engine: findling.Engine) -> None:
    every = list(dict.fromkeys(word for small, _ in function_words().values() for word in small))
    words = sample(every, short=400)
    nowhere = [
        word for word in words if not engine.search(word, refresh=False, limit=1, plan=Plan(mode="keyword")).total
    ]
    assert nowhere == []
    for word in words[::7]:
        engine.search(word, refresh=False, limit=1)


def test_generated_queries_are_no_errors(engine: findling.Engine) -> None:
    rng = random.Random(14)
    vocabulary = [*dict.fromkeys(word for note in NOTES for word in note.split())]
    for _ in range(QUERIES):
        query = any_query(rng, vocabulary)
        try:
            engine.search(query, refresh=False, limit=rng.choice((1, 10, 100)))
        except Exception as error:
            pytest.fail(f"{query!r}: {error!r}")
