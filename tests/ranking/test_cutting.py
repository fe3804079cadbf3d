"""Cutting: at the largest gap, never below the least or above the most, and not at all where there is no gap."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking.diversity import Cut, adaptive_k
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(60, short=25))

CLIFF = [0.9, 0.85, 0.8, 0.75, 0.3, 0.28, 0.25, 0.2]

falling = st.lists(st.floats(0, 1), max_size=40).map(lambda scores: sorted(scores, reverse=True))


def test_by_hand() -> None:
    # The fall from 0.75 to 0.3 is half of the best score.
    cut = adaptive_k(CLIFF)
    assert cut.k_used == 5
    assert cut.gap == pytest.approx(0.5)
    assert cut.reason == "the score falls from 0.75 to 0.3 after 4, 50% of the best; 1 more to be safe"
    assert adaptive_k(CLIFF, buffer=0).k_used == 4
    assert adaptive_k(CLIFF, buffer=10).k_used == 8


def test_a_gap_outside_the_bounds_does_not_count() -> None:
    assert adaptive_k(CLIFF, k_min=5).k_used == 8
    assert adaptive_k(CLIFF, k_max=4).k_used == 4
    assert adaptive_k([1.0, 0.1, 0.1, 0.1], k_min=1, buffer=0).k_used == 1
    assert adaptive_k([1.0, 0.1, 0.1, 0.1], k_min=2).k_used == 4


def test_a_long_tail_is_no_cliff() -> None:
    tail = [0.9, 0.88, 0.86, 0.84, 0.02, 0.001]
    assert adaptive_k(tail, buffer=0).k_used == 4


def test_of_equal_gaps_the_first_is_taken() -> None:
    assert adaptive_k([1.0, 1.0, 1.0, 0.75, 0.5, 0.25], buffer=0).k_used == 3


@pytest.mark.parametrize("scores", [[0.5] * 12, [1 / (60 + rank) for rank in range(1, 13)], [0.0] * 12])
def test_flat_scores_are_not_cut(scores: list[float]) -> None:
    assert adaptive_k(scores).k_used == 12
    assert adaptive_k(scores, k_max=10).k_used == 10


def test_flat_scores_say_so() -> None:
    assert adaptive_k([1.0, 0.98, 0.96, 0.94, 0.92]).reason == "flat scores: the largest gap is 2% of the best"
    assert adaptive_k([0.5] * 5, least_gap=0.0) == Cut(5, 0.0, "flat scores: the largest gap is 0% of the best")


@pytest.mark.parametrize("scores", [[], [0.4], [0.9, 0.1], [0.9, 0.8, 0.1]])
def test_few_hits_are_all_given(scores: list[float]) -> None:
    cut = adaptive_k(scores)
    assert (cut.k_used, cut.gap) == (len(scores), 0.0)
    hits = "1 hit" if len(scores) == 1 else f"{len(scores)} hits"
    assert cut.reason == f"nothing to cut: {hits}, between 3 and 20 are given"


@pytest.mark.parametrize("scores", [[0.5, nan], [inf, 0.5], [0.5, -0.1], [0.5, 0.6]])
def test_scores_that_make_no_sense_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="score"):
        adaptive_k(scores)


def test_bounds_that_make_no_sense_are_refused() -> None:
    for bounds in ({"k_min": 5, "k_max": 4}, {"k_min": -1}, {"buffer": -1}):
        with pytest.raises(ValueError, match="do not fit together"):
            adaptive_k([0.5], **bounds)
    with pytest.raises(ValueError, match="least_gap is"):
        adaptive_k([0.5], least_gap=nan)


@no_deadline
@given(scores=falling, k_min=st.integers(0, 10), spread=st.integers(0, 20), buffer=st.integers(0, 3))
def test_always_within_the_bounds(scores: list[float], k_min: int, spread: int, buffer: int) -> None:
    cut = adaptive_k(scores, k_min=k_min, k_max=k_min + spread, buffer=buffer)
    assert min(k_min, len(scores)) <= cut.k_used <= min(k_min + spread, len(scores))
    assert 0 <= cut.gap <= 1
    assert cut.reason


@no_deadline
@given(scores=falling, factor=st.sampled_from([0.25, 2.0, 64.0]))
def test_the_scale_of_the_scores_does_not_matter(scores: list[float], factor: float) -> None:
    # Powers of two scale exactly, but for the smallest numbers there are.
    scores = [score for score in scores if score == 0 or score > 1e-290]
    scaled = adaptive_k([score * factor for score in scores])
    assert (scaled.k_used, scaled.gap) == adaptive_k(scores)[:2]
