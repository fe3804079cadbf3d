"""Inflected forms: which words of a vocabulary are forms of the same word.

Snowball stems decide, one algorithm per script. Stems never enter the index; they only group the words that are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

__all__ = ["forms_prefix", "same_stem", "stem"]

_ALGORITHMS = (
    ("a", "z", "english"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
)


def stem(term: str) -> str:
    """The stem of a term, or the term itself where no algorithm knows its script."""
    if len(term) < 3 or not term.isalpha():
        return term
    for first, last, algorithm in _ALGORITHMS:
        if first <= term[0] <= last:
            return _stemmer(algorithm)(term)
    return term


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


def same_stem(term: str, vocabulary: Iterable[str]) -> list[str]:
    """The words of the vocabulary that have the term's stem."""
    root = stem(term)
    return [word for word in vocabulary if stem(word) == root]


@cache
def _stemmer(algorithm: str) -> Callable[[str], str]:
    import Stemmer

    # stemWord keeps a cache of its own; 10,000 words cover a query's neighbourhood in any vocabulary.
    stem_word: Callable[[str], str] = Stemmer.Stemmer(algorithm).stemWord
    return stem_word
