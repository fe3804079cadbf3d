"""Inflected forms: which words of a vocabulary are forms of the same word.

Snowball stems decide, one algorithm per script. Stems never enter the index; they only group the words that are in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Protocol

__all__ = [
    "extended_table",
    "forms_prefix",
    "forms_table",
    "same_stem",
    "stem",
    "stemmer_version",
    "table_forms",
]


_ALGORITHMS = (
    ("a", "z", "english"),
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
)


@lru_cache(maxsize=1_000)
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


def forms_table(words: Collection[str]) -> bytes:
    """The words that differ from their stems, a sorted line for each stem: `connect: connected connecting`."""
    groups: dict[str, list[str]] = {}
    for root, word in _inflected(words):
        groups.setdefault(root, []).append(word)
    return "".join([_row(root, groups[root]) for root in sorted(groups)]).encode()


def extended_table(table: bytes, words: Collection[str]) -> bytes:
    """The table with more words, which may be in it already."""
    groups: dict[str, list[str]] = {}
    for root, word in _inflected(words):
        groups.setdefault(root, []).append(word)
    pieces, at = [], 0
    for root in sorted(groups):
        start, end = _row_span(table, root.encode(), at)
        forms = {*groups[root], *table[start:end].decode().split()[1:]}
        pieces += [table[at:start], _row(root, forms).encode()]
        at = end
    return b"".join([*pieces, table[at:]])


def table_forms(table: bytes, term: str) -> list[str]:
    """The words of a vocabulary that have the term's stem, in order, by its table; the stem may not be in it."""
    algorithm, root = _algorithm(term), stem(term)
    if algorithm is None:
        return [term]
    # As a walk stems it: short words have no stem of their own, and may be the form of another one.
    is_own = (_stemmer(algorithm).stemWord(root) or root) == root
    return sorted({*_known(table, root), *([root] if is_own else [])})


def stemmer_version() -> str:
    """The version of the stems."""
    import Stemmer

    version: str = Stemmer.version()
    return version


def _inflected(words: Collection[str]) -> Iterator[tuple[str, str]]:
    """The stem and the word of each word that differs from its stem."""
    # What is no letter stays in an English stem; vowels of Hindi are no letters, and do not.
    english = [word for word in words if "a" <= word < "{" and word.isalpha()]
    others = [word for word in words if word >= "{"]
    for first, last, name in _ALGORITHMS:
        own = english if name == "english" else [word for word in others if first <= word[0] <= last]
        for word, root in zip(own, _stemmer(name).stemWords(own) if own else (), strict=True):
            if root != word and root.isalpha():
                yield root, word


def _row(root: str, forms: Iterable[str]) -> str:
    return f"{root}: {' '.join(sorted(forms))}\n"


def _known(table: bytes, root: str) -> list[str]:
    start, end = _row_span(table, root.encode())
    return table[start:end].decode().split()[1:]


def _row_span(table: bytes, root: bytes, low: int = 0) -> tuple[int, int]:
    """The row of a stem from `low` on; an empty one where it belongs if there is none. 17 steps find one of 40,000."""
    high, reach = len(table), _NEAR
    while 0 < low < high - reach:  # the row before was asked for: 5 steps find a neighbour
        start = table.rfind(b"\n", low, low + reach) + 1 or low
        if table[start : table.index(b":", start)] > root:
            high = start
        else:
            low, reach = start, 2 * reach
    while low < high:
        start = table.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = table.index(b"\n", start) + 1
        head = table[start : table.index(b":", start)]
        if head == root:
            return start, end
        low, high = (end, high) if head < root else (low, start)
    return low, low


_NEAR = 1024
"""Bytes of a table that hold some 30 rows."""


def _algorithm(term: str) -> str | None:
    if len(term) < 3 or not term.isalpha():
        return None
    if term[0] <= "z":  # as most terms are
        return "english" if term[0] >= "a" else None
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
