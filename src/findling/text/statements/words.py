"""The words of a statement: small words left out, forms and synonyms as one, numbers and days in one spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise, zip_longest
from operator import itemgetter
from typing import NamedTuple

from findling.text.analysis.stemming import stem
from findling.text.statements.periods import NEAREST, WORDS, alternatives, periods, word_table


class SaidWord(NamedTuple):
    """One word of a statement.

    `key` is equal for all ways to write it: a concept, a stem, a number, a day. `kind` is `word`, `name`, `number`,
    `when`, `clock`, `light` (may be left out), `not` or `change`. `role` is the preposition before it.
    """

    text: str
    key: str
    kind: str
    role: str = ""


class Lexicon(NamedTuple):
    """Words as they are listed, and stems of phrases by their first one, each with its concept; stems of lists."""

    words: dict[str, str]
    phrases: dict[str, list[tuple[tuple[str, ...], str]]]
    lists: dict[str, frozenset[str]]


@cache
def lexicon() -> Lexicon:
    """The words of the data file. A word belongs to the first concept that names it; long phrases come first."""
    words: dict[str, str] = {}
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    lists: dict[str, frozenset[str]] = {}
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        concept, _, listed = line.partition(": ")
        if not listed or line[0] in "#%":
            continue
        if concept.startswith("*"):
            lists[concept] = frozenset(_root(fold(word)) for word in listed.split())
            continue
        single, *several = listed.split(", ")
        for word in single.split():
            words.setdefault(fold(word), concept)
        for phrase in several:
            roots = tuple(_root(fold(word)) for word in map(itemgetter(0), _TOKEN.finditer(phrase)))
            phrases.setdefault(roots[0], []).append((roots, concept))
    for found in phrases.values():
        found.sort(key=lambda one: -len(one[0]))
    return Lexicon(words, phrases, lists)


@lru_cache(maxsize=4_000)
def fold(word: str) -> str:
    """A word without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


def written_words(text: str, now: float) -> list[SaidWord]:
    """All words of a text in order, small ones as `light`."""
    found = list(_tokens(text, now))
    return list(_with_roles(_concepts(found)))


def content(words: Sequence[SaidWord]) -> list[SaidWord]:
    """The words that say something."""
    return [word for word in words if word.kind not in ("light", "change")]


def runs_of(words: Sequence[SaidWord]) -> int:
    """The number of words, where a name of several is one."""
    return len(words) - sum(one.kind == other.kind == "name" for one, other in pairwise(words))


def marks_of(text: str) -> list[str]:
    """Signs that say something: `x > 5`, `-5`, `a*b`; and whether `not` is said of all or of some."""
    return [*_SIGNS.findall(text.replace("\u2212", "-")), *(["not all"] if _NOT_ALL.search(text) else ())]


_SIGNS = re.compile(r"[<>≤≥≠≈±×÷^|~\\*]|(?:(?<=\s)|^)-(?=[\d.])|(?<=\w)[+/](?=\w)|(?<=[\s(])\+(?=\s)")
_NOT_ALL = re.compile(rf"\b(?:not|nicht|pas|no) (?:{alternatives('all')})\b", re.IGNORECASE)


def in_order(text: str) -> str:
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


_CLOCK = (
    r"[0-2]?[0-9](?:[:.][0-5][0-9])?[\s\u202f]?(?:[ap]\.?m\b\.?|uhr\b|o'clock\b)"
    r"|[0-2]?[0-9]:[0-5][0-9]\b|[0-2]?[0-9]h[0-5]?[0-9]?\b"
)
_TOKEN = re.compile(
    rf"(?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)|(?P<url>\w+://\S+?(?=[.,;!?]?(?:\s|$)))|(?P<clock>(?<![\w.:])(?:{_CLOCK}))"
    r"|(?P<flag>(?<![\w-])--?[a-z][\w-]*)"
    r"|(?P<number>(?<![\w.])[0-9]+(?:[.,][0-9]+)*(?:['’]s\b|(?![\w-])))"
    r"|(?P<word>[^\W_]+(?:[-.’'_/][^\W_]+|\+\+|#)*)|(?P<sign>[€$£%])",
    re.IGNORECASE,
)
_NUMBERS, _ROLES, _SMALL = word_table("number"), word_table("role"), ("=preposition", "=article", "=pronoun")
_POSSESSIVE = re.compile(r"(?:['’]s|(?<=s)['’])$", re.IGNORECASE)
_NEGATED = re.compile(r"(?i)(.+)n['’]t$|(can)not$")
_SHORTENED = re.compile(r"(?i)(.+)['’](?:re|ve|ll|m|d)$")
_AUXILIARIES = {"ca": "can", "wo": "will", "sha": "will"}


def _tokens(text: str, now: float) -> Iterator[SaidWord]:
    """Words as they stand, numbers, hours and days in one spelling each."""
    days = {one.start: one for one in periods(text, now, NEAREST)}
    at = 0
    while match := _TOKEN.search(text, at):
        day = next((days[place] for place in range(at, match.start() + 1) if place in days), None)
        if day is not None:
            yield SaidWord(text[day.start : day.stop], _day_key(text[day.start : day.stop], day.begin), "when")
            at = max(day.stop, at + 1)
            continue
        at = match.end()
        yield from _read(match)


