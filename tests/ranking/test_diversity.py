"""Diversity: alike hits move apart, the first stays, no score rises, nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking import diversity
from findling.ranking.diversity import Diverse, jaccard
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(60, short=25))

Candidates = list[tuple[int, float]]
Table = Sequence[Sequence[float]]


def diversify(candidates: Candidates, table: Table, balance: float = 0.7, depth: int = 50) -> list[Diverse]:
    return diversity.diversify(candidates, lambda one, other: table[one][other], balance=balance, depth=depth)


@st.composite
def lists_with_similarities(draw: st.DrawFn) -> tuple[Candidates, Table]:
    """Candidates in any order, and a symmetric table of their similarities."""
    size = draw(st.integers(0, 12))
    # Few different values, so that there are ties.
    scores = draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), min_size=size, max_size=size))
    table = [[1.0] * size for _ in range(size)]
    for one in range(size):
        for other in range(one):
            table[one][other] = table[other][one] = draw(st.sampled_from([-0.5, 0.0, 0.3, 0.8, 1.0]))
    return [(100 + place, score) for place, score in enumerate(scores)], table


def plain_greedy(candidates: Candidates, table: Table, balance: float) -> list[int]:
    """The definition, without any cleverness."""
    left = sorted(range(len(candidates)), key=lambda place: -candidates[place][1])
    best = candidates[left[0]][1] if left else 0.0
    chosen: list[int] = []

    def value(place: int) -> float:
        relevance = balance * candidates[place][1] / best if best else 0.0
        return relevance - (1 - balance) * max([0.0, *(table[place][above] for above in chosen)])

    while left:
        chosen.append(max(left, key=value))
        left.remove(chosen[-1])
    return [candidates[place][0] for place in chosen]


def test_by_hand() -> None:
    # 11 repeats 10: 0.7 × 0.9 − 0.3 × 1.0 = 0.33; 12 is new: 0.7 × 0.8 − 0.3 × 0.1 = 0.53; 13: 0.7 × 0.2 = 0.14.
    table = [[1.0, 1.0, 0.1, 0.0], [1.0, 1.0, 0.1, 0.0], [0.1, 0.1, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert diversify([(10, 1.0), (11, 0.9), (12, 0.8), (13, 0.2)], table) == [
        Diverse(10, 1.0, 1.0),
        Diverse(12, 0.8, 0.8, 1, 10, 0.1),
        Diverse(11, 0.8, 0.9, -1, 10, 1.0),
        Diverse(13, 0.2, 0.2),
    ]


def test_reasons_say_what_moved_and_why() -> None:
    reasons = [one.reason for one in diversify([(10, 1.0), (11, 0.9), (12, 0.8)], [[1, 1, 0], [1, 1, 0], [0, 0, 1]])]
    assert reasons == ["", "up 1: less like what comes first", "down 1: 1.00 like 10, which comes first"]


def test_the_scale_of_the_scores_does_not_matter() -> None:
    table = [[1.0, 0.9, 0.2], [0.9, 1.0, 0.2], [0.2, 0.2, 1.0]]
    large = diversify([(1, 60.0), (2, 50.0), (3, 40.0)], table)
    small = diversify([(1, 0.060), (2, 0.050), (3, 0.040)], table)
    assert [one.id for one in large] == [one.id for one in small] == [1, 3, 2]


def test_only_the_first_ones_are_reordered() -> None:
    candidates = [(1, 1.0), (2, 0.9), (3, 0.8), (4, 0.7), (5, 0.6)]

    def alike(one: int, other: int) -> float:
        return float({one, other} == {0, 1})

    assert [one.id for one in diversity.diversify(candidates, alike)] == [1, 3, 4, 5, 2]
    diverse = diversity.diversify(candidates, alike, depth=3)
    assert [one.id for one in diverse] == [1, 3, 2, 4, 5]
    assert [one.score for one in diverse] == [1.0, 0.8, 0.8, 0.7, 0.6]
    assert [one.id for one in diversity.diversify(candidates, alike, depth=0)] == [1, 2, 3, 4, 5]


def test_nothing_and_one() -> None:
    assert diversify([], []) == []
    assert diversify([(4, 0.0)], [[1.0]]) == [Diverse(4, 0.0, 0.0)]


@no_deadline
@given(given_list=lists_with_similarities(), balance=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_the_choice_is_the_plain_greedy_one(given_list: tuple[Candidates, Table], balance: float) -> None:
    candidates, table = given_list
    assert [one.id for one in diversify(candidates, table, balance=balance)] == plain_greedy(candidates, table, balance)


@no_deadline
@given(given_list=lists_with_similarities(), depth=st.integers(0, 15))
def test_the_first_stays_no_score_rises_nothing_is_lost(given_list: tuple[Candidates, Table], depth: int) -> None:
    candidates, table = given_list
    diverse = diversify(candidates, table, depth=depth)
    assert sorted((one.id, one.relevance) for one in diverse) == sorted(candidates)
    assert all(one.score >= other.score for one, other in pairwise(diverse))
    assert all(one.score <= one.relevance for one in diverse)
    if diverse:
        assert diverse[0].id == max(candidates, key=lambda hit: hit[1])[0]
        assert diverse[0].score == diverse[0].relevance
    assert all(one.nearest is not None and one.reason for one in diverse if one.moved < 0)


@no_deadline
@given(given_list=lists_with_similarities())
def test_full_balance_changes_nothing(given_list: tuple[Candidates, Table]) -> None:
    candidates, table = given_list
    ordered = sorted(candidates, key=lambda hit: -hit[1])
    assert [(one.id, one.score) for one in diversify(candidates, table, balance=1.0)] == ordered


@pytest.mark.parametrize("score", [nan, inf, -0.1])
def test_scores_that_make_no_sense_are_refused(score: float) -> None:
    with pytest.raises(ValueError, match="score is"):
        diversify([(1, 0.5), (2, score)], [[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("alike", [nan, inf])
def test_similarities_that_are_no_numbers_are_refused(alike: float) -> None:
    with pytest.raises(ValueError, match="similarity is"):
        diversify([(1, 0.5), (2, 0.4)], [[alike] * 2] * 2)


@pytest.mark.parametrize("balance", [nan, -0.1, 1.5])
def test_a_balance_lies_between_0_and_1(balance: float) -> None:
    with pytest.raises(ValueError, match="balance is"):
        diversify([(1, 0.5)], [[1.0]], balance=balance)


def test_jaccard_by_hand() -> None:
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard({"a"}, {"a"}) == 1.0
    assert jaccard({"a"}, set()) == jaccard(set(), set()) == 0.0
