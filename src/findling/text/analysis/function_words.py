"""The small words that hold sentences together, by language: they tell a language, and are no errors of spelling."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from findling.text.analysis.analysis import terms

__all__ = ["function_words", "is_function_word", "languages_of"]

_LISTS = Path(__file__).with_name("data") / "function-words.txt"
"""A line for each language, written by hand: some dozens of words that a stemmer or the index may meet."""


@cache
def function_words() -> dict[str, str]:
    """Language → its small words, separated by spaces."""
    lines = _LISTS.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


def is_function_word(term: str) -> bool:
    """Whether a term is a small word of some language."""
    return term in _languages()


def languages_of(found: Iterable[str]) -> set[str]:
    """The languages that most of the small words among these terms belong to; empty when none of them is small."""
    counts: dict[str, int] = {}
    for term in found:
        for language in _languages().get(term, ()):
            counts[language] = counts.get(language, 0) + 1
    most = max(counts.values(), default=0)
    return {language for language, count in counts.items() if count == most}


@cache
def _languages() -> dict[str, list[str]]:
    """Term → its languages."""
    known: dict[str, list[str]] = {}
    for language, words in function_words().items():
        for term in dict.fromkeys(terms(words)):
            known.setdefault(term, []).append(language)
    return known
