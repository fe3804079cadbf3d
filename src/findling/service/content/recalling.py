"""Recalling: the memories of one workspace that answer a question, judged by meaning, importance and time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.plans import MODES, Plan
from findling.domain.queries import SearchRequest
from findling.domain.records import Access
from findling.domain.resources import Resource
from findling.domain.results import Degradation, Hit, SearchAnswer, Step
from findling.domain.values import counted
from findling.pipelines.answer.versions import below_newer
from findling.pipelines.content.memories import (
    LARGEST_FACTOR,
    MEMORY,
    RecallAnswer,
    Recalled,
    evidence,
    make_memory,
    make_recalled,
)
from findling.pipelines.content.memory_history import state_at
from findling.pipelines.content.memory_times import (
    LARGEST_TIME_FACTOR,
    AskedTime,
    Lasting,
    asked_time,
    dated_event,
    event_time,
    lasting,
    time_step,
)
from findling.service.index.access_log import AccessLog
from findling.service.index.writing import WorkspaceWriter
from findling.text.statements.periods import PAST, read_day, shown_day

_POOL = 20
"""Fewest hits of a search: importance may lift lower ones. Among 1,000 memories 15 % of recalls need more. Asking for
40 at once takes 7 % longer, and so does asking for 12, as more recalls have to ask again."""

_DAY = 86_400
_MENTIONS = 20
"""Passages that may give the day of an event."""

_NO_VECTORS = Degradation(
    what="there are no vectors to recall by meaning; words were searched instead", fix="findling index"
)


class Recall(NamedTuple):
    """A question to memories. `at` is a day as people write it, and empty for now; `moment` is its end in seconds."""

    query: str
    limit: int = 10
    mode: str | None = None
    min_importance: float = 0.0
    principals: tuple[str, ...] | None = None
    at: str = ""
    all_versions: bool = False
    moment: float | None = None
    time: AskedTime | None = None

    def checked(self, now: float) -> Recall:
        """The question with its moment. Raises InvalidValueError for what cannot be."""
        if self.limit < 1:
            raise InvalidValueError(f"limit {self.limit} recalls nothing", hint="1 or more")
        if self.mode is not None and self.mode not in MODES:
            raise InvalidValueError(f"mode {self.mode!r} is none", hint=f"one of {', '.join(MODES)}")
        if not 0 <= self.min_importance <= 1:
            hint = "0 recalls everything"
            raise InvalidValueError(f"importance {self.min_importance:g} is not between 0 and 1", hint=hint)
        if not self.at:
            return self
        day = read_day(self.at, now, PAST)
        if day is None:
            raise InvalidValueError(f"{self.at!r} names no day", hint="--at 2026-06-03, or --at yesterday")
        return self._replace(moment=min(day.end - 1, now) if day.begin <= now else day.end - 1)


_LeftOut = dict[str, set[str]]
"""The ids of memories that were found and do not hold, by the reason."""


class Recaller(NamedTuple):
    """Answers from one workspace; no access is noted. `search` answers a request as `Engine.search` does."""

    writer: WorkspaceWriter
    search: Callable[[SearchRequest], SearchAnswer]
    log: AccessLog
    clock: Callable[[], float]

    def recalled(self, asked: Recall) -> RecallAnswer:
        """The memories of this workspace that answer a question."""
        if not self.writer.exists:
            return RecallAnswer(query=asked.query)
        plan = self.plan(asked.mode)
        counts: _LeftOut = defaultdict(set)
        answer, recalled = self._ranked(self.request(asked.query, plan, asked.principals), asked, counts)
        degraded = answer.degraded
        if plan.mode != "keyword" and answer.strategy == "keyword" and not degraded:
            degraded = (_NO_VECTORS,)
        return RecallAnswer(
            query=asked.query,
            memories=tuple(recalled),
            strategy=answer.strategy,
            degraded=degraded,
            notes=(*answer.notes, *_told(asked, counts)),
            did_you_mean=answer.did_you_mean,
            meaning=answer.meaning,
            time=str(asked.time) if asked.time and not asked.time.event else "",
            left_out=len(set().union(*counts.values())),
        )

    def timed(self, asked: Recall) -> Recall:
        """The question with the period that its words name; an event gets its day from what mentions it."""
        found = None if asked.at else asked_time(asked.query, self.clock())
        if found is None or not found.event:
            return asked._replace(time=found)
        if not self.writer.exists:
            return asked
        # An event keeps its words, so that a note can say that nobody knows its day.
        day = dated_event(found.event, self._mentions(found.event, asked.principals))
        return asked._replace(time=found if day is None else event_time(found, *day))

    def accesses(self, rids: Iterable[str], principals: tuple[str, ...] | None) -> Mapping[str, Access]:
        """The accesses of resources; none for anybody but the owner."""
        return self.log.counts(self.writer.store, rids) if principals is None else {}

    def plan(self, mode: str | None) -> Plan:
        """The profile `memory` weighs meaning 0.7 and words 0.3; a memory has no path to route to."""
        from findling.service.settings.settings import plan_of

        plan = plan_of(self.writer.settings, MEMORY)
        return replace(
            plan, mode=mode or plan.mode, fusion="weighted", route=False, relax=False, related=0, group="none"
        )

    def request(
        self, query: str, plan: Plan, principals: tuple[str, ...] | None, types: Sequence[str] = (MEMORY,)
    ) -> SearchRequest:
        """A request for memories. They have no path and no system: a folder or a project would exclude them all."""
        return SearchRequest(
            query=query,
            plan=replace(plan, types=tuple(types)),
            principals=principals,
            within="",
            in_context=False,
        )

    def held(self, resource: Resource, hit: Hit | None) -> Lasting:
        """The time in which a memory holds, as far as the caller sees what takes its place."""
        store, rid = self.writer.store, resource.rid
        later = store.successors([rid]).get(rid) if hit is None else next(iter(hit.receipt.superseded_by), None)
        successor = store.document(later) if later else None
        return lasting(resource, successor and successor.resource)

    def _mentions(self, event: str, principals: tuple[str, ...] | None) -> list[tuple[str, str, float]]:
        """Ids, texts and times of memories and chats that name an event."""
        request = self.request(event, self.plan("keyword"), principals, (MEMORY, "chat"))
        hits = self.search(replace(request, limit=_MENTIONS)).hits
        chunks = self.writer.store.chunks([int(hit.id, 16) for hit in hits])
        found = []
        for hit in hits:
            if stored := chunks.get(int(hit.id, 16)):
                made_at = stored.resource.created_at or stored.resource.updated_at or 0.0
                found.append((hit.rid, stored.text, made_at))
        return found

    def _ranked(
        self, request: SearchRequest, asked: Recall, counts: _LeftOut
    ) -> tuple[SearchAnswer, Sequence[Recalled]]:
        """The best memories, out of so many hits that importance and time can lift no other one among them."""
        is_timed = bool(asked.time or asked.at)
        # What was true at another time is found at half its score, see `_as_of_then`: more hits are looked at.
        size = max(_POOL, 2 * asked.limit) * (4 if is_timed else 1)
        lift = LARGEST_FACTOR * (LARGEST_TIME_FACTOR if is_timed else 1.0)
        while True:
            answer = self.search(replace(request, limit=size))
            judged = self._judged(answer, asked, counts)[: asked.limit]
            within_reach = answer.hits[-1].score * lift if len(answer.hits) >= size else 0.0
            if not within_reach or (len(judged) == asked.limit and judged[-1].relevance >= within_reach):
                return answer, [found for one in judged if (found := self._with_text(one, asked.moment))]
            size *= 4

    def _with_text(self, one: Recalled, moment: float | None) -> Recalled | None:
        document = self.writer.store.document(one.rid)
        if document is None:
            return None
        text = document.text if moment is None else state_at(document.resource, document.text, moment)[1]
        reasons = one.reasons if text == document.text else (*one.reasons, f"as it was on {shown_day(moment or 0)}")
        return replace(one, text=text, reasons=reasons)

    def _judged(self, answer: SearchAnswer, asked: Recall, counts: _LeftOut) -> Sequence[Recalled]:
        """The memories of an answer that hold, ordered by relevance, importance and time, without the texts."""
        store, now = self.writer.store, self.clock()
        found: dict[str, tuple[Hit, tuple[str, ...]]] = {}
        for hit in answer.hits:
            reasons = evidence(hit, usual_cosines(hit.receipt.speed, answer.meaning.get("model", "")))
            if reasons and hit.rid not in found:
                found[hit.rid] = hit, reasons
        chunks = store.chunks([int(hit.id, 16) for hit, _ in found.values()])
        stored = {one.resource.rid: one for one in chunks.values()}
        accesses = self.accesses(stored, asked.principals)
        recalled = []
        for rid, chunk in stored.items():
            hit, reasons = found[rid]
            held = self.held(chunk.resource, hit)
            if not asked.all_versions and not self._holds(rid, hit, held, asked, counts, now):
                continue
            memory = make_memory(chunk.resource, chunk.text, accesses.get(rid), now)
            timed = asked.time if asked.time and not asked.time.event else None
            step = None if timed is None else time_step(chunk.resource, held, chunk.text, timed)
            if asked.moment is not None or (step is not None and step.factor >= 1):
                hit = _as_of_then(hit)
            if memory.importance >= asked.min_importance:
                recalled.append(make_recalled(hit, memory, reasons, now, step))
        return newer_first(recalled, asked)

    def _holds(self, rid: str, hit: Hit, held: Lasting, asked: Recall, counts: _LeftOut, now: float) -> bool:
        """Whether a memory holds at the time that is asked about; what comes later is shown unless a day is named."""
        since = now if asked.time is None or asked.time.event else asked.time.begin
        if asked.moment is not None:
            since = asked.moment
            if held.since > since:
                counts["later"].add(rid)
                return False
        if held.until > since:
            return True
        counts["superseded" if hit.receipt.superseded_by else "expired"].add(rid)
        return False


def newer_first(recalled: Iterable[Recalled], asked: Recall) -> list[Recalled]:
    """The memories by relevance; of those that say nearly the same the newer comes first, unless a time is asked for.

    One day is none: `Monday` may be a word of the statement.
    """
    from findling.pipelines.content.memory_judge import newer_of  # which loads stems: a help needs none

    listed = sorted(recalled, key=lambda one: (-one.relevance, one.rid))
    is_timed = asked.moment is not None or (asked.time is not None and asked.time.end - asked.time.begin > _DAY)
    said = ((one.rid, one.text, one.hit.at or 0.0) for one in listed if not one.hit.receipt.superseded_by)
    newer = {} if is_timed else newer_of(said, asked.query)
    for rid, relevance in below_newer({one.rid: one.relevance for one in listed}, newer).items():
        place = next(place for place, one in enumerate(listed) if one.rid == rid)
        one = listed[place]
        step = Step(name="newer", factor=relevance / one.relevance, reason=f"{newer[rid][0]} says it newer")
        score = round(min(one.score, relevance), 4)
        receipt = replace(one.hit.receipt, steps=(*one.hit.receipt.steps, step), final_score=score)
        hit = replace(one.hit, score=score, receipt=receipt)
        listed[place] = replace(one, relevance=relevance, score=score, hit=hit, reasons=(*one.reasons, step.reason))
    return sorted(listed, key=lambda one: (-one.relevance, one.rid))


def _as_of_then(hit: Hit) -> Hit:
    """The hit without the step that puts it below its successor, which came later."""
    factor = math.prod(step.factor for step in hit.receipt.steps if step.name == "superseded")
    steps = tuple(step for step in hit.receipt.steps if step.name != "superseded")
    return replace(hit, score=min(hit.score / factor, 1.0), receipt=replace(hit.receipt, steps=steps))


def _told(asked: Recall, counts: _LeftOut) -> list[str]:
    """Notes on what no longer holds, and on an event of which nobody knows the day."""
    how = "add --all-versions to see them"
    when = f" on {shown_day(asked.moment)}" if asked.moment is not None else " any more"
    reasons = {
        "expired": f"did not hold{when}: {how}",
        "superseded": f"superseded by newer ones: {how}",
        "later": "began later: leave out --at to see them",
    }
    notes = [
        f"{counted(len(counts[why]), 'memory', 'memories')} {told}" for why, told in reasons.items() if why in counts
    ]
    if asked.time is not None and asked.time.event:
        notes.append(f"no memory and no chat gives one day for {asked.time.event}: time counts for nothing")
    return notes


def usual_cosines(speed: str, model: str) -> tuple[float, float] | None:
    """Mean and deviation of the cosines of unrelated texts, where they are known without asking the model."""
    if speed == "instant":
        from findling.models.local.instant import InstantEmbedder

        return InstantEmbedder().usual_cosines
    from findling.models.catalogue import known_card

    card = known_card(model) if speed else None
    return card.usual_cosines if card else None
