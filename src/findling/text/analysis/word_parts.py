"""Parts of words: those of a compound, and pairs of characters that say little in scripts without spaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from findling.text.analysis.scripts import is_unspaced
from findling.text.analysis.stemming import listed

_SHORTEST_PART = 4
_LONGEST = 40
"""Letters of a compound that is taken apart: each cut asks for up to six words."""
_LINKS = ("", "s", "n", "e", "es", "en", "er")
"""Letters behind a part: Arbeit|s|zeit, Straße|n|bahn|en."""


def compound_parts(term: str, frequency: Callable[[str], int]) -> tuple[str, ...]:
    """The two known words that a compound consists of, empty without any: of several pairs the most frequent one."""
    best = 0
    parts: tuple[str, ...] = ()
    for first, last in _cuts(term) if len(term) <= _LONGEST else ():
        if (known := frequency(last)) > best and (both := min(known, frequency(first))) > best:
            best, parts = both, (first, last)
    return parts


def _cuts(term: str) -> Iterator[tuple[str, str]]:
    for at in range(_SHORTEST_PART, len(term) - _SHORTEST_PART + 1):
        for first in _bare(term[:at]):
            for last in _bare(term[at:]):
                yield first, last


def _bare(part: str) -> list[str]:
    """A part as it stands, and without the letters that may follow it."""
    return [
        part.removesuffix(link) for link in _LINKS if part.endswith(link) and len(part) - len(link) >= _SHORTEST_PART
    ]


KOREAN = 0.4
"""Weight of a Korean pair that is an ending. NDCG@10 on autorag-ko, a development set: at 1 .9175, .4 .931, .2 .930."""

KANA, BESIDE_KANA, CHINESE = 0.3, 0.6, 0.5
"""Weights of a pair of two Hiragana, of one, and of a pair with a small word of Chinese. The first two on 300 questions
of jsquad, a development set: at 1 and 1 .919, .5 and .8 .929, .3 and .6 .934, .15 and .5 .925."""


def pair_weights(terms: Sequence[str]) -> dict[str, float]:
    """The weights of those terms of a word that say less than others: pairs of endings, particles and small words."""
    found = {}
    for at, term in enumerate(terms):
        if len(term) == 2 and is_unspaced(term[0]):
            is_end = at and (at + 1 == len(terms) or terms[at + 1][0] != term[1])
            if (weight := _pair_weight(term, bool(is_end))) < 1:
                found[term] = weight
    return found


def _pair_weight(pair: str, is_end: bool) -> float:
    first, last = pair[0], pair[1]
    kana = sum("\u3040" <= sign <= "\u309f" for sign in pair)
    if kana:
        return KANA if kana == 2 else BESIDE_KANA
    if "\uac00" <= first <= "\ud7af":
        is_small = pair in listed("koreanPairs") or (is_end and last in listed("koreanEndings"))
        return KOREAN if is_small else 1.0
    return 1.0 if listed("chineseSigns").isdisjoint(pair) else CHINESE
