"""Whether one way to rank is better than another, query by query, or only luckier."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from findling.domain.errors import InvalidValueError
from findling.ranking.metrics import mean

__all__ = ["Comparison", "compare", "interval", "randomisation_p"]

_PERMUTATIONS = 20_000
"""A p of 0.05 then has a standard error of 0.0015."""

_RESAMPLES = 2_000
_SEED = 1
_TINY = 1e-12
"""Sums of the same numbers in another order differ by less."""


class Comparison(NamedTuple):
    """The mean difference (first minus second), its 95 % interval, the p of no difference, and who won how often."""

    queries: int
    difference: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int


def compare(first: Sequence[float], second: Sequence[float], *, seed: int = _SEED) -> Comparison:
    """Compare two lists of values for the same queries in the same order.

    Raises InvalidValueError when they are not equally long or empty.
    """
    if len(first) != len(second) or not first:
        raise InvalidValueError(
            f"{len(first)} and {len(second)} values cannot be compared in pairs",
            hint="measure both on the same queries",
        )
    differences = [ours - theirs for ours, theirs in zip(first, second, strict=True)]
    wins = sum(difference > _TINY for difference in differences)
    losses = sum(difference < -_TINY for difference in differences)
    low, high = interval(differences, seed=seed)
    return Comparison(
        queries=len(differences),
        difference=mean(differences),
        low=low,
        high=high,
        p=randomisation_p(differences, seed=seed),
        wins=wins,
        ties=len(differences) - wins - losses,
        losses=losses,
    )


def interval(values: Sequence[float], *, seed: int = _SEED) -> tuple[float, float]:
    """The 95 % interval of the mean, by a bootstrap: what the mean would be for other queries of this kind."""
    if len(set(values)) < 2:
        return mean(values), mean(values)
    chance = random.Random(seed)
    means = sorted(mean(chance.choices(values, k=len(values))) for _ in range(_RESAMPLES))
    tail = round(0.025 * _RESAMPLES)
    return means[tail], means[-1 - tail]


def randomisation_p(differences: Sequence[float], *, seed: int = _SEED) -> float:
    """How often chance alone gives a difference this large, either way (Fisher's paired randomisation test).

    If the two ways were the same, each difference could as well have the other sign. All choices of signs are tried
    where there are few; otherwise a sample of them, of which the observed one is a member.
    """
    moved = [difference for difference in differences if abs(difference) > _TINY]
    if not moved:
        return 1.0
    bar = abs(sum(moved)) - _TINY * len(moved)
    tables = _signed_sums(moved)
    if 2 ** len(moved) <= _PERMUTATIONS:
        sums = [sum(parts) for parts in product(*tables)]
        return sum(abs(total) >= bar for total in sums) / len(sums)
    chance = random.Random(seed)
    extreme = sum(abs(_draw(tables, chance)) >= bar for _ in range(_PERMUTATIONS))
    return (extreme + 1) / (_PERMUTATIONS + 1)


def _signed_sums(values: Sequence[float]) -> list[list[float]]:
    """For every eight values their sums under all choices of signs: one look-up then stands for eight additions."""
    groups = [values[start : start + 8] for start in range(0, len(values), 8)]
    return [[sum(signed) for signed in product(*((value, -value) for value in group))] for group in groups]


def _draw(tables: Sequence[Sequence[float]], chance: random.Random) -> float:
    # A table of fewer than eight values has a power of two entries, so its part of a byte is as fair.
    return sum(table[byte % len(table)] for table, byte in zip(tables, chance.randbytes(len(tables)), strict=True))
