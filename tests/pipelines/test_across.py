"""Fusing answers of several workspaces: the same evidence counts the same, wherever a hit lies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.resources import Resource
from findling.domain.results import Hit, Receipt, ScorePart, SearchAnswer, Step
from findling.pipelines.lookup.federated import fuse_across
from findling.service.engine.engine import Engine
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import Workspace

WORDS = "token session cache retry queue login index store query chunk model vector plan".split()


def hit(rid: str, keyword: float = 0.0, cosine: float = 0.0, *, score: float = 0.5, speed: str = "") -> Hit:
    receipt = Receipt(
        keyword_score=keyword, vector_score=cosine, speed=speed, fused_score=score, final_score=score
    )  # fmt: skip
    return Hit(
        id=rid, rid=rid, path="", type="note", title="", heading=(), line_start=1, line_end=1, score=score, lines=(),
        receipt=receipt,
    )  # fmt: skip


def answer(*hits: Hit, ceiling: float = 10.0, alpha: float | None = None, model: str = "") -> SearchAnswer:
    plan: dict[str, object] = {"ceiling": ceiling}
    if alpha is not None:
        plan["weighing"] = {"alpha": alpha}
    return SearchAnswer(
        query="q", understood_as="q", hits=hits, total=len(hits), strategy="hybrid", plan=plan, meaning={"model": model}
    )


def order(answers: Sequence[SearchAnswer], limit: int = 10, offset: int = 0) -> list[str]:
    return [one.hit.rid for one in fuse_across(answers, limit, offset)]


def test_nothing_gives_nothing() -> None:
    assert fuse_across([], 10) == []
    assert fuse_across([answer(), answer()], 10) == []


def test_words_count_by_what_they_could_be_worth() -> None:
    """A raw score of 3 is much where 4 would be all, and little where 20 would be."""
    small = answer(hit("small", 3.0), ceiling=4.0)
    large = answer(hit("large", 6.0), ceiling=20.0)
    assert order([large, small]) == ["small", "large"]


def test_meaning_counts_by_the_cosine_and_not_by_how_it_stands_out() -> None:
    outstanding = replace(hit("outstanding", cosine=0.3, score=0.9, speed="instant"))
    near = hit("near", cosine=0.6, score=0.4, speed="instant")
    assert order([answer(outstanding, alpha=1.0), answer(near, alpha=1.0)]) == ["near", "outstanding"]


def test_cosines_of_different_models_are_not_compared() -> None:
    def standing_out(rid: str, cosine: float, normalised: float, speed: str) -> Hit:
        part = ScorePart(leg="semantic", rank=1, raw=cosine, normalised=normalised, weight=1.0, value=normalised)
        made = hit(rid, cosine=cosine, speed=speed)
        return replace(made, receipt=replace(made.receipt, parts=(part,)))

    instant = answer(standing_out("instant", 0.9, 0.3, "instant"), alpha=1.0)
    refined = answer(standing_out("refined", 0.5, 0.8, "refined"), alpha=1.0, model="minilm")
    assert order([instant, refined]) == ["refined", "instant"]
    other = answer(standing_out("other", 0.9, 0.3, "refined"), alpha=1.0, model="bge")
    assert order([other, refined]) == ["refined", "other"]


def test_a_workspace_without_vectors_is_not_held_back_for_it() -> None:
    by_words = answer(hit("words", 9.0))
    by_both = answer(hit("both", 5.0, 0.5, speed="instant"), alpha=0.6)
    assert order([by_both, by_words])[0] == "words"


def test_a_workspace_without_a_hit_has_no_say_in_the_order() -> None:
    """Hits by words and by meaning swapped places with the weight of a workspace of which the caller sees nothing."""
    worth = {"words": (9.0, 0.3), "near": (4.0, 0.6)}
    seen = [answer(hit(rid, *scores, speed="instant"), alpha=0.4) for rid, scores in worth.items()]
    assert order(seen) == ["words", "near"]
    for alpha in (0.0, 1.0):
        assert fuse_across([*seen, answer(alpha=alpha)], 10) == fuse_across(seen, 10)
    latest = replace(answer(replace(hit("old"), at=1.0), replace(hit("new"), at=9.0)), reading="browse")
    assert order([latest, answer()]) == order([latest]) == ["new", "old"]


def test_hits_of_one_answer_keep_their_order() -> None:
    """A hit that a newer version or a reranker has put on top stays there."""
    moved = answer(hit("first", 2.0), hit("second", 8.0))
    other = answer(hit("other", 5.0))
    assert order([moved, other]) == ["other", "first", "second"]


def test_what_held_a_hit_back_holds_it_back_here_too() -> None:
    old = hit("old", 8.0)
    old = replace(old, receipt=replace(old.receipt, steps=(Step(name="superseded", factor=0.1, reason=""),)))
    assert order([answer(old), answer(hit("plain", 4.0))]) == ["plain", "old"]


def test_equal_hits_take_turns_and_the_first_answer_leads() -> None:
    one, two = (answer(*(hit(f"{name}{rank}", 5.0) for rank in range(3))) for name in "ab")
    assert order([one, two]) == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert order([one, two], 2, 3) == ["b1", "a2"]


def test_without_words_the_latest_come_first() -> None:
    def browsed(*times: float | None) -> SearchAnswer:
        hits = [replace(hit(f"{time}"), at=time, score=1.0) for time in times]
        return replace(answer(*hits, ceiling=0.0), reading="browse")

    assert order([browsed(50.0, 10.0), browsed(30.0, None)]) == ["50.0", "30.0", "10.0", "None"]


hits = st.lists(st.tuples(st.floats(0, 50), st.floats(-1, 1), st.floats(0.01, 1)), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(hits, st.floats(0.1, 100), st.none() | st.floats(0, 1)), max_size=4))
def test_every_hit_comes_once_with_a_falling_score_between_0_and_1(
    drawn: list[tuple[list[tuple[float, float, float]], float, float | None]],
) -> None:
    answers = [
        answer(
            *(hit(f"{n}/{m}", k, c, score=s, speed="instant") for m, (k, c, s) in enumerate(found)),
            ceiling=ceiling,
            alpha=alpha,
        )
        for n, (found, ceiling, alpha) in enumerate(drawn)
    ]
    merged = fuse_across(answers, 100)
    assert sorted(one.hit.rid for one in merged) == sorted(each.rid for found in answers for each in found.hits)
    scores = [one.score for one in merged]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + 1e-9 for score in scores)
    for number in range(len(answers)):
        assert [one.rank for one in merged if one.answer == number] == list(range(1, len(answers[number].hits) + 1))


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_collection_in_unequal_parts_answers_about_as_one(tmp_path: Path, mode: str) -> None:
    """The first ten hits of 300 texts, and those of the same texts in parts of 60, 25, 10 and 5 %."""
    chance = random.Random(4)
    texts = [(f"note:{number}", " ".join(chance.choices(WORDS, k=chance.randint(8, 40)))) for number in range(300)]
    bounds = [0, 180, 255, 285, 300]
    parts = [texts[start:end] for start, end in pairwise(bounds)]
    queries = [" ".join(chance.sample(WORDS, 3)) for _ in range(12)]
    whole, *others = (asked(tmp_path / str(n), part, queries, mode) for n, part in enumerate([texts, *parts]))
    shared, smallest, found = 0, 0, 0
    last = {rid for rid, _ in parts[-1]}
    for number in range(len(queries)):
        top = order([answers[number] for answers in others])
        expected = [each.rid for each in whole[number].hits[:10]]
        shared += len(set(top) & set(expected))
        smallest += len(last & set(top))
        found += len(top)
    assert shared >= 0.7 * found
    assert smallest <= 0.15 * found


def asked(folder: Path, texts: list[tuple[str, str]], queries: list[str], mode: str) -> list[SearchAnswer]:
    chosen = Settings().override({"search.mode": mode, "semantic.model": "none"}, "test")
    folder.mkdir()
    with Engine(Workspace(folder / "index", folder), chosen) as engine:
        engine.add((Resource(rid=rid, type="note"), text) for rid, text in texts)
        return [engine.search(query, limit=20, explain=True, refresh=False, route=False) for query in queries]
