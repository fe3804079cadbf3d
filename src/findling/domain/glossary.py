"""The glossary: words that mean the same, and what people have decided about them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GlossaryTerm"]


class GlossaryTerm(NamedTuple):
    """One surface of a group of words that mean the same; `group` is the canonical surface of its group.

    `key` is the surface as `glossary_key` normalises it; group and key together are unique. `status` is `canonical`,
    `alias`, `pending` (suggested, not used yet), `rejected` (never to be suggested again) or `protected` (to be taken
    literally; it belongs to no group). `source` says who or what brought it, `snippet` where it was seen.
    """

    group: str
    key: str
    surface: str
    status: str
    source: str = ""
    snippet: str = ""
    decided_at: float | None = None
