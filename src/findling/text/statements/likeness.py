"""Likeness of two statements: the same in other words, another value of the same fact, or neither.

Precision goes first: numbers, days, names, their roles and negations have to agree; only the other words may differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from findling.text.statements.facts import COLON, fact_of
from findling.text.statements.periods import validity
from findling.text.statements.relations import (
    CHANGED_LEAD,
    CHANGING,
    CORRECTED,
    EXACT,
    LEAD,
    MEASURES,
    NO_FACTS,
    PROPERTIES,
    RELATIONS,
    SOLE,
    VALUE_KINDS,
    Fact,
    has_several,
    is_in_past,
    manner_of,
    shape_of,
)
from findling.text.statements.words import SaidWord, content, fold, in_order, lexicon, written_words

__all__ = ["CONFLICT", "COPY", "UPDATE", "Reading", "compare", "read_statement"]

COPY, UPDATE, CONFLICT = "copy", "update", "conflict"
"""The same statement; a newer value that takes the place of an older one; two that may not hold together."""

_FEWEST = 2
"""Words that a statement has at least. "That is great" says nothing that could be told from another one."""

_LATELY = 365 * 86_400
"""Seconds before a statement in which something has begun that it calls a change."""

_LONGEST_SWAP = 3
"""Most words of a value in whose place others stand."""


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
    said = " ".join(text.split())
    plain = LEAD.sub("", said)
    cut = CORRECTED.sub("", plain)
    named = _FROM.search(cut) if CHANGING.search(cut) else None
    former = plain[len(cut) :] if cut != plain else named["former"] if named else ""
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


def compare(old: Reading, new: Reading) -> str:
    """`copy`, `update` or `conflict`; empty for statements that may stand beside each other."""
    if min(len(old.words), len(new.words)) < _FEWEST or old.is_past != new.is_past or "?" in (old.text + new.text):
        return ""
    if _are_other_names(old, new) or new.manner == "more":
        return ""
    if old.is_negated != new.is_negated:
        is_named = (
            new.has_ended
            and len(old.words) > 2
            and not Counter(w.key for w in old.words) - Counter(w.key for w in new.words)
        )
        if not is_named and not _is_same(old, new):
            is_part = _NOTHING.search(old.text + new.text) and not (_only_in(old, new) and _only_in(new, old))
            return CONFLICT if is_part else ""
        return UPDATE if new.has_ended or (new.is_changed and not _NEW.search(new.text)) else CONFLICT
    if _is_same(old, new):
        if _marks(old.text) != _marks(new.text) or _is_other_case(old, new):
            return CONFLICT
        return UPDATE if _differ(old.until, new.until) or _differ(old.since, new.since) else COPY
    if "past" in (old.manner, new.manner) and not new.is_changed:
        return ""
    if old.fact and new.fact and _same_slot(old.fact, new.fact):
        return _of_facts(old, new, old.fact, new.fact)
    if not _only_in(old, new) and not _only_in(new, old) and len(old.words) == len(new.words):
        return "" if any(word.kind == "name" for word in old.words) else CONFLICT  # tabs over spaces
    is_guess = any(form.search(new.text) for form in NO_FACTS)
    found = _of_swap(old, new)
    return CONFLICT if (found and is_guess) or (not found and _has_one_subject(old, new)) else found


def _of_facts(old: Reading, new: Reading, one: Fact, other: Fact) -> str:
    """Two values of one slot: an update where only one can hold, else a conflict to look at."""
    if one.tail != other.tail and one.tail and other.tail:
        return _of_swap(old, new)  # on alpha and on beta, a month and a year
    if one.shape != other.shape and "exact" not in (one.shape, other.shape) and not new.is_changed:
        return ""  # a street and a mail address, red and in the garage
    if set(one.value) < set(other.value) or set(other.value) < set(one.value):
        return CONFLICT if one.is_single and other.is_single else ""
    is_shaped = one.shape == other.shape or {one.shape, other.shape} <= {"in", "text", "place"}
    is_sure = one.tail == other.tail and one.is_name == other.is_name and is_shaped
    if not is_sure or one.is_several or _may_be_one(one.value, other.value):
        return CONFLICT
    return UPDATE if (other.is_single and (one.is_single or other.is_open)) or new.is_changed else CONFLICT


def _of_swap(old: Reading, new: Reading) -> str:
    """Statements that are equal but for one value behind the verb: an update if it says so, else a conflict."""
    missing, added = _only_in(old, new), _only_in(new, old)
    if new.former and new.former <= {word.key for word in old.words} and added:
        missing = [place for place in missing if old.words[place].key not in RELATIONS]
        return UPDATE if not missing and _is_phrase(new, added) else ""
    shared = sum(not CHANGING.fullmatch(word.text) for word in old.words) - len(missing)
    gone, come = [old.words[place] for place in missing], [new.words[place] for place in added]
    if shared < max(_runs(gone), _runs(come)) or not _is_phrase(old, missing) or not _is_phrase(new, added):
        return ""
    one, other = gone[0], come[0]
    shapes = {shape_of(one), shape_of(other)}
    is_measure = shapes <= {"number", "clock"} or shapes == {"when"}
    is_later = new.is_changed and not _NEW.search(new.text)
    is_there = one.role not in ("", "of") and other.role not in ("", "of")
    if is_there and (shapes <= {"text", "in"} or {gone[-1].kind, come[-1].kind} <= {"word", "name"}):
        shapes = {"text"}  # in the safe, under the pot
    is_alike = len(shapes) == 1 and bool(one.role) == bool(other.role)
    is_many = bool(old.manner or new.manner) and not is_measure and (not one.role or one.role != other.role)
    if not (is_alike and not is_many) and not is_later and not is_measure:
        return ""
    behind = [*new.words[added[-1] + 1 :], other][0]
    if not is_measure and (behind.role == "of" != other.role or "~" in (gone[-1].key[0], come[-1].key[0])):
        return ""  # the capital of a country and its largest city; somebody else
    if has_several(old.words[: old.after]) or _are_doubtful(gone, come):
        return CONFLICT
    between = [word.text for word in new.words[new.after : added[0]]]
    told = {word.key for word in old.words[: old.after] if word.role in ("", "of")}
    is_count = is_alike and all(shape_of(word) == "number" for word in come)
    is_single = (
        behind.key in MEASURES or any(word.key in VALUE_KINDS for word in old.words) or (new.is_copula and not between)
    )
    if (is_count and is_single) or (is_alike and told & SOLE):
        return UPDATE
    # `flaky on Windows` says where, `written in Python` what.
    is_aside = new.is_copula and bool(other.role) and not is_measure and not all(map(_DONE.search, between))
    is_same_place = is_alike or is_measure or missing[0] == added[0]
    is_surely = is_same_place and not is_aside and (is_measure or not (old.manner or new.manner))
    return UPDATE if is_later and is_surely else CONFLICT


def _runs(words: Sequence[SaidWord]) -> int:
    """The number of words, where a name of several is one."""
    return len(words) - sum(one.kind == other.kind == "name" for one, other in pairwise(words))


def _has_one_subject(old: Reading, new: Reading) -> bool:
    """Whether two people have what one has: `Sigrid manages the warehouse`, `Pål manages the warehouse`."""
    people = [[one.words[at] for at in _only_in(one, other)] for one, other in ((old, new), (new, old))]
    is_first = all(
        words and words == list(one.words[: len(words)]) for words, one in zip(people, (old, new), strict=True)
    )
    if not is_first or any(word.kind != "name" for words in people for word in words) or _SOME.search(old.text):
        return False
    return not _are_doubtful(*people) and any(word.key in _OF_ONE for word in old.words)


_OF_ONE = lexicon().lists["*of-one"]
_SOME = re.compile(r"\b(?:an?|some|ein(?:e[nmrs]?)?|une?|una?)\b", re.IGNORECASE)
_NOTHING = re.compile(r"\b(?:nothing|none|nobody|nichts|niemand\w*|rien|nada|nadie)\b", re.IGNORECASE)


def _only_in(one: Reading, other: Reading) -> list[int]:
    """Places of the words that another statement has not; words of a change are none."""
    left = Counter(word.key for word in other.words)
    places = []
    for place, word in enumerate(one.words):
        left[word.key] -= 1
        if left[word.key] < 0 and not CHANGING.fullmatch(word.text) and word.key not in one.former:
            places.append(place)
    return places


def _is_phrase(reading: Reading, places: Sequence[int]) -> bool:
    """Whether places are those of one value behind the verb."""
    if not places or len(places) > _LONGEST_SWAP or places[0] < reading.after:
        return False
    # `from 9 to 5` is one value, `PostgreSQL on alpha` are two.
    words = [reading.words[place] for place in places[1:]]
    follows = [word.role in ("", "of") or (word.role == "to" and word.kind in ("number", "clock")) for word in words]
    return places[-1] - places[0] == len(follows) and all(follows)


def _are_doubtful(one: Sequence[SaidWord], other: Sequence[SaidWord]) -> bool:
    return _may_be_one([word.key for word in one], [word.key for word in other])


def _may_be_one(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether values may be one, or one in the other: a slip of a letter, the case of a code, a city in a country."""
    regions = lexicon().lists["*region"]
    if regions.isdisjoint(one) != regions.isdisjoint(other):
        return True
    ours, theirs = " ".join(one), " ".join(other)
    if ours.casefold() == theirs.casefold():
        return True
    is_slip = len(ours) == len(theirs) and sum(map(str.__ne__, ours, theirs)) < 2
    is_slip = is_slip or ours.startswith(theirs) or theirs.startswith(ours)
    return is_slip and ours.replace(" ", "").isalpha() and len(ours) > 2


