"""Fusion: one ranking from the evidence of any number of legs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from heapq import nlargest
from operator import attrgetter, itemgetter

from findling.domain.plans import Plan
from findling.domain.ports import ReadStore
from findling.domain.results import Evidence
from findling.pipelines.retrieve.legs import KEYWORD, LEGS, SEMANTIC, Candidate
from findling.ranking.fusion import (
    RECENCY_WEIGHTS,
    Fused,
    Part,
    Weighing,
    meaning_weight,
    rrf,
    rrf_weighted,
    weighted,
    with_recency,
)

__all__ = ["LegEvidence", "ages_of", "fuse", "weigh"]

LegEvidence = Mapping[str, Mapping[int, Evidence]]
"""By the name of each leg, what it says of chunks."""


def weigh(query: str, legs: LegEvidence, ceiling: float, plan: Plan) -> tuple[Weighing | None, dict[str, float]]:
    """How much meaning counts against words and why, `None` without meaning, and the weights of the ranking legs."""
    others = {name: plan.legs.get(name, LEGS[name].weight) for name in legs if name not in (KEYWORD, SEMANTIC)}
    if SEMANTIC not in legs:
        return None, {KEYWORD: 1.0, **others}
    near = legs[SEMANTIC]
    if plan.mode == "semantic":
        return Weighing(1.0, "only meaning was asked for"), {SEMANTIC: 1.0, **others}
    if plan.alpha is not None:
        weighing = Weighing(plan.alpha, "as the plan says")
    else:
        scores = [one.raw for one in legs[KEYWORD].values()]
        weighing = meaning_weight(query, scores, ceiling, is_refined=_is_refined(near))
    return weighing, {KEYWORD: 1 - weighing.alpha, SEMANTIC: weighing.alpha, **others}


def fuse(
    legs: LegEvidence, weights: Mapping[str, float], plan: Plan, ages: Mapping[int, float] | None = None
) -> list[Candidate]:
    """The ranking of what the legs with a weight say, as the plan wants it; the others only add their evidence."""
    ranking = list(weights)
    if plan.fusion == "recency":
        ranking = [SEMANTIC, KEYWORD, *(name for name in weights if name not in RECENCY_WEIGHTS)]
    hits = {name: _best_first(legs.get(name, {})) for name in ranking}
    if plan.fusion == "rrf":
        fused = rrf(hits, k=plan.rrf_k)
    elif plan.fusion == "rrf_weighted":
        fused = rrf_weighted(hits, weights, k=plan.rrf_k)
    else:
        scaled = {name: LEGS[name].scale(own) for name, own in hits.items()}
        if plan.fusion == "recency":
            fused = with_recency(scaled, ages or {}, weights={**weights, **RECENCY_WEIGHTS})
        else:
            fused = weighted(scaled, weights)
    silent = [own for name, own in legs.items() if name not in hits]
    return [_candidate(one, legs, silent) for one in fused]


def ages_of(store: ReadStore, cids: Iterable[int]) -> dict[int, float]:
    """How many days ago the resource of each chunk changed, where that is known."""
    now = time.time()
    return {
        cid: max(0.0, now - stored.resource.updated_at) / 86_400
        for cid, stored in store.chunks(list(cids)).items()
        if stored.resource.updated_at is not None
    }


def _best_first(evidence: Mapping[int, Evidence]) -> list[tuple[int, float]]:
    """Ids with strengths in the order of the strengths, equals in the order of the ids."""
    # Two sorts, of which the second leaves equals as they are, are twice as fast as one by a key made in Python.
    return sorted(sorted([(cid, one.strength) for cid, one in evidence.items()]), key=itemgetter(1), reverse=True)


def _candidate(fused: Fused, legs: LegEvidence, silent: list[Mapping[int, Evidence]]) -> Candidate:
    """A place of the ranking with its evidence; scores are made of that, not of the sums that rank."""
    cid, _, parts = fused
    evidence = [_share(part, legs[part.leg][cid] if part.leg in legs else None) for part in parts]
    evidence += [own[cid] for own in silent if cid in own]
    return Candidate(cid, 0.0, tuple(evidence))


def _share(part: Part, said: Evidence | None) -> Evidence:
    """What a leg said with its rank and its share; an age supports nothing."""
    leg, rank, raw, normalised, weight, value = part
    if said is None:
        return Evidence(leg, raw, normalised, 0.0, "", "days", rank, normalised, weight, value)
    _, raw, strength, worth, why, measure, *_ = said
    return Evidence(leg, raw, strength, worth, why, measure, rank, normalised, weight, value)


def _is_refined(near: Mapping[int, Evidence]) -> bool:
    """Whether most of the nearest chunks were judged by the model's own vectors."""
    best = nlargest(10, near.values(), key=attrgetter("strength"))
    return 2 * sum(hit.why == "refined" for hit in best) > len(best)
