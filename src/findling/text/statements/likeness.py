"""Likeness of two statements: the same in other words, another value of the same fact, or neither.

Precision goes first: numbers, days, names, their roles and negations have to agree; only the other words may differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise, takewhile
from operator import itemgetter

from findling.text.statements.periods import alternatives, word_table
from findling.text.statements.readings import Reading
from findling.text.statements.relations import (
    BELONGING,
    CHANGING,
    EXACT,
    MEASURES,
    NO_FACTS,
    PROPERTIES,
    RELATIONS,
    SOLE,
    VALUE_KINDS,
    Fact,
    has_several,
    is_name,
    shape_of,
)
from findling.text.statements.words import SaidWord, fold, lexicon

COPY, UPDATE, CONFLICT = "copy", "update", "conflict"
"""The same statement; a newer value that takes the place of an older one; two that may not hold together."""

_FEWEST = 2
"""Words that a statement has at least. "That is great" says nothing that could be told from another one."""

_LONGEST_SWAP = 3
"""Most words of a value in whose place others stand."""


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
            return CONFLICT if is_part or (new.has_ended and not _only_in(new, old)) else ""
        return UPDATE if new.has_ended or (new.is_changed and not _NEW.search(new.text)) else CONFLICT
    if _is_same(old, new):
        if _marks(old.text) != _marks(new.text) or _is_other_case(old, new):
            return CONFLICT
        spans = ((old.since, new.since), (old.until, new.until))
        return UPDATE if any(None not in span and span[0] != span[1] for span in spans) else COPY
    if "past" in (old.manner, new.manner) and not new.is_changed:
        return ""
    if old.fact and new.fact and _same_slot(old.fact, new.fact):
        found = _of_facts(old, new, old.fact, new.fact)
    elif not _only_in(old, new) and not _only_in(new, old) and len(old.words) == len(new.words):
        is_turned = any(word.key == "@prefer" for word in old.words)  # tabs over spaces
        return UPDATE if is_turned else "" if any(word.kind == "name" for word in old.words) else CONFLICT
    else:
        found = _of_swap(old, new) or _of_subjects(old, new)
        opening = sum(takewhile(bool, (one.key == other.key for one, other in zip(old.words, new.words, strict=False))))
        if new.is_changed and not _NEW.search(new.text) and opening > max(old.after, new.after):
            found = found or CONFLICT  # we store uploads on …, in … now
    if not new.is_changed and any(word.key == "@adds" for word in old.words):
        return ""  # good at maths, at chess
    is_guess = any(form.search(new.text) for form in NO_FACTS)
    return CONFLICT if found and is_guess else UPDATE if found == CONFLICT and _holds_one(old, new) else found


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
    missing = [place for place in missing if not CHANGING.search(new.text) or old.words[place].key not in _RUNNING]
    gone, come = [old.words[place] for place in missing], [new.words[place] for place in added]
    if new.former and new.former <= {word.key for word in old.words} and added:
        lacking = [word for word in gone if word.key not in RELATIONS | new.former]
        is_other = any(word.kind == "name" and word.role != "for" for word in lacking) or not _is_phrase(new, added)
        return "" if is_other else CONFLICT if lacking else UPDATE
    shared = sum(not CHANGING.fullmatch(word.text) for word in old.words) - len(missing)
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
    if is_alike and told & SOLE:
        return UPDATE
    # `flaky on Windows` says where, `written in Python` what.
    is_aside = new.is_copula and bool(other.role) and not is_measure and not all(map(_DONE.search, between))
    is_same_place = is_alike or is_measure or missing[0] == added[0]
    is_surely = is_same_place and not is_aside and (is_measure or not (old.manner or new.manner))
    return UPDATE if is_later and is_surely else CONFLICT


def _runs(words: Sequence[SaidWord]) -> int:
    """The number of words, where a name of several is one."""
    return len(words) - sum(one.kind == other.kind == "name" for one, other in pairwise(words))


def _holds_one(old: Reading, new: Reading) -> bool:
    """Whether all is equal but one value of one thing, which has one at a time: `the retro is on Friday`."""
    places = _only_in(old, new), _only_in(new, old)
    gone, come = ([one.words[at] for at in found] for one, found in zip((old, new), places, strict=True))
    told = [[(fold(word.text), word.role) for word in one.words if word not in (*gone, *come)] for one in (old, new)]
    if not gone or not come or sorted(told[0]) != sorted(told[1]) or places[0][0] != places[1][0]:
        return False
    first, subject = places[0][0], old.words[: old.after]
    is_other = gone[0].role != come[0].role or has_several(subject) or _are_doubtful(gone, come)
    if first < old.after or is_other or "past" in (old.manner, new.manner):
        return False
    keys, between = {word.key for word in old.words[:first]}, old.words[old.after : first]
    behind = {word.key: word.kind for word in old.words[first + len(gone) :][:1] if not word.role}
    shapes = {shape_of(word) for word in (*gone, *come)}
    is_often = any(word.key.endswith(_OFTEN) or word.role == "with" for word in subject)
    if shapes == {"number"}:
        is_version = old.words[first - 1].kind == "name" and bool(between) and bool(keys & _RUNNING) and not is_often
        is_counted = "word" in behind.values() and len(gone) == 1 and not gone[0].role
        is_told = old.is_copula and not between
        return is_version or is_counted or is_told or bool(MEASURES & behind.keys() or keys & {"@phone", *VALUE_KINDS})
    is_there = old.is_copula and all(word.kind in ("when", "clock") for word in between)
    groups = {_EXCLUDING.get(word.text.casefold(), "") for word in (*gone, *come)}
    if (gone[0].role == "on" and _TIERS & behind.keys()) or (is_there and keys & _PLAIN and len(subject) > 1):
        return True  # on the second floor
    if len(groups) == 1 and "" not in groups and not old.manner and (is_there or "@live" in keys):
        return True
    one = _ONE_THING.match(old.text)
    if is_often or old.manner or one is None:
        return False
    if shapes == {"clock"}:
        return True
    if shapes == {"when"}:
        return bool(keys & _ONCE) or (is_there and not one["bare"] and not any(map(str.isdecimal, gone[0].text)))
    is_told = bool(keys & PROPERTIES) or EXACT.search(" ".join(word.text for word in subject)) is not None
    is_named = all(is_name([word]) and not BELONGING.search(word.text) for word in (*gone, *come))
    return is_told and is_named and old.is_copula and shapes == {"text"} and not (" ist " in old.text and not between)


_NAMES = ("*tier", "*running", "*once", "*plain", "*of-one")
_TIERS, _RUNNING, _ONCE, _PLAIN, _OF_ONE = map(lexicon().lists.__getitem__, _NAMES)
_OFTEN, _EXCLUDING = tuple(lexicon().lists["*often"]), word_table("excluding")
_ONE_THING = re.compile(
    rf"(?:(?:{alternatives('the')}|\w+['’]s) .*?|(?P<bare>\w+(?<!ing) ))\b(?:{alternatives('is')})\b", re.IGNORECASE
)
"""One thing, by an article, an owner or a name, and a verb in the singular."""


def _of_subjects(old: Reading, new: Reading) -> str:
    """Two people who do what one does: `Sigrid manages the warehouse`, `Pål manages the warehouse`."""
    people = [[one.words[at] for at in _only_in(one, other)] for one, other in ((old, new), (new, old))]
    is_first = all(
        words and words == list(one.words[: len(words)]) for words, one in zip(people, (old, new), strict=True)
    )
    if not is_first or any(word.kind != "name" or word.role for word in chain(*people)) or _SOME.search(old.text):
        return ""
    is_one = not _are_doubtful(*people) and any(word.key in _OF_ONE for word in old.words)
    is_led = len(old.words) > 2 and old.words[-1].role == "of" and any(word.key == "@leader" for word in old.words)
    return UPDATE if is_one and (is_led or new.is_changed) else CONFLICT if is_one else ""


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
    return sorted(ours, key=itemgetter(0)) == sorted(theirs, key=itemgetter(0))


def _in_roles(words: Sequence[SaidWord]) -> list[tuple[str, str]]:
    """Roles and keys in order, without its one relation, which stands anywhere; who acts comes first also with `by`."""
    relations = [word.key for word in words if word.key in _VERBAL]
    listed = [(word.role, word.key) for word in words if len(relations) > 1 or word.key not in _VERBAL]
    return [*(("", key) for role, key in listed if role == "by"), *(one for one in listed if one[0] != "by")]


_VERBAL = RELATIONS | {"@prefer"}


def _marks(text: str) -> list[str]:
    """Signs that say something: `x > 5`, `-5`, `a*b`; and whether `not` is said of all or of some."""
    return [*_SIGNS.findall(text.replace("\u2212", "-")), *(["not all"] if _NOT_ALL.search(text) else ())]


_SIGNS = re.compile(r"[<>≤≥≠≈±×÷^|~\\*]|(?:(?<=\s)|^)-(?=[\d.])|(?<=\w)[+/](?=\w)|(?<=[\s(])\+(?=\s)")
_NOT_ALL = re.compile(rf"\b(?:not|nicht|pas|no) (?:{alternatives('all')})\b", re.IGNORECASE)
_DONE = re.compile(r"(?:ed|en|wn|un|lt|pt|t|ée?s?|ado|ido|ato)$", re.IGNORECASE)
_NEW = re.compile(r"\b(?:new|neue?[rsnm]?|nouve\w+|nuev[oa]|nuov[oa])\b", re.IGNORECASE)
