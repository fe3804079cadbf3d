"""Whether a row of a table names its columns, so that the rows below it can be read without it."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["are_column_names"]


def are_column_names(cells: Sequence[str]) -> bool:
    """Whether the cells are different short texts, no numbers or dates, except for years in order."""
    names = [cell.strip() for cell in cells]
    values = [name for name in names if _VALUE.fullmatch(name)]
    return (
        len(set(names)) == len(names)
        and all(len(name) <= _MAX_NAME for name in names)
        and (not values or (len(values) < len(names) and _are_years_in_order(values)))
    )


_MAX_NAME = 200
_VALUE = re.compile(r"[-+(]?[\d.,]+(?:e[-+]?\d+)?[%)]?|\d+[-/.:]\d+.*|true|false|null|n/?a|none", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")


def _are_years_in_order(values: Sequence[str]) -> bool:
    """A person with the year of birth is a row of values, a column for every year is not."""
    in_order = sorted(values)
    return len(values) > 1 and all(map(_YEAR.fullmatch, values)) and list(values) in (in_order, in_order[::-1])
