"""Words of letters and digits as they stand in code: the whole, and the parts a person reads in it."""

from __future__ import annotations

import re

__all__ = ["LONGEST_WORD", "identifier_terms"]

LONGEST_WORD = 128
"""Longer runs of letters are encoded data, not words: nobody searches for them and each would be a new term."""

# Subwords as people read them: HTTP|Server, get|User|Name, IPv6|Address, sha256|sum.
_SUBWORD = re.compile(r"[A-Z]{2,}[a-z]?[0-9]+|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LETTERS_OR_DIGITS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUNS = re.compile(r"[a-z]+|[0-9]+")
_MOST_ALTERNATIONS = 6
"""A word that changes more often between letters and digits is a hash: 3f2a9c1b is findable as a whole only."""


def identifier_terms(word: str) -> list[str]:
    """The terms of an ASCII word: the whole in lower case, then its parts if it has several."""
    if not word or len(word) > LONGEST_WORD:
        return []
    whole = word.lower()
    parts: list[str] = []
    for subword in _SUBWORD.findall(word):
        parts.append(subword.lower())
        if not subword.isalpha() and not subword.isdigit():
            parts.extend(piece.lower() for piece in _LETTERS_OR_DIGITS.findall(subword))
    if not word.isalpha() and len(_RUNS.findall(whole)) > _MOST_ALTERNATIONS:
        return [whole]
    return parts if parts[0] == whole else [whole, *parts]
