"""Plans with a name. Like the plan itself this loads nothing."""

from __future__ import annotations

from findling.text.chunk_plan import ChunkPlan

__all__ = ["CODE_WAYS", "PRESETS", "STRATEGIES", "UNITS", "check_plan"]

STRATEGIES = ("semantic", "fixed", "overlapping")
UNITS = ("characters", "tokens", "words")
CODE_WAYS = ("auto", "patterns", "syntax")

PRESETS: dict[str, ChunkPlan] = {
    "default": ChunkPlan("semantic", 480, 0, "tokens"),
    "sila": ChunkPlan("overlapping", 512, 64, "tokens"),
    "nexus": ChunkPlan("overlapping", 1024, 128, "tokens"),
    "lss": ChunkPlan("overlapping", 220, 20, "words"),
}


def check_plan(plan: ChunkPlan) -> None:
    """Raises `ValueError` when the plan names no strategy or unit, or when nothing can be cut by its numbers."""
    if plan.strategy not in STRATEGIES:
        raise ValueError(f"chunk strategy must be one of {', '.join(STRATEGIES)}, not {plan.strategy!r}")
    if plan.unit not in UNITS:
        raise ValueError(f"chunk unit must be one of {', '.join(UNITS)}, not {plan.unit!r}")
    if plan.code not in CODE_WAYS:
        raise ValueError(f"code must be cut by one of {', '.join(CODE_WAYS)}, not {plan.code!r}")
    if plan.size < 1:
        raise ValueError(f"chunk size must be positive, not {plan.size}")
    if not 0 <= plan.overlap < plan.size:
        raise ValueError(f"chunk overlap must be at least 0 and below the size {plan.size}, not {plan.overlap}")
