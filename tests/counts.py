"""The number of tries of a test: a sample in every run, everything in `make test-long`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["IS_LONG", "sample", "tries"]

_Value = TypeVar("_Value")

IS_LONG = os.environ.get("TEST_LONG") == "1"
"""Whether this run takes all the time it needs; `make test-long` sets the variable."""


def tries(full: int, *, short: int) -> int:
    """The number of seeds, kills, worlds or strings to try: `full` in a long run, `short` in any other."""
    return full if IS_LONG else short


def sample(values: Sequence[_Value], *, short: int) -> Sequence[_Value]:
    """All values in a long run, in any other `short` of them, the first and the last among them; two at least."""
    return values if IS_LONG else [values[at * (len(values) - 1) // (short - 1)] for at in range(short)]
