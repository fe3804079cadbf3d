"""Retrieval: the legs of a plan are asked, and what they find becomes one ranking."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from findling.domain.budgets import current_budget
from findling.domain.ports import KeywordHits, KeywordLeg, ReadStore
from findling.domain.queries import Filters
from findling.pipelines.retrieve.candidates import Candidate, Found
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, loose_words
from findling.pipelines.retrieve.vector_retrieval import Meaning, MeaningHit, find_by_meaning
from findling.ranking.evidence import falling, least_evidence, least_words, words_evidence
from findling.text.query.tree import typed_terms

__all__ = ["allowed_resources", "find_candidates"]

_LEAST_DEPTH = 100
"""Candidates a leg is asked for at least: what is far down in one leg may be first in the other."""

_REORDERED = 250
"""Matches that meaning puts in order where it finds none by itself: the same ones for a page and for the next."""

_READ_AHEAD = 20
"""How many of the best candidates a model may read during a search."""


def find_candidates(
    store: ReadStore, keyword: KeywordLeg, meaning: Meaning | None, question: AnalyzedQuery, wanted: int
) -> Found:
    """Ask the legs of the plan for at least `wanted` candidates. Raises ModelError when a model fails."""
    plan, filters = question.plan, question.filters
    if meaning is None or not meaning.spaces:
        return _only_words(store, keyword, question, wanted)
    from findling.pipelines.retrieve.fusion_step import ages_of, fuse

    deadline = time.monotonic() + plan.budget_ms / 1000
    depth = _depth(wanted, plan.overfetch)
    # What must stand in a hit is a promise that only words can keep: meaning then reorders and adds nothing.
    loose, conditions = loose_words(question)
    finds = loose is not None and plan.meaning_finds
    with_words = plan.mode == "hybrid" or not finds
    if not finds:
        depth = max(depth, _REORDERED)
    found, feedback = _by_words(store, keyword, question, depth if with_words else 1)
    words = dict(found.hits) if with_words else {}
    near, judges = find_by_meaning(
        meaning.spaces,
        question.text,
        depth if finds else 0,
        allowed=allowed_resources(store, filters),
        also=list(words),
        held={term for term, forms in found.forms.items() if forms},
    )
    judged, near = near, _standing_out(near, words)
    only_near = [cid for cid in near if cid not in words]
    if conditions is not None and only_near:
        fitting = keyword.scores(conditions, only_near)
        near = {cid: hit for cid, hit in near.items() if cid in words or cid in fitting}
    if with_words and loose is not None:
        # Asked for by name, so that a score does not depend on how deep the leg was asked.
        words |= keyword.scores(loose, [cid for cid in only_near if cid in near], weights=plan.weights)
    ages = ages_of(store, words.keys() | near.keys()) if plan.fusion == "recency" else {}
    fused, weighing = fuse(question.text, words, near, found.ceiling, plan, ages)
    unread = _unread(judged, [hit.cid for hit in fused[:_READ_AHEAD]])
    if plan.budget_ms and meaning.read_on is not None and unread:
        read = meaning.read_on(judges[0], unread, deadline)
        if not finds:
            read = {cid: hit for cid, hit in read.items() if cid in words}
        elif conditions is not None and read:
            fitting = keyword.scores(conditions, list(read))
            read = {cid: hit for cid, hit in read.items() if cid in words or cid in fitting}
        near = _standing_out(near | read, words)
        fused, weighing = fuse(question.text, words, near, found.ceiling, plan, ages)
    matching = len(near.keys() - words.keys()) + (found.total if with_words else 0)
    least = _least(question, fused)
    kept = _scored(fused, least)
    total = matching
    if least:
        by_words = _count(keyword, question, found, least) if with_words else 0
        total = by_words + sum(one.words < least for one in kept)
    is_all_words = len(found.hits) < depth or words_evidence(found.hits[-1][1], found.ceiling) < least
    return Found(
        kept,
        found,
        total=total,
        weaker=matching - total,
        least=least,
        is_all=is_all_words and len(only_near) < depth,
        strategy=plan.mode,
        weighing=weighing,
        feedback=feedback,
    )


def allowed_resources(store: ReadStore, filters: Filters) -> Collection[int] | None:
    """The numbers of the resources that pass the filters; `None` when there are none."""
    return None if filters == Filters() else frozenset(store.matching(filters))


def _least(question: AnalyzedQuery, candidates: Sequence[Candidate]) -> float:
    """The evidence that a hit must have. What fulfils conditions, or holds the only word there is, needs none."""
    if question.plan.weak or question.reading != "ranked" or len(typed_terms(question.node)) < 2:
        return 0.0
    return least_evidence(max((one.evidence for one in candidates), default=0.0))


def _scored(candidates: Sequence[Candidate], least: float) -> list[Candidate]:
    """The candidates with enough evidence, with scores that never rise from one to the next."""
    kept = [one for one in candidates if one.evidence >= least]
    return [one._replace(score=score) for one, score in zip(kept, falling(one.evidence for one in kept), strict=True)]


def _count(keyword: KeywordLeg, question: AnalyzedQuery, found: KeywordHits, least: float) -> int:
    """How many chunks have so much evidence by their words."""
    enough = sum(words_evidence(raw, found.ceiling) >= least for _, raw in found.hits)
    if enough < len(found.hits) or enough == found.total:
        return enough
    raw = least_words(least, found.ceiling)
    return keyword.count(question.node, question.filters, raw, weights=question.plan.weights)


def _unread(judged: Mapping[int, MeaningHit], first: list[int]) -> list[int]:
    """The best candidates that the model has not read, also those not near enough: the model may see more in them."""
    nearest = sorted(judged, key=lambda cid: -judged[cid].strength)[:_READ_AHEAD]
    ahead = list(dict.fromkeys([*first, *nearest]))[:_READ_AHEAD]
    # By what was judged: a passage that was read and is not near is read, too.
    return [cid for cid in ahead if cid not in judged or judged[cid].speed == "instant"]


def _standing_out(near: Mapping[int, MeaningHit], words: Mapping[int, float]) -> dict[int, MeaningHit]:
    """Without what neither its words nor its meaning would find."""
    return {cid: hit for cid, hit in near.items() if cid in words or hit.is_near}


def _by_words(store: ReadStore, keyword: KeywordLeg, question: AnalyzedQuery, limit: int) -> tuple[KeywordHits, str]:
    plan = question.plan
    found = keyword.search(question.node, question.filters, limit, weights=plan.weights)
    if not plan.feedback:
        return found, ""
    from findling.pipelines.retrieve.feedback_step import with_feedback

    return with_feedback(store, keyword, question, found, limit)


def _only_words(store: ReadStore, keyword: KeywordLeg, question: AnalyzedQuery, wanted: int) -> Found:
    found, feedback = _by_words(store, keyword, question, wanted)
    is_browsing = question.reading == "browse"
    # Whatever fulfils conditions alone fulfils them wholly.
    candidates = [
        Candidate(cid, 0.0, rank, raw, words=1.0 if is_browsing else words_evidence(raw, found.ceiling))
        for rank, (cid, raw) in enumerate(found.hits, start=1)
    ]
    least = _least(question, candidates)
    kept = _scored(candidates, least)
    total = _count(keyword, question, found, least) if least else found.total
    return Found(
        kept,
        found,
        total=total,
        weaker=found.total - total,
        least=least,
        is_all=len(found.hits) < wanted or len(kept) < len(candidates),
        strategy="browse" if is_browsing else "keyword",
        feedback=feedback,
    )


def _depth(wanted: int, overfetch: float) -> int:
    """How deep the legs are asked: in steps, so that a page and the next one see the same ranking."""
    depth = _LEAST_DEPTH
    most = current_budget().candidates
    while depth < min(wanted * overfetch, most):
        depth *= 4
    return min(depth, most)
