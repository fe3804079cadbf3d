"""Text into terms: the one analysis that indexing, querying and highlighting share.

A text becomes words (runs of Unicode letters, digits and marks), and each word becomes one or more terms:

    getUserName   → getusername get user name          MAX_VALUE → max value
    IPv6Address   → ipv6address ipv6 ip v 6 address    x509      → x509 x 509
    Überprüfung   → uberprufung                        数据库    → 数据 据库 库

What is written with separators (MAX_VALUE, node.js, well-known) is found as a whole by its terms standing in a row.
Terms are whole words, never stems: inflected forms are gathered from the index's own vocabulary when a query is
asked (see `stemming`), so exact phrases, prefixes and spelling suggestions keep working on real words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["FINGERPRINT", "STOP_WORDS", "WordSpan", "index_form", "is_compound", "terms", "word_spans"]

FINGERPRINT = "words:1"
"""Changes with every change to the terms that a text gives; an index made under another one is rebuilt."""

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
"""Lucene's English list. They are indexed, so that phrases hold; a query skips them unless it has nothing else."""

_LONGEST_WORD = 128
"""Longer runs of letters are encoded data, not words: nobody searches for them and each would be a new term."""

_CACHE_LIMIT = 250_000
"""Words remembered at once, about 35 MB: a source tree of 118 MB has 190,000 different words."""


def index_form(text: str) -> str:
    """All terms of the text in order, separated by single spaces: the form an index is fed with."""
    if len(_terms_of) > _CACHE_LIMIT:
        _terms_of.clear()
    return " ".join(map(_terms_of.__getitem__, _words(text)))


def terms(text: str) -> list[str]:
    """All terms of the text in order."""
    return index_form(text).split()


def is_compound(word: str) -> bool:
    """Whether what was typed as one word is written with separators inside, as in node.js or MAX_VALUE."""
    return len(_words(word)) > 1


class WordSpan(NamedTuple):
    """Where a word stands in the original text, and the terms it gives."""

    start: int
    end: int
    terms: list[str]


def word_spans(text: str) -> Iterator[WordSpan]:
    """The words of the text with their places, for highlighting; unspaced scripts give one span per term."""
    if text.isascii():
        for match in _ASCII_WORD.finditer(text):
            yield WordSpan(match.start(), match.end(), _terms_of[match.group()].split())
        return
    for match in _word_pattern().finditer(text):
        word = match.group()
        if _UNSPACED.search(word):
            yield from _unspaced_spans(word, match.start())
        else:
            yield WordSpan(match.start(), match.end(), terms(word))


class _Separators(dict[int, int | str | None]):
    """A translation table that turns everything between words into spaces, filled as characters are met."""

    def __missing__(self, code: int) -> int | str | None:
        category = unicodedata.category(chr(code))
        value: int | str | None = code if category[0] in "LNM" else " "
        if category == "Cf":  # joiners and soft hyphens stand inside words
            value = None
        self[code] = value
        return value


_separators = _Separators()


def _words(text: str) -> list[str]:
    # For ASCII, translate and split run at C speed: together 4x faster than re.findall(r"\w+").
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return text.translate(_separators).split()


class _TermsOfWord(dict[str, str]):
    """Word → its terms, separated by spaces. Most words of a corpus repeat, so analysis is paid once per word."""

    def __missing__(self, word: str) -> str:
        if word.isascii():
            if word.isalpha() and word.islower():
                value = word if len(word) <= _LONGEST_WORD else ""
            else:
                value = " ".join(_ascii_terms(word))
        else:
            value = " ".join(_unicode_terms(word))
        self[word] = value
        return value


_terms_of = _TermsOfWord()

# Subwords as people read them: HTTP|Server, get|User|Name, IPv6|Address, sha256|sum.
_SUBWORD = re.compile(r"[A-Z]{2,}[a-z]?[0-9]+|[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_LETTERS_OR_DIGITS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_MOST_PARTS = 8
"""A word of more parts is a hash or encoded data: 3f2a9c1b is findable as a whole, not by its letters."""


def _ascii_terms(word: str) -> list[str]:
    if not word or len(word) > _LONGEST_WORD:
        return []
    whole = word.lower()
    parts: list[str] = []
    for subword in _SUBWORD.findall(word):
        parts.append(subword.lower())
        if not subword.isalpha() and not subword.isdigit():
            parts.extend(piece.lower() for piece in _LETTERS_OR_DIGITS.findall(subword))
    if len(parts) > _MOST_PARTS:
        return [whole]
    return parts if parts[0] == whole else [whole, *parts]


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


def _unicode_terms(word: str) -> list[str]:
    result: list[str] = []
    for run in _RUNS.findall(word):
        if _UNSPACED.match(run):
            result.extend(_bigrams(run))
        else:
            result.extend(_spaced_terms(run))
    return result


def _spaced_terms(run: str) -> list[str]:
    plain = _OPTIONAL_MARKS.sub("", unicodedata.normalize("NFD", run)).translate(_UNDECOMPOSED)
    if plain.isascii():
        return _ascii_terms(plain)
    folded = unicodedata.normalize("NFC", plain.casefold())
    return [folded] if len(folded) <= _LONGEST_WORD else []


def _bigrams(run: str) -> list[str]:
    # The last character stands alone as well: with it every single character is the beginning of some term.
    return [run[i : i + 2] for i in range(len(run))]


def _unspaced_spans(word: str, offset: int) -> Iterator[WordSpan]:
    for run in _RUNS.finditer(word):
        start = offset + run.start()
        if not _UNSPACED.match(run.group()):
            yield WordSpan(start, start + len(run.group()), terms(run.group()))
            continue
        for i, bigram in enumerate(_bigrams(run.group())):
            yield WordSpan(start + i, start + i + len(bigram), [bigram])


_ASCII_WORD = re.compile("[A-Za-z0-9]+")
_pattern: re.Pattern[str] | None = None


def _word_pattern() -> re.Pattern[str]:
    # \w lacks combining marks, without which Hindi and decomposed accents fall apart. Joiners stay inside a word.
    global _pattern
    if _pattern is None:
        marks = "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
        indic = "".join(
            f"{chr(c)}-{chr(c + 3)}{chr(c + 0x3A)}-{chr(c + 0x4F)}{chr(c + 0x55)}-{chr(c + 0x63)}"
            for c in range(0x0900, 0x0E00, 0x80)
        )
        rest = "\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
        joiners = "\u00ad\u200c\u200d"
        _pattern = re.compile(f"(?:[^\\W_]|[{marks}{indic}{rest}{joiners}])+")
    return _pattern
