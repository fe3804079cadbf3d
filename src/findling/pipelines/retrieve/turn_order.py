"""Turns of chats by who said them and when: words of the asked person count more, and so does the asked day."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from findling.domain.resources import Resource
from findling.domain.results import Step
from findling.domain.values import changed
from findling.pipelines.retrieve.legs import COMPARED, Candidate, Found, Retrievers, in_new_order
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.text.chunking.chat_messages import names_in, speakers_of
from findling.text.statements.periods import PAST, Period, periods, shown_day

_SAID = 1.4
"""Gain of a turn for each asked person who said it. NDCG@10 on turns of chats, a development set, with 1, 1.1, 1.2, 1.4
and 2: words .434, .459, .474, .484, .484; refined vectors .462, .480, .485, .491, .493."""

_THEN = 1.5
"""Gain of a part of a chat from the asked day, week, month or year. NDCG@10 on threads of lihua-world, a development
set where 92 of 571 questions name a day: .819 without it, .841 with it and the words of names like JakeWatson."""

_JUDGED, _TURNS = 10, 2
"""Best candidates of which so many must have speakers."""

_COMPACT = re.compile(r"\b((?:19|20)\d\d)(0[1-9]|1[0-2])([0-3]\d)\b")


def order_by_turns(legs: Retrievers, question: AnalyzedQuery, found: Found, resources: Mapping[int, Resource]) -> Found:
    """The findings with what the asked people said lifted, and what was said in the asked time; others stay."""
    best = [one.cid for one in found.candidates[:COMPARED] if one.cid in resources and _may_be_turn(resources[one.cid])]
    if len(best) < _TURNS:
        return found
    speakers = _speakers(legs, best[:_JUDGED])
    if sum(map(bool, speakers.values())) < _TURNS:
        return found
    speakers |= _speakers(legs, best[_JUDGED:])
    asked = names_in(question.text)
    named = periods(_COMPACT.sub(r"\1-\2-\3", question.text), time.time(), PAST)
    then = min(named, key=lambda one: one.end - one.begin, default=None)  # "on Friday of last week" means the day
    parts = {cid: steps for cid in best if (steps := _parts(speakers.get(cid, ()), asked, resources[cid], then))}
    return changed(found, candidates=_lifted(found.candidates, parts)) if parts else found


def _may_be_turn(resource: Resource) -> bool:
    return resource.type == "chat" or not resource.path


def _speakers(legs: Retrievers, cids: Sequence[int]) -> dict[int, list[str]]:
    return {cid: speakers_of(stored.text) for cid, stored in legs.store.chunks(cids).items()}


def _parts(speakers: Sequence[str], asked: set[str], resource: Resource, then: Period | None) -> list[Step]:
    """The gains of a turn."""
    steps = []
    if said := [name for name in speakers if not asked.isdisjoint(names_in(name))]:
        steps.append(Step(name="speaker", factor=_SAID ** len(said), reason=f"said by {' and '.join(said)}"))
    if then is not None and _was_said(resource, then):
        reason = f"said between {shown_day(then.begin)} and {shown_day(then.end, is_end=True)}"
        steps.append(Step(name="time", factor=_THEN, reason=reason))
    return steps


def _was_said(resource: Resource, then: Period) -> bool:
    """Whether some of a part of a chat was said in a period."""
    first, last = resource.created_at, resource.updated_at
    return (
        resource.type == "chat" and first is not None and last is not None and first < then.end and last >= then.begin
    )


def _lifted(candidates: Sequence[Candidate], parts: Mapping[int, Sequence[Step]]) -> list[Candidate]:
    """The candidates with those that have parts lifted."""
    head, rest = candidates[:COMPARED], candidates[COMPARED:]
    factors = dict.fromkeys([one.cid for one in head], 1.0)
    for cid, steps in parts.items():
        for step in steps:
            factors[cid] *= step.factor
    ordered = sorted(head, key=lambda one: -one.strength * factors[one.cid])
    return in_new_order(ordered, rest, [factors[one.cid] for one in ordered], lambda cid: parts.get(cid, ()))
