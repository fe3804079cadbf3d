"""How often a test tries: a sample in every run, everything in `make test-long`."""

from __future__ import annotations

import os

__all__ = ["IS_LONG", "tries"]

IS_LONG = os.environ.get("TEST_LONG") == "1"
"""Whether this run takes all the time it needs; `make test-long` sets the variable."""


def tries(full: int, *, short: int) -> int:
    """The number of seeds, kills, worlds or strings to try: `full` in a long run, `short` in any other."""
    return full if IS_LONG else short
