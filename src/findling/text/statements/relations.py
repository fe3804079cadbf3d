"""Relations and properties of facts: how each is told, and whether several of its values may hold at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from findling.text.statements.periods import alternatives, word_table
from findling.text.statements.words import SaidWord, lexicon

UNITS = frozenset({"@euro", "@dollar", "@pound", "@percent", "@day", "@week", "@month", "@year"})
"""Units of a number."""

MEASURES = lexicon().lists["*measure"]
"""Words behind a number of which a thing has one."""

VERBS = frozenset({"=be", "=take", "=listen"})
"""Verbs that only connect a thing and its value."""

VALUE_KINDS = {
    **dict.fromkeys(("@deadline", "@birthday", "@ship"), ("when",)),
    **dict.fromkeys(("@start", "@end"), ("when", "clock")),
    **dict.fromkeys(("@open", "@close"), ("clock",)),
    **dict.fromkeys(("@price", "@rent", "@salary", "@size"), ("number",)),
}
"""Relations whose value is known by its kind."""

AFTER = frozenset({"@manager", "@use", "@car", "@room", "@version", "@name", "@role"})
"""Relations whose value stands behind them."""

MANY = frozenset({"@like", "@hate", "@speak"})
"""Relations with many values: nothing makes a newer one certain."""

SOFT = lexicon().lists["*soft"]
"""Relations that may have several values: only a word such as `now` makes a newer one certain."""

RELATIONS = frozenset({*VALUE_KINDS, *AFTER, *MANY, "@live", "@host", "@work", "@location", "@leader", "@owner"})
"""Concepts that may be meant without a word: Apollo moved to Friday."""

PROPERTIES = lexicon().lists["*property"]
"""Nouns, by their stems, that name one property of a thing."""

_KIN = lexicon().lists["*kin"]
"""People and animals of whom somebody may have several: only a name tells which one is meant."""

SOLE = lexicon().lists["*sole"]
"""Words of what is one by itself: somebody's favourite, the default."""

_PERIODIC = lexicon().lists["*periodic"]
"""Words of what happens once in a while: the weekly meeting has one day."""

BELONGING = re.compile(r"[a-z](?:ish|ese|ian|ean|gan|lic|ist|aner|ier|abe|olik|iker)$")
"""Ends of words that say what somebody is: Polish, Vegan, Catholic."""

SEVERAL = lexicon().lists["*several"]
"""Things of which somebody may have several."""

NOUNS = frozenset({"@manager", "@leader", "@car", "@room", "@version", "@name", "@role", "@work"})
"""Relations that are nouns behind an article or an owner."""

EXACT = re.compile(rf"{alternatives('secret')}|(?:\b|_)(?:pin|codes?|keys?|clés?)\b", re.IGNORECASE)
"""Words of secrets and codes, which differ by the case of a letter."""

OWNING = frozenset(alternatives("owning").split("|"))
"""Words that say whose a thing is."""

CHANGES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"^(?P<slot>.+?)\s+(?:(?:was|were|is|are|has|have|had|been|being|got|will|be|just|recently|finally)\s+)*"
        rf"(?P<verb>{alternatives('changed')}|{alternatives('changed to')})\s+"
        r"(?P<what>(?:(?!to\b)\S+\s+){0,6}?)(?:to|into)\s+(?P<value>.+)$",
        r"^(?P<slot>.+?)\s+(?:bin|ist|sind|wurde|wurden|wird|hat)\s+(?:(?:von|vom)\s+.+?\s+)?(?:auf|nach|zu|zum|zur|in)\s+"
        rf"(?P<value>.+?)\s+(?P<verb>\S*(?:{alternatives('geändert')}))$",
        rf"^(?P<slot>.+?)\s+(?:(?:a|ont|est|sont|se)\s+)?(?P<verb>{alternatives('changé')})\s+"
        r"(?:à|au|en|pour|al?)\s+(?P<value>.+)$",
    )
)
"""Statements of a change in English, German, French and Spanish."""

MOVES = re.compile(r"mov|relocat|gezogen|déménag|mudó", re.IGNORECASE)
"""Changes of a place."""

CLAUSES = lexicon().lists["*clause"]
"""Words that begin another clause."""

TEAMS = lexicon().lists["*team"]
"""Groups that somebody joins, and lives where he did."""

SOMEBODY = re.compile(rf"^(?:{alternatives('somebody')}) ", re.IGNORECASE)
"""Somebody whom only a text before it names."""

