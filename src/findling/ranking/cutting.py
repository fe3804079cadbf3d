"""How many hits are worth giving: up to the largest gap in their scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from findling.ranking.checking import positive, unit

__all__ = ["Cut", "adaptive_k"]


class Cut(NamedTuple):
    """How many to give, and why; `gap` is the largest one that was found, as a share of the best score."""

    k_used: int
    gap: float
    reason: str


def adaptive_k(
    scores: Sequence[float], *, k_min: int = 3, k_max: int = 20, buffer: int = 1, least_gap: float = 0.15
) -> Cut:
    """Cut at the largest gap between `k_min` and `k_max` hits, and give `buffer` more to be safe.

    A gap counts as a share of the best score: shares of the score before it would make every tail that runs to zero
    look like a cliff. Of equal gaps the first is taken. Where no gap reaches `least_gap` the scores are flat, and all
    up to `k_max` are given. Raises ValueError for scores that are negative, not finite, or rise, and for bounds that
    are negative or cross each other.
    """
    if not 0 <= k_min <= k_max or buffer < 0:
        raise ValueError(f"k_min {k_min}, k_max {k_max} and buffer {buffer} do not fit together")
    unit(least_gap, "least_gap")
    for score in scores:
        positive(score, "score", or_zero=True)
    if any(before < after for before, after in pairwise(scores)):
        raise ValueError("scores rise; give them best first")
    most = min(k_max, len(scores))
    gaps = [(scores[k - 1] - scores[k], -k) for k in range(max(k_min, 1), most)]
    if not gaps or scores[0] == 0:
        return Cut(most, 0.0, f"nothing to cut: {len(scores)} hits, between {k_min} and {k_max} are given")
    size, place = max(gaps)
    gap, k = size / scores[0], -place
    if size == 0 or gap < least_gap:
        return Cut(most, gap, f"flat scores: the largest gap is {gap:.0%} of the best")
    fall = f"the score falls from {scores[k - 1]:.3g} to {scores[k]:.3g} after {k}, {gap:.0%} of the best"
    return Cut(min(k + buffer, most), gap, f"{fall}; {min(buffer, most - k)} more to be safe")
