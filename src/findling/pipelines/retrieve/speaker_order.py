"""Turns of chats in the order of who said them: what the asked person said counts more than what was said to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from findling.domain.resources import Resource
from findling.domain.results import Step
from findling.domain.values import changed
from findling.pipelines.retrieve.legs import Candidate, Found, Retrievers
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.pipelines.retrieve.retrieval import COMPARED
from findling.ranking.evidence import falling
from findling.text.chunking.chat_messages import speakers_of

__all__ = ["order_by_speakers"]

_SAID = 1.4
"""Gain of a turn that the asked person said. NDCG@10 on turns of chats, a development set, with 1, 1.1, 1.2, 1.4, 2:
words .434, .459, .474, .484, .484; refined vectors .462, .480, .485, .491, .493."""

_JUDGED, _TURNS = 10, 2
"""Best candidates of which so many must be turns with one speaker."""

_NAME = re.compile(r"[^\W\d_]{2,}")


def order_by_speakers(
    legs: Retrievers, question: AnalyzedQuery, found: Found, resources: Mapping[int, Resource]
) -> Found:
    """The findings with the turns of speakers that the question names lifted; others stay as they are."""
    best = [one for one in found.candidates[:COMPARED] if one.cid in resources and _may_be_turn(resources[one.cid])]
    first = [one.cid for one in best[:_JUDGED]]
    asked = {name.lower() for name in _NAME.findall(question.text)}
    if len(first) < _TURNS or not asked:
        return found
    speakers = _speakers(legs, first)
    if sum(map(bool, speakers.values())) < _TURNS:
        return found
    speakers |= _speakers(legs, [one.cid for one in best[_JUDGED:]])
    lifted = {
        cid: said
        for cid, names in speakers.items()
        if (said := [name for name in names if not asked.isdisjoint(_NAME.findall(name.lower()))])
    }
    return changed(found, candidates=_lifted(found.candidates, lifted)) if lifted else found


def _may_be_turn(resource: Resource) -> bool:
    return resource.type == "chat" or not resource.path


def _speakers(legs: Retrievers, cids: Sequence[int]) -> dict[int, list[str]]:
    return {cid: speakers_of(stored.text) for cid, stored in legs.store.chunks(cids).items()}


def _lifted(candidates: Sequence[Candidate], speakers: Mapping[int, Sequence[str]]) -> list[Candidate]:
    """The candidates with those of the speakers lifted; the first keeps the score of its evidence, none rises."""
    head, rest = candidates[:COMPARED], candidates[COMPARED:]
    factors = {one.cid: _SAID ** len(speakers.get(one.cid, ())) for one in head}
    ordered = sorted(head, key=lambda one: -one.strength * factors[one.cid])
    scale = 1 / factors[ordered[0].cid]
    scores = falling([min(one.worth * factors[one.cid] * scale, 1.0) for one in ordered])

    def steps_of(cid: int) -> tuple[Step, ...]:
        names = " and ".join(speakers.get(cid, ()))
        said = (Step(name="speaker", factor=factors[cid], reason=f"said by {names}"),) if names else ()
        kept = Step(name="scale", factor=scale, reason="the first hit keeps the score of its evidence")
        return said if scale == 1 else (*said, kept)

    for one, score in zip(ordered, scores, strict=True):
        one.move(score, steps_of)
    for one in rest:
        one.score = min(one.score, scores[-1])
    return [*ordered, *rest]
