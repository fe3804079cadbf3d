"""Every receipt adds up: its parts give the score that is printed, whatever the plan has done to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from findling.domain.plans import Plan
from findling.pipelines.evaluation.evaluation_collections import read_collection
from findling.service.engine.engine import Engine, open_engine
from findling.service.export.evaluating import GOLDEN_SET
from findling.service.settings.settings import Settings
from tests.counts import IS_LONG, sample

QUERIES = [query.text for query in read_collection(GOLDEN_SET).queries]
SHUFFLED = Plan(boosts=True, collapse=True, diversity=0.6, feedback=True, overfetch=5.0, budget_ms=0.0)
PLANS = {
    "words": Plan(mode="keyword"),
    "both": Plan(budget_ms=0.0),
    "ranks": Plan(fusion="rrf", budget_ms=0.0),
    "weighted ranks": Plan(fusion="rrf_weighted", alpha=0.4, budget_ms=0.0),
    "age": Plan(fusion="recency", budget_ms=0.0),
    "meaning": Plan(mode="semantic", budget_ms=0.0),
    "everything": SHUFFLED,
    "large boosts": replace(SHUFFLED, mode="keyword", exact_boost=3.0, prefix_boost=2.0, phrase_boost=5.0),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    place = tmp_path_factory.mktemp("receipts")
    shutil.copytree(GOLDEN_SET / "files", place / "root")
    own = {"store.home": str(place / "home"), "semantic.refine": "never"}
    with open_engine(place / "root", settings=Settings().override(own, "test")) as engine:
        engine.index()
        yield engine


@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
def test_the_parts_of_every_receipt_recompute_to_its_score(engine: Engine, plan: Plan) -> None:
    # 8 plans with queries that people have asked, 55 in a long run: each hit of each answer has to add up.
    checked = 0
    asked = QUERIES if IS_LONG else QUERIES[::2]
    for query in asked:
        answer = engine.search(query, refresh=False, limit=20, plan=plan)
        scores = [hit.score for hit in answer]
        assert scores == sorted(scores, reverse=True)
        for hit in answer:
            receipt = hit.receipt
            assert receipt.parts, query
            assert all(part.value == pytest.approx(part.weight * part.normalised) for part in receipt.parts)
            assert receipt.recomputed() == pytest.approx(hit.score, abs=5.1e-5), (query, receipt)
            assert hit.score == receipt.final_score
            checked += 1
    assert checked > len(asked)


def test_what_a_receipt_says_was_found_stands_there(engine: Engine) -> None:
    for query in sample(QUERIES, short=30):
        for hit in engine.search(query, refresh=False, limit=5, plan=Plan(mode="keyword")):
            text = _text(engine, hit.id)
            for match in hit.receipt.matches:
                assert match.count > 0
                assert bool(match.spans) == (match.field == "body")
                for start, end in match.spans:
                    word = text[start:end].lower()
                    assert any(form in word or word in form for form in match.forms), (match, word)
            assert not {match.term for match in hit.receipt.matches} & set(hit.receipt.missing)


def _text(engine: Engine, id_: str) -> str:
    (stored,) = engine._files.store.chunks([int(id_, 16)]).values()
    return stored.text
