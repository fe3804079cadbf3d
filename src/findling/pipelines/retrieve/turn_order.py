"""Turns of chats by who said them, when and beside what: the asked person, day and neighbours count more."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from findling.domain.resources import Resource, StoredChunk
from findling.domain.results import Step
from findling.domain.values import changed
from findling.pipelines.retrieve.legs import COMPARED, Candidate, Found, Retrievers, in_new_order
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.text.chunking.chat_messages import names_in, people_in, speakers_of
from findling.text.statements.periods import PAST, Period, periods, shown_day

_SAID = 1.4
"""Gain of a turn for each asked person who said it. NDCG@10 on turns of chats, a development set, with 1, 1.1, 1.2, 1.4
and 2: words .434, .459, .474, .484, .484; refined vectors .462, .480, .485, .491, .493."""

_THEN = 1.5
"""Gain of a part of a chat from the asked day, week, month or year. NDCG@10 on threads of lihua-world, a development
set where 92 of 571 questions name a day: .819 without it, .841 with it and the words of names like JakeWatson."""

_PASSAGE = 1, 0.05
"""Passages on either side of one that count, and the gain for each that is as strong. NDCG@10 of threads for questions
with several messages as evidence, by words, with gains of 0, 0.05, 0.1 and 0.15: .612, .623, .628, .624 on the half of
locomo10 that chose it, .643, .655, .654, .636 on the other one. lihua-world as chats, with 0, 0.05 and 0.1: .828, .832,
.826, instant .844, .844, .841."""

_DOCUMENT = 2, 0.1
"""The same for turns that are documents. NDCG@10 of the same questions with 0, 1 and 2 on either side: by words .319,
.322, .331, instant .338, .343, .352; on the other half .308, .314, .322 and .312, .314, .329."""

_JUDGED, _TURNS = 10, 2
"""Best candidates of which so many must have speakers."""

_NUMBERED = re.compile(r"(.*[\W_])(\d{1,6})", re.DOTALL)
_COMPACT = re.compile(r"\b((?:19|20)\d\d)(0[1-9]|1[0-2])([0-3]\d)\b")


def order_by_turns(legs: Retrievers, question: AnalyzedQuery, found: Found, resources: Mapping[int, Resource]) -> Found:
    """The findings with lifted turns: of the asked people and the asked time, and with others beside them."""
    best = [one.cid for one in found.candidates[:COMPARED] if one.cid in resources and _may_be_turn(resources[one.cid])]
    if len(best) < _TURNS:
        return found
    stored = legs.store.chunks(best[:_JUDGED])
    if sum([bool(speakers_of(one.text)) for one in stored.values()]) < _TURNS:
        return found
    stored |= legs.store.chunks(best[_JUDGED:])
    asked = people_in(question.text)
    named = periods(_COMPACT.sub(r"\1-\2-\3", question.text), time.time(), PAST)
    then = min(named, key=lambda one: one.end - one.begin, default=None)  # "on Friday of last week" means the day
    speakers = {cid: speakers_of(one.text) for cid, one in stored.items()}
    parts = {cid: _parts(speakers[cid], asked, one.resource, then) for cid, one in stored.items()}
    turns = {cid: turn for cid, own in speakers.items() if own and (turn := _turn(stored[cid]))}
    parts = _with_neighbours(found.candidates, parts, turns)
    return changed(found, candidates=_lifted(found.candidates, parts)) if any(parts.values()) else found


def _may_be_turn(resource: Resource) -> bool:
    return resource.type == "chat" or not resource.path


def _parts(speakers: Sequence[str], asked: set[str], resource: Resource, then: Period | None) -> list[Step]:
    """The gains of a turn."""
    steps = []
    if said := [name for name in speakers if not asked.isdisjoint(names_in(name))]:
        count = min(len(said), len(asked & names_in(" ".join(said))))
        steps.append(Step(name="speaker", factor=_SAID**count, reason=f"said by {' and '.join(said)}"))
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


class _TurnPlace(NamedTuple):
    """A place in a conversation, how far from it neighbours count, and the gain for each."""

    conversation: tuple[str, str]
    number: int
    reach: int
    gain: float


def _turn(stored: StoredChunk) -> _TurnPlace | None:
    """The place of a passage in its part of a chat and its day, or of a document among those of its title.

    The id of such a document ends with a number, such as `talk:17`.
    """
    chunk, resource, _ = stored
    if resource.type == "chat":
        day = chunk.heading[-1][: len("2026-04-08")] if len(chunk.heading) > 1 else ""
        return _TurnPlace((resource.rid, day), chunk.ordinal, *_PASSAGE)
    numbered = _NUMBERED.fullmatch(resource.rid)
    if numbered is None or chunk.ordinal:
        return None
    return _TurnPlace((numbered[1], resource.title), int(numbered[2]), *_DOCUMENT)


def _with_neighbours(
    candidates: Sequence[Candidate], parts: Mapping[int, list[Step]], turns: Mapping[int, _TurnPlace]
) -> dict[int, list[Step]]:
    """The gains with that of a turn for those candidates that stand beside it in its conversation."""
    strengths = {one.cid: one.strength * _factor(parts[one.cid]) for one in candidates[:COMPARED] if one.cid in turns}
    at = {(turn.conversation, turn.number): cid for cid, turn in turns.items()}
    gains = dict(parts)
    for cid, (conversation, number, reach, gain) in turns.items():
        near = [*range(number - reach, number), *range(number + 1, number + reach + 1)]
        beside = [strengths[at[conversation, one]] for one in near if (conversation, one) in at]
        if beside and strengths[cid] > 0:
            factor = 1 + gain * sum([min(one / strengths[cid], 1.0) for one in beside])
            step = Step(name="beside", factor=factor, reason="what stands beside it was found, too")
            gains[cid] = [*parts[cid], step]
    return gains


def _factor(steps: Sequence[Step]) -> float:
    return prod([step.factor for step in steps])


def _lifted(candidates: Sequence[Candidate], parts: Mapping[int, Sequence[Step]]) -> list[Candidate]:
    """The candidates with those that have parts lifted."""
    head, rest = candidates[:COMPARED], candidates[COMPARED:]
    factors = {one.cid: _factor(parts.get(one.cid, ())) for one in head}
    ordered = sorted(head, key=lambda one: -one.strength * factors[one.cid])
    return in_new_order(ordered, rest, [factors[one.cid] for one in ordered], lambda cid: parts.get(cid, ()))
