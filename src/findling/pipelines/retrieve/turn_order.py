"""Turns of chats by who said them, when and beside what: the asked person, day and neighbours count more."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from math import prod

from findling.domain.resources import Resource, StoredChunk
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

_BESIDE = 0.1
"""Gain of a passage for each one right before or after it that is as strong. NDCG@10 of questions with several messages
as evidence, by words, with 0, 0.05, 0.1 and 0.15: on the half of locomo10 that chose it passages .405, .409, .418, .416
and threads .612, .623, .628, .624; on the other half .417, .428, .422, .408 and .643, .655, .654, .636."""

_JUDGED, _TURNS = 10, 2
"""Best candidates of which so many must have speakers."""

_COMPACT = re.compile(r"\b((?:19|20)\d\d)(0[1-9]|1[0-2])([0-3]\d)\b")


def order_by_turns(legs: Retrievers, question: AnalyzedQuery, found: Found, resources: Mapping[int, Resource]) -> Found:
    """The findings with what the asked people said lifted, and what was said in the asked time; others stay."""
    best = [one.cid for one in found.candidates[:COMPARED] if one.cid in resources and _may_be_turn(resources[one.cid])]
    if len(best) < _TURNS:
        return found
    stored = legs.store.chunks(best[:_JUDGED])
    if sum([bool(speakers_of(one.text)) for one in stored.values()]) < _TURNS:
        return found
    stored |= legs.store.chunks(best[_JUDGED:])
    asked = names_in(question.text)
    named = periods(_COMPACT.sub(r"\1-\2-\3", question.text), time.time(), PAST)
    then = min(named, key=lambda one: one.end - one.begin, default=None)  # "on Friday of last week" means the day
    parts = {cid: _parts(speakers_of(one.text), asked, one.resource, then) for cid, one in stored.items()}
    parts = _with_neighbours(found.candidates, parts, stored)
    return changed(found, candidates=_lifted(found.candidates, parts)) if any(parts.values()) else found


def _may_be_turn(resource: Resource) -> bool:
    return resource.type == "chat" or not resource.path


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


def _with_neighbours(
    candidates: Sequence[Candidate], parts: Mapping[int, list[Step]], stored: Mapping[int, StoredChunk]
) -> dict[int, list[Step]]:
    """The gains with that of a passage for those candidates that stand right before or after it on the same day."""
    strengths = {one.cid: one.strength * _factor(parts[one.cid]) for one in candidates[:COMPARED] if one.cid in parts}
    at = {_place(stored[cid]): cid for cid in strengths if stored[cid].resource.type == "chat"}
    gains = dict(parts)
    for (rid, day, ordinal), cid in at.items():
        beside = [strengths[at[rid, day, one]] for one in (ordinal - 1, ordinal + 1) if (rid, day, one) in at]
        if beside and strengths[cid] > 0:
            factor = 1 + _BESIDE * sum([min(one / strengths[cid], 1.0) for one in beside])
            gains[cid] = [*parts[cid], Step(name="beside", factor=factor, reason="found right before or after it, too")]
    return gains


def _place(stored: StoredChunk) -> tuple[str, str, int]:
    """The part of a chat, the day, and the number of a passage."""
    heading = stored.chunk.heading
    return stored.resource.rid, heading[-1][: len("2026-04-08")] if len(heading) > 1 else "", stored.chunk.ordinal


def _factor(steps: Sequence[Step]) -> float:
    return prod([step.factor for step in steps])


def _lifted(candidates: Sequence[Candidate], parts: Mapping[int, Sequence[Step]]) -> list[Candidate]:
    """The candidates with those that have parts lifted."""
    head, rest = candidates[:COMPARED], candidates[COMPARED:]
    factors = {one.cid: _factor(parts.get(one.cid, ())) for one in head}
    ordered = sorted(head, key=lambda one: -one.strength * factors[one.cid])
    return in_new_order(ordered, rest, [factors[one.cid] for one in ordered], lambda cid: parts.get(cid, ()))
