"""Misspelling: words of a query that the index lacks, and the words that were probably meant."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import product

from findling.domain.ports import KeywordLeg
from findling.domain.queries import Filters, Term
from findling.pipelines.retrieve.query_planner import typed_words
from findling.text.analysis.analysis import terms
from findling.text.analysis.function_words import function_words, is_function_word, languages_of
from findling.text.analysis.spelling import Spellings, suggest

__all__ = ["meant_by"]

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EDGES = "\"'`()[]{}<>.,;:!?…“”„«»"
_MOST_COMPOUNDS = 4
_WAYS = 3
_TRIED = 8
"""Spellings of an identifier that are looked up, each a small search."""

_SHORT = 4
"""Letters of a word that another one with one letter changed is no near spelling of: wann is not want."""

_SPOKEN = 12
"""Small words of a language, the most frequent ones, of which half stand in every index that speaks it."""


def meant_by(keyword: KeywordLeg, text: str, unknown: Collection[str]) -> dict[str, str]:
    """Word as it was typed → the word of the index that was probably meant.

    Small words of any language are no errors, nor are common English words. Where the question is in a language that
    the index does not speak, none of its words is: wann is not want.
    """
    typed = typed_words(text)
    words = [term for term in unknown if term in typed and _may_be_wrong(term)]
    compounds = _compounds(text, unknown)
    if not (words or compounds) or keyword.size() == 0 or _is_foreign(keyword, text):
        return {}
    vocabulary = Spellings(keyword.vocabulary())
    meant = {typed[word]: found[0] for word in words if (found := _nearest(word, vocabulary))}
    for compound in compounds[:_MOST_COMPOUNDS]:
        if whole := _whole(keyword, compound, unknown, vocabulary):
            meant[compound] = whole
    return meant


def _nearest(word: str, vocabulary: Spellings) -> list[str]:
    found = suggest(word, vocabulary, limit=_WAYS)
    if len(word) > _SHORT:
        return found
    return [other for other in found if len(other) > len(word) or sorted(other) == sorted(word)]


def _may_be_wrong(term: str) -> bool:
    from findling.text.analysis.wordpieces import bert_vocabulary

    # A common English word that nobody wrote is no error of spelling: radio is not meant to be ratio.
    return term.isalpha() and not is_function_word(term) and len(bert_vocabulary().pieces(term)) > 1


def _compounds(text: str, unknown: Collection[str]) -> list[str]:
    """The identifiers of a text with a part that nobody wrote."""
    raw = dict.fromkeys(word.strip(_EDGES) for word in text.split())
    return [
        word
        for word in raw
        if len(parts := _PART.findall(word)) > 1 and any(part.lower() in unknown for part in parts) and word.isascii()
    ]


def _whole(keyword: KeywordLeg, compound: str, unknown: Collection[str], vocabulary: Spellings) -> str:
    """The identifier with its unknown parts corrected, if the index has it as a whole; empty if it has not."""
    parts = [(match.span(), match.group()) for match in _PART.finditer(compound)]
    wrong = [(span, part) for span, part in parts if part.lower() in unknown]
    ways = [_nearest(part.lower(), vocabulary) for _, part in wrong]
    for chosen in list(product(*ways))[:_TRIED]:
        whole, moved = compound, 0
        for ((start, end), part), other in zip(wrong, chosen, strict=True):
            cased = other.upper() if part.isupper() else other.capitalize() if part[0].isupper() else other
            whole = whole[: start + moved] + cased + whole[end + moved :]
            moved += len(cased) - len(part)
        if " " not in whole and keyword.search(Term(whole), Filters(), 0).total:
            return whole
    return ""


def _is_foreign(keyword: KeywordLeg, text: str) -> bool:
    """Whether the small words of a text are of a language of which the index has few."""
    languages = languages_of(terms(text))
    if not languages or "english" in languages:
        return False
    common = {language: terms(function_words()[language])[:_SPOKEN] for language in languages}
    known = keyword.frequencies({word for words in common.values() for word in words})
    return all(2 * sum(bool(known.get(word)) for word in words) < len(words) for words in common.values())
