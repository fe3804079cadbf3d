"""Line numbers of character offsets, and sentences. Only `\\n`, `\\r\\n` and a lone `\\r` end a line, as in editors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, count
from operator import add
from typing import NamedTuple

from findling.core import native
from findling.text.analysis.analysis import STOP_WORDS
from findling.text.analysis.scripts import compiled
from findling.text.analysis.stemming import listed

ENGLISH_WORDS = STOP_WORDS | listed("english")
GERMAN_WORDS = listed("german")
SENTENCE_WORDS = ENGLISH_WORDS | GERMAN_WORDS | listed("sentence")
"""Those of a few languages."""

_SOME_WORDS = 4
_MANY_WORDS = 8


def is_sentence(text: str) -> bool:
    """Whether the words are a question or a sentence rather than a few things to look for."""
    words = text.lower().split()
    if text.rstrip().endswith(("?", "？", "؟")) or len(words) >= _MANY_WORDS:
        return True
    return len(words) >= _SOME_WORDS and any(word.strip(".,;:!¿¡") in SENTENCE_WORDS for word in words)


class LineIndex:
    """Starts of the lines of a text; lines count from 1, and a final break opens an empty last line."""

    def __init__(self, text: str) -> None:
        self._text = text
        lengths = map(len, with_plain_breaks(text).split("\n"))
        # The characters before line n and the n - 1 breaks between them, summed without a Python-level loop.
        self._starts = [0, *map(add, accumulate(lengths), count(1))][:-1]

    def __len__(self) -> int:
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        """The number of the line that holds the offset; a break belongs to the line it ends."""
        return bisect_right(self._starts, offset)

    def line_span(self, number: int) -> tuple[int, int]:
        """Start and end of a line, without its break; raises `IndexError` when there is no such line."""
        if not 1 <= number <= len(self._starts):
            raise IndexError(f"line {number} is outside 1..{len(self._starts)}")
        start = self._starts[number - 1]
        if number == len(self._starts):
            return start, len(self._text)
        end = self._starts[number] - 1
        if self._text[end] == "\n" and end > start and self._text[end - 1] == "\r":
            end -= 1
        return start, end


def line_numbers(text: str, offsets: Sequence[int]) -> list[int]:
    """The line of each offset, in one pass where they do not fall. Agrees with `LineIndex.line_of`."""
    plain = with_plain_breaks(text)
    numbers = []
    line, reached = 1, 0
    for offset in offsets:
        line += plain.count("\n", reached, offset) if reached <= offset else -plain.count("\n", offset, reached)
        reached = offset
        numbers.append(line)
    return numbers


def with_plain_breaks(text: str) -> str:
    """The text with `\\n` as its only line break; every line that is not blank stays at its offset."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", " \n").replace("\r", "\n")


FEW_WORDS = 4
"""Spaces that a sentence of prose, and a line that is wrapped, have more of."""

_WRAPPED = 45
"""Characters of a line from which the next one may continue its sentence: people wrap at 60 and more."""

_MARKS = "-*+|>#=~`•·:$@<.{}/"
"""Signs that begin an entry of a list, a cell, a heading, a directive or a fence, which continues no sentence.

Marked words, roles and links go on with one: `*must*`, `:term:`, `<https:`.
"""

_STOPS = ".!?。！？"
_ENDS = f"{_STOPS}:;"
_QUOTES = "\"')]*_`”’"
"""Signs behind the end of a sentence that belong to it."""

MOST_SHOWN = 400
"""Characters of a snippet, and of a line of it: five lines of 80. More lines than three have 134 characters each."""


# Compiled when it is needed, which takes 0.4 ms. A small letter goes on after "e.g." and "etc.".
_SENTENCE_ENDS = r"[.!?][\"')\]*_`”’]{0,3}[^\S\r\n]+(?=[^\sa-z])|[。！？](?=\S)"
_MARKED_WORDS = r"(?a:`(?!``)|\*{1,2}[^\s*]|:[\w.:+-]+:`|<http)"


def _is_entry(line: str) -> bool:
    """Whether a line begins something new."""
    return line[:1] in _MARKS and not compiled(_MARKED_WORDS).match(line)


class SentencePlaces(NamedTuple):
    """Sentences, or else lines of something that has none: their places in the text, first and last lines.

    `rows` and `last_rows` count lines without the blank ones. From a `top` to a `bottom` is shown: the lines of a
    sentence, or of a line that is too long the sentence alone.
    """

    starts: list[int]
    ends: list[int]
    first_lines: list[int]
    last_lines: list[int]
    rows: list[int]
    last_rows: list[int]
    tops: list[int]
    bottoms: list[int]

    def text(self, text: str, place: int) -> str:
        """One of them."""
        return text[self.starts[place] : self.ends[place]]


def sentences_in(text: str) -> SentencePlaces:
    """The sentences of a text; one goes on in the next line where a long line does not end it."""
    limits = _WRAPPED, FEW_WORDS, MOST_SHOWN
    return _sentences_of(text) if native is None else SentencePlaces(*native.sentences(text, *limits))


def _sentences_of(text: str) -> SentencePlaces:
    found: list[tuple[int, ...]] = []
    begin = first = first_row = top = at = row = 0
    goes_on = False
    ends = [match.end() for match in compiled(_SENTENCE_ENDS).finditer(text)][::-1]
    for number, line in enumerate(with_plain_breaks(text).split("\n"), 1):
        start, at = at, at + len(line) + 1
        if plain := line.strip():
            row += 1
            is_long = len(line) > MOST_SHOWN
            if not goes_on or _is_entry(plain) or is_long or start - begin > MOST_SHOWN:
                begin, first, first_row = start + line.index(plain[0]), number, row
                top = begin if is_long else start
            else:
                begin, _, first, _, first_row, _, top, _ = found.pop()
            end = start + len(line.rstrip())
            while ends and ends[-1] < end:
                after = ends.pop()
                found.append((begin, after, first, number, first_row, row, top, after if is_long else at - 1))
                begin, first, first_row, top = after, number, row, after if is_long else start
            found.append((begin, end, first, number, first_row, row, top, at - 1))
        ended = plain.rstrip(_QUOTES)
        goes_on = len(ended) >= _WRAPPED and ended.count(" ") > FEW_WORDS and ended[-1] not in _ENDS
    return SentencePlaces(*([one[at] for one in found] for at in range(len(SentencePlaces._fields))))


def is_prose(sentence: str) -> bool:
    """Whether it is a sentence with an end and more than a few words."""
    plain = sentence.rstrip().rstrip(_QUOTES)
    return plain[-1:] in _STOPS and not _is_entry(plain) and plain.count(" ") > FEW_WORDS