NO_FACTS = (
    re.compile(rf"\b(?:{alternatives('guess')})\b", re.IGNORECASE),
    re.compile(r"^(?:>|[\"“„«].*[\"”“»]$)"),
    re.compile(rf"^(?:{alternatives('it')}) ", re.IGNORECASE),
)
"""Statements of the past, guesses and wishes, quotations, and something that only a text before it names."""

LEAD = re.compile(
    rf"^(?:(?:{alternatives('notice')})(?: that|:)|"
    rf"(?:{alternatives('heading')})\s*:|(?:{alternatives('aside')})[:,]?)\s+",
    re.IGNORECASE,
)
"""Words that only introduce a statement."""

CHANGED_LEAD = re.compile(r"^(?:correction|update|korrektur|as of (?:today|now)|it turns out)\b", re.IGNORECASE)
"""Those that announce a change."""

REPLACED = (
    (rf"(?:,?\s+(?:{alternatives('instead')})|,\s+(?:and )?(?:not|nicht|pas|no(?: more)?))"
     r"\s+(?P<former>[^,]{1,60}?)(?=(?: (?:for|für|pour|para) [^,]+)?$)", ""),
    (r"\b(?:replaced|dropped|ditched) (?P<former>\S+(?: \S+)?) (?:with|by|in favou?r of) ", "use "),
    (r"^(?P<former>\S+(?: \S+)?) (?:was|ha(?:s|ve) been|wurde) (?:replaced|ersetzt) (?:by|with|durch) ", "we use "),
    (r"\b(?:left|quit|sold) (?:the |my |our |his |her )?(?P<former>\S+(?: \S+)?) and (?:now )?", ""),
)  # fmt: skip
"""The value that a statement says it replaces, and what stands for this in its place."""

CHANGING = re.compile(
    rf"\b(?:{alternatives('changed')}|(?:um)?(?:{alternatives('geändert')})|{alternatives('changé')})\b", re.IGNORECASE
)
"""Verbs of a change."""


class Fact(NamedTuple):
    """A value of a slot.

    `slot` holds the words of subject and property in any order. `kind` tells values that can replace each other: a
    `when`, a `clock`, a `number`, a `place` or a `text`. `is_single` says that only one value can hold at a time.
    `is_open` says that the words name no property, as in "Apollo moved to Friday". `is_name` says that the value has a
    capital or a number in front. `shape` tells a street from a mail address. `tail` has words behind a preposition in
    the value: `on alpha`, `in 2020`, and units. `is_several` says that another value may be one of another thing.
    """

    slot: frozenset[str]
    kind: str
    value: tuple[str, ...]
    is_single: bool
    is_open: bool = False
    is_name: bool = False
    shape: str = ""
    tail: frozenset[str] = frozenset()
    is_several: bool = False


LONGEST_VALUE = 8
"""Words of a value at most."""


def is_name(values: Sequence[SaidWord]) -> bool:
    """Whether a value begins with a name, a number, a day, or a word with a sign: `stage.orbitly.dev`."""
    return bool(values) and (
        values[0].kind in ("name", "number", "when", "clock") or not _SIGNS.isdisjoint(values[0].text)
    )


_SIGNS = frozenset("._/")


def kind_of(values: Sequence[SaidWord], role: str) -> str:
    """The kind of a value."""
    kinds = {word.kind for word in values}
    if kinds == {"when"}:
        return "when"
    if kinds == {"clock"}:
        return "clock"
    units = {word.key for word in values if word.kind == "word"}
    if "number" in kinds and kinds <= {"number", "word"} and all(key[0] == "@" or key in MEASURES for key in units):
        return "number" if all(word.key[1:2].isdecimal() for word in values if word.kind == "number") else "text"
    return "place" if role == "in" else "text"