def _read(match: re.Match[str]) -> Iterator[SaidWord]:
    text = match[0]
    if match["mail"] or match["url"] or match["flag"]:
        yield SaidWord(text, f"#{text.casefold()}", "number")
    elif match["clock"]:
        yield SaidWord(text, _clock_key(text), "clock")
    elif match["number"]:
        plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "", _POSSESSIVE.sub("", text))
        yield SaidWord(text, f"#{plain}", "number")
    elif match["sign"]:
        yield SaidWord(text, text, "word")
    elif any(map(str.isdecimal, text)):
        yield SaidWord(text, f"#{fold(_POSSESSIVE.sub('', text))}", "number")
    elif negated := _NEGATED.match(text):
        bare = fold(negated[1] or negated[2])
        yield SaidWord(negated[1] or negated[2], _AUXILIARIES.get(bare, bare), "word")
        yield SaidWord("n't", "not", "word")
    elif shortened := _SHORTENED.match(text):
        yield SaidWord(shortened[1], fold(shortened[1]), "word")
    elif owner := _POSSESSIVE.search(text):
        bare = text[: owner.start()]
        yield SaidWord(bare, fold(bare), "name" if bare[:1].isupper() else "word", "of")
    else:
        key = fold(text)
        if key in _NUMBERS:
            yield SaidWord(text, f"#{_NUMBERS[key]}", "number")
        else:
            yield SaidWord(text, key, "word" if text.islower() else "name")


def _concepts(found: Sequence[SaidWord]) -> Iterator[SaidWord]:
    """The words with their concepts; a phrase is one word."""
    known = lexicon()
    roots = [_root(word.key) if word.kind in ("word", "name") else word.key for word in found]
    at, is_shouted = 0, all(word.text.isupper() for word in found)
    while at < len(found):
        word = found[at]
        for phrase, concept in known.phrases.get(roots[at], ()):
            if tuple(roots[at : at + len(phrase)]) == phrase:
                text = " ".join(one.text for one in found[at : at + len(phrase)])
                yield _of_concept(word._replace(text=text), concept)
                at += len(phrase)
                break
        else:
            concept = _concept_of(word.key, known.words) if word.kind in ("word", "name") else ""
            has_name = bool(found[at + 1 : at + 2]) and found[at + 1].kind == "name"
            is_code = len(word.text) > 1 and word.text.isupper() and concept in _SMALL and not is_shouted
            if is_code or (word.text == "New" and has_name) or (word.text == "Will" and (at or has_name)):
                concept = ""  # MIT, New York, Will Smith
            yield _of_concept(word, concept) if concept else word._replace(key=roots[at])
            at += 1


def _concept_of(key: str, listed: Mapping[str, str]) -> str:
    """The concept of a word that is listed, or of its plural. By stems `died` would be the German article `die`."""
    plain = (key[: -len(end)] + put for end, put in (("ies", "y"), ("es", ""), ("s", "")) if key.endswith(end))
    named = next((listed[one] for one in plain if listed.get(one, "").startswith("@")), "")
    return listed.get(key, named)


def _of_concept(word: SaidWord, concept: str) -> SaidWord:
    kind = {"=": "light", "!": "not", ">": "change"}.get(concept[0], "word")
    return word._replace(key=concept, kind=kind)


def _with_roles(words: Iterator[SaidWord]) -> Iterator[SaidWord]:
    role = before = ""
    listed = list(words)
    for word, after in zip_longest(listed, listed[1:]):
        is_state = before == "=be" and word.text == "on" and (after is None or after.text.casefold() in _ROLES)
        before = word.key
        if is_state:
            yield word._replace(key="on", kind="word")  # the flag is on in production
        elif word.kind == "light":
            role = _ROLES.get(word.text.casefold(), role)
            yield word
        elif word.kind == "change":
            yield word
        else:
            yield word._replace(role=role or word.role)  # at Miller's bakery
            role = ""


@lru_cache(maxsize=4_000)
def _root(key: str) -> str:
    return stem(key) if key.isascii() and key.isalpha() else key


def _day_key(text: str, begin: float) -> str:
    """A day in one spelling; without a year only as far as it was named."""
    from datetime import datetime

    day = datetime.fromtimestamp(begin)
    has_year, lower = re.search(r"(?:19|20)[0-9]{2}", text) is not None, text.casefold()
    if not any(map(str.isdecimal, text)):
        return f"when:{_root(fold(lower.rstrip('s')))}"
    return f"when:{day:%Y-%m-%d}" if has_year else f"when:{day:%m-%d}"


def _clock_key(text: str) -> str:
    """Minutes after midnight."""
    hour, _, rest = re.sub(r"[.h](?=[0-9])", ":", text.casefold()).partition(":")
    number = re.match(r"[0-9]+", hour)
    minutes = re.match(r"[0-9]{2}", rest)
    hours = int(number[0]) if number else 0
    if "p" in text.casefold() and hours < 12:
        hours += 12
    return f"clock:{hours * 60 + (int(minutes[0]) if minutes else 0)}"