def _are_other_names(old: Reading, new: Reading) -> bool:
    """Whether two names have one stem: Ann is not Anne."""
    named = [{word.key: fold(word.text) for word in one.words if word.kind == "name"} for one in (old, new)]
    return any(named[1].get(key, text) != text for key, text in named[0].items())


def _is_other_case(old: Reading, new: Reading) -> bool:
    """Whether a secret or code is written in other letters."""
    if not EXACT.search(old.text):
        return False
    written = [{word.key: word.text[1:] for word in one.words} for one in (old, new)]
    return any(
        fold(written[1].get(key, text)) == fold(text) != "" and written[1].get(key, text) != text
        for key, text in written[0].items()
    )


def _is_same(old: Reading, new: Reading) -> bool:
    """Whether two statements say the same, but for a negation."""
    if old.fact and new.fact and _same_slot(old.fact, new.fact):
        return _same_value(old.fact, new.fact) and _same_order(old, new, old.fact.slot | new.fact.slot)
    ours, theirs = Counter(word.key for word in old.words), Counter(word.key for word in new.words)
    return ours == theirs and _same_roles(old.words, new.words)


def _same_slot(one: Fact, other: Fact) -> bool:
    if one.kind != other.kind and not {one.kind, other.kind} <= {"place", "text"}:
        return False
    if one.slot == other.slot:
        return one.kind == other.kind or not (one.is_open or other.is_open)
    for open_, full in ((one, other), (other, one)):
        # Somebody who moved is in another place, with the same employer.
        is_fitting = one.kind == other.kind or open_.kind == "text"
        if open_.is_open and open_.slot < full.slot and is_fitting:
            return all(key.startswith("@") for key in full.slot - open_.slot)
    return False


