"""Text into terms: the one analysis that indexing, querying and highlighting share.

A text becomes words (runs of Unicode letters, digits and marks; C++ and C#; emoji), and each word becomes one or more
terms:

    getUserName   → getusername get user name          MAX_VALUE → max value
    IPv6Address   → ipv6address ipv6 ip v 6 address    x509      → x509 x 509
    Überprüfung   → uberprufung                        数据库    → 数据 据库 库
    C++           → c c++                              👩🏽‍🚀         → 👩 🚀

What is written with separators (MAX_VALUE, node.js, well-known) is found as a whole by its terms standing in a row.
Terms are whole words, never stems: a query gathers inflected forms from the index's own vocabulary (see `stemming`).
Exact phrases, prefixes and spelling suggestions so work on real words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache, partial
from typing import TypeAlias

from findling.core import native
from findling.domain.resources import Chunk, ChunkTerms
from findling.text.analysis.scripts import (
    LONGEST_WORD,
    SIGNS,
    Remembered,
    identifier_terms,
    is_emoji,
    is_unspaced,
    unicode_places,
    unicode_terms,
    word_spans,
    words_of_run,
)

FINGERPRINT = "words:2"
"""Changes with every change to the terms that a text gives; an index made under another one is rebuilt."""

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with".split()
)
"""Lucene's English list. They are indexed, so that phrases hold; a query skips them unless it has nothing else."""

_LOOKED_AT = 2_000
"""Characters of a text without letters that are looked at for an emoji."""

_CACHE_LIMIT = 250_000
"""Runs remembered at once, about 40 MB: a source tree of 118 MB has 190,000 different words."""


def index_form(text: str) -> str:
    """All terms of the text in order, separated by single spaces: the form an index is fed with."""
    return _terms_with_spaces(text)[:-1] if native is None else native.index_form(text, _terms_of_stretch)


def _terms_with_spaces(text: str) -> str:
    """All terms of the text in order, each with a space after it."""
    return "".join(map(_terms_of.__getitem__, _runs(text)))


def chunk_terms(text: str, chunk: Chunk, defines: str = "") -> ChunkTerms:
    """The index form of a chunk of the text and of its headings, beside the names that it defines."""
    _, _, _, start, end, _, _, heading, _ = chunk
    return ChunkTerms(index_form(text[start:end]), index_form("\n".join(heading)) if heading else "", defines)


def terms(text: str) -> list[str]:
    """All terms of the text in order."""
    return index_form(text).split()


def phrase_terms(text: str) -> list[str]:
    """The terms that stand in a row wherever the text stands, whatever follows it.

    The last character of an unspaced run is a term of its own only at the end of the run: 库 in 数据库. A first word
    such as C++ leaves its bare name out, so that its search does not find every C.
    """
    row = _from_sign(text)
    return row[:-1] if len(row) > 1 and _is_tail(*row[-2:]) else row


def word_terms(word: str) -> list[str]:
    """The terms of which any will do when a word ranks: a stop word that is only a part of it (`sign-in`) is none.

    Nor is a possessive `'s`: the cat's operation is found by no other `s`.
    """
    row = phrase_terms(word if word.isalnum() else re.sub(_POSSESSIVE, "", word))
    return [term for term in row if term not in STOP_WORDS] or row if len(row) > 1 else row


def says_nothing(text: str) -> bool:
    """Whether there is no term in a text: neither a letter nor a digit, nor an emoji."""
    # Nearly every text has a letter among its first ones.
    return not any(map(str.isalnum, text)) and not terms(text[:_LOOKED_AT])


def row_terms(word: str) -> list[str]:
    """The terms of a word that stand in a row wherever it is written, an identifier also as `get_user` or `get user`.

    A possessive `'s` is left out. A last term of one unspaced character (see `is_unspaced`) may be the beginning of a
    longer one in the text: 대 of 50대 in 50대는.
    """
    if word.isalpha() and word.isascii() and word.islower():
        return terms(word)  # which most words are
    word = re.sub(_POSSESSIVE, "", word)
    row = phrase_terms(word)
    # Only of the first part: further on the whole stands between the terms in front of it and its parts.
    first = _from_sign(_words(word)[0]) if row else []
    return row[1:] if _has_whole(first) else row


def prefix_terms(text: str) -> list[str]:
    """The terms in a row of which the last is the beginning of a longer one; an identifier begins as a whole."""
    given = _from_sign(text)
    return given[:1] if len(_words(text)) == 1 and _has_whole(given) else given


_POSSESSIVE = r"(?i)(?<=[\w+#])['’]s$"


def _from_sign(text: str) -> list[str]:
    """The terms of the text; where it begins with a name such as C++, from the term with the sign on."""
    row = terms(text)
    if "+" not in text and "#" not in text and text.isascii():
        return row
    words = _words(text)
    has_sign = bool(words) and words[0].endswith(SIGNS)
    return row[next(at for at, term in enumerate(row) if term.endswith(SIGNS)) :] if has_sign else row


def _has_whole(given: list[str]) -> bool:
    """Whether the first of the terms of a word is the word as a whole, followed by its parts."""
    return len(given) > 1 and given[0].isascii() and given[0].startswith(given[1])


def _is_tail(pair: str, last: str) -> bool:
    return len(last) == 1 and pair.endswith(last) and is_unspaced(last)


def is_compound(word: str) -> bool:
    """Whether what was typed as one word is written with separators inside, as in node.js or MAX_VALUE."""
    return len(_words(word)) > 1


