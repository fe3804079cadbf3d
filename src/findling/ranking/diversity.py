"""Maximal marginal relevance: what says the same as a hit above it moves down, and the scores still fall.

Relevance stays that of the fused score. It is taken as a share of the best score, so that the balance means the same
whatever the scale, and so that the tail of the list has no say in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from heapq import heapify, heappop, heapreplace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from findling.ranking.checking import finite, positive, unit

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

__all__ = ["Diverse", "cosines", "diversify", "jaccard"]

Similarity: TypeAlias = Callable[[int, int], float] | Sequence[Sequence[float]]
"""How much alike two candidates are, by their places in the list, counted from 0; 1 is the same."""


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


def cosines(vectors: Vectors) -> list[list[float]]:
    """The similarity of every pair of rows of length 1, for `diversify`."""
    table: list[list[float]] = (vectors @ vectors.T).tolist()
    return table


def jaccard(one: AbstractSet[object], other: AbstractSet[object]) -> float:
    """What two sets share, as a part of all they have; 0 when both are empty."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


_Choice: TypeAlias = tuple[int, int | None, float]
"""Places in the order of relevance: of the chosen, and of the one above it that it is most like, and how much."""


def _chosen(
    candidates: Sequence[tuple[int, float]], order: Sequence[int], similarity: Similarity, balance: float
) -> list[_Choice]:
    """The greedy choice, with few comparisons.

    A value can only fall as more are chosen, so an old value is an upper bound: only a candidate at the head of the
    heap has to be compared with what was chosen since it was last looked at.
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
        likeness_to = _row(similarity, order[old])
        for above, _, _ in chosen[looked_at[old] :]:
            alike = finite(likeness_to(order[above]), "similarity")
            if alike > nearest[old][0]:
                nearest[old] = alike, above
        looked_at[old] = len(chosen)
        heapreplace(heap, (-(relevances[old] - (1 - balance) * nearest[old][0]), old))
    return chosen


def _row(similarity: Similarity, place: int) -> Callable[[int], float]:
    return partial(similarity, place) if callable(similarity) else similarity[place].__getitem__