def made_fact(
    slot: Sequence[SaidWord],
    values: Sequence[SaidWord],
    kind: str,
    *,
    is_single: bool,
    is_key: bool = False,
    is_definite: bool = False,
) -> Fact | None:
    """The fact of a slot, or of a key, and its value; none for too long a value, or one with a clause of its own.

    An `is_definite` slot names one thing, which has one name.
    """
    if not slot or not 0 < len(values) <= LONGEST_VALUE or (kind == "text" and _is_clause((*slot, *values))):
        return None
    keys = frozenset(word.key for word in slot)
    if "@location" in keys and len(keys) > 1:
        keys, kind = keys - {"@location"}, "place" if kind == "text" else kind
    is_exact = EXACT.search(" ".join(word.text for word in slot)) is not None
    said = tuple(_as_written(word) if is_exact else word.key for word in values)
    is_sole = _is_sole(keys, kind)
    is_several = has_several(slot) or (bool(keys & SEVERAL) and not is_sole)
    first = next((word for word in values if not word.key.startswith("@")), values[0])
    is_named = is_name([first])
    # "The code is ugly" and "the key is small" tell no code and no key.
    is_told = is_key or "@password" in keys or (is_named and not BELONGING.search(first.text))
    is_single = is_single and (is_sole or (is_told and _is_known(keys, kind, is_exact or is_definite)))
    shape = "exact" if is_exact else kind if kind == "place" else shape_of(first)
    return Fact(keys, kind, said, is_single and not is_several, False, is_named, shape, _tail(values), is_several)


def _is_sole(keys: frozenset[str], kind: str) -> bool:
    """Whether words name what is one by itself, such as a favourite, or the day of a weekly meeting."""
    if kind in ("when", "clock") and not keys.isdisjoint(_PERIODIC):
        return True
    return any(key in SOLE or key.startswith("liebling") for key in keys)


def _is_known(keys: frozenset[str], kind: str, is_property: bool) -> bool:
    """Whether words name a property that has one value at a time."""
    if keys & SOFT and (kind != "number" or keys.isdisjoint(VALUE_KINDS)):
        return False
    return is_property or kind == "number" or not keys.isdisjoint(PROPERTIES)


def _tail(values: Sequence[SaidWord]) -> frozenset[str]:
    """The keys of the words behind a preposition in a value, and of units."""
    begin = next((place for place, word in enumerate(values) if place and word.role not in ("", "of")), len(values))
    return frozenset(word.key for place, word in enumerate(values) if place >= begin or word.key in UNITS | MEASURES)


def has_several(words: Sequence[SaidWord]) -> bool:
    """Whether words name somebody's kin, and nobody by name or number: a brother may be another one."""
    heads = [
        word for word, after in zip_longest(words, words[1:]) if after is None or after.role or after.key[0] == "@"
    ]
    is_told = any(word.kind in ("name", "number") and not word.role and word.key not in _KIN for word in words)
    # `Invoices are due` says it of all of them, `Linear for tickets` of something else.
    return not is_told and any(word.key in _KIN and word.role != "for" and word.text[-1:] != "s" for word in heads)


def shape_of(word: SaidWord) -> str:
    """The kind of a value by its first word: a mail address, a number, a day, a text, or a text in a place."""
    if word.kind in ("word", "name"):
        return "in" if word.role in ("in", "on") else "text"
    is_text = word.kind == "number" and not word.key[1:2].isdecimal()
    return "mail" if "@" in word.key else "url" if "://" in word.key else "text" if is_text else word.kind


def _is_clause(words: Sequence[SaidWord]) -> bool:
    """Whether words hold another clause: `the code was made to reject it when …` tells no code."""
    return any(
        word.key in CLAUSES or (word.kind == "word" and word.role == "to" and word.key[0] != "@") for word in words
    )


def _as_written(word: SaidWord) -> str:
    return f"#{word.text}" if word.kind == "number" else word.text


def manner_of(words: Sequence[SaidWord]) -> str:
    """`more` for what is added, `past` for what happened once, `many` for what may be so of several things."""
    if any(word.key == "=also" for word in words):
        return "more"
    many = lexicon().lists["*many"] | MANY
    is_made = any(word.key in ("=be", "=have") for word in words)
    if any(map(CHANGING.fullmatch, (word.text for word in words))):
        return ""
    plain = [word for word in words if word.kind in ("word", "light")]
    if not is_made and any(_PAST.fullmatch(word.text) or _STATES.get(word.text.casefold()) == "past" for word in plain):
        return "past"
    # The support mailbox supports nobody.
    is_copula = any(word.key == "=be" for word in words)
    many = frozenset(key for key in many if key[0] == "@") if is_copula else many
    return "many" if any(word.key in many or word.key == "=have" for word in plain) else ""


def is_in_past(words: Sequence[SaidWord]) -> bool:
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
            return not any(CHANGING.search(one) or _STATES.get(one) in ("became", "past") for one in after)
        before = word.key if word.kind == "light" else ""
    return False


_PAST = re.compile(r"\w{2,}[^\We]ed")
_STATES = word_table("state")
