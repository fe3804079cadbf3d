"""Checks of numbers: one place and one wording for every refusal of this package."""

from __future__ import annotations

__all__ = ["LARGEST", "finite", "positive", "unit"]

LARGEST = 1e300
"""No score is larger than this, so that the distance between two scores is a number, too."""

_ROUNDING = 1e-3
"""Cosines of vectors that are kept in 16 bits come to as much as 1.0003 (64 numbers; fewer make it worse)."""


def finite(value: float, name: str) -> float:
    """The value itself. Raises ValueError for NaN, infinity, and sizes that no score has."""
    # NaN fails every comparison, so this one test refuses all three.
    if not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{name} is {value}, not a finite number")
    return value


def positive(value: float, name: str, *, or_zero: bool = False) -> float:
    """The value itself. Raises ValueError unless it is finite and above zero, or zero where that is allowed."""
    if not 0 <= value <= LARGEST or (value == 0 and not or_zero):
        raise ValueError(f"{name} is {value}, not a positive number{' or 0' if or_zero else ''}")
    return value


def unit(value: float, name: str) -> float:
    """The value, with what rounding put outside 0 to 1 cut off. Raises ValueError when it is further outside."""
    if 0.0 <= value <= 1.0:
        return value
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        raise ValueError(f"{name} is {value}, not between 0 and 1")
    return min(max(value, 0.0), 1.0)
