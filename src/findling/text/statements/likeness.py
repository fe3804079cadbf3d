"""Likeness of two statements: the same in other words, another value of the same fact, or neither.

Precision goes first: numbers, days, names, their roles and negations have to agree; only the other words may differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
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
from findling.text.statements.words import SaidWord, fold, lexicon, marks_of, runs_of

COPY, UPDATE, CONFLICT = "copy", "update", "conflict"
"""The same statement; a newer value that takes the place of an older one; two that may not hold together."""

_FEWEST = 2
"""Words that a statement has at least. "That is great" says nothing that could be told from another one."""

_LONGEST_SWAP = 3
"""Most words of a value in whose place others stand."""


def compare(old: Reading, new: Reading) -> str:
    """`copy`, `update` or `conflict`; empty for statements that may stand beside each other."""
    is_told = min(len(old.words), len(new.words)) >= _FEWEST and "?" not in (old.text + new.text)
    if not is_told or new.manner == "more" or old.is_past != new.is_past or _are_other_names(old, new):
        return ""
    pair = _Pair(old, new)
    if old.is_negated != new.is_negated:
        return _of_negation(pair)
    if _is_same(old, new):
        return _of_same(old, new)
    if "past" in (old.manner, new.manner) and not new.is_changed:
        return ""
    if old.fact and new.fact and _same_slot(old.fact, new.fact):
        found = _of_facts(pair, old.fact, new.fact)
    elif not (pair.gone or pair.come) and len(old.words) == len(new.words):
        return _of_order(old)
    else:
        found = _of_swap(pair) or _of_subjects(pair) or _of_opening(pair)
    if not found or (not new.is_changed and any(word.key == "@adds" for word in old.words)):
        return ""  # good at maths, at chess
    if any(form.search(new.text) for form in NO_FACTS):
        return CONFLICT
    return UPDATE if _holds_one(pair) else found


class _Pair:
    """Two statements, and what each of them says alone: places of words, and the words."""

    def __init__(self, old: Reading, new: Reading) -> None:
        self.old, self.new = old, new
        self.missing, self.added = _only_in(old, new), _only_in(new, old)
        self.gone = [old.words[place] for place in self.missing]
        self.come = [new.words[place] for place in self.added]
        self.is_later = new.is_changed and not _NEW.search(new.text)
        self.subject = old.words[: old.after]
        # Of one value in the older one: the words from the verb on, the keys of all before, and the word behind.
        first = self.missing[0] if self.missing else len(old.words)
        self.between = old.words[old.after : first]
        self.keys = frozenset(word.key for word in old.words[:first])
        self.behind = old.words[first + len(self.gone) :][:1]


def _of_negation(pair: _Pair) -> str:
    """A statement and one that denies it, or a part of it."""
    old, new = pair.old, pair.new
    lost = Counter(word.key for word in old.words) - Counter(word.key for word in new.words)
    if _is_same(old, new) or (new.has_ended and len(old.words) > 2 and not lost):
        return UPDATE if new.has_ended or pair.is_later else CONFLICT
    is_part = _NOTHING.search(old.text + new.text) and not (pair.gone and pair.come)
    return CONFLICT if is_part or (new.has_ended and not pair.come) else ""


def _of_same(old: Reading, new: Reading) -> str:
    """The same words: another time makes an update of them, other signs or capitals a conflict."""
    if marks_of(old.text) != marks_of(new.text) or _is_other_case(old, new):
        return CONFLICT
    spans = ((old.since, new.since), (old.until, new.until))
    return UPDATE if any(None not in span and span[0] != span[1] for span in spans) else COPY


def _of_order(old: Reading) -> str:
    """The same words in other roles."""
    if any(word.key == "@prefer" for word in old.words):
        return UPDATE  # tabs over spaces
    return "" if any(word.kind == "name" for word in old.words) else CONFLICT


def _of_opening(pair: _Pair) -> str:
    """Statements of a change that go on alike behind the verb: `we store uploads on …`, `in … now`."""
    words = zip(pair.old.words, pair.new.words, strict=False)
    opening = sum(takewhile(bool, (one.key == other.key for one, other in words)))
    return CONFLICT if pair.is_later and opening > max(pair.old.after, pair.new.after) else ""


def _of_facts(pair: _Pair, one: Fact, other: Fact) -> str:
    """Two values of one slot: an update where only one can hold, else a conflict to look at."""
    if one.tail != other.tail and one.tail and other.tail:
        return _of_swap(pair)  # on alpha and on beta, a month and a year
    if one.shape != other.shape and "exact" not in (one.shape, other.shape) and not pair.new.is_changed:
        return ""  # a street and a mail address, red and in the garage
    if set(one.value) < set(other.value) or set(other.value) < set(one.value):
        return CONFLICT if one.is_single and other.is_single else ""
    is_shaped = one.shape == other.shape or {one.shape, other.shape} <= {"in", "text", "place"}
    is_sure = one.tail == other.tail and one.is_name == other.is_name and is_shaped
    if not is_sure or one.is_several or _may_be_one(one.value, other.value):
        return CONFLICT
    return UPDATE if (other.is_single and (one.is_single or other.is_open)) or pair.new.is_changed else CONFLICT


def _of_swap(pair: _Pair) -> str:
    """Statements that are equal but for one value behind the verb: an update if it says so, else a conflict."""
    old, new = pair.old, pair.new
    is_change = CHANGING.search(new.text) is not None
    missing = [place for place in pair.missing if not is_change or old.words[place].key not in _RUNNING]
    gone = [old.words[place] for place in missing]
    if pair.come and new.former and new.former <= {word.key for word in old.words}:
        return _of_former(pair, gone)
    shared = sum(not CHANGING.fullmatch(word.text) for word in old.words) - len(missing)
    is_swap = _is_phrase(old, missing) and _is_phrase(new, pair.added)
    return _of_values(pair, gone, missing[0]) if is_swap and shared >= max(runs_of(gone), runs_of(pair.come)) else ""


def _of_values(pair: _Pair, gone: Sequence[SaidWord], place: int) -> str:
    """A value in the place of another one, and nothing else."""
    old, new, come, is_later = pair.old, pair.new, pair.come, pair.is_later
    is_measure, is_alike = _kinds_of(gone, come)
    is_free = bool(old.manner or new.manner) and not is_measure
    is_many = is_free and (not gone[0].role or gone[0].role != come[0].role)
    if not is_measure and ((not is_later and (is_many or not is_alike)) or _are_of_others(pair, gone)):
        return ""
    if has_several(pair.subject) or _are_doubtful(gone, come):
        return CONFLICT
    if is_alike and any(word.key in SOLE and word.role in ("", "of") for word in pair.subject):
        return UPDATE
    is_same_place = is_alike or is_measure or place == pair.added[0]
    is_sure = is_same_place and not is_free and (is_measure or not _is_aside(pair))
    return UPDATE if is_later and is_sure else CONFLICT


def _is_aside(pair: _Pair) -> bool:
    """Whether a value is beside the point: `flaky on Windows` says where, `written in Python` what."""
    between = pair.new.words[pair.new.after : pair.added[0]]
    return pair.new.is_copula and bool(pair.come[0].role) and not all(_DONE.search(word.text) for word in between)


def _kinds_of(gone: Sequence[SaidWord], come: Sequence[SaidWord]) -> tuple[bool, bool]:
    """Whether a value and the one in its place are numbers or times, and whether both are of one kind."""
    one, other = gone[0], come[0]
    shapes = {shape_of(one), shape_of(other)}
    is_measure = shapes <= {"number", "clock"} or shapes == {"when"}
    is_there = one.role not in ("", "of") and other.role not in ("", "of")
    if is_there and (shapes <= {"text", "in"} or {gone[-1].kind, come[-1].kind} <= {"word", "name"}):
        shapes = {"text"}  # in the safe, under the pot
    return is_measure, len(shapes) == 1 and bool(one.role) == bool(other.role)


def _of_former(pair: _Pair, gone: Sequence[SaidWord]) -> str:
    """A statement that names what it replaces: an update where nothing else is lost."""
    lacking = [word for word in gone if word.key not in RELATIONS | pair.new.former]
    if any(word.kind == "name" and word.role != "for" for word in lacking) or not _is_phrase(pair.new, pair.added):
        return ""
    return CONFLICT if lacking else UPDATE


def _are_of_others(pair: _Pair, gone: Sequence[SaidWord]) -> bool:
    """Whether values belong to other things: the capital of a country and its largest city; somebody else."""
    behind = next(iter(pair.new.words[pair.added[-1] + 1 :]), pair.come[0])
    return behind.role == "of" != pair.come[0].role or "~" in (gone[-1].key[0], pair.come[-1].key[0])


def _holds_one(pair: _Pair) -> bool:
    """Whether all is equal but one value of one thing, which has one at a time: `the retro is on Friday`."""
    if not _is_one_value(pair):
        return False
    old, shapes = pair.old, {shape_of(word) for word in (*pair.gone, *pair.come)}
    is_often = any(word.key.endswith(_OFTEN) or word.role == "with" for word in pair.subject)
    if shapes == {"number"}:
        return _is_one_number(pair, is_often)
    is_there = old.is_copula and all(word.kind in ("when", "clock") for word in pair.between)
    if _excludes_others(pair, is_there):
        return True
    one = _ONE_THING.match(old.text)
    if is_often or old.manner or one is None:
        return False
    if shapes == {"when"}:
        is_day = not any(map(str.isdecimal, pair.gone[0].text))
        return not _ONCE.isdisjoint(pair.keys) or (is_there and not one["bare"] and is_day)
    return shapes == {"clock"} or (shapes == {"text"} and _is_one_name(pair))


def _is_one_value(pair: _Pair) -> bool:
    """Whether statements differ behind the verb alone, and surely: the same words, subject and roles."""
    old, gone, come = pair.old, pair.gone, pair.come
    if not gone or not come or pair.missing[0] != pair.added[0] or gone[0].role != come[0].role:
        return False
    told = [
        [(fold(word.text), word.role) for word in one.words if word not in (*gone, *come)] for one in (old, pair.new)
    ]
    if sorted(told[0]) != sorted(told[1]) or has_several(pair.subject) or _are_doubtful(gone, come):
        return False
    return pair.missing[0] >= old.after and "past" not in (old.manner, pair.new.manner)


def _is_one_number(pair: _Pair, is_often: bool) -> bool:
    """Whether a number is that of a version, counts something, is all that is told, or has a unit."""
    if pair.old.is_copula and not pair.between:
        return True
    behind = {word.key: word.kind for word in pair.behind if not word.role}
    is_version = bool(pair.between) and pair.between[-1].kind == "name" and not _RUNNING.isdisjoint(pair.keys)
    is_counted = "word" in behind.values() and len(pair.gone) == 1 and not pair.gone[0].role
    is_known = bool(MEASURES & behind.keys()) or not pair.keys.isdisjoint(("@phone", *VALUE_KINDS))
    return (is_version and not is_often) or is_counted or is_known


def _excludes_others(pair: _Pair, is_there: bool) -> bool:
    """Whether such a value leaves no room for another: a floor, a plain state, one of a group."""
    if pair.gone[0].role == "on" and any(word.key in _TIERS and not word.role for word in pair.behind):
        return True  # on the second floor
    if is_there and not _PLAIN.isdisjoint(pair.keys) and len(pair.subject) > 1:
        return True
    groups = {_EXCLUDING.get(word.text.casefold(), "") for word in (*pair.gone, *pair.come)}
    is_one = len(groups) == 1 and "" not in groups
    return is_one and not pair.old.manner and (is_there or "@live" in pair.keys)


def _is_one_name(pair: _Pair) -> bool:
    """Whether a name is the value of a property, told by `is`."""
    if not pair.old.is_copula or (" ist " in pair.old.text and not pair.between):
        return False
    is_told = not PROPERTIES.isdisjoint(pair.keys) or EXACT.search(" ".join(word.text for word in pair.subject))
    return bool(is_told) and all(is_name([one]) and not BELONGING.search(one.text) for one in (*pair.gone, *pair.come))


_NAMES = ("*tier", "*running", "*once", "*plain", "*of-one")
_TIERS, _RUNNING, _ONCE, _PLAIN, _OF_ONE = map(lexicon().lists.__getitem__, _NAMES)
_OFTEN, _EXCLUDING = tuple(lexicon().lists["*often"]), word_table("excluding")
_ONE_THING = re.compile(
    rf"(?:(?:{alternatives('the')}|\w+['’]s) .*?|(?P<bare>\w+(?<!ing) ))\b(?:{alternatives('is')})\b", re.IGNORECASE
)
"""One thing, by an article, an owner or a name, and a verb in the singular."""


def _of_subjects(pair: _Pair) -> str:
    """Two people who do what one does: `Sigrid manages the warehouse`, `Pål manages the warehouse`."""
    words, people = pair.old.words, [*pair.gone, *pair.come]
    sides = ((pair.gone, pair.old), (pair.come, pair.new))
    is_first = all(told and told == list(one.words[: len(told)]) for told, one in sides)
    if not is_first or any(word.kind != "name" or word.role for word in people) or _SOME.search(pair.old.text):
        return ""
    if _are_doubtful(pair.gone, pair.come) or not any(word.key in _OF_ONE for word in words):
        return ""
    is_led = len(words) > 2 and words[-1].role == "of" and any(word.key == "@leader" for word in words)
    return UPDATE if is_led or pair.new.is_changed else CONFLICT


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


_DONE = re.compile(r"(?:ed|en|wn|un|lt|pt|t|ée?s?|ado|ido|ato)$", re.IGNORECASE)
_NEW = re.compile(r"\b(?:new|neue?[rsnm]?|nouve\w+|nuev[oa]|nuov[oa])\b", re.IGNORECASE)
