"""Likeness of two statements: the same in other words, another value of the same fact, or neither.

Precision goes first: numbers, days, names, their roles and negations have to agree; only the other words may differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from findling.text.statements.facts import Fact, fact_of
from findling.text.statements.periods import validity
from findling.text.statements.relations import EXACT, MANY, PROPERTIES, RELATIONS
from findling.text.statements.words import SaidWord, content, fold, written_words

__all__ = ["CONFLICT", "COPY", "UPDATE", "NearWords", "Reading", "compare", "read_statement"]

COPY, UPDATE, CONFLICT = "copy", "update", "conflict"
"""The same statement; a newer value that takes the place of an older one; two that may not hold together."""

NearWords = Callable[[str, str], float]
"""Closeness of two words in meaning: a cosine."""

_NEAR = 0.7
"""Least cosine of instant vectors of synonyms. Of 26 pairs 6 reach it, and of 24 that are alike and differ
(`cheap` and `expensive`, `brother` and `sister`) one, which is among the opposites."""

_FEWEST = 2
"""Words that a statement has at least. "That is great" says nothing that could be told from another one."""

_MOST_NEAR = 2
"""Most words of a statement that only meaning connects."""


class Reading(NamedTuple):
    """A statement, understood. `words` are those that say something; `is_changed` that it speaks of a change."""

    text: str
    words: tuple[SaidWord, ...]
    fact: Fact | None
    is_negated: bool
    is_changed: bool
    is_past: bool
    has_ended: bool
    since: float | None
    until: float | None


def read_statement(text: str, now: float) -> Reading:
    """The parts of a statement. `now` is the time at which it was made."""
    said = " ".join(text.split())
    plain = _LEAD.sub("", said)
    cut = _CORRECTED.sub("", plain)
    since, until, rest = validity(cut, now)
    rest = _in_order(rest)
    words = written_words(rest, now)
    negations = sum(word.kind == "not" for word in words)
    is_past = _is_past(words)
    is_changed = cut != plain or _CHANGED_LEAD.match(said) is not None or any(word.kind == "change" for word in words)
    return Reading(
        text=said,
        words=tuple(word for word in content(words) if word.kind != "not"),
        fact=None if negations % 2 or is_past else fact_of(rest, now),
        is_negated=negations % 2 == 1,
        is_changed=is_changed or _CHANGING.search(rest) is not None,
        is_past=is_past,
        has_ended=_ENDED.search(said) is not None,
        since=since,
        until=until,
    )


def compare(old: Reading, new: Reading, near: NearWords | None = None) -> str:
    """`copy`, `update` or `conflict`; empty for statements that may stand beside each other."""
    if min(len(old.words), len(new.words)) < _FEWEST or old.is_past != new.is_past or "?" in (old.text + new.text):
        return ""
    if old.is_negated != new.is_negated:
        if not _is_same(old, new, None):
            return ""
        return UPDATE if new.has_ended else CONFLICT
    if _is_same(old, new, near):
        if _marks(old.text) != _marks(new.text):
            return ""
        return UPDATE if _differ(old.until, new.until) or _differ(old.since, new.since) else COPY
    return _of_facts(old, new)


def _of_facts(old: Reading, new: Reading) -> str:
    """Two values of one slot: an update where only one can hold, else a conflict to look at."""
    one, other = old.fact, new.fact
    if one is None or other is None or not _same_slot(one, other) or _same_value(one, other):
        return ""
    if one.slot & MANY:
        return CONFLICT
    if set(one.value) < set(other.value) or set(other.value) < set(one.value):
        return CONFLICT if one.is_single and other.is_single else ""
    if one.is_name != other.is_name and not new.is_changed:
        return CONFLICT  # Anna's manager is Olga, and is nice
    is_version = _named(one.value) == _named(other.value) != ()
    if other.is_single and (one.is_single or new.is_changed or other.is_open):
        return UPDATE
    return UPDATE if new.is_changed or is_version else CONFLICT


def _is_same(old: Reading, new: Reading, near: NearWords | None) -> bool:
    """Whether two statements say the same, but for a negation."""
    if old.fact and new.fact and _same_slot(old.fact, new.fact):
        return _same_value(old.fact, new.fact) and _same_order(old, new, old.fact.slot | new.fact.slot)
    ours, theirs = Counter(word.key for word in old.words), Counter(word.key for word in new.words)
    if ours == theirs:
        return _same_roles(old.words, new.words)
    missing, added = list((ours - theirs).elements()), list((theirs - ours).elements())
    if near is None or len(missing) != len(added) or len(missing) > _MOST_NEAR or len(missing) >= len(old.words):
        return False
    plain = {word.key: word for word in (*old.words, *new.words)}
    if any(plain[key].kind != "word" for key in (*missing, *added)):
        return False
    paired = all(_are_near(plain[one].text, plain[other].text, near) for one, other in zip(missing, added, strict=True))
    renamed = dict(zip(added, missing, strict=True))
    return paired and _same_roles(old.words, [word._replace(key=renamed.get(word.key, word.key)) for word in new.words])


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
    if one.slot & EXACT:
        return one.value == other.value
    ours, theirs = ([key for key in fact.value if key.startswith("#")] for fact in (one, other))
    return Counter(one.value) == Counter(other.value) and ours == theirs  # 03/04 is not 04/03


def _named(value: Sequence[str]) -> tuple[str, ...]:
    """The words of a value without its numbers: `postgresql` of PostgreSQL 16."""
    words = tuple(key for key in value if not key.startswith(("#", "when:", "clock:", "@")))
    return words if len(words) < len(value) else ()


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


def _are_near(one: str, other: str, near: NearWords) -> bool:
    # Instant vectors know Latin letters: of other words, which may be names, they know nothing.
    if not all(text.isalpha() and fold(text).isascii() for text in (one, other)):
        return False
    pair = {one.casefold(), other.casefold()}
    return not any(pair == set(opposite) for opposite in _OPPOSITES) and near(one, other) >= _NEAR


def _in_order(text: str) -> str:
    """The statement with its subject first: `Otis sits in room 5` for `In room 5 sits Otis`."""
    turned = _TURNED.match(text)
    if turned is None or _ARTICLE.search(turned["place"]) or _TWO_THINGS.search(turned["place"]):
        return text
    return f"{turned['subject']} {turned['verb']} {turned['word'].lower()} {turned['place']}"


_TURNED = re.compile(
    r"^(?P<word>In|On|At|For|From|Bei|Auf|À) (?P<place>\S+(?: \S+){0,2}?) (?P<verb>[a-zäöüß]+[st]) "
    r"(?P<subject>(?:(?:the|der|die|das|le|la) )?[^,]+?)\.?$"
)
_TWO_THINGS = re.compile(r"\b[a-zäöüß]+ [A-ZÄÖÜ][a-zäöüß]")
_ARTICLE = re.compile(r"\b(?:the|our|my|der|die|das|we|i)\b|,", re.IGNORECASE)


def _is_past(words: Sequence[SaidWord]) -> bool:
    """Whether a state is over: `Anna lived in Bonn`. `Anna has lived there` and `was born` are no such states."""
    before = ""
    for place, word in enumerate(words):
        text = word.text.casefold().partition(" ")[0]
        if text in _OVER and before not in ("=be", "=have"):
            return True
        after = [later.text.casefold() for later in words[place + 1 : place + 3]]
        if (
            text in _WAS
            and word.key == "=be"
            and not any(one.endswith(("ed", "en", "t")) or one in _BECAME for one in after[:1])
        ):
            return not any(_CHANGING.search(one) or one in _BECAME for one in after)
        before = word.key if word.kind == "light" else ""
    return False


_WAS = frozenset({"was", "were", "war", "waren", "était", "étaient", "era"})
_BECAME = frozenset({"born", "geboren", "née", "né", "set", "cut", "put", "made", "led", "held", "built", "sent"})
_OVER = frozenset(
    "lived resided worked drove reported sat owned liked preferred wohnte lebte arbeitete leitete fuhr kostete hieß "
    "habitait vivait travaillait vivía trabajaba".split()
)


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
_OPPOSITES = tuple(
    tuple(pair.split("/"))
    for pair in (
        "left/right first/last cheap/expensive brother/sister buy/sell buys/sells bought/sold mother/father "
        "husband/wife son/daughter north/south east/west up/down before/after open/closed accept/reject "
        "accepted/rejected allow/forbid win/lose won/lost male/female increase/decrease more/less most/least "
        "morning/evening day/night upper/lower top/bottom start/stop enable/disable enabled/disabled private/public "
        "internal/external black/white hot/cold borrow/lend borrowed/lent arrive/depart arrives/departs "
        "minimum/maximum min/max input/output upstream/downstream import/export boy/girl uncle/aunt inside/outside "
        "indoor/outdoor light/dark weekday/weekend even/odd true/false yes/no client/server read/write "
        "breakfast/dinner lunch/dinner spring/autumn summer/winter red/blue red/green violin/cello tea/coffee"
    ).split()
)
