"""Maximal marginal relevance: what says the same as a hit above it moves down, and the scores still fall.

Relevance stays that of the fused score. It counts as a share of the best score: neither the scale nor the tail of the
list changes the balance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from findling.domain.values import counted
from findling.ranking.evidence import finite, positive, unit


class Cut(NamedTuple):
    """Number of hits to give, and the reason; `gap` is the largest gap as a share of the best score."""

    k_used: int
    gap: float
    reason: str


def adaptive_k(
    scores: Sequence[float], *, k_min: int = 3, k_max: int = 20, buffer: int = 1, least_gap: float = 0.15
) -> Cut:
    """Cut at the largest gap between `k_min` and `k_max` hits, and give `buffer` more to be safe.

    A gap counts as a share of the best score: shares of the score before it would make every tail that runs to zero
    look like a cliff. Of equal gaps the first is taken. Where no gap reaches `least_gap` the scores are flat, and all
    up to `k_max` are given. Raises ValueError for scores that are negative, not finite, or rise, and for bounds that
    are negative or cross each other.
    """
    if not 0 <= k_min <= k_max or buffer < 0:
        raise ValueError(f"k_min {k_min}, k_max {k_max} and buffer {buffer} do not fit together")
    unit(least_gap, "least_gap")
    for score in scores:
        positive(score, "score", or_zero=True)
    if any(before < after for before, after in pairwise(scores)):
        raise ValueError("scores rise; give them best first")
    most = min(k_max, len(scores))
    gaps = [(scores[k - 1] - scores[k], -k) for k in range(max(k_min, 1), most)]
    if not gaps or scores[0] == 0:
        return Cut(most, 0.0, f"nothing to cut: {counted(len(scores), 'hit')}, between {k_min} and {k_max} are given")
    size, place = max(gaps)
    gap, k = size / scores[0], -place
    if size == 0 or gap < least_gap:
        return Cut(most, gap, f"flat scores: the largest gap is {gap:.0%} of the best")
    fall = f"the score falls from {scores[k - 1]:.3g} to {scores[k]:.3g} after {k}, {gap:.0%} of the best"
    return Cut(min(k + buffer, most), gap, f"{fall}; {min(buffer, most - k)} more to be safe")


Similarity: TypeAlias = Callable[[int, int], float]
"""Similarity of two candidates by their places in the list, counted from 0; 1 is the same."""


class Diverse(NamedTuple):
    """An id in its new place. `score` never rises from one to the next; `relevance` is the score it came with.

    `moved` counts the places up, or down when negative. `nearest` is the id above it that it is most like, by
    `similarity`; it is `None` when nothing above is like it at all, or nothing was compared.
    """

    id: int
    score: float
    relevance: float
    moved: int = 0
    nearest: int | None = None
    similarity: float = 0.0

    @property
    def reason(self) -> str:
        """Why it moved; empty when it did not."""
        if self.moved < 0:
            return f"down {-self.moved}: {self.similarity:.2f} like {self.nearest}, which comes first"
        return f"up {self.moved}: less like what comes first" if self.moved else ""


def diversify(
    candidates: Sequence[tuple[int, float]], similarity: Similarity, *, balance: float = 0.7, depth: int = 50
) -> list[Diverse]:
    """All candidates, the first `depth` of them reordered by balance × relevance − (1 − balance) × similarity.

    The similarity is that to the most similar one already chosen; a negative one counts as 0. Candidates come best
    first (else they are put so, equals as they were), and the first stays first. A balance of 1 changes nothing.
    Raises ValueError for scores that are negative or not finite, and a balance outside of 0 to 1.
    """
    unit(balance, "balance")
    for _, score in candidates:
        positive(score, "score", or_zero=True)
    order = sorted(range(len(candidates)), key=lambda place: -candidates[place][1])
    chosen = _chosen(candidates, order[: max(depth, 0)], similarity, balance)
    reordered = []
    lowest = candidates[order[0]][1] if order else 0.0
    for new, (old, nearest, likeness) in enumerate(chosen):
        item, score = candidates[order[old]]
        lowest = min(lowest, score)
        above = candidates[order[nearest]][0] if nearest is not None else None
        reordered.append(Diverse(item, lowest, score, old - new, above, likeness))
    rest = [
        Diverse(item, min(score, lowest), score) for item, score in map(candidates.__getitem__, order[len(chosen) :])
    ]
    return reordered + rest


def jaccard(one: AbstractSet[object], other: AbstractSet[object]) -> float:
    """Shared part of two sets among all they hold; 0 when both are empty."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


_Choice: TypeAlias = tuple[int, int | None, float]
"""Places in the order of relevance: of the chosen, and of the one above it that it is most like, and how much."""


def _chosen(
    candidates: Sequence[tuple[int, float]], order: Sequence[int], similarity: Similarity, balance: float
) -> list[_Choice]:
    """The greedy choice, with few comparisons.

    A value can only fall as more are chosen, so an old value is an upper bound: only the head of the heap needs a
    comparison with the choices since its last one.
    """
    best = candidates[order[0]][1] if order else 0.0
    relevances = [balance * candidates[place][1] / best if best > 0 else 0.0 for place in order]
    nearest: list[tuple[float, int | None]] = [(0.0, None)] * len(order)
    looked_at = [0] * len(order)
    heap = [(-relevance, old) for old, relevance in enumerate(relevances)]
    heapify(heap)
    chosen: list[_Choice] = []
    while heap:
        _, old = heap[0]
        if looked_at[old] == len(chosen):
            heappop(heap)
            chosen.append((old, nearest[old][1], nearest[old][0]))
            continue
        for above, _, _ in chosen[looked_at[old] :]:
            alike = finite(similarity(order[old], order[above]), "similarity")
            if alike > nearest[old][0]:
                nearest[old] = alike, above
        looked_at[old] = len(chosen)
        heapreplace(heap, (-(relevances[old] - (1 - balance) * nearest[old][0]), old))
    return chosen
