"""What is kept of a memory besides its text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Access"]


@dataclass(frozen=True, slots=True)
class Access:
    """How often something was recalled, and when last, in seconds since the epoch."""

    count: int
    last_at: float
