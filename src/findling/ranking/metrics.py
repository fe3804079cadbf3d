"""How good a ranking is by graded judgements, with the conventions of trec_eval, so that figures compare.

A ranking is a list of ids, best first; an id that comes twice counts once, at its best rank, and the ids behind it
move up. Ids of equal score stand in the order in which they were given out. A judgement above 0 is relevant; an id
without one is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from findling.domain.errors import InvalidValueError

__all__ = [
    "GAINS",
    "MEASURES",
    "Grades",
    "average_precision",
    "mean",
    "measure",
    "ndcg",
    "precision",
    "recall",
    "reciprocal_rank",
    "success",
    "unique",
]

Grades = Mapping[str, int]
"""Id → how relevant it is."""

GAINS = ("linear", "exponential")
"""What a grade is worth to NDCG: itself, as in trec_eval, or 2^grade - 1, which favours the best grade."""


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
