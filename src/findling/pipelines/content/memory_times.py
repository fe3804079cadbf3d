"""Time in recalls: the period that a question asks about, and whether a memory held or happened then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from findling.domain.resources import Resource
from findling.domain.results import Step
from findling.pipelines.content.memory_history import span_of
from findling.text.statements.periods import LATER, PAST, Period, periods, shown_day
from findling.text.statements.words import content, written_words

LARGEST_TIME_FACTOR = 1.2
"""Factor of a memory that was made, began, ended or happened in the period that a question names."""

_ELSEWHEN = 0.8
"""Factor of a memory that did not hold in that period. Time may turn round two memories, not drown one: as
importance does, it moves less than all boosts of a search may."""

_EVER = float("inf")


class AskedTime(NamedTuple):
    """The period that a question asks about, in its own `words`. An `event` waits for its day, which `via` gives."""

    begin: float
    end: float
    words: str
    relation: str = "in"
    event: str = ""
    via: str = ""

    def __str__(self) -> str:
        first = "" if self.begin == -_EVER else shown_day(self.begin)
        last = "" if self.end == _EVER else shown_day(self.end, is_end=True)
        span = first if first == last else " to ".join(part or "…" for part in (first, last))
        return f"{self.words}: {span}{f', as {self.via} says' if self.via else ''}"


class Lasting(NamedTuple):
    """The time from which a memory holds, and up to which, as far as is known."""

    since: float
    until: float


_BEFORE = "before until till vor bis avant antes".split()
_AFTER = "after since from nach seit ab après depuis después desde".split()
_FROM = frozenset("since from seit ab depuis desde".split())
_RELATION = re.compile(rf"\b(?P<word>{'|'.join((*_BEFORE, *_AFTER))})(?: (?:the|dem|den|der|le|la|el))? $", re.I)
_EVENT = re.compile(
    rf"\b(?P<word>{'|'.join((*_BEFORE, *_AFTER))}|during|während|pendant|durante) "
    r"(?P<event>(?:(?:the|our|my|his|her|their|your|[\w-]+['’]s|der|dem|die|das|den|des|unserem|unserer|meinem|meiner|le|"
    r"la|notre|mon|ma|el|nuestra) ?)(?:[\w-]+)"
    r"(?: (?!(?:did|do|does|was|were|is|are|had|has|have|we|i|you|he|she|they)\b)[\w-]+){0,2})",
    re.IGNORECASE,
)
_AHEAD = re.compile(r"\b(?:will|shall|going to|upcoming|coming|wird|werden|soll|va|será)\b", re.IGNORECASE)
_NOW = re.compile(
    r"\b(?:right now|now|currently|at the moment|at present|these days|jetzt|derzeit|aktuell|zurzeit|maintenant|"
    r"ahora)\b",
    re.IGNORECASE,
)


def asked_time(query: str, now: float) -> AskedTime | None:
    """The period that a question names; an event is still without its day. `None` for a question of any time."""
    found = [one for one in periods(query, now, LATER if _AHEAD.search(query) else PAST) if one.stop > one.start]
    if len(found) == 1:
        relation = _RELATION.search(query, 0, found[0].start)
        word = relation["word"].lower() if relation else "in"
        start = relation.start() if relation else found[0].start
        return _related(word, found[0], query[start : found[0].stop])
    if found:
        return None
    if event := _EVENT.search(query):
        return AskedTime(now, now, event[0], event["word"].lower(), event["event"])
    if word_now := _NOW.search(query):
        return AskedTime(now, now + 1, word_now[0].lower())
    return None


def event_time(asked: AskedTime, day: Period, via: str) -> AskedTime:
    """The period around an event whose day is known."""
    return _related(asked.relation, day, asked.words)._replace(via=via)


def dated_event(event: str, texts: Iterable[tuple[str, str, float]]) -> tuple[Period, str] | None:
    """The day of an event and the id that gives it, if all texts that name the event and a day agree.

    `texts` are ids, texts and the times at which they were written.
    """
    days: dict[tuple[float, float], tuple[Period, str]] = {}
    for rid, text, written_at in texts:
        wanted = {word.key for word in content(written_words(event, written_at))}
        for sentence in re.split(r"(?<=[.!?])\s+|\n", text):
            keys = {word.key for word in content(written_words(sentence, written_at))}
            named = periods(sentence, written_at, PAST)
            if wanted and wanted <= keys and len(named) == 1:
                days.setdefault((named[0].begin, named[0].end), (named[0], rid))
    return next(iter(days.values())) if len(days) == 1 else None


def lasting(resource: Resource, successor: Resource | None) -> Lasting:
    """The time in which a memory holds: until its end, or until the memory that takes its place begins."""
    since, until = span_of(resource)
    ends = [_EVER if until is None else until]
    if successor is not None:
        began = span_of(successor).since
        ends.append((successor.created_at or 0.0) if began is None else began)
    return Lasting((resource.created_at or 0.0) if since is None else since, min(ends))


def time_step(resource: Resource, held: Lasting, text: str, asked: AskedTime) -> Step:
    """The factor of a memory for the period of a question, and its reason."""
    made = [moment for moment in (resource.created_at, resource.updated_at) if moment is not None]
    moments = [*made, *(moment for moment in span_of(resource) if moment is not None)]
    if any(asked.begin <= moment < asked.end for moment in moments):
        return Step(name="time", factor=LARGEST_TIME_FACTOR, reason=f"{asked}; it was made, began or ended then")
    if any(one.begin < asked.end and asked.begin < one.end for one in periods(text, made[0] if made else 0.0)):
        return Step(name="time", factor=LARGEST_TIME_FACTOR, reason=f"{asked}; it speaks of then")
    if held.since < asked.end and asked.begin < held.until:
        return Step(name="time", factor=1.0, reason=f"{asked}; it held then")
    return Step(name="time", factor=_ELSEWHEN, reason=f"{asked}; it did not hold then")


def _related(word: str, day: Period, words: str) -> AskedTime:
    if word in _BEFORE:
        return AskedTime(-_EVER, day.begin, words, word)
    if word in _AFTER:
        return AskedTime(day.begin if word in _FROM else day.end, _EVER, words, word)
    return AskedTime(day.begin, day.end, words, word)
