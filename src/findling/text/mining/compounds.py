"""How a text writes its compounds: joined (`filename`), apart (`file name`) or with a hyphen (`e-mail`)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import NamedTuple

from findling.text.mining.noun_runs import FUNCTION_WORDS

__all__ = ["Compounds", "compounds"]

_PUNCTUATION = ".,;:!?()[]{}<>\"'“”„‘’«»…*`_"
_SHORTEST_PART = 3
_SHORTEST_WHOLE = 5
_LONGEST = 30
_FIRST_UNSPACED = "\u0e00"
"""Thai; from here on come the scripts in which spaces say little about words."""


class Compounds(NamedTuple):
    """The words of a text in lower case: those written as one, and those written in two parts by their joined form."""

    words: AbstractSet[str]
    pairs: Mapping[str, str]


def compounds(text: str) -> Compounds:
    """The words and pairs of words of a text that may be written in another way elsewhere.

    Pairs count in lower case only: what is written Apart And With Capitals is more often a name than a compound.
    """
    tokens = text.split()
    words: set[str] = set()
    pairs: dict[str, str] = {}
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    for token in set(tokens):
        word = token.strip(_PUNCTUATION)
        if len(word) < _SHORTEST_PART or len(word) > _LONGEST or word >= _FIRST_UNSPACED:
            continue
        if not word.isalpha():
            if "-" in word:
                pairs.update(_with_hyphen(word.lower()))
            continue
        # getName is `get name` to a glossary already: only what shows no seam counts as written in one.
        if len(word) >= _SHORTEST_WHOLE and (word[1:].islower() or word.isupper()):
            words.add(word.lower())
        if word.islower() and word not in FUNCTION_WORDS:
            # Punctuation between two words keeps them apart.
            if token.endswith(word):
                first[token] = word
            if token.startswith(word):
                second[token] = word
    for one, other in pairwise(tokens):
        if one in first and other in second:
            pairs[first[one] + second[other]] = f"{first[one]} {second[other]}"
    return Compounds(words, pairs)


def _with_hyphen(word: str) -> dict[str, str]:
    first, _, second = word.partition("-")
    if not first.isalpha() or not second.isalpha() or len(word) <= _SHORTEST_WHOLE:
        return {}
    return {} if first in FUNCTION_WORDS or second in FUNCTION_WORDS else {first + second: word}
