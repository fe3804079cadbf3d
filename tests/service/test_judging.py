"""A judge that reads the best hits: when it is asked, what it moves, and what the receipt says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

import findling
from findling.domain.results import SearchAnswer
from findling.models.local.onnx_models import OnnxReranker
from findling.ranking import evidence
from findling.ranking.evidence import judge_weight
from findling.service.engine.engine import Viewer
from tests.models.test_onnx_models import save_reranker, save_tokenizer
from tests.processes import in_time

QUESTION = "What does the dog do all day?"
NOTES = {
    "dog.md": "What does the dog do all day? The dog sleeps.\n",
    "day.md": "The dog sleeps all day beside the cat, the cat, the cat, the cat, the cat and the cat.\n",
    "tax.md": "The tax of a dog or a cat is due each year on the first day.\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Notes, and a judge that was pulled: it counts the cats of a passage."""
    root, folder = tmp_path / "tree", tmp_path / "home" / ".models" / "rerank"
    root.mkdir()
    folder.mkdir(parents=True)
    for name, text in NOTES.items():
        (root / name).write_text(text)
    save_reranker(folder)
    save_tokenizer(folder)
    card = {"name": "rerank", "kind": "reranker", "max_tokens": 256, "languages": "English"}
    (folder / "findling-model.json").write_text(json.dumps(card))
    return root


def settings_with(tree: Path, **changes: object) -> findling.Settings:
    own = {"store.home": str(tree.parent / "home"), "semantic.model": "none", "semantic.refine": "never"}
    return findling.Settings().override({**own, **changes}, "test")


@pytest.fixture
def engine(tree: Path) -> Iterator[findling.Engine]:
    with findling.open(tree, settings=settings_with(tree)) as opened:
        opened.index()
        yield opened


def judged(answer: SearchAnswer) -> list[str]:
    """The hits that the judge has read."""
    return [hit.path for hit in answer if any(step.name == "rerank" for step in hit.receipt.steps)]


def test_it_is_asked_where_there_is_time(engine: findling.Engine) -> None:
    plain = engine.search(QUESTION)
    assert (plain.hits[0].path, judged(plain), plain.meaning["reranker"]) == ("dog.md", [], "")
    for answer in (engine.search(QUESTION, patient=True), engine.search(QUESTION, profile="deep")):
        assert answer.hits[0].path == "day.md"
        assert sorted(judged(answer)) == sorted(NOTES)
        assert answer.meaning["reranker"] == "rerank"
    assert judged(engine.search(QUESTION, patient=True, quick=True)) == []
    stages = dict(Viewer(engine).search_in_stages(QUESTION))
    assert (judged(stages["candidates"]), stages["reranked"].hits[0].path) == ([], "day.md")


