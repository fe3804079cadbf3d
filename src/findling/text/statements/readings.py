"""Readings of statements: words, fact, verb, time, and what a statement says that it ends or replaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from findling.text.statements.facts import COLON, fact_of
from findling.text.statements.periods import alternatives, validity
from findling.text.statements.relations import (
    CHANGED_LEAD,
    CHANGING,
    LEAD,
    RELATIONS,
    REPLACED,
    Fact,
    is_in_past,
    manner_of,
)
from findling.text.statements.words import SaidWord, content, in_order, written_words

_LATELY = 365 * 86_400
"""Seconds before a statement in which something has begun that it calls a change."""


class Reading(NamedTuple):
    """A statement, understood. `words` are those that say something; `is_changed` that it speaks of a change.

    `after` is the place of the first word behind the verb, which `is_copula` for `is`. `former` are words that it says
    no longer hold: `instead of Jira`. `manner` is that of `manner_of`.
    """

    text: str
    words: tuple[SaidWord, ...]
    fact: Fact | None
    is_negated: bool
    is_changed: bool
    is_past: bool
    has_ended: bool
    since: float | None
    until: float | None
    after: int
    is_copula: bool
    former: frozenset[str]
    manner: str


def read_statement(text: str, now: float) -> Reading:
    """The parts of a statement. `now` is the time at which it was made."""
    said = _STOPPED.sub("no longer ", " ".join(text.split()))
    plain = LEAD.sub("", said)
    named, put = next(
        ((one, put) for form, put in REPLACED if (one := re.search(form, plain, re.IGNORECASE))), (None, "")
    )
    cut = plain if named is None else plain[: named.start()] + put + plain[named.end() :]
    named = named or (CHANGING.search(cut) and _FROM.search(cut)) or None
    former = named["former"] if named else ""
    since, until, dated = validity(cut, now)
    rest = in_order(_EVENT.sub("", dated))
    words = written_words(rest, now)
    after, is_copula = _after_verb(rest, words, now)
    negations = sum(word.kind == "not" for word in words)
    is_past = is_in_past(words)
    is_changed = cut != plain or CHANGED_LEAD.match(said) is not None or any(word.kind == "change" for word in words)
    return Reading(
        text=said,
        words=tuple(word for word in content(words) if word.kind != "not"),
        fact=None if negations % 2 or is_past else fact_of(rest, now),
        is_negated=negations % 2 == 1,
        is_changed=is_changed
        or CHANGING.search(rest) is not None
        or _EVENT.search(dated) is not None
        or (since is not None and since > now - _LATELY),
        is_past=is_past,
        has_ended=_ENDED.search(said) is not None,
        since=since,
        until=until,
        after=after,
        is_copula=is_copula,
        former=frozenset(word.key for word in content(written_words(former, now))),
        manner=manner_of(words),
    )


def _after_verb(text: str, words: Sequence[SaidWord], now: float) -> tuple[int, bool]:
    """The place of the first word behind the verb or colon among those that say something; whether that is `is`."""
    if split := COLON.match(text):
        return len(content(written_words(split["slot"], now))), True
    listed = [word for word in content(words) if word.kind != "not"]
    light = [word.key in _LIGHT_VERBS for word in words]
    count, is_spoken = 0, False
    for word, is_light in zip(words, light, strict=True):
        if is_light:
            return count, word.key == "=be"
        is_spoken = is_spoken or word.text.casefold() in _SPEAKERS
        if word not in listed[count : count + 1] or word.text.casefold() in _SPEAKERS:
            continue
        before = listed[count - 1].text if count else ""
        is_verb = word.kind == "word" and not word.role and word.text.endswith("s") != before.endswith("s")
        is_order = word.key in ("@use", "@prefer") or (count and (word.key in RELATIONS or is_verb))
        count += 1
        if is_spoken or (is_order and not any(light)):
            return count, False
    # `Answer in German`, and `note 5 about the boiler`
    return 1 + (len(listed) > 1 and listed[1].kind == "number" and not listed[1].role), False


_LIGHT_VERBS = frozenset({"=be", "=have", "=take", "=listen", "=will"})
_SPEAKERS = frozenset("i we you they he she it ich wir ihr er sie es je nous vous il elle ils yo ik wij".split())
_EVENT = re.compile(
    r",? (?:since|seit|depuis|desde) (?:(?:the|our|my|de[rmn]|le|la|el) [^,.]{1,40}|[^\W\d]+)(?=[.!]?$)", re.I
)
_FROM = re.compile(r"\b(?:from|vo[nm]|de|du|desde) (?P<former>\S+(?: \S+)?) (?:to|auf|zum?|à|au|al?) ", re.IGNORECASE)
_STOPPED = re.compile(r"\b(?:(?:have|has) )?(?:stopped|quit|gave up|given up) (?=[a-z]+ing\b)")
_ENDED = re.compile(rf"\b(?:{alternatives('ended')}|ne .{{1,30}} plus)\b", re.IGNORECASE)
