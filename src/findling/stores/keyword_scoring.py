"""How a keyword leg counts: the parameters of BM25 and the weights of the text fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["STANDARD_B", "STANDARD_K1", "Scoring"]

STANDARD_K1, STANDARD_B = 1.2, 0.75
"""tantivy's built-in parameters."""


class Scoring(NamedTuple):
    """Parameters of BM25 and the weight of each field. What has no weight is found only by those who name the field."""

    k1: float = STANDARD_K1
    b: float = STANDARD_B
    weights: Mapping[str, float] = {
        "body": 1.0,
        "title": 0.5,
        "heading": 0.5,
        "path": 0.5,
        "tags": 0.5,
        "name": 0.0,
        "description": 0.5,
    }

    @property
    def is_standard(self) -> bool:
        """Whether tantivy's own scores are right as they are."""
        return (self.k1, self.b) == (STANDARD_K1, STANDARD_B)