def test_a_judge_has_a_part_of_the_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took all 10 s on a busy machine: the second stage put one hit by words alone in the place of a page."""
    for number in range(5):
        (tree / f"more{number}.md").write_text(f"What does dog {number} do all day? It has {number} bones.\n")
    is_enough = Event()

    def rerank(judge: OnnxReranker, query: str, texts: Sequence[str]) -> list[float]:
        calls.append(len(texts))
        if len(calls) > 1:
            is_enough.wait()
        return [0.5] * len(texts)

    def ask(seconds: float) -> None:
        calls.clear()
        late = engine.search(QUESTION, patient=True, timeout_s=seconds)
        assert (len(late.hits), len(judged(late)), late.strategy) == (8, 4, "hybrid")
        assert [note.what for note in late.degraded] == ["there was time to judge 4 of the best 8 hits"]

    calls: list[int] = []
    monkeypatch.setattr(OnnxReranker, "rerank", rerank)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with findling.open(tree, settings=settings_with(tree)) as engine:
        engine.index()
        engine.search(QUESTION)
        in_time(ask, 3.0)
    is_enough.set()


def test_the_receipt_says_who_judged_and_what_it_moved(engine: findling.Engine) -> None:
    best, *others = engine.search(QUESTION, patient=True)
    step = next(step for step in best.receipt.steps if step.name == "rerank")
    weight = judge_weight(("question",))
    assert step.reason == f"rerank gives 0.982, which weighs {weight:g}; place 2 becomes 1"
    assert best.score == pytest.approx(engine.search(QUESTION).hits[0].score), "scores stay with the places"
    scores = [hit.score for hit in (best, *others)]
    assert scores == sorted(scores, reverse=True)


def test_one_that_is_chosen_by_name_judges_every_question(tree: Path, engine: findling.Engine) -> None:
    for changes, expected in (
        ({"rerank.model": "rerank"}, 3),
        ({"rerank.model": "rerank", "rerank.depth": 0}, 0),
        ({"rerank.model": "rerank", "rerank.depth": 2}, 2),
        ({"rerank.model": "none", "search.profile": "deep"}, 0),
    ):
        with findling.open(tree, settings=settings_with(tree, **changes)) as opened:
            assert len(judged(opened.search(QUESTION))) == expected, changes


@pytest.mark.parametrize(
    "query", ["getUser", '"the dog" AND day', "Was macht der Hund den ganzen Tag?", "day.md", "dog(day)"]
)
def test_what_it_cannot_judge_it_is_not_asked(engine: findling.Engine, query: str) -> None:
    assert judged(engine.search(query, patient=True)) == []


def test_code_keeps_its_order(tree: Path, engine: findling.Engine) -> None:
    for name in NOTES:
        (tree / name).rename(tree / f"{name}.py")
    engine.index()
    assert judged(engine.search(QUESTION, patient=True)) == []


def test_it_reads_a_long_passage_around_its_best_sentence(tree: Path, engine: findling.Engine) -> None:
    cats = "The cat and the cat like milk and fish and a warm place. " * 12
    (tree / "long.md").write_text(f"{cats}What does the dog do all day? {cats}\n")
    (tree / "far.md").write_text(
        f"What does the dog do all day? {'Nothing is written here of any weight. ' * 20}{cats}\n"
    )
    engine.index()
    reasons = {
        hit.path: step.reason
        for hit in engine.search(QUESTION, patient=True)
        for step in hit.receipt.steps
        if step.name == "rerank"
    }
    assert "gives 1.000" in reasons["long.md"]
    assert "gives 0.119" in reasons["far.md"], "no cat stands near the dog"


def test_one_that_breaks_leaves_the_answer_as_it_was_and_says_so(tree: Path, engine: findling.Engine) -> None:
    (tree.parent / "home" / ".models" / "rerank" / "model.onnx").write_bytes(b"no model")
    answer = engine.search(QUESTION, patient=True)
    assert answer.hits[0].path == "dog.md"
    assert "not reranked" in answer.degraded[0].what


def test_an_answer_can_be_given_again_from_its_plan(engine: findling.Engine) -> None:
    answer = engine.search(QUESTION, patient=True)
    plan = findling.Plan(**{**answer.plan["plan"], "types": ()})
    assert plan.rerank_depth == 20
    again = engine.search(QUESTION, plan=replace(plan, profile="auto"))
    assert [hit.score for hit in again] == [hit.score for hit in answer]


def test_what_it_finds_far_off_is_no_hit_unless_words_are_sure(
    tree: Path, engine: findling.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("day.md", "tax.md"):
        (tree / name).unlink()
    engine.index()
    monkeypatch.setattr(evidence, "_FAR", 0.2)  # this judge gives .119 to a passage without a cat
    for sure, expected in ((0.0, 1), (1.1, 0)):
        monkeypatch.setattr(evidence, "_SURE", sure)
        answer = engine.search(QUESTION, patient=True)
        assert (len(answer), answer.total, answer.weaker) == (expected, expected, 1 - expected)
    assert [hit.path for hit in answer.related] == ["dog.md"], "an empty answer names what comes nearest"
    assert len(engine.search(QUESTION, patient=True, weak=True)) == 1