def _same_value(one: Fact, other: Fact) -> bool:
    if one.shape == "exact":
        return one.value == other.value
    ours, theirs = ([key for key in fact.value if key.startswith("#")] for fact in (one, other))
    return Counter(one.value) == Counter(other.value) and ours == theirs  # 03/04 is not 04/03


def _same_order(old: Reading, new: Reading, slot: frozenset[str]) -> bool:
    """Whether names and numbers of a slot come in one order: room 5 on floor 3 is not room 3 on floor 5."""
    told = {
        word.key
        for word in (*old.words, *new.words)
        if word.kind in ("name", "number") and word.key in slot - PROPERTIES
    }
    ours, theirs = ([word.key for word in one.words if word.key in told] for one in (old, new))
    return ours == theirs


def _same_roles(one: Sequence[SaidWord], other: Sequence[SaidWord]) -> bool:
    """Whether the same words stand in the same roles: the dog that chased the cat is not the cat that chased the dog.

    Words in one order may lack a preposition. In another one each needs its own; those of one role keep their order.
    """
    ours, theirs = _in_roles(one), _in_roles(other)
    if [key for _, key in ours] == [key for _, key in theirs]:
        return all(mine == yours or not mine or not yours for (mine, _), (yours, _) in zip(ours, theirs, strict=True))
    return sorted(ours, key=_role) == sorted(theirs, key=_role)


