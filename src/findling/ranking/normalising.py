"""Scores of any range, brought to 0 to 1. Order is kept: of two scores the higher one never comes out lower.

Nothing in gives nothing out. Negative scores are scores like any other, but for `by_maximum`. Every function raises
ValueError for NaN and infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from findling.ranking.checking import finite, positive

__all__ = ["by_maximum", "decayed", "min_max", "robust", "z_score"]


def min_max(scores: Sequence[float]) -> list[float]:
    """The lowest score becomes 0, the highest 1; scores that are all equal, or a single one, become 1."""
    if not _checked(scores):
        return []
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) for score in scores] if high > low else [1.0] * len(scores)


def by_maximum(scores: Sequence[float], maximum: float | None = None) -> list[float]:
    """Shares of the highest score, or of a `maximum` that is known beforehand; more than that is 1, negative is 0.

    When the maximum is not above zero, nothing is: all become 0.
    """
    if not _checked(scores):
        return []
    most = max(scores) if maximum is None else finite(maximum, "maximum")
    return [min(max(score / most, 0.0), 1.0) if most > 0 else 0.0 for score in scores]


def z_score(
    scores: Sequence[float], mean: float, deviation: float, *, centre: float = 0.0, slope: float = 1.0
) -> list[float]:
    """How far scores stand out from a population of this mean and deviation, by the logistic function.

    A score that lies `centre` deviations above the mean becomes 0.5; `slope` says how fast it goes from 0 to 1
    there. The best of 50,000 normal rows lie 4 deviations up, where the plain curve is nearly level (0.98), so that
    comparing them with each other takes a centre near them. A deviation of 0 tells nothing apart: all become 0.5.
    """
    _checked(scores)
    finite(mean, "mean")
    finite(centre, "centre")
    positive(slope, "slope")
    if positive(deviation, "deviation", or_zero=True) == 0:
        return [0.5] * len(scores)
    return [_logistic(slope * ((score - mean) / deviation - centre)) for score in scores]


def robust(scores: Sequence[float]) -> list[float]:
    """As `z_score` of the scores among themselves, but with median and quartiles, which no outlier moves.

    Where at least half of the scores are equal, half of their whole range stands for the deviation; all equal, or a
    single one, become 0.5.
    """
    _checked(scores)
    if len(scores) < 2:
        return [0.5] * len(scores)
    ordered = sorted(scores)
    lower, median, upper = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    deviation = (upper - lower) / _QUARTILES_OF_NORMAL or (ordered[-1] - ordered[0]) / 2
    if deviation == 0:
        return [0.5] * len(scores)
    return [_logistic((score - median) / deviation) for score in scores]


def decayed(age: float, half_life: float) -> float:
    """1 for what is new, one half at the age of `half_life`, towards 0; what comes from the future is new.

    Raises ValueError for a half-life that is not positive.
    """
    return float(0.5 ** (max(finite(age, "age"), 0.0) / positive(half_life, "half-life")))


_QUARTILES_OF_NORMAL = 1.349
"""Deviations between the quartiles of a normal distribution."""


def _checked(scores: Sequence[float]) -> Sequence[float]:
    for score in scores:
        finite(score, "score")
    return scores


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of them lies, between two neighbours where it has to be."""
    below, part = divmod(share * (len(ordered) - 1), 1)
    low = ordered[int(below)]
    return low + part * (ordered[int(below) + 1] - low) if part else low


def _logistic(x: float) -> float:
    """Two forms, because the exponential of a large number overflows and that of a small one does not."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1 + grown)
