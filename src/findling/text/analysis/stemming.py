"""Inflected forms: which words of a vocabulary are forms of the same word.

Snowball stems decide, one algorithm per script. Stems never enter the index; they only group the words that are in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

__all__ = ["forms_prefix", "same_stem", "stem"]

_ALGORITHMS = (
    ("a", "z", "english"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
)


def stem(term: str) -> str:
    """The stem of a term, or the term itself where no algorithm knows its script or leaves anything of it."""
    algorithm = _algorithm(term)
    # Snowball's Greek takes όταν ("when") for an ending without a word.
    return term if algorithm is None else _stemmer(algorithm).stemWord(term) or term


def forms_prefix(term: str) -> str:
    """A beginning that the term's forms share: what to look for in a sorted vocabulary."""
    root = stem(term)
    shared = 0
    for a, b in zip(term, root, strict=False):
        if a != b:
            break
        shared += 1
    # happy, happier → happi; use, using → use: the last letter of a stem may differ from the forms.
    if shared == len(root) and root[-1] in "iey" and len(root) > 2:
        shared -= 1
    return term[: max(shared, 2)]


def same_stem(term: str, vocabulary: Sequence[str]) -> list[str]:
    """The words of the vocabulary that have the term's stem."""
    algorithm = _algorithm(term)
    if algorithm is None:
        return [word for word in vocabulary if word == term]
    root = stem(term)
    stems = _stemmer(algorithm).stemWords(vocabulary)
    return [word for word, own in zip(vocabulary, stems, strict=True) if (own or word) == root]


def _algorithm(term: str) -> str | None:
    if len(term) < 3 or not term.isalpha():
        return None
    return next((name for first, last, name in _ALGORITHMS if first <= term[0] <= last), None)


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the names of PyStemmer

    def stemWords(self, words: Sequence[str]) -> list[str]: ...  # noqa: N802


@cache
def _stemmer(algorithm: str) -> _Stemmer:
    import Stemmer

    # Without a cache: a vocabulary is stemmed once, and filling PyStemmer's cache costs more than twice the stemming.
    stemmer: _Stemmer = Stemmer.Stemmer(algorithm, 0)
    return stemmer
