"""What age takes from a score."""

from __future__ import annotations

from findling.ranking.checking import finite, positive

__all__ = ["decayed"]


def decayed(age: float, half_life: float) -> float:
    """1 for what is new, one half at the age of `half_life`, towards 0; what comes from the future is new.

    Raises ValueError for a half-life that is not positive.
    """
    return float(0.5 ** (max(finite(age, "age"), 0.0) / positive(half_life, "half-life")))