def _in_roles(words: Sequence[SaidWord]) -> list[tuple[str, str]]:
    """Roles and keys in order, without its one relation, which stands anywhere; who acts comes first also with `by`."""
    relations = [word.key for word in words if word.key in _VERBAL]
    listed = [(word.role, word.key) for word in words if len(relations) > 1 or word.key not in _VERBAL]
    return [*(("", key) for role, key in listed if role == "by"), *(one for one in listed if one[0] != "by")]


_VERBAL = RELATIONS | {"@prefer"}


def _role(one: tuple[str, str]) -> str:
    return one[0]


def _marks(text: str) -> list[str]:
    """Signs that say something: `x > 5`, `-5`, `a*b`; and whether `not` is said of all or of some."""
    return [*_SIGNS.findall(text.replace("\u2212", "-")), *(["not all"] if _NOT_ALL.search(text) else ())]


_SIGNS = re.compile(r"[<>≤≥≠≈±×÷^|~\\*]|(?:(?<=\s)|^)-(?=[\d.])|(?<=\w)[+/](?=\w)|(?<=[\s(])\+(?=\s)")
_NOT_ALL = re.compile(
    r"\b(?:not|nicht|pas|no) "
    r"(?:all|every\w*|always|both|only|alle|jede\w*|immer|beide|nur|tou[st]\w*|tod[oa]s?|siempre)\b",
    re.IGNORECASE,
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
        is_order = word.key == "@use" or (count and (word.key in RELATIONS or is_verb))
        count += 1
        if is_spoken or (is_order and not any(light)):
            return count, False
    # `Answer in German`, and `note 5 about the boiler`
    return 1 + (len(listed) > 1 and listed[1].kind == "number" and not listed[1].role), False


_LIGHT_VERBS = frozenset({"=be", "=have", "=take", "=listen", "=will"})
_SPEAKERS = frozenset("i we you they he she it ich wir ihr er sie es je nous vous il elle ils on yo ik wij".split())
_DONE = re.compile(r"(?:ed|en|wn|un|lt|pt|t|ée?s?|ado|ido|ato)$", re.IGNORECASE)
_NEW = re.compile(r"\b(?:new|neue?[rsnm]?|nouve\w+|nuev[oa]|nuov[oa])\b", re.IGNORECASE)
_EVENT = re.compile(r",? (?:since|seit|depuis|desde) (?:the|our|my|dem|der|den|le|la|el) [^,.]{1,40}(?=[.!]?$)", re.I)
_FROM = re.compile(
    r"\b(?:from|von|vom|de|du|desde) (?P<former>\S+(?: \S+)?) (?:to|auf|zu|zum|à|au|a|al) ", re.IGNORECASE
)


def _differ(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one != other


_ENDED = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|nicht mehr|nicht länger|ne .{1,30} plus|ya no)\b", re.IGNORECASE
)
