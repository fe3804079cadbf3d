"""Fusion: one ranking from the evidence of any number of legs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from math import isfinite
from operator import itemgetter

from findling.domain.plans import Plan
from findling.domain.ports import ReadStore
from findling.domain.results import Evidence
from findling.pipelines.retrieve.legs import KEYWORD, LEGS, SEMANTIC
from findling.ranking.fusion import (
    RECENCY_WEIGHTS,
    Fusion,
    Hits,
    Weighing,
    best_first,
    foreign_weight,
    meaning_weight,
    rrf,
    rrf_weighted,
    weighted,
    with_recency,
)

LegEvidence = Mapping[str, Mapping[int, Evidence]]
"""Evidence for chunks by the name of each leg."""

_STRENGTH, _WHY = (itemgetter(Evidence._fields.index(name)) for name in ("strength", "why"))
_REFINED = "refined"


def weigh(query: str, legs: LegEvidence, ceiling: float, plan: Plan) -> tuple[Weighing | None, dict[str, float]]:
    """The weight of meaning against words with its reason, `None` without meaning, and the weights of all legs."""
    others = {name: plan.leg_weights.get(name, LEGS[name].weight) for name in legs if name not in (KEYWORD, SEMANTIC)}
    if SEMANTIC not in legs:
        return None, {KEYWORD: 1.0, **others}
    if plan.mode == "semantic":
        return Weighing(1.0, "only meaning was asked for"), {SEMANTIC: 1.0, **others}
    fixed = None if plan.alpha is None else Weighing(plan.alpha, "as the plan says")
    weighing = fixed or _by_words(query, legs, ceiling)
    return weighing, {KEYWORD: 1 - weighing.alpha, SEMANTIC: weighing.alpha, **others}


def _by_words(query: str, legs: LegEvidence, ceiling: float) -> Weighing:
    """The weight of meaning by what words have found."""
    from findling.text.analysis.wordpieces import is_foreign

    words, is_refined = legs[KEYWORD].values(), _is_refined(legs[SEMANTIC])
    if not is_refined and is_foreign(query):
        return foreign_weight(max([one.worth for one in words], default=0.0))
    return meaning_weight(query, [one.raw for one in words], ceiling, is_refined=is_refined)


def fuse(
    legs: LegEvidence, weights: Mapping[str, float], plan: Plan, ages: Mapping[int, float] | None = None
) -> Fusion:
    """Rank by the legs that have a weight, as the plan wants it. Raises ValueError for evidence that is no number."""
    ranking = list(weights)
    if plan.fusion == "recency":
        ranking = [SEMANTIC, KEYWORD, *(name for name in weights if name not in RECENCY_WEIGHTS)]
    hits = {name: _strengths(name, legs.get(name, {})) for name in ranking}
    if plan.fusion == "rrf":
        return rrf(hits, k=plan.rrf_k)
    if plan.fusion == "rrf_weighted":
        return rrf_weighted(hits, weights, k=plan.rrf_k)
    scaled = {name: LEGS[name].scale(own) for name, own in hits.items()}
    if plan.fusion == "recency":
        return with_recency(scaled, ages or {}, weights={**weights, **RECENCY_WEIGHTS})
    return weighted(scaled, weights)


def evidence_of(fused: Fusion, legs: LegEvidence, ages: Mapping[int, float], cid: int) -> tuple[Evidence, ...]:
    """The evidence for one fused chunk with ranks and shares; legs without a weight come last, without a share."""
    shares, parts = [], fused.parts(cid)
    for leg, rank, normalised, weight, value in parts:
        # An age supports nothing.
        given = legs[leg][cid] if leg in legs else Evidence(leg, ages[cid], normalised, 0.0, "", "days")
        shares.append(given._replace(rank=rank, normalised=normalised, weight=weight, share=value))
    ranked = {part[0] for part in parts}
    return (*shares, *(own[cid] for leg, own in legs.items() if leg not in ranked and cid in own))


def ages_of(store: ReadStore, cids: Iterable[int]) -> dict[int, float]:
    """Days since the resource of each chunk changed, where that is known."""
    now = time.time()
    return {
        cid: max(0.0, now - stored.resource.updated_at) / 86_400
        for cid, stored in store.chunks(list(cids)).items()
        if stored.resource.updated_at is not None
    }


def _strengths(leg: str, evidence: Mapping[int, Evidence]) -> Hits:
    strengths = {cid: one.strength for cid, one in evidence.items()}
    if not all(map(isfinite, strengths.values())):
        raise ValueError(f"leg {leg} gives a strength that is no finite number")
    return best_first(strengths)


def _is_refined(near: Mapping[int, Evidence]) -> bool:
    """Whether the model's own vectors judged most of the nearest chunks."""
    if _REFINED not in map(_WHY, near.values()):
        return False
    # As `nlargest` does it, in a third of the time.
    best = sorted(near.values(), key=_STRENGTH, reverse=True)[:10]
    return 2 * sum(hit.why == _REFINED for hit in best) > len(best)
