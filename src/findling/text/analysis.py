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
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from findling.domain.resources import Chunk, ChunkTerms
from findling.text.identifiers import LONGEST_WORD, identifier_terms

__all__ = [
    "FINGERPRINT",
    "STOP_WORDS",
    "WordSpan",
    "chunk_terms",
    "index_form",
    "is_compound",
    "is_unspaced",
    "matching_spans",
    "phrase_terms",
    "row_terms",
    "terms",
]

FINGERPRINT = "words:1"
"""Changes with every change to the terms that a text gives; an index made under another one is rebuilt."""

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
"""Lucene's English list. They are indexed, so that phrases hold; a query skips them unless it has nothing else."""

_CACHE_LIMIT = 250_000
"""Words remembered at once, about 35 MB: a source tree of 118 MB has 190,000 different words."""


def index_form(text: str) -> str:
    """All terms of the text in order, separated by single spaces: the form an index is fed with."""
    if len(_terms_of) > _CACHE_LIMIT:
        _terms_of.clear()
    return " ".join(map(_terms_of.__getitem__, _words(text)))


def chunk_terms(text: str, chunk: Chunk) -> ChunkTerms:
    """The index form of a chunk of the text and of its headings."""
    return ChunkTerms(index_form(text[chunk.start : chunk.end]), index_form("\n".join(chunk.heading)))


def terms(text: str) -> list[str]:
    """All terms of the text in order."""
    return index_form(text).split()


def phrase_terms(text: str) -> list[str]:
    """The terms that stand in a row wherever the text stands, whatever follows it.

    The last character of an unspaced run is a term of its own only at the end of the run: 库 in 数据库.
    """
    words = terms(text)
    return words[:-1] if len(words) > 1 and not text.isascii() and _is_tail(*words[-2:]) else words


def row_terms(word: str) -> list[str]:
    """The terms of a word that stand in a row however it is written: `getUser`, `get_user` or `get user`.

    A possessive `'s` is left out. A last term of one unspaced character (see `is_unspaced`) may be the beginning of a
    longer one in the text: 대 of 50대 in 50대는.
    """
    row: list[str] = []
    for part in _words(_POSSESSIVE.sub("", word)):
        given = terms(part)
        has_whole = len(given) > 1 and given[0].isascii() and given[0].startswith(given[1])
        row += given[1:] if has_whole else given
    return row[:-1] if len(row) > 1 and not word.isascii() and _is_tail(*row[-2:]) else row


_POSSESSIVE = re.compile(r"(?<=\w)['’]s$", re.IGNORECASE)


def _is_tail(pair: str, last: str) -> bool:
    return len(last) == 1 and pair.endswith(last) and is_unspaced(last)


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    if character.isascii():
        return False
    from findling.text.scripts import is_unspaced as belongs

    return belongs(character)


def is_compound(word: str) -> bool:
    """Whether what was typed as one word is written with separators inside, as in node.js or MAX_VALUE."""
    return len(_words(word)) > 1


class WordSpan(NamedTuple):
    """Where a word stands in the original text, and those of its terms that were wanted."""

    start: int
    end: int
    terms: list[str]


def matching_spans(text: str, wanted: Collection[str]) -> list[WordSpan]:
    """The words of the text that give a wanted term, in order; unspaced scripts give one span per term."""
    if text.isascii():
        return _ascii_matches(text, wanted)
    from findling.text.scripts import unicode_places

    spans = []
    for start, end, is_term in unicode_places(text):
        word = text[start:end]
        found = [unicodedata.normalize("NFKC", word)] if is_term else _terms_of_raw(word)
        if matched := [term for term in dict.fromkeys(found) if term in wanted]:
            spans.append(WordSpan(start, end, matched))
    return spans


@lru_cache(maxsize=20_000)
def _terms_of_raw(word: str) -> list[str]:
    return terms(word)


def _ascii_matches(text: str, wanted: Collection[str]) -> list[WordSpan]:
    # Look for the few terms instead of analysing every word: 5x faster on a chunk of code. A find only proposes a
    # word; whether it gives the term is for the analysis to say.
    spaced, lowered = text.translate(_ascii_separators), text.lower()
    word_end, word_start, find = spaced.find, spaced.rfind, lowered.find
    found: dict[int, WordSpan] = {}
    for term in wanted:
        at = find(term)
        while at >= 0:
            start, end = word_start(" ", 0, at) + 1, word_end(" ", at)
            if end < 0:
                end = len(text)
            given = _terms_of[text[start:end]]
            if given == term or (" " in given and term in given.split()):
                known = found.get(start)
                if known is None:
                    found[start] = WordSpan(start, end, [term])
                else:
                    known.terms.append(term)
            at = find(term, end)
    return [found[start] for start in sorted(found)]


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
_ascii_separators = "".join(chr(code) if chr(code).isalnum() else " " for code in range(128))


def _words(text: str) -> list[str]:
    # For ASCII, translate and split run at C speed: together 4x faster than re.findall(r"\w+").
    if text.isascii():
        return text.translate(_ascii_separators).split()
    return unicodedata.normalize("NFKC", text).translate(_separators).split()


class _TermsOfWord(dict[str, str]):
    """Word → its terms, separated by spaces. Most words of a corpus repeat, so analysis is paid once per word."""

    def __missing__(self, word: str) -> str:
        if not word.isascii():
            from findling.text.scripts import unicode_terms

            value = " ".join(unicode_terms(word))
        elif word.isalpha() and word.islower() and len(word) <= LONGEST_WORD:
            value = word
        else:
            value = " ".join(identifier_terms(word))
        self[word] = value
        return value


_terms_of = _TermsOfWord()
