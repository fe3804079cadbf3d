"""Normalising: always between 0 and 1, always in the same order, whatever comes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import exp, inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking.normalising import by_maximum, decayed, min_max, robust, z_score

no_deadline = settings(deadline=None, max_examples=60)

Normalise = Callable[[Sequence[float]], list[float]]
METHODS: dict[str, Normalise] = {
    "min_max": min_max,
    "by_maximum": by_maximum,
    "by a known maximum": partial(by_maximum, maximum=10.0),
    "z_score": partial(z_score, mean=1.0, deviation=2.0, centre=3.0, slope=0.5),
    "robust": robust,
}
every_method = pytest.mark.parametrize("normalise", METHODS.values(), ids=METHODS)
finite_scores = st.lists(st.floats(-1e300, 1e300), max_size=30)


@pytest.mark.parametrize(
    ("normalise", "scores", "expected"),
    [
        (min_max, [2.0, 8.0, 5.0], [0.0, 1.0, 0.5]),
        (min_max, [-4.0, -2.0, -3.0], [0.0, 1.0, 0.5]),
        (min_max, [3.0, 3.0], [1.0, 1.0]),
        (min_max, [0.0], [1.0]),
        (by_maximum, [2.0, 8.0, 0.0], [0.25, 1.0, 0.0]),
        (by_maximum, [-2.0, 4.0], [0.0, 1.0]),
        (by_maximum, [-2.0, -4.0], [0.0, 0.0]),
        (by_maximum, [0.0, 0.0], [0.0, 0.0]),
        (by_maximum, [3.0], [1.0]),
        (partial(by_maximum, maximum=20.0), [5.0, 10.0, 30.0], [0.25, 0.5, 1.0]),
        (partial(by_maximum, maximum=0.0), [5.0], [0.0]),
        (partial(z_score, mean=0.2, deviation=0.1), [0.2, 0.4], [0.5, 1 / (1 + exp(-2))]),
        (partial(z_score, mean=0.2, deviation=0.1, centre=4.0), [0.6, 0.2], [0.5, 1 / (1 + exp(4))]),
        (partial(z_score, mean=0.0, deviation=1.0, slope=3.0), [1.0], [1 / (1 + exp(-3))]),
        (partial(z_score, mean=0.2, deviation=0.0), [0.1, 0.2, 0.3], [0.5, 0.5, 0.5]),
        (robust, [7.0], [0.5]),
        (robust, [7.0, 7.0, 7.0], [0.5, 0.5, 0.5]),
        # Quartiles of 1 to 5 are 2 and 4: the deviation is 2 / 1.349, and 5 lies 1.349 of it above the median.
        (robust, [1.0, 2.0, 3.0, 4.0, 5.0], [0.206034, 0.337497, 0.5, 0.662503, 0.793966]),
        # The largest range there may be.
        (robust, [1e300, -1e300], [1 / (1 + exp(-1.349)), 1 / (1 + exp(1.349))]),
        # Four of five are equal, so half of the range, 4 / 2, stands for the deviation.
        (robust, [5.0, 1.0, 1.0, 1.0, 1.0], [1 / (1 + exp(-2)), 0.5, 0.5, 0.5, 0.5]),
    ],
)
def test_by_hand(normalise: Normalise, scores: list[float], expected: list[float]) -> None:
    assert normalise(scores) == pytest.approx(expected, abs=1e-5)


def test_an_outlier_does_not_flatten_the_rest() -> None:
    scores = [1.0, 2.0, 3.0, 4.0, 1000.0]
    assert min_max(scores)[3] - min_max(scores)[0] < 0.01
    assert robust(scores)[3] - robust(scores)[0] > 0.4


@every_method
def test_nothing_in_nothing_out(normalise: Normalise) -> None:
    assert normalise([]) == []


@every_method
@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_what_is_no_number_is_refused(normalise: Normalise, score: float) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        normalise([1.0, score])


@pytest.mark.parametrize(("mean", "deviation"), [(nan, 1.0), (0.0, nan), (0.0, -1.0), (inf, 1.0), (0.0, inf)])
def test_a_population_that_makes_no_sense_is_refused(mean: float, deviation: float) -> None:
    with pytest.raises(ValueError, match=r"mean|deviation"):
        z_score([1.0], mean, deviation)


def test_a_slope_must_rise() -> None:
    with pytest.raises(ValueError, match="slope is 0"):
        z_score([1.0], 0.0, 1.0, slope=0.0)


@every_method
@no_deadline
@given(scores=finite_scores)
def test_between_0_and_1_and_in_the_same_order(normalise: Normalise, scores: list[float]) -> None:
    normalised = normalise(scores)
    assert len(normalised) == len(scores)
    assert all(0 <= score <= 1 for score in normalised)
    pairs = sorted(zip(scores, normalised, strict=True))
    assert [after for _, after in pairs] == sorted(after for _, after in pairs)


@every_method
@no_deadline
@given(scores=finite_scores)
def test_the_place_in_the_list_does_not_matter(normalise: Normalise, scores: list[float]) -> None:
    assert normalise(scores[::-1]) == normalise(scores)[::-1]


@no_deadline
@given(
    scores=st.lists(st.integers(-1000, 1000), min_size=1), shift=st.integers(-50, 50), scale=st.sampled_from([0.5, 4])
)
def test_min_max_and_robust_know_no_unit(scores: list[int], shift: int, scale: float) -> None:
    moved = [score * scale + shift for score in scores]
    assert min_max(moved) == pytest.approx(min_max(scores))
    assert robust(moved) == pytest.approx(robust(scores))


def test_decay_by_hand() -> None:
    assert [decayed(age, 30) for age in (-5, 0, 30, 60)] == [1.0, 1.0, 0.5, 0.25]
    assert decayed(1e299, 1e-9) == 0.0


@pytest.mark.parametrize(("age", "half_life"), [(nan, 30.0), (inf, 30.0), (1.0, 0.0), (1.0, -2.0), (1.0, nan)])
def test_decay_refuses_what_makes_no_sense(age: float, half_life: float) -> None:
    with pytest.raises(ValueError, match=r"age|half-life"):
        decayed(age, half_life)
