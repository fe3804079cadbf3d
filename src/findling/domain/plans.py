"""How a search is carried out, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FUSIONS", "MODES", "Plan"]

MODES = ("hybrid", "keyword", "semantic")
FUSIONS = ("weighted", "rrf", "rrf_weighted", "recency")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which legs are asked and what is done with what they find; the defaults are what measured best.

    `alpha` is the weight of meaning against words, 0 to 1; `None` has it decided for each query. `overfetch` says how
    many times the wanted hits each leg is asked for. `diversity` is the share of relevance when near-equal hits are
    spread, 1 leaves the ranking alone. `budget_ms` is the time for reading passages that the model has not read yet.
    """

    mode: str = "hybrid"
    fusion: str = "weighted"
    alpha: float | None = None
    rrf_k: float = 60.0
    overfetch: float = 3.0
    feedback: bool = False
    boosts: bool = False
    collapse: bool = False
    diversity: float = 1.0
    adaptive_k: bool = False
    rerank_depth: int = 50
    budget_ms: float = 300.0
