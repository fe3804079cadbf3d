"""How texts are cut, as data. A search compares it with what its index was made by, so this loads nothing."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ChunkPlan"]


class ChunkPlan(NamedTuple):
    """How texts are cut into chunks.

    `strategy` is `semantic` (along sections, definitions and paragraphs), `fixed` (windows of one size) or
    `overlapping` (windows that share `overlap` with the one before). `unit` says what `size` and `overlap` count:
    `characters`, `tokens` of the embedding model, or `words`. `code` says how definitions are found: by `patterns`, by
    `syntax` trees where there is a grammar, or, with `auto`, by trees where patterns go wrong. A tree is made by code
    that may crash or never return on broken text, so it belongs into a process that can be spared.
    """

    strategy: str = "semantic"
    size: int = 2400
    overlap: int = 0
    unit: str = "characters"
    code: str = "patterns"
