"""Facts: subject, property and value of a plain statement, by rules that say nothing where they are not certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from findling.text.statements.relations import (
    AFTER,
    CHANGES,
    LONGEST_VALUE,
    MANY,
    MOVES,
    NO_FACTS,
    NOUNS,
    OWNING,
    PROPERTIES,
    SOMEBODY,
    TEAMS,
    UNITS,
    VALUE_KINDS,
    VERBS,
    Fact,
    has_several,
    is_name,
    kind_of,
    made_fact,
)
from findling.text.statements.words import SaidWord, content, written_words

COLON = re.compile(r"^(?P<slot>[^:?]{2,80}?)(?:\s*(?P<sign>:)\s+|\s+=\s+|(?<=\w)=(?=[\w./'\"-]))(?P<value>\S.*)$")
"""A key and its value."""

_INDEFINITE = re.compile(r"^(?:an?|some|one of|ein|eine|einen|une?|uno?|una)\b", re.IGNORECASE)
_ONE = frozenset(("the", "our", "le", "la", "notre", "el", "nuestro", "nuestra"))
_WAS = frozenset({"was", "were", "war", "waren"})
_LISTED = re.compile(r",|\b(?:and|or|und|oder|et|ou|y|o)\b")


def fact_of(text: str, now: float) -> Fact | None:
    """The fact that a statement tells, if a rule is certain of it. Validity and asides are to be left out before."""
    text = text.strip().rstrip(".!")
    if "?" in text or len(text) > 300 or any(one.search(text) for one in NO_FACTS):
        return None
    if (split := COLON.match(text)) and not split["slot"].lower().startswith(("http", "https")):
        found = _of_sides(
            split["slot"], split["value"], now, is_set=split["sign"] is None and "(" not in split["value"]
        )
    elif split := next((one for form in CHANGES if (one := form.match(text))), None):
        found = _of_change(split, now)
    else:
        found = _of_words(written_words(text, now))
    if found is None or not found.slot or not found.value:
        return None
    if _INDEFINITE.match(text) or SOMEBODY.match(text):
        found = found._replace(is_single=False)
    is_listed = _LISTED.search(text, len(text) // 3) is not None and found.kind == "text"
    return found._replace(is_single=False) if is_listed else found


def _of_sides(slot: str, value: str, now: float, *, is_set: bool) -> Fact | None:
    """The fact of `KEY: VALUE`; with `KEY = VALUE` it `is_set`, and has one value."""
    left = [word for word in content(written_words(slot, now)) if word.kind != "not"]
    if len(left) > 6:
        return None
    clause = _of_words(written_words(f"{slot} is", now))
    if clause is not None and clause.value:
        return None  # the left side is a whole sentence
    words = written_words(value, now)
    right = _value(words)
    says_something = any(word.key in VERBS or word.key == "=have" or word.key.startswith("~") for word in words)
    is_property = is_set or _is_property(written_words(slot, now))
    if not is_property or says_something or len(right) > LONGEST_VALUE or "!" in value:
        return None  # `Anna: that is nice` is said by Anna
    made = made_fact(left, right, kind_of(right, ""), is_single=_has_one_value(left), is_key=True)
    return made and made._replace(is_single=made.is_single or is_set)


def _of_change(split: re.Match[str], now: float) -> Fact | None:
    named = split.groupdict().get("what") or ""
    left = content(written_words(named if named and split["slot"] in ("I", "Ich") else f"{split['slot']} {named}", now))
    right = written_words(split["value"], now)
    moves = MOVES.search(split["verb"]) is not None
    values = _value(right)
    if "room" in {word.text.casefold() for word in right} or any(word.key == "@room" for word in right):
        return made_fact([*left, SaidWord("room", "@room", "word")], values, kind_of(values, ""), is_single=True)
    kind = kind_of(values, "in" if moves else "")
    has_property = _has_property(left)
    if any(word.kind == "not" for word in left) or not _has_one_value(left):
        return None
    if not has_property and kind in ("place", "text") and not _is_destination(right, split.string.islower()):
        return None
    made = made_fact(left, values, kind, is_single=True)
    return None if made is None else made._replace(is_open=not has_property)


def _is_destination(words: Sequence[SaidWord], is_lower: bool) -> bool:
    """Whether somebody moved to a place, or to a product, for good: not to tears, to the sales team, or for a week."""
    listed = content(words)
    is_named = is_name(listed) or (is_lower and words[:1] == listed[:1])
    is_visit = any(word.role == "for" for word in listed) and any(word.key in UNITS for word in listed)
    is_some = bool(words) and _INDEFINITE.match(words[0].text) is not None
    return is_named and not is_visit and not is_some and not any(word.key in TEAMS for word in listed)


def _of_words(words: Sequence[SaidWord]) -> Fact | None:
    """The fact of a clause, by its relation or by its `is`."""
    words = [word for word in words if word.kind != "change"]
    if any(word.kind == "not" for word in words):
        return None
    if (numbered := _of_number(words)) is not None:
        return numbered
    rules = [(place, rule) for place, word in enumerate(words) if (rule := _rule_of(word, words, place)) is not None]
    if rules:
        return next((found for place, rule in rules if (found := rule(words, place)) is not None), None)
    verb = next((place for place, word in enumerate(words) if word.key in VERBS), None)
    if verb is not None:
        return _of_copula(words, verb)
    have = next((place for place, word in enumerate(words) if word.key == "=have"), None)
    return None if have is None else _of_having(words, have)


_Rule = Callable[[Sequence[SaidWord], int], "Fact | None"]


def _rule_of(word: SaidWord, words: Sequence[SaidWord], place: int) -> _Rule | None:
    """The rule of a relation that is a verb here: a noun stands before `is`, or after a genitive or `the`."""
    if word.key not in _RULES:
        return None
    later = [other.key for other in words[place + 1 :]]
    before = words[place - 1] if place else word
    is_owned = before.text.casefold() in OWNING or (before.role == "of" and before.kind == "name")
    is_named = place > 0 and word.key in NOUNS and (before.key == "=article" or is_owned)
    is_noun = "=be" in later or is_named or any(other.key == "=have" for other in words[:place])
    is_passive = word.key in _PASSIVE and later[:1] != ["=be"] and not is_named
    return None if is_noun and not is_passive else _RULES[word.key]


def _of_number(words: Sequence[SaidWord]) -> Fact | None:
    """`The server listens on port 8080`: a property with its number at the end of the clause."""
    listed = content(words)
    first = len(listed) - sum(word.kind == "number" for word in listed)
    if first < 2 or len(listed) == first or any(word.kind == "number" for word in listed[:first]):
        return None
    noun, slot = listed[first - 1], listed[:first]
    place = words.index(noun)
    if noun.key not in PROPERTIES or noun.key in VALUE_KINDS or words[place + 1].kind != "number":
        return None
    slot = [word for word in slot if word.key not in ("@use", "@location", "@live") or word is noun]
    return made_fact(slot, listed[first:], kind_of(listed[first:], ""), is_single=_has_one_value(slot))


def _by_kind(words: Sequence[SaidWord], place: int) -> Fact | None:
    kinds = VALUE_KINDS[words[place].key]
    values = [word for word in content(words) if word.kind in kinds]
    if not values or (len(values) > 1 and kinds != ("number",)):
        return None
    if kinds == ("number",):
        # A number in front of the relation belongs to the subject.
        after = content(words[place + 1 :])
        start = next((number for number, word in enumerate(after) if word.kind == "number"), len(after))
        values = after[start : start + 1]
        values += [word for word in after if word.key in UNITS]
    if not values:
        return None
    rest = [word for word in content(words) if word not in values]
    return made_fact(rest, values, values[0].kind, is_single=True)


def _by_role(words: Sequence[SaidWord], place: int) -> Fact | None:
    """Somebody lives IN, works AT or FOR, something is hosted IN."""
    roles = ("in", "for", "to") if words[place].key == "@work" else ("in", "on")
    listed = content(words)
    starts = [number for number, word in enumerate(listed) if word.role in roles and _is_thing(word)]
    if not starts:
        after = content(words[place + 1 :])
        starts = [listed.index(after[0])] if after and words[place].text.casefold().endswith((" in", " at")) else []
    if len(starts) != 1:
        return None
    values = _run(listed, starts[0])
    before = words[words.index(values[0]) - 1]
    if not is_name(values) and _INDEFINITE.match(before.text):
        return None  # who lives in a flat lives in Berlin, too
    rest = [word for word in listed if word not in values]
    is_single = is_name(values) or all(word.text.islower() for word in words)
    if words[place].key == "@work" and before.text.casefold() in ("in", "im", "dans", "en", "à"):
        rest.append(SaidWord("", "@place", "word"))  # who works in Munich works for somebody, too
    return made_fact(rest, values, kind_of(values, "" if words[place].key == "@work" else "in"), is_single=is_single)


def _is_thing(word: SaidWord) -> bool:
    return word.kind != "when" and not word.key.startswith("@")


def _by_leader(words: Sequence[SaidWord], place: int) -> Fact | None:
    """The team is led BY somebody, or somebody leads THE team."""
    listed = content(words)
    by = [number for number, word in enumerate(listed) if word.role == "by"]
    before = content(words[:place])
    if by:
        values = _run(listed, by[0])
    elif before and words[place + 1 : place + 2] and words[place + 1].text.casefold() in ("the", "our", "die", "das"):
        values = before
    else:
        return None
    return made_fact([word for word in listed if word not in values], values, "text", is_single=True)


def _by_taste(words: Sequence[SaidWord], place: int) -> Fact | None:
    """Somebody likes something: no sentence, no infinitive, and not `it looks like rain`."""
    before, after = content(words[:place]), content(words[place + 1 :])
    is_subject = len(before) == 1 and (before[0].kind == "name" or before[0].key.startswith("~"))
    is_plain = words[place + 1 : place + 2] and words[place + 1].text.casefold() not in ("to", "how", "when", "that")
    if not is_subject or not is_plain or len(after) > 3 or any(word.key.startswith("~") for word in after):
        return None
    return made_fact([*before, words[place]], after, "text", is_single=False)


def _by_place(words: Sequence[SaidWord], place: int) -> Fact | None:
    """Everything behind the relation is the value, but for whom it holds: `we use X for Y`."""
    listed, after = content(words), content(words[place + 1 :])
    relation = words[place]
    if relation.text.casefold() == "powers":
        values = content(words[:place])
    else:
        values = after
        aside = next((number for number, word in enumerate(after) if word.role in ("for", "of") and number), None)
        if aside is None and not content(words[:place]):
            return None  # `Room 5 in Porto has a window` is about the room
        if aside is not None:
            values = after[:aside]
        elif relation.key != "@use" and not after:
            return None  # a dog in a living room
        elif not after or after[0].role == "for":
            # `For Apollo, MySQL 8 is used`: what stands before the relation and is not for somebody.
            before = content(words[:place])
            start = next((number for number, word in enumerate(before) if number and word.role != "for"), None)
            starts_with_for = bool(before) and before[0].role == "for"
            values = before[1:] if starts_with_for and start is None else before[start or 0 :]
    if not values or len(values) == len(listed) or (relation.key == "@name" and not _is_called(values)):
        return None
    rest = [word for word in listed if word not in values]
    if all(word.key == relation.key for word in rest):
        return None  # nobody uses it
    return made_fact(rest, values, kind_of(values, ""), is_single=True)


def _is_called(values: Sequence[SaidWord]) -> bool:
    """Whether something has a name: `is called twice` and `is called from C` tell none."""
    return values[0].kind == "name" and values[0].role in ("", "in")


def _of_copula(words: Sequence[SaidWord], verb: int) -> Fact | None:
    """`Anna's manager is Olga`, `Olga is Anna's manager`, `the office is in Leipzig`, `the meeting is on Friday`."""
    before, behind = words[:verb], words[verb + 1 :]
    left, right = content(before), content(behind)
    is_definite = _is_definite(before, left) and _is_plain_name(right)
    if not left:
        return None
    if _is_property(before):
        slot, values = left, right
        is_fronted = before[0].key == "=preposition" and left[0].role in ("in", "for")
        if is_fronted and not _has_property(left):
            return None
    elif _has_property(right) and not _INDEFINITE.match(behind[0].text):
        slot, values, behind, is_definite = right, left, before, False
    elif is_definite:
        slot, values, behind = left, right, ()
    else:
        return _of_place(words, verb, left, right)
    aside = next((number for number, word in enumerate(values) if number and word.role in ("for", "of")), len(values))
    values, for_whom = values[:aside], values[aside:]
    if not values or words[verb].text.casefold() in _WAS or _says_how(slot, values, behind, words[verb]):
        return None
    kind = kind_of(values, "")
    return made_fact([*slot, *for_whom], values, kind, is_single=_has_one_value(slot), is_definite=is_definite)


def _is_definite(words: Sequence[SaidWord], listed: Sequence[SaidWord]) -> bool:
    """Whether words mean one thing: `the message queue`, not `Peter's book`, `the winner` or `colleague Tim`."""
    is_one = len(listed) > 1 and words[0].text.casefold() in _ONE
    return is_one and all(word.role or word.kind != "name" for word in listed)


def _is_plain_name(values: Sequence[SaidWord]) -> bool:
    return bool(values) and values[0].kind in ("name", "number") and not values[0].role


def _says_how(slot: Sequence[SaidWord], values: Sequence[SaidWord], behind: Sequence[SaidWord], verb: SaidWord) -> bool:
    """Whether a side of `is` only says how something is: `the trial of X is promising`, `it is a mess`."""
    is_named = _has_property(slot)
    if not is_named and _INDEFINITE.match(" ".join(word.text for word in behind)):
        return True
    is_participle = verb.text.casefold() == "been" or (is_named and values[0].text.endswith(("ing", "ed")))
    return (is_participle or not is_named) and kind_of(values, "") == "text" and not is_name(values)


def _of_place(words: Sequence[SaidWord], verb: int, left: Sequence[SaidWord], right: Sequence[SaidWord]) -> Fact | None:
    """Something is somewhere, or at some time. Nothing else is certain of a thing without a property."""
    if not right or words[verb].text.casefold() in _WAS or all(word.key.startswith("~") for word in left):
        return None  # `I'll be there at 3 pm` is no state
    kinds = {word.kind for word in right}
    if kinds <= {"when"} or kinds <= {"clock"}:
        return made_fact(left, right, right[0].kind, is_single=len(right) == 1)
    if right[0].role in ("in", "on") and is_name(right):
        return made_fact(left, right, "place", is_single=not (len(left) == 1 and left[0].kind == "name"))
    return None


def _of_having(words: Sequence[SaidWord], have: int) -> Fact | None:
    """`Anna has the phone number 555`, `the flat has a rent of 900 euros`."""
    left, right = content(words[:have]), content(words[have + 1 :])
    at = next((number for number, word in enumerate(right) if word.key in PROPERTIES), None)
    if at is None or not left or at > 2:
        return None
    values, named = right[at + 1 :], right[: at + 1]
    if not values and at:
        values, named = right[:at], right[at:]  # `Anna has Olga as manager`
    if not values or values[0].role not in ("", "of"):
        return None  # an account at a bank
    return made_fact([*left, *named], values, kind_of(values, ""), is_single=_has_one_value([*left, *named]))


def _has_property(words: Sequence[SaidWord]) -> bool:
    return any(word.key in PROPERTIES for word in words)


def _is_property(words: Sequence[SaidWord]) -> bool:
    """Whether a side of `is` names a property of something."""
    listed = content(words)
    if _has_property(listed):
        return True
    belongs = any(word.role == "of" for word in listed) or any(word.text.casefold() in OWNING for word in words[:1])
    return belongs and len(listed) > 1


_PASSIVE = frozenset({"@use", "@host", "@leader", "@work", "@live"})
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(VALUE_KINDS, _by_kind),
    **dict.fromkeys(("@live", "@host", "@work", "@location"), _by_role),
    **dict.fromkeys(MANY, _by_taste),
    **dict.fromkeys(AFTER, _by_place),
    "@leader": _by_leader,
}
"""The rule of each relation that may be a verb."""


def _has_one_value(slot: Sequence[SaidWord]) -> bool:
    if has_several(slot):
        return False
    # A plural has several values: "Anna's favourite colours".
    heads = [word for word in slot if word.kind == "word" and not word.role]
    return not any(word.text.endswith("s") and word.key == word.text[:-1] for word in heads)


def _value(words: Sequence[SaidWord]) -> list[SaidWord]:
    return [word for word in content(words) if word.kind != "not"]


def _run(listed: Sequence[SaidWord], start: int) -> list[SaidWord]:
    """The words of one phrase: up to the next preposition or to a relation."""
    values = [listed[start]]
    for word in listed[start + 1 :]:
        # `In Leipzig the service is hosted`: the value ends where the names end.
        is_part = word.kind in ("name", "number") or not any(one.kind in ("name", "number") for one in values)
        if word.role or word.key.startswith("@") or not is_part:
            break
        values.append(word)
    return values
