"""The paired test against all choices of signs, and against what must hold whatever the values are."""

from __future__ import annotations

import random
from itertools import product

import pytest

from findling.domain.errors import InvalidValueError
from findling.ranking.metrics import compare, interval, randomisation_p


def exhaustive_p(differences: list[float]) -> float:
    bar = abs(sum(differences)) - 1e-9
    sums = [abs(sum(signed)) for signed in product(*((value, -value) for value in differences))]
    return sum(total >= bar for total in sums) / len(sums)


@pytest.mark.parametrize("size", [1, 2, 5, 8, 9, 12])
def test_few_differences_are_tested_exactly(size: int) -> None:
    chance = random.Random(size)
    differences = [chance.uniform(-0.4, 1) for _ in range(size)]
    assert randomisation_p(differences) == exhaustive_p(differences)


def test_known_small_cases() -> None:
    assert randomisation_p([0.5]) == 1, "one query proves nothing"
    assert randomisation_p([0.1, 0.2, 0.3]) == 2 / 8, "only all signs or none are as extreme"
    assert randomisation_p([0.1, -0.1]) == 1
    assert randomisation_p([0.0, 0.0]) == 1
    assert randomisation_p([0.1, 0.2, 0.3, 0.0, 0.0]) == 2 / 8, "ties say nothing"


@pytest.mark.parametrize("size", [15, 17])
def test_a_sample_of_the_signs_is_close_to_all_of_them(size: int) -> None:
    chance = random.Random(3)
    differences = [chance.gauss(0.08, 0.4) for _ in range(size)]
    expected = exhaustive_p(differences)
    assert 0.02 < expected < 0.98, "a case that can tell"
    assert randomisation_p(differences) == pytest.approx(expected, abs=0.012)


def test_the_same_seed_gives_the_same_answer() -> None:
    chance = random.Random(5)
    first, second = ([chance.random() for _ in range(60)] for _ in range(2))
    assert compare(first, second) == compare(first, second)
    assert compare(first, second).p != compare(first, second, seed=2).p


def test_the_comparison_turns_round_with_its_sides() -> None:
    chance = random.Random(7)
    second = [chance.random() * 0.5 for _ in range(80)]
    first = [value + chance.choice((0.0, 0.3, -0.05)) for value in second]
    there, back = compare(first, second), compare(second, first)
    assert there.difference == pytest.approx(-back.difference)
    assert (there.wins, there.ties, there.losses) == (back.losses, back.ties, back.wins)
    assert there.wins + there.ties + there.losses == there.queries == 80
    assert there.low < there.difference < there.high
    assert there.p == pytest.approx(back.p, abs=0.002) and there.p < 0.001 and there.low > 0


def test_the_interval_narrows_with_more_queries_and_is_a_point_without_spread() -> None:
    chance = random.Random(11)
    values = [chance.random() for _ in range(900)]
    narrow, wide = interval(values), interval(values[:100])
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    standard_error = 0.2887 / 30  # of the mean of 900 values that are equally likely between 0 and 1
    assert narrow[1] - narrow[0] == pytest.approx(2 * 1.96 * standard_error, rel=0.1)
    assert interval([0.25, 0.25]) == (0.25, 0.25)


def test_lists_that_cannot_be_paired_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="2 and 1 values"):
        compare([0.1, 0.2], [0.1])
    with pytest.raises(InvalidValueError, match="0 and 0 values"):
        compare([], [])
