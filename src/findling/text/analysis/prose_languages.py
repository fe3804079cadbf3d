"""The languages of a text, told by its small words and its letters, and the names that people give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any as AnyValue
from unicodedata import name

from findling.domain.queries import Any, Field, Node
from findling.text.analysis.analysis import index_form
from findling.text.analysis.stemming import function_words, languages_by_word, listed

PROSE = frozenset(
    "asciidoc doc docx epub html latex mail markdown mdx msg opendocument org pdf ppt pptx roff rst rtf subtitles "
    "texinfo text textile".split()
)
"""Formats of prose: in code and data a parenthesis is a call, and a name is no word."""

_SAMPLE, _SAMPLES = 300, 3
"""Characters of a sample and samples of a text: its languages take 0.1 ms, however long it is."""

_LEAST, _AHEAD, _SHARE = 2, 1.3, 4
"""Small words that tell a language, their number for one of the next language, and samples for one in a language."""

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
    step = max(len(text) // _SAMPLES, 1_000)
    votes = Counter(filter(None, [_told(text[at : at + _SAMPLE]) for at in range(0, len(text), step)]))
    return tuple(language for language, count in votes.most_common() if count * _SHARE >= votes.total())


def language_condition(values: Iterable[str]) -> Node:
    """The condition that `lang:` stands for: a format, or by name or code (`de`) a language that is spoken."""
    names = _names()
    spoken = tuple(dict.fromkeys(names[value.lower()] for value in values if value.lower() in names))
    written = tuple(value for value in values if value.lower() not in names)
    nodes = [Field(name, some) for name, some in (("lang", written), ("language", spoken)) if some]
    return nodes[0] if len(nodes) == 1 else Any(tuple(nodes))


def names_of(languages: str) -> list[str]:
    """Every name and code of the languages that the field of a resource lists."""
    held = languages.split(", ")
    return [known for known, name in _names().items() if name in held]


def _names() -> dict[str, str]:
    """Code or name → name."""
    codes = dict(pair.split("=") for pair in listed("codes"))
    return codes | {name: name for name in codes.values()}


def _told(sample: str) -> str:
    """The language of a sample, or an empty text."""
    if not sample.isascii() and (alone := _told_by_script(sample)):
        return alone
    places, names, shares, signs = _shares()
    rows = shares[[places[term] for term in places.keys() & index_form(sample).split()]]
    weights, letters = rows.sum(axis=0), frozenset("" if sample.isascii() else sample)
    for column, shown in signs:
        if letters.isdisjoint(shown):
            weights[column] = 0
    best = int(weights.argmax())
    count, weight, weights[best] = (rows[:, best] > 0).sum(), weights[best], 0
    return names[best] if count >= _LEAST and weight >= _AHEAD * weights.max() else ""


@cache
def _shares() -> tuple[dict[str, int], list[str], AnyValue, list[tuple[int, frozenset[str]]]]:
    """Small word → its row; the languages; the share of each, a column, in each word; the signs of columns."""
    import numpy as np

    known, names = languages_by_word(), list(function_words())
    shares = [[(name in known[term]) / len(known[term]) for name in names] for term in known]
    signs = [(names.index(name), frozenset(shown)) for name, shown in _SIGNS.items()]
    return {term: row for row, term in enumerate(known)}, names, np.array(shares), signs


def _told_by_script(sample: str) -> str:
    """The language that is the only one of its script here, or an empty text."""
    letters = [letter for letter in sample if letter.isalpha()]
    scripts = Counter(name(letter, "").partition(" ")[0] for letter in letters if letter > "\u024f")
    if 2 * scripts.total() <= len(letters):
        return ""
    alone = dict(pair.split("=") for pair in listed("scripts"))
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    return alone.get("HIRAGANA" if 20 * kana > len(letters) else scripts.most_common(1)[0][0], "")