WordSpan: TypeAlias = tuple[int, int, list[str]]
"""Start and end of a word in the original text, and those of its terms that were wanted."""


def matching_spans(text: str, wanted: Collection[str]) -> list[WordSpan]:
    """The words of the text that give a wanted term, in order; unspaced scripts give one span per term."""
    if native is None:
        return _matching_spans(text, wanted)
    return native.matching_spans(text, wanted, partial(_piece_matches, wanted))


def _matching_spans(text: str, wanted: Collection[str]) -> list[WordSpan]:
    if text.isascii():
        return _ascii_matches(text, wanted)
    pieces = re.finditer(r"\S+", text)
    return [span for piece in pieces for span in _piece_matches(wanted, piece.group(), piece.start())]


def _piece_matches(wanted: Collection[str], raw: str, offset: int) -> list[WordSpan]:
    """The words of what stands between two spaces."""
    given = _terms_of_raw(raw) if len(raw) <= _LONGEST_REMEMBERED else terms(raw)
    matched = [term for term in dict.fromkeys(given) if term in wanted]
    return _places_of(matched, raw, offset) if matched else []


_LONGEST_REMEMBERED = 64
"""Whole sentences of scripts without spaces do not come again."""


@lru_cache(maxsize=20_000)
def _terms_of_raw(word: str) -> list[str]:
    return terms(word)


def _places_of(matched: list[str], raw: str, offset: int) -> list[WordSpan]:
    spans = []
    for start, end, is_term in unicode_places(raw):
        word = raw[start:end]
        found = [unicodedata.normalize("NFKC", word)] if is_term else _terms_of_raw(word)
        if wanted := [term for term in dict.fromkeys(found) if term in matched]:
            spans.append((offset + start, offset + end, wanted))
    # Words that normalisation changes beyond recognition, such as 5㎏, are shown with what they touch.
    is_complete = {term for _, _, found in spans for term in found} == set(matched)
    return spans if is_complete else [(offset, offset + len(raw), matched)]


def _ascii_matches(text: str, wanted: Collection[str]) -> list[WordSpan]:
    # Look for the few terms instead of analysing every word: 5x faster on a chunk of code. A find only proposes a
    # word; whether it gives the term is for the analysis to say.
    spaced, lowered = text.translate(_ascii_separators), text.lower()
    run_end, run_start, find = spaced.find, spaced.rfind, lowered.find
    found: dict[int, WordSpan] = {}
    for term in filter(None, wanted):
        alone = f"{term} "
        at = find(term)
        while at >= 0:
            start, end = run_start(" ", 0, at) + 1, run_end(" ", at)
            if end < 0:
                end = len(text)
            word = text[start:end]
            if not word.isalnum():
                start, end = next((span for span in word_spans(text, start, end) if at < span[1]), (start, end))
                word = text[start:end]
            given = _terms_of[word]
            if given == alone or (len(given) > len(alone) and term in given.split()):
                known = found.get(start)
                if known is None:
                    found[start] = start, end, [term]
                else:
                    known[2].append(term)
            at = find(term, end)
    return [found[start] for start in sorted(found)]


def _separated(code: int) -> int | str | None:
    """The substitute of a character where runs are cut: a space for nearly everything between them."""
    category = unicodedata.category(chr(code))
    # Joiners and soft hyphens stand inside words; the way a character is to be drawn is not part of it either.
    if category in ("Cf", "Me") or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
        return None
    if category[0] in "LNM" or code in _KEPT:
        return code
    return f" {chr(code)} " if code >= _FIRST_EMOJI and is_emoji(chr(code)) else " "


_FIRST_EMOJI = 0x231A
_KEPT = {*range(0x1F1E6, 0x1F200), *map(ord, "+#")}  # the letters of flags


_separators = Remembered(_separated)
_ascii_separators = "".join(chr(code) if chr(code).isalnum() or chr(code) in "+#" else " " for code in range(128))


def _words(text: str) -> list[str]:
    runs = _runs(text)
    # Not only where the text has such a sign: NFKC makes one of its wide form.
    has_sign = not text.isascii() or "+" in text or "#" in text
    return [word for run in runs for word in words_of_run(run)] if has_sign else runs


def _runs(text: str) -> list[str]:
    """Words, and what may be several of them or none because of a `+` or `#`: whether it is, is found out once a run.

    For ASCII, translate and split run at C speed: together 4x faster than re.findall(r"\\w+"), and 5 % of all indexing
    faster than to look for C++ and C# in every text.
    """
    if text.isascii():
        return text.translate(_ascii_separators).split()
    return unicodedata.normalize("NFKC", text).translate(_separators).split()


def _terms_of_run(run: str) -> str:
    """The terms of a run, each with a space after it."""
    if not run.isascii():
        given = unicode_terms(run)
    elif run.isalpha() and run.islower() and len(run) <= LONGEST_WORD:
        given = [run]
    elif run.isalnum():
        given = identifier_terms(run)
    else:
        given = [term for word in words_of_run(run) for term in identifier_terms(word)]
    return " ".join([*given, ""])


_terms_of = Remembered(_terms_of_run, _CACHE_LIMIT)
"""Most runs of a corpus repeat, so analysis is paid once per run."""

_terms_of_stretch = Remembered(_terms_with_spaces, _CACHE_LIMIT, _LONGEST_REMEMBERED)
"""Stretch without an ASCII separator → its terms; for the compiled core."""
