"""The languages of a text, told by its small words and its letters, and the names that people give them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from unicodedata import name

from findling.text.analysis.analysis import index_form
from findling.text.analysis.scripts import compiled
from findling.text.analysis.stemming import function_words, languages_by_word, listed, small_words

PROSE = frozenset(
    "asciidoc doc docx epub html latex mail markdown mdx msg opendocument org pdf ppt pptx roff rst rtf subtitles "
    "texinfo text textile".split()
)
"""Formats of prose: in code and data a parenthesis is a call, and a name is no word."""

_SAMPLE, _SAMPLES = 300, 6
"""Characters of a sample and samples of a text: its languages take 0.15 ms, however long it is. Of 4,432 pages of help
in 21 languages 2.2 % lack theirs; with one sample for 1,000 characters 4.7 % did."""

_LEAST, _AHEAD, _SHARE = 2, 1.3, 4
"""Small words that tell a language, their number for one of the next language, and samples for one in a language."""

_WHOLE = 840
"""The share of a word in its only language: what up to eight languages divide, and 78 times 16 bits."""

_NOT_LATIN = "[^\x00-\u024f]"

_CODE = re.compile("[A-Za-z]{2,3}(?:[-_][A-Za-z0-9_-]+)?")

_SIGNS = {
    "russian": "ыэ",
    "ukrainian": "їєґі",
    "arabic": "ةىأإ",
    "hindi": "ैें",
    "portuguese": "ãõç",
    "vietnamese": "ơưđạảấầộệ",
}
"""Letters of which a sample shows one: others share small words with these, as Bulgarian, Persian, Galician."""


def told_languages(text: str) -> tuple[str, ...]:
    """The languages of prose, that of most samples first; none where small words and letters tell none."""
    count, end = min(1 + len(text) // _SAMPLE, _SAMPLES), max(len(text) - _SAMPLE, 0)
    starts = [end * at // max(count - 1, 1) for at in range(count)]
    votes = Counter(filter(None, [_told(text[at : at + _SAMPLE]) for at in starts]))
    return tuple(language for language, count in votes.most_common() if count * _SHARE >= votes.total())


def languages_of(lang: str, declared: str, text: str) -> str:
    """The languages of a resource as its field lists them: what its text tells, else what its maker has declared.

    A page that declares English may well be in German. Where a language is declared that has no list of small words,
    a guess would be another one. A program may give a language as the `lang` of an item.
    """
    if lang and lang not in PROSE:
        return _names().get(_code(lang), "")
    own = _names().get(_code(declared), _code(declared))
    told = told_languages(text) if not own or own in _names() else ()
    return ", ".join(told) or own


def spoken(values: Iterable[str]) -> tuple[str, ...]:
    """The languages of people among values of `lang:`, which gives them by name or code; an unknown code stays."""
    codes = [_code(value) for value in values if _CODE.fullmatch(value) or value.lower() in _names()]
    return tuple(dict.fromkeys(_names().get(code, code) for code in codes))


@cache
def known_languages() -> frozenset[str]:
    """The names of the languages that texts are told to be in."""
    return frozenset(_names().values())


def reads(languages: str, text: str) -> bool:
    """Whether languages, listed as in the field of a resource, hold one of a question; all do in other words.

    A question may have words of another script among English ones. Where nothing tells its language, it is none of
    those whose script tells.
    """
    from findling.text.analysis.wordpieces import is_foreign  # of 30,000 words; most callers list no language

    known = set(languages.lower().split(", "))
    if not known.issubset(known_languages()):
        return True
    apart = "".join(letter for letter in text if letter > "\u024f")
    told = {*told_languages(text), *told_languages(apart)} - {"english"}
    if not is_foreign(text):
        told.add("english")
    by_script = {pair.partition("=")[2] for pair in listed("scripts")}
    return bool(known & told) if told else bool(known - by_script - {"english"})


def names_of(languages: str) -> list[str]:
    """Every name and code of the languages that the field of a resource lists."""
    held = languages.split(", ")
    return [known for known, name in _names().items() if name in held]


@cache
def _names() -> dict[str, str]:
    """Code or name → name."""
    codes = dict(pair.split("=") for pair in listed("codes"))
    return codes | {name: name for name in codes.values()}


def _code(language: str) -> str:
    """The part of a code or name that tells the language: `de-AT` and `de_CH` are `de`."""
    return language.strip().lower().replace("_", "-").partition("-")[0]


def _told(sample: str) -> str:
    """The language of a sample, or an empty text."""
    if not sample.isascii() and (alone := _told_by_script(sample)):
        return alone
    shares, names, signs = _shares()
    heard = shares.keys() & index_form(sample).split()
    if _is_surely_english(heard):
        return "english"
    weights = memoryview(sum([shares[term] for term in heard]).to_bytes(2 * len(names), "little")).cast("H").tolist()
    letters = frozenset("" if sample.isascii() else sample)
    for column, shown in signs:
        if letters.isdisjoint(shown):
            weights[column] = 0
    best = max(range(len(names)), key=weights.__getitem__)
    weight, weights[best] = weights[best], 0
    is_told = (
        weight >= _AHEAD * max(weights) and sum([shares[term] >> 16 * best & 0xFFFF > 0 for term in heard]) >= _LEAST
    )
    return names[best] if is_told else ""


def _is_surely_english(heard: set[str]) -> bool:
    """Whether no other language can come near: a fifth of the time of all sums, and no other answer.

    A word that English shares counts as much for it as for the other, at most half of one that is English alone.
    """
    own, alone = _english()
    telling, english = len(heard & alone), len(heard & own)
    return telling >= _LEAST and telling >= (_AHEAD - 1) / 2 * (english - telling) + _AHEAD * (len(heard) - english)


@cache
def _english() -> tuple[frozenset[str], frozenset[str]]:
    """The small words of English, and those that no other language has."""
    own = small_words("english")[0]
    return own, frozenset(word for word in own if len(languages_by_word()[word]) == 1)


@cache
def _shares() -> tuple[dict[str, int], list[str], list[tuple[int, frozenset[str]]]]:
    """Small word → the share of each language in it; the languages; and the signs of those that show them.

    Shares are 16 bits each of one number: sums of all languages at once take a tenth of the time.
    """
    names = list(function_words())
    places = {name: 1 << 16 * at for at, name in enumerate(names)}
    shares = {
        term: sum([_WHOLE // len(known) * places[name] for name in known])
        for term, known in languages_by_word().items()
    }
    return shares, names, [(names.index(name), frozenset(shown)) for name, shown in _SIGNS.items()]


def _told_by_script(sample: str) -> str:
    """The language that is the only one of its script here, or an empty text."""
    apart = [letter for letter in compiled(_NOT_LATIN).findall(sample) if letter.isalpha()]
    letters = sum(map(str.isalpha, sample)) if apart else 0
    if 2 * len(apart) <= letters:
        return ""
    scripts = Counter(name(letter, "").partition(" ")[0] for letter in apart)
    alone = dict(pair.split("=") for pair in listed("scripts"))
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    return alone.get("HIRAGANA" if 20 * kana > letters else scripts.most_common(1)[0][0], "")
