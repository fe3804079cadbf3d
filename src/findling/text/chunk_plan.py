"""How texts are cut, as data. A search compares it with what its index was made by, so this loads nothing."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ChunkPlan"]


class ChunkPlan(NamedTuple):
    strategy: str = "semantic"
    size: int = 2400
    overlap: int = 0
    unit: str = "characters"
