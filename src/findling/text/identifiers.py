"""Words as they stand in code: the whole, and the parts a person reads in it; names such as C++ and C#."""

from __future__ import annotations

import re

__all__ = ["LONGEST_WORD", "SIGNS", "identifier_terms", "sign_places"]

LONGEST_WORD = 128
"""Longer runs of letters are encoded data, not words: nobody searches for them and each would be a new term."""

SIGNS = ("++", "#")
"""What a name may end with: C++, g++, Notepad++; C#, F#."""

# Subwords as people read them: HTTP|Server, get|User|Name, IPv6|Address, sha256|sum.
_SUBWORD = re.compile(r"[A-Z]{2,}[a-z]?[0-9]+|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LETTERS_OR_DIGITS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_RUNS = re.compile(r"[a-z]+|[0-9]+")
_MOST_ALTERNATIONS = 6
"""A word that changes more often between letters and digits is a hash: 3f2a9c1b is findable as a whole only."""


# The literal stands first, so that the search for it runs at the speed of memchr; what is in front of it comes second.
_PLUSES = re.compile(r"\+\+(?<=[A-Za-z]\+\+)(?![A-Za-z_+])")
_SHARP = re.compile(r"#(?<=[A-Za-z]#)(?![A-Za-z0-9_#])")
_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z]+\Z")
_LONGEST_PLUS_NAME, _LONGEST_SHARP_NAME = 12, 2
_SIGNED = re.compile(r"([A-Za-z]+)(\+\+|#)([A-Za-z0-9]*)")


def identifier_terms(word: str) -> list[str]:
    """The terms of an ASCII word: the whole in lower case, then its parts if it has several."""
    if not word or len(word) > LONGEST_WORD:
        return []
    whole = word.lower()
    if not word.isalnum() and (signed := _SIGNED.fullmatch(word)):
        name, sign, version = signed.groups()
        parts = [f"{name.lower()}{sign}", *identifier_terms(name), *identifier_terms(version)]
        return [whole, *parts] if version else parts
    parts = []
    for subword in _SUBWORD.findall(word):
        parts.append(subword.lower())
        if not subword.isalpha() and not subword.isdigit():
            parts.extend(piece.lower() for piece in _LETTERS_OR_DIGITS.findall(subword))
    if not word.isalpha() and len(_RUNS.findall(whole)) > _MOST_ALTERNATIONS:
        return [whole]
    return parts if parts[0] == whole else [whole, *parts]


def sign_places(text: str) -> list[tuple[int, int, int]]:
    """Where a short name ends with a sign, as in C++, C++17 and C#: the start of the name, of the sign, and its end."""
    places = []
    for sign, pattern, longest in (("++", _PLUSES, _LONGEST_PLUS_NAME), ("#", _SHARP, _LONGEST_SHARP_NAME)):
        if sign in text:
            for found in pattern.finditer(text):
                start, end = found.span()
                if name := _NAME.search(text, max(start - longest, 0), start):
                    places.append((name.start(), start, end))
    return sorted(places)
