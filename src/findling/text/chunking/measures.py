"""Size of a piece: a bound in characters, and a finer one for plans that count tokens or words."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import NamedTuple

from findling.text.analysis.wordpieces import count_tokens
from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.chunking.windows import Fit, fits_whole

MOST_TOKENS_OF_A_CHARACTER = 3
"""A Korean syllable is up to three letters; nearly all other characters are one token or a part of one."""


class Measure(NamedTuple):
    """At most `size` characters, and no more than `fit` lets through."""

    size: int
    fit: Fit = fits_whole


def measure_of(text: str, plan: ChunkPlan) -> Measure:
    """The measure for pieces of this text."""
    if plan.unit == "tokens":
        size = max(1, characters_of(plan) >> _density(text))
        most = 1 if text.isascii() else MOST_TOKENS_OF_A_CHARACTER
        return Measure(size, partial(_fit_tokens, size=size, tokens=plan.size, most=most))
    if plan.unit == "words":
        return Measure(characters_of(plan), partial(_fit_words, words=plan.size))
    return Measure(plan.size)


def characters_of(plan: ChunkPlan) -> int:
    """The size in characters: exact for plans in characters, else about what it comes to in English."""
    return plan.size * _CHARACTERS[plan.unit]


_CHARACTERS = {"characters": 1, "tokens": 5, "words": 10}
"""Tokens of English prose have 4.1 to 5.2 characters, spaces included. Words have 6, but more in other languages."""

_SAMPLES = 8
_SAMPLE = 500


def _density(text: str) -> int:
    """Number of halvings for a piece whose text takes more tokens than English.

    It is a coarse number on purpose: an edit somewhere must not move all the cuts of a file.
    """
    if text.isascii():
        return 0
    step = max(len(text) // _SAMPLES, _SAMPLE)
    sample = " ".join(text[start : start + _SAMPLE] for start in range(0, len(text), step))
    ratio = _CHARACTERS["tokens"] * count_tokens(sample) / len(sample)
    return max(0, round(ratio).bit_length() - 1)


def _fit_tokens(text: str, start: int, end: int, *, size: int, tokens: int, most: int) -> int:
    """The furthest end, up to this one, at which the text from `start` on has no more than so many tokens.

    It is found by bites that stay well below what is left, so that nearly every character is counted once.
    """
    if (end - start) * most <= tokens:
        return end
    position, left, whole_words = start, tokens, True
    while position < end and left > tokens // 32:
        bite = max(1, left * size * 2 // (tokens * 3))
        target = position + bite if end - position > bite * 7 // 6 else end
        following, count = _bite(text, position, target, left, end)
        if following == position:
            break
        whole_words = whole_words and (following == end or text[following - 1] in _SPACES)
        position, left = following, left - count
    if position < end <= position + left * size // tokens and count_tokens(text[position:end]) <= left:
        position = end
    # Pieces of a word can have fewer tokens than the word: then only the sum counts.
    while not whole_words and position > start and count_tokens(text[start:position]) > tokens:
        position -= max(1, (position - start) // 16)
    return position


_SPACES = frozenset(" \n\t\r")


def _bite(text: str, start: int, end: int, left: int, last: int) -> tuple[int, int]:
    """An end that leaves no more than `left` tokens before it, after a space if there is one, and their number."""
    while end > start:
        if end < last:
            half = (start + end) // 2
            end = max(text.rfind(" ", half, end), text.rfind("\n", half, end)) + 1 or end
        count = count_tokens(text[start:end])
        if count <= left:
            return end, count
        end = start + min(end - start - 1, (end - start) * left // count)
    return start, 0


def _fit_words(text: str, start: int, end: int, *, words: int) -> int:
    match = _words(words).match(text, start, end)
    return match.end() if match else end


@cache
def _words(count: int) -> re.Pattern[str]:
    return re.compile(rf"(?:\s*+\S++){{0,{count}}}+\s*+")
