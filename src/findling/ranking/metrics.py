"""Measures of a ranking by graded judgements, with the conventions of trec_eval, so that figures compare.

A ranking is a list of ids, best first; an id that comes twice counts once, at its best rank, and the ids behind it
move up. Ids of equal score stand in the order in which they were given out. A judgement above 0 is relevant; an id
without one is not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from findling.domain.errors import InvalidValueError

Grades = Mapping[str, int]
"""Id → how relevant it is."""

GAINS = ("linear", "exponential")
"""Gains of a grade in NDCG: the grade, as in trec_eval, or 2^grade - 1, which favours the best grade."""


def measure(ranking: Sequence[str], grades: Grades, *, gain: str = "linear") -> dict[str, float]:
    """Every measure of `MEASURES` for one query. Raises InvalidValueError for an unknown gain."""
    found = unique(ranking)
    return {name: compute(found, grades, gain) for name, compute in _COMPUTE.items()}


def unique(ranking: Sequence[str]) -> list[str]:
    """The ranking with every id once, at its best rank."""
    return list(dict.fromkeys(ranking))


def mean(values: Sequence[float]) -> float:
    """The mean, and 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0


def ndcg(ranking: Sequence[str], grades: Grades, k: int, gain: str = "linear") -> float:
    """Gain of the first k, later ranks discounted, as a share of what the best order would gain.

    Raises InvalidValueError for an unknown gain.
    """
    if gain not in GAINS:
        raise InvalidValueError(f"no gain is called {gain}", hint=" or ".join(GAINS))
    ideal = _discounted(sorted(grades.values(), reverse=True)[:k], gain)
    return _discounted([grades.get(rid, 0) for rid in unique(ranking)[:k]], gain) / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 over the rank of the first relevant id among the first k."""
    return next((1 / rank for rank, hit in enumerate(_relevance(ranking, grades, k), 1) if hit), 0.0)


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of the relevant ids that is among the first k."""
    relevant = _count_relevant(grades)
    return sum(_relevance(ranking, grades, k)) / relevant if relevant else 0.0


def precision(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of k places that relevant ids take; a place that stays empty counts as a miss."""
    return sum(_relevance(ranking, grades, k)) / k


def average_precision(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The mean, over all relevant ids, of the precision at their rank; 0 for those behind the first k."""
    relevant, found, total = _count_relevant(grades), 0, 0.0
    for rank, hit in enumerate(_relevance(ranking, grades, k), 1):
        if hit:
            found += 1
            total += found / rank
    return total / relevant if relevant else 0.0


def success(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 if a relevant id is among the first k, else 0."""
    return float(any(_relevance(ranking, grades, k)))


_COMPUTE: dict[str, Callable[[Sequence[str], Grades, str], float]] = {
    "NDCG@5": lambda found, grades, gain: ndcg(found, grades, 5, gain),
    "NDCG@10": lambda found, grades, gain: ndcg(found, grades, 10, gain),
    "MRR@10": lambda found, grades, _: reciprocal_rank(found, grades, 10),
    "R@5": lambda found, grades, _: recall(found, grades, 5),
    "R@10": lambda found, grades, _: recall(found, grades, 10),
    "R@100": lambda found, grades, _: recall(found, grades, 100),
    "P@5": lambda found, grades, _: precision(found, grades, 5),
    "MAP@10": lambda found, grades, _: average_precision(found, grades, 10),
    "Success@1": lambda found, grades, _: success(found, grades, 1),
}

MEASURES = tuple(_COMPUTE)
"""The names of what is measured, in the order in which they are shown."""


def _relevance(ranking: Sequence[str], grades: Grades, k: int) -> list[bool]:
    return [grades.get(rid, 0) > 0 for rid in unique(ranking)[:k]]


def _count_relevant(grades: Grades) -> int:
    return sum(grade > 0 for grade in grades.values())


def _discounted(grades: Sequence[int], gain: str) -> float:
    """A grade below 0, which some collections give to spam, gains nothing."""
    return math.fsum(
        (grade if gain == "linear" else 2**grade - 1) / math.log2(rank + 1)
        for rank, grade in enumerate(grades, 1)
        if grade > 0
    )


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
    """Probability that chance alone gives a difference this large, either way (Fisher's paired randomisation test).

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
