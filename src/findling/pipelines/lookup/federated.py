"""One ranking from the answers of several workspaces, by evidence that means the same in all of them.

The words of a hit count by their share of the query's highest possible score in its workspace, unknown words
included. A workspace that knows half of the question scores low, and rare words are no advantage. Meaning counts by the
cosine, which is the same in every workspace. Both are weighed as in a single answer; sizes of workspaces do not matter.

NDCG@10 on SciFact in four workspaces of 60, 25, 10 and 5 % (bench/across.py), by words and instant vectors: .717, in a
single one .716; by the scores of the answers .675, by ranks (reciprocal rank fusion) .593; words alone .697 and .700.
Five collections in a workspace each: .604, all in one .594, by scores .371, by ranks .306. The smallest of the four has
5.5 % of all first ten hits, and 4.8 % in the single workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from findling.domain.results import Hit, SearchAnswer
from findling.ranking.evidence import falling, words_evidence

_STEEPNESS = 1.3  # the power by which words lose their say down the ranking, as in a single answer


class RankedAcross(NamedTuple):
    """A hit with its score among all, the number of its answer, and its place there from 1 on."""

    answer: int
    rank: int
    score: float
    hit: Hit


def fuse_across(answers: Sequence[SearchAnswer], limit: int, offset: int = 0) -> list[RankedAcross]:
    """The hits of all answers, best first, `limit` of them after the first `offset`.

    The answers come from requests with `explain`. Hits of one answer keep their order. Of equal ones the better place
    in its own answer comes first, then the earlier answer. A hit has its own score, or that of a hit above where that
    is less. Without words to rank by, the latest come first.
    """
    is_browsing = all(answer.reading == "browse" for answer in answers if answer.hits)
    worth = [[hit.score for hit in answer.hits] for answer in answers] if is_browsing else _worth(answers)
    # A hit never counts more than the one above it: its answer's own order (a newer version, a reranker) stays.
    ranked = [
        RankedAcross(number, rank, value, hit)
        for number, (answer, values) in enumerate(zip(answers, worth, strict=True))
        for rank, (hit, value) in enumerate(zip(answer.hits, falling(values), strict=True), start=1)
    ]
    if is_browsing:
        ranked.sort(key=lambda one: (-(one.hit.at or 0.0), one.rank, one.answer))
        return ranked[offset : offset + limit]
    ranked.sort(key=lambda one: (-one.score, one.rank, one.answer))
    scores = falling(one.hit.score for one in ranked)
    scored = [one._replace(score=score) for one, score in zip(ranked, scores, strict=True)]
    return scored[offset : offset + limit]


def as_relaxed(answer: SearchAnswer) -> SearchAnswer:
    """An answer with the hits that it found without the demands of the query."""
    return replace(
        answer, hits=answer.relaxed, plan={**answer.plan, **answer.plan.get("relaxed", {})}, reading="ranked"
    )


def _worth(answers: Sequence[SearchAnswer]) -> list[list[float]]:
    """The worth of every hit, by answer, on one scale."""
    ceilings = [answer.plan.get("ceiling", 0.0) for answer in answers]
    words = [
        [words_evidence(hit.receipt.keyword_score, ceiling) if ceiling else 0.0 for hit in answer.hits]
        for answer, ceiling in zip(answers, ceilings, strict=True)
    ]
    meaning = _meaning(answers)
    # A workspace that gives no hit has no say: it may be one of which the caller sees nothing.
    alphas = [answer.plan["weighing"]["alpha"] for answer in answers if answer.hits and "weighing" in answer.plan]
    usual = sum(alphas) / len(alphas) if alphas else 0.0
    best_words = max((max(values) for values in words if values), default=0.0) or 1.0
    worth = []
    for number, answer in enumerate(answers):
        # Without vectors, words alone count.
        alpha = usual if "weighing" in answer.plan else 0.0
        values = []
        for hit, own, near in zip(answer.hits, words[number], meaning[number], strict=True):
            # The weights and scales of all further legs are the same everywhere.
            further = sum(part.value for part in hit.receipt.further)
            share = (1 - alpha) * (own / best_words) ** _STEEPNESS + alpha * near + further
            values.append(share * prod(step.factor for step in hit.receipt.steps))
        worth.append(values)
    return worth


def _meaning(answers: Sequence[SearchAnswer]) -> list[list[float]]:
    """The nearness of every hit, by answer: cosines of one kind of vectors, or else normalised strengths."""
    kinds = {
        (hit.receipt.speed, answer.meaning.get("model") if hit.receipt.speed == "refined" else "")
        for answer in answers
        for hit in answer.hits
        if hit.receipt.speed
    }
    if len(kinds) > 1:
        strengths = [[{part.leg: part.normalised for part in hit.receipt.parts} for hit in a.hits] for a in answers]
        return [[strength.get("semantic", 0.0) for strength in of_answer] for of_answer in strengths]
    cosines = [[max(hit.receipt.vector_score, 0.0) for hit in answer.hits] for answer in answers]
    nearest = max((max(values) for values in cosines if values), default=0.0) or 1.0
    return [[cosine / nearest for cosine in values] for values in cosines]
