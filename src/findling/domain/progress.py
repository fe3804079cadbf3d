"""How far an indexing run has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["IndexProgress", "Progress"]


class IndexProgress(NamedTuple):
    """A moment of an indexing run. `stage` is `scan`, `index` or `done`; `total` is 0 while it is not known.

    The first moment says the `reason` of the run, and `path` is the folder then. `done` of `total` files and
    `bytes_read` of `bytes_total` are dealt with; `failed` of them could not be read.
    """

    stage: str
    done: int = 0
    total: int = 0
    chunks: int = 0
    failed: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    seconds: float = 0.0
    path: str = ""
    reason: str = ""

    @property
    def bytes_per_second(self) -> float:
        """How fast files are read, on average so far."""
        return self.bytes_read / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at this speed; `None` before there is any."""
        speed = self.bytes_per_second
        return max(0, self.bytes_total - self.bytes_read) / speed if speed else None


Progress = Callable[[IndexProgress], None]
