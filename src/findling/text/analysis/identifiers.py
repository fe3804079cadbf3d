"""Words as they stand in code: the whole, and the parts a person reads in it; names such as C++ and C#."""

from __future__ import annotations

import re

__all__ = ["LONGEST_WORD", "SIGNED_NAME", "SIGNS", "identifier_terms", "word_spans", "words_of_run"]

LONGEST_WORD = 128
"""Longer runs of letters are encoded data, not words: nobody searches for them and each would be a new term."""

SIGNS = ("++", "#")
"""What a short name may end with: C++, g++, Notepad++, C++17; C#, F#. Elsewhere these characters are separators."""

SIGNED_NAME = (
    r"(?<![A-Za-z0-9])(?:[A-Za-z]{1,12}\+\+(?![A-Za-z+])[A-Za-z0-9]*|[A-Za-z]{1,2}#(?![A-Za-z0-9#]))"  # not a++b, PR#12
)

# Subwords as people read them: HTTP|Server, get|User|Name, IPv6|Address, sha256|sum.
_SUBWORD = re.compile(r"[A-Z]{2,}[a-z]?[0-9]+|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LETTERS_OR_DIGITS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUNS = re.compile(r"[a-z]+|[0-9]+")
_MOST_ALTERNATIONS = 6
"""A word that changes more often between letters and digits is a hash: 3f2a9c1b is findable as a whole only."""


_WORD = re.compile(f"{SIGNED_NAME}|[^+#]+")
_SIGNED = re.compile(r"([A-Za-z]+)(\+\+|#)([A-Za-z0-9]*)")


def words_of_run(run: str) -> list[str]:
    """The words of a run of letters, digits, `+` and `#`."""
    return _WORD.findall(run) if "+" in run or "#" in run else [run]


def word_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the words of a run stand that is part of a text."""
    return [word.span() for word in _WORD.finditer(text, start, end)]


def identifier_terms(word: str) -> list[str]:
    """The terms of an ASCII word: the whole in lower case, then its parts if it has several.

    A name with a sign follows the name itself, so that `this.count` also stands in a row where `this.count++` does.
    """
    if not word or len(word) > LONGEST_WORD:
        return []
    whole = word.lower()
    if not word.isalpha():
        if signed := _SIGNED.fullmatch(word):
            return _signed_terms(*signed.groups())
        if len(_RUNS.findall(whole)) > _MOST_ALTERNATIONS:
            return [whole]
    parts: list[str] = []
    for subword in _SUBWORD.findall(word):
        parts.append(subword.lower())
        if not subword.isalpha() and not subword.isdigit():
            parts.extend(piece.lower() for piece in _LETTERS_OR_DIGITS.findall(subword))
    return parts if parts[0] == whole else [whole, *parts]


def _signed_terms(name: str, sign: str, version: str) -> list[str]:
    signed = f"{name.lower()}{sign}"
    parts = [*identifier_terms(name), signed, *identifier_terms(version)]
    return [f"{signed}{version.lower()}", *parts] if version else parts
