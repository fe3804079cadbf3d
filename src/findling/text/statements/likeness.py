"""Likeness of two statements: the same in other words, another value of the same fact, or neither.

Precision goes first: numbers, days, names, their roles and negations have to agree; only the other words may differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from findling.text.statements.facts import COLON, fact_of
from findling.text.statements.periods import validity, word_table
from findling.text.statements.relations import (
    EXACT,
    MANY,
    MEASURES,
    NO_FACTS,
    PROPERTIES,
    RELATIONS,
    SOLE,
    VALUE_KINDS,
    Fact,
    has_several,
    shape_of,
)
from findling.text.statements.words import SaidWord, content, fold, in_order, lexicon, written_words

__all__ = ["CONFLICT", "COPY", "UPDATE", "Reading", "compare", "read_statement"]

COPY, UPDATE, CONFLICT = "copy", "update", "conflict"
"""The same statement; a newer value that takes the place of an older one; two that may not hold together."""

_FEWEST = 2
"""Words that a statement has at least. "That is great" says nothing that could be told from another one."""

_LATELY = 30 * 86_400
"""Seconds before a statement in which something has begun that it calls a change."""

_LONGEST_SWAP = 3
"""Most words of a value in whose place others stand."""


class Reading(NamedTuple):
    """A statement, understood. `words` are those that say something; `is_changed` that it speaks of a change.

    `after` is the place of the first word behind the verb, which `is_copula` for `is`. `former` are words that it says
    no longer hold: `instead of Jira`. `manner` is that of `_manner`.
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
    plain = _LEAD.sub("", said)
    cut = _CORRECTED.sub("", plain)
    named = _FROM.search(cut) if _CHANGING.search(cut) else None
    former = plain[len(cut) :] if cut != plain else named["former"] if named else ""
    since, until, rest = validity(cut, now)
    rest = in_order(rest)
    words = written_words(rest, now)
    after, is_copula = _after_verb(rest, words, now)
    negations = sum(word.kind == "not" for word in words)
    is_past = _is_past(words)
    is_changed = cut != plain or _CHANGED_LEAD.match(said) is not None or any(word.kind == "change" for word in words)
    return Reading(
        text=said,
        words=tuple(word for word in content(words) if word.kind != "not"),
        fact=None if negations % 2 or is_past else fact_of(rest, now),
        is_negated=negations % 2 == 1,
        is_changed=is_changed or _CHANGING.search(rest) is not None or (since is not None and since > now - _LATELY),
        is_past=is_past,
        has_ended=_ENDED.search(said) is not None,
        since=since,
        until=until,
        after=after,
        is_copula=is_copula,
        former=frozenset(word.key for word in content(written_words(former, now))),
        manner=_manner(words),
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
            return ""
        return UPDATE if new.has_ended or (new.is_changed and not _NEW.search(new.text)) else CONFLICT
    if _is_same(old, new):
        if _marks(old.text) != _marks(new.text) or _is_other_case(old, new):
            return CONFLICT
        return UPDATE if _differ(old.until, new.until) or _differ(old.since, new.since) else COPY
    if "past" in (old.manner, new.manner) and not new.is_changed:
        return ""
    if old.fact and new.fact and _same_slot(old.fact, new.fact):
        return _of_facts(old, new, old.fact, new.fact)
    is_guess = any(form.search(new.text) for form in NO_FACTS)
    return CONFLICT if (found := _of_swap(old, new)) and is_guess else found


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
    if not is_sure or one.is_several or _are_doubtful(one.value, other.value):
        return CONFLICT
    return UPDATE if (other.is_single and (one.is_single or other.is_open)) or new.is_changed else CONFLICT


def _of_swap(old: Reading, new: Reading) -> str:
    """Statements that are equal but for one value behind the verb: an update if it says so, else a conflict."""
    missing, added = _only_in(old, new), _only_in(new, old)
    if new.former and new.former <= {word.key for word in old.words} and added:
        missing = [place for place in missing if old.words[place].key not in RELATIONS]
        return UPDATE if not missing and _is_phrase(new, added) else ""
    shared = sum(not _CHANGING.fullmatch(word.text) for word in old.words) - len(missing)
    if shared < max(len(missing), len(added)) or not (_is_phrase(old, missing) and _is_phrase(new, added)):
        return ""
    one, other = old.words[missing[0]], new.words[added[0]]
    shapes = {shape_of(one), shape_of(other)}
    is_measure = shapes <= {"number", "clock"} or shapes == {"when"}
    is_later = new.is_changed and not _NEW.search(new.text)
    is_alike = len(shapes) == 1 and one.role == other.role
    is_alike = is_alike and (not one.role or one.text[:1].isupper() == other.text[:1].isupper())
    is_many = bool(old.manner or new.manner)
    if not (is_alike and not is_many) and not is_later and not is_measure:
        return ""
    behind = [*new.words[added[-1] + 1 :], other][0]
    if not is_measure and (behind.role == "of" != other.role or "~" in (one.key[0], other.key[0])):
        return ""  # the capital of a country and its largest city; somebody else
    keys = [[reading.words[place].key for place in places] for reading, places in ((old, missing), (new, added))]
    if has_several(old.words[: old.after]) or _are_doubtful(*keys):
        return CONFLICT
    between = [word.text for word in new.words[new.after : added[0]]]
    told = {word.key for word in old.words[: old.after] if word.role in ("", "of")}
    is_count = is_alike and all(shape_of(new.words[place]) == "number" for place in added)
    is_single = (
        behind.key in MEASURES or any(word.key in VALUE_KINDS for word in old.words) or (new.is_copula and not between)
    )
    if (is_count and is_single) or (is_alike and told & SOLE):
        return UPDATE
    # `flaky on Windows` says where, `written in Python` what.
    is_aside = bool(other.role) and not is_measure and not all(map(_DONE.search, between))
    return UPDATE if is_later and not is_many and not is_aside else CONFLICT


def _only_in(one: Reading, other: Reading) -> list[int]:
    """Places of the words that another statement has not; words of a change are none."""
    left = Counter(word.key for word in other.words)
    places = []
    for place, word in enumerate(one.words):
        left[word.key] -= 1
        if left[word.key] < 0 and not _CHANGING.fullmatch(word.text) and word.key not in one.former:
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


def _are_doubtful(one: Sequence[str], other: Sequence[str]) -> bool:
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


def _manner(words: Sequence[SaidWord]) -> str:
    """`more` for what is added, `past` for what happened once, `many` for what may be so of several things."""
    if any(word.key == "=also" for word in words):
        return "more"
    many = lexicon().lists["*many"] | MANY
    is_made = any(word.key in ("=be", "=have") for word in words)
    if any(map(_CHANGING.fullmatch, (word.text for word in words))):
        return ""
    plain = [word for word in words if word.kind in ("word", "light")]
    if not is_made and any(_PAST.fullmatch(word.text) or _STATES.get(word.text.casefold()) == "past" for word in plain):
        return "past"
    return "many" if any(word.key in many or word.key == "=have" for word in plain) else ""


_LIGHT_VERBS = frozenset({"=be", "=have", "=take", "=listen", "=will"})
_SPEAKERS = frozenset("i we you they he she it ich wir ihr er sie es je nous vous il elle ils on yo ik wij".split())
_PAST = re.compile(r"\w{2,}[^\We]ed")
_STATES = word_table("state")
_DONE = re.compile(r"(?:ed|en|wn|un|lt|pt|t|ée?s?|ado|ido|ato)$", re.IGNORECASE)
_NEW = re.compile(r"\b(?:new|neue?[rsnm]?|nouve\w+|nuev[oa]|nuov[oa])\b", re.IGNORECASE)
_FROM = re.compile(
    r"\b(?:from|von|vom|de|du|desde) (?P<former>\S+(?: \S+)?) (?:to|auf|zu|zum|à|au|a|al) ", re.IGNORECASE
)


def _is_past(words: Sequence[SaidWord]) -> bool:
    """Whether a state is over: `Anna lived in Bonn`. `Anna has lived there` and `was born` are no such states."""
    before = ""
    for place, word in enumerate(words):
        text = word.text.casefold().partition(" ")[0]
        if _STATES.get(text) == "over" and before not in ("=be", "=have"):
            return True
        after = [later.text.casefold() for later in words[place + 1 : place + 3]]
        if (
            _STATES.get(text) == "was"
            and word.key == "=be"
            and not any(one.endswith(("ed", "en", "t")) or _STATES.get(one) in ("became", "past") for one in after[:1])
        ):
            return not any(_CHANGING.search(one) or _STATES.get(one) in ("became", "past") for one in after)
        before = word.key if word.kind == "light" else ""
    return False


def _differ(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one != other


_LEAD = re.compile(
    r"^(?:(?:please )?(?:note|remember|mind|keep in mind|be aware|notice)(?: that|:)|fyi[:,]?|by the way,?|btw,?|"
    r"(?:correction|update|reminder|important|note|info|hint|todo|memo)\s*:|just so you know,?|for the record,?|"
    r"as of (?:today|now),?|it turns out(?: that)?|(?:hinweis|achtung|korrektur|wichtig|notiz|merke)\s*:|übrigens,?|"
    r"au fait,?|por cierto,?|attention\s*:|correction\s*:)\s+",
    re.IGNORECASE,
)
_CHANGED_LEAD = re.compile(r"^(?:correction|update|korrektur|as of (?:today|now)|it turns out)\b", re.IGNORECASE)
_CORRECTED = re.compile(
    r"(?:,?\s+(?:instead of|rather than|anstatt|statt|au lieu de|en vez de)|,\s+(?:and )?(?:not|nicht|pas|no))"
    r"\s+[^,]{1,60}$",
    re.IGNORECASE,
)
_CHANGING = re.compile(
    r"\b(?:(?:re)?moved|changed|switched|migrated|upgraded|updated|relocated|postponed|rescheduled|rose|raised|"
    r"increased|went up|dropped|lowered|reduced|took over|gezogen|umgezogen|geändert|gewechselt|verschoben|verlegt|"
    r"déménagé|changé|mudó|cambió)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|nicht mehr|nicht länger|ne .{1,30} plus|ya no)\b", re.IGNORECASE
)
