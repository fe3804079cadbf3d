"""Fusion: the score is the sum of what the legs contribute, and nothing else decides the order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import fsum, inf, nan
from typing import ParamSpec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking import fusion
from findling.ranking.fusion import RECENCY_WEIGHTS, Fusion, Part, best_first
from tests.counts import tries

Fused = tuple[int, float, list[Part]]
Given = ParamSpec("Given")


def in_full(method: Callable[Given, Fusion]) -> Callable[Given, list[Fused]]:
    """A method that gives each id with its score and all parts of it."""

    def fused(*args: Given.args, **options: Given.kwargs) -> list[Fused]:
        found = method(*args, **options)
        return [(item, score, found.parts(item)) for item, score in found.ranking]

    return fused


rrf, rrf_weighted, weighted, with_recency = (
    in_full(fusion.rrf),
    in_full(fusion.rrf_weighted),
    in_full(fusion.weighted),
    in_full(fusion.with_recency),
)

no_deadline = settings(deadline=None, max_examples=tries(60, short=25))

Legs = dict[str, list[tuple[int, float]]]

KEYWORD = [(1, 12.0), (2, 9.5), (3, 4.0)]
SEMANTIC = [(2, 0.8), (4, 0.7)]
HALVES = {"keyword": 0.5, "semantic": 0.5}

unit_scores = st.floats(0, 1)
hits = st.lists(st.tuples(st.integers(0, 12), unit_scores), max_size=10, unique_by=lambda hit: hit[0])
legs_of_hits = st.dictionaries(st.sampled_from(["keyword", "semantic", "graph"]), hits, max_size=3)
WEIGHTS = {"keyword": 0.7, "semantic": 0.2, "graph": 0.1}

METHODS: dict[str, Callable[[Legs], list[Fused]]] = {
    "rrf": rrf,
    "rrf_weighted": lambda legs: rrf_weighted(legs, WEIGHTS),
    "weighted": lambda legs: weighted(legs, WEIGHTS),
}
every_method = pytest.mark.parametrize("fuse", METHODS.values(), ids=METHODS)


def scores_of(fused: list[Fused]) -> dict[int, float]:
    return {item: score for item, score, _ in fused}


def test_rrf_by_hand() -> None:
    fused = rrf({"keyword": KEYWORD, "semantic": SEMANTIC})
    assert [item for item, _, _ in fused] == [2, 1, 4, 3]
    assert scores_of(fused) == pytest.approx({2: 1 / 62 + 1 / 61, 1: 1 / 61, 4: 1 / 62, 3: 1 / 63})
    assert fused[0][2] == [("keyword", 2, 1 / 62, 1.0, 1 / 62), ("semantic", 1, 1 / 61, 1.0, 1 / 61)]


def test_first_in_every_leg_is_one_by_weighted_ranks() -> None:
    fused = rrf_weighted({"keyword": KEYWORD, "semantic": [(1, 0.9), (3, 0.1)]}, {"keyword": 3, "semantic": 1})
    assert fused[0] == (1, 1.0, [("keyword", 1, 1.0, 0.75, 0.75), ("semantic", 1, 1.0, 0.25, 0.25)])
    assert scores_of(fused[1:]) == pytest.approx({2: 0.75 * 61 / 62, 3: 0.75 * 61 / 63 + 0.25 * 61 / 62})


def test_weighted_by_hand() -> None:
    fused = weighted(
        {"keyword": [(1, 1.0), (2, 0.5)], "semantic": [(2, 0.9), (3, 0.4)]}, {"keyword": 0.7, "semantic": 0.3}
    )
    assert scores_of(fused) == pytest.approx({1: 0.7, 2: 0.62, 3: 0.12})
    assert [item for item, _, _ in fused] == [1, 2, 3]
    assert fused[1][2] == [("keyword", 2, 0.5, 0.7, 0.35), ("semantic", 1, 0.9, 0.3, 0.27)]


def test_meaning_words_and_age_by_hand() -> None:
    legs = {"semantic": [(1, 0.5), (2, 0.5)], "keyword": [(2, 1.0), (3, 1.0)]}
    fused = with_recency(legs, {1: 0.0, 2: 90.0, 9: 0.0})
    assert scores_of(fused) == pytest.approx({1: 0.35 + 0.1, 2: 0.35 + 0.2 + 0.05, 3: 0.2})
    assert [leg for leg, *_ in fused[0][2]] == ["semantic", "keyword", "recency"]
    assert fused[0][2][2] == ("recency", 2, 0.5, 0.1, 0.05)
    assert [leg for leg, *_ in fused[2][2]] == ["keyword"], "an unknown age is no part"
    assert fsum(RECENCY_WEIGHTS.values()) == pytest.approx(1)


def test_age_finds_nothing_by_itself() -> None:
    assert with_recency({"semantic": [], "keyword": []}, {5: 0.0}) == []


@every_method
def test_nothing_in_nothing_out(fuse: Callable[[Legs], list[Fused]]) -> None:
    assert fuse({}) == []
    assert fuse({"keyword": [], "semantic": []}) == []


def test_an_empty_leg_changes_nothing() -> None:
    assert rrf({"keyword": KEYWORD, "semantic": []}) == rrf({"keyword": KEYWORD})


def test_equal_scores_come_in_the_order_of_their_ids() -> None:
    hits = best_first({9: 0.5, 3: 0.5, 5: 0.5, 1: 0.7})
    assert hits == [(1, 0.7), (3, 0.5), (5, 0.5), (9, 0.5)]
    assert [item for item, _, _ in weighted({"keyword": hits[::-1]}, {"keyword": 1.0})] == [1, 3, 5, 9]


def test_a_leg_that_weighs_nothing_is_told_but_does_not_count() -> None:
    assert weighted({"keyword": [(1, 0.9)]}, {"keyword": 0.0}) == [(1, 0.0, [("keyword", 1, 0.9, 0.0, 0.0)])]


@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_scores_that_are_no_numbers_are_refused(score: float) -> None:
    with pytest.raises(ValueError, match="score of leg keyword is"):
        weighted({"semantic": [(1, 0.5)], "keyword": [(1, 0.5), (2, score)]}, HALVES)


@pytest.mark.parametrize("weight", [nan, inf, -0.1])
def test_weights_that_make_no_sense_are_refused(weight: float) -> None:
    for fuse in (rrf_weighted, weighted):
        with pytest.raises(ValueError, match="weight of leg semantic"):
            fuse({"semantic": [(1, 0.5)]}, {"semantic": weight})
    with pytest.raises(ValueError, match="weight of leg graph"):
        rrf_weighted({"semantic": [(1, 0.5)]}, {"semantic": 1.0, "graph": weight})


def test_a_leg_without_a_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="leg graph has no weight; there are weights for keyword, semantic"):
        weighted({"graph": [(1, 0.5)]}, HALVES)


def test_weights_that_are_all_zero_cannot_be_shares() -> None:
    with pytest.raises(ValueError, match="sum of all weights"):
        rrf_weighted({"keyword": KEYWORD}, {"keyword": 0.0})


@pytest.mark.parametrize("k", [nan, inf, -1.0])
def test_k_must_be_a_number(k: float) -> None:
    with pytest.raises(ValueError, match="k is"):
        rrf({"keyword": KEYWORD}, k=k)
    with pytest.raises(ValueError, match="k is"):
        rrf_weighted({"keyword": KEYWORD}, HALVES, k=k)


def test_scores_outside_0_to_1_are_refused_but_rounding_is_cut_off() -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        weighted({"keyword": [(1, 12.0)]}, {"keyword": 1.0})
    with pytest.raises(ValueError, match="not between 0 and 1"):
        weighted({"semantic": [(1, -0.01)]}, {"semantic": 1.0})
    assert weighted({"semantic": [(1, 1.0003), (2, -0.0003)]}, {"semantic": 1.0})[0][1] == 1.0


@every_method
@no_deadline
@given(legs=legs_of_hits)
def test_scores_are_the_sum_of_their_parts(fuse: Callable[[Legs], list[Fused]], legs: Legs) -> None:
    for item, score, parts in fuse(legs):
        assert score == fsum(value for *_, value in parts)
        assert all(value == weight * normalised for _, _, normalised, weight, value in parts)
        assert [leg for leg, *_ in parts] == [leg for leg in legs if item in dict(legs[leg])]


@every_method
@no_deadline
@given(legs=legs_of_hits)
def test_every_id_comes_once_and_in_order(fuse: Callable[[Legs], list[Fused]], legs: Legs) -> None:
    fused = fuse(legs)
    assert sorted(item for item, _, _ in fused) == sorted({item for leg in legs.values() for item, _ in leg})
    assert all((-one[1], one[0]) < (-other[1], other[0]) for one, other in pairwise(fused))
    assert all(0 <= score <= 1 + 1e-12 for _, score, _ in fused)


@every_method
@no_deadline
@given(legs=legs_of_hits)
def test_the_order_of_the_legs_does_not_matter(fuse: Callable[[Legs], list[Fused]], legs: Legs) -> None:
    backwards = dict(reversed(legs.items()))
    assert [one[:2] for one in fuse(legs)] == [one[:2] for one in fuse(backwards)]


@every_method
@no_deadline
@given(legs=legs_of_hits, newcomer=st.integers(0, 12))
def test_being_found_by_one_more_leg_never_hurts(
    fuse: Callable[[Legs], list[Fused]], legs: Legs, newcomer: int
) -> None:
    legs = {leg: entries for leg, entries in legs.items() if leg != "graph"}
    before = scores_of(fuse(legs))
    after = scores_of(fuse({**legs, "graph": [(newcomer, 0.5)]}))
    assert after[newcomer] > before.get(newcomer, 0.0)
    assert all(after[item] == score for item, score in before.items() if item != newcomer)
