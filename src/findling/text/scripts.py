"""Words of all scripts: accents that are optional, scripts without spaces, marks that belong to letters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from findling.text.identifiers import LONGEST_WORD, identifier_terms

__all__ = ["is_unspaced", "unicode_places", "unicode_terms"]

# Scripts written without spaces between words, and Hangul, whose particles are glued to the noun.
_UNSPACED_CLASS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3005\u3040-\u30ff\u31f0-\u31ff"  # Kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\uac00-\ud7af"  # Hangul
)
_UNSPACED = re.compile(f"[{_UNSPACED_CLASS}]+")
_RUNS = re.compile(f"[{_UNSPACED_CLASS}]+|[^{_UNSPACED_CLASS}]+")

# Accents of Latin, Greek and Cyrillic, Hebrew points, Arabic vowel signs: written or left out at will. Marks of
# Indic and other scripts are letters in their own right, and so is the breve of й.
_OPTIONAL_MARKS = re.compile(
    "(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]"
)
_LETTERS = {"ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ς": "σ"}
_UNDECOMPOSED = str.maketrans(
    _LETTERS | {"ẞ": "SS", "Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "Th", "Æ": "Ae", "Œ": "Oe"}
)


# \w lacks combining marks, without which Hindi and decomposed accents fall apart; joiners stand inside words.
_MARKS = (
    "\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d"
    "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
) + "".join(  # the Indic blocks share one layout
    f"{chr(c)}-{chr(c + 3)}{chr(c + 0x3A)}-{chr(c + 0x4F)}{chr(c + 0x55)}-{chr(c + 0x63)}"
    for c in range(0x0900, 0x0E00, 0x80)
)
_WORD = re.compile(f"(?:[^\\W_]|[{_MARKS}])+")


def unicode_terms(word: str) -> list[str]:
    """The terms of a word that is not ASCII: pairs of characters for unspaced scripts, folded words for the others."""
    result: list[str] = []
    for run in _RUNS.findall(word):
        result.extend(_pairs(run) if _UNSPACED.match(run) else _spaced_terms(run))
    return result


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    return _UNSPACED.match(character) is not None


def unicode_places(text: str) -> Iterator[tuple[int, int, bool]]:
    """Where the words of a text begin and end; unspaced scripts give one place per term, and True with it."""
    for word in _WORD.finditer(text):
        for run in _RUNS.finditer(word.group()):
            start, end = word.start() + run.start(), word.start() + run.end()
            if _UNSPACED.match(run.group()):
                yield from ((at, min(at + 2, end), True) for at in range(start, end))
            else:
                yield start, end, False


def _spaced_terms(run: str) -> list[str]:
    plain = _OPTIONAL_MARKS.sub("", unicodedata.normalize("NFD", run)).translate(_UNDECOMPOSED)
    if plain.isascii():
        return identifier_terms(plain)
    folded = unicodedata.normalize("NFC", plain.casefold())
    return [folded] if len(folded) <= LONGEST_WORD else []


def _pairs(run: str) -> list[str]:
    # The last character stands alone as well: with it every single character is the beginning of some term.
    return [run[i : i + 2] for i in range(len(run))]
