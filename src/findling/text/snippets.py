"""The lines of a chunk that show best why it was found, and what it answers."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from findling.core import native
from findling.domain.resources import Chunk
from findling.domain.results import Line
from findling.text.analysis.lines import LineIndex

if TYPE_CHECKING:
    from findling.text.chunking.windows import Span

__all__ = ["WHOLE_PASSAGE", "Match", "Telling", "placed_lines", "plain_line", "show_lines", "snippet"]


def placed_lines(lines: Sequence[Line], chunk: Chunk, text: str) -> tuple[Line, ...]:
    """The lines, numbered as in the chunk's own text, with the numbers and places they have in the file.

    A line of a file without lines has number 0.
    """
    index = LineIndex(text)
    starts = [place.start - chunk.start for place in chunk.places]
    placed = []
    for line in lines:
        number = line.number - chunk.line_start + 1
        # A line that begins before a place but holds its start comes from there: a place may follow a list mark.
        place = chunk.places[max(bisect_right(starts, index.line_span(number)[1]) - 1, 0)]
        placed.append(replace(line, number=place.line, place=place.label))
    return tuple(placed)


Match: TypeAlias = tuple[int, int, tuple[str, ...]]
"""Start and end of a word of the text, and the terms of the query that it gives."""


class Telling(NamedTuple):
    """Lines of interest besides those that hold words of the query.

    `weights` says how much each term tells; one that is not there counts by its length. `said` are lines, as
    `plain_line` gives them, that are shown elsewhere: a title or heading answers nothing. `nearness` tells how near in
    meaning texts are to the query.
    """

    weights: Mapping[str, float] = {}
    said: Collection[str] = ()
    nearness: Callable[[Sequence[str]], Sequence[float]] | None = None

    def units(self, term: str) -> int:
        """Weight of a term: a long one more than a short one, a whole identifier more than its parts.

        In whole numbers, so that sums of equal words are equal in any order.
        """
        return min(max(round(self.weights.get(term, len(term)) * _UNITS), 0), _MOST_UNITS)


_NOTHING = Telling()

_UNITS, _MOST_UNITS = 1 << 16, 1 << 32

_SMALL = 100
"""Characters for each line of a snippet: a passage of no more than all of them is shown whole."""

_NO_WORTH: Mapping[str, int] = {}

_SAID = 5
"""A word in a line that is shown elsewhere counts as a fifth."""

_NEAR = 1.0
"""The worth of a cosine of 1 in words: as much as all words of the query."""

_SURE = 3
"""Tenths of all words by which a line must lead over all others for meaning not to be asked."""

_LONGEST_LINE = 400
_LEAD = 60
"""Characters kept in front of the first match when a line is cut."""

_MOST_JUDGED = 6

_MOST_TRIED = 32
"""Matches of one line that a cut may begin at: of 200 in a line without an end, each costs a look at all others."""

WHOLE_PASSAGE = 1000
"""Lines of context from which lines are not cut: so many terms mean everything."""


@cache
def _sentence_ends() -> re.Pattern[str]:
    # Compiled when it is needed, which takes 0.4 ms.
    return re.compile(r"(?<=[.!?;:])\s+(?=\S)|(?<=[。！？])(?=\S)")


def snippet(
    text: str,
    first_line: int,
    spans: Sequence[Match],
    max_lines: int = 3,
    context: int = 0,
    telling: Telling = _NOTHING,
) -> tuple[Line, ...]:
    """Up to `max_lines` consecutive lines that tell most, and `context` lines around them; a small text as a whole.

    `first_line` is the number of the text's first line. Lines are verbatim; one of more than 400 characters is cut
    around what tells most and `…` marks each cut. Where nothing tells anything the first lines are shown that are not
    blank.
    """
    return show_lines(text, first_line, spans, max_lines, context, telling)[0]


def show_lines(
    text: str,
    first_line: int,
    spans: Sequence[Match],
    max_lines: int = 3,
    context: int = 0,
    telling: Telling = _NOTHING,
) -> tuple[tuple[Line, ...], int]:
    """The lines that `snippet` gives, and the number of the one that tells most, or else of the first line."""
    if not text or text.isspace():
        return (), first_line
    ordered = sorted([span for span in spans if span[0] < span[1]])
    longest = _LONGEST_LINE if context < WHOLE_PASSAGE else len(text)
    if native is not None:
        said = telling.said
        limits = max(map(len, said), default=-1), max_lines, context, longest, _SMALL * max_lines
        found = native.best_lines(text, ordered, telling.units, said, plain_line, *limits, telling.nearness)
        if found is not None:
            best, lines = found
            shown = [
                Line(number=first_line + number - 1, text=text[start:end], spans=marks)
                for number, start, end, marks in lines
            ]
            return tuple(shown), first_line - 1 + best
    return _show_lines(text, first_line, ordered, max_lines, context, telling)


def _show_lines(
    text: str, first_line: int, ordered: list[Match], max_lines: int, context: int, telling: Telling
) -> tuple[tuple[Line, ...], int]:
    index = LineIndex(text)
    judged = _Judged(text, index, ordered, telling)
    is_small = len(text) <= _SMALL * max_lines
    top, bottom = _trimmed(text, index, 1, len(index) + 1) if is_small else judged.window(max_lines)
    numbers = range(max(top - context, 1), min(bottom + context, len(index) + 1))
    longest = _LONGEST_LINE if context < WHOLE_PASSAGE else len(text)
    shown = tuple([judged.shown(number, first_line, longest) for number in numbers])
    return shown, first_line - 1 + judged.best_of(range(top, bottom))


def plain_line(text: str) -> str:
    """A line without the signs that make a heading or an entry of a list of it, to be compared with others."""
    return " ".join(text.strip(_SIGNS).casefold().split())


_SIGNS = "#=*-_> \t"


class _Judged:
    """The lines of a text and how much each of them tells."""

    def __init__(self, text: str, index: LineIndex, spans: list[Match], telling: Telling) -> None:
        self._text, self._index, self._spans, self._telling = text, index, spans, telling
        self._said_starts = {line[:1] for line in telling.said}
        self._lines = index.lines_of([span[0] for span in spans])
        self._worth: dict[int, dict[str, int]] = {}
        for number, span in zip(self._lines, spans, strict=True):
            if number not in self._worth:
                self._worth[number] = {}
            self._worth[number].update(dict.fromkeys(span[2], 0))
        for number, held in self._worth.items():
            parts = _SAID if telling.said and self._is_said(number) else 1
            for term in held:
                held[term] = telling.units(term) // parts
        self._all = sum(telling.units(term) for term in set().union(*self._worth.values())) or 1
        self._near: dict[int, float] | None = None
        self._sentences: dict[Span, float] = {}

    def window(self, max_lines: int) -> Span:
        """The first line of the stretch that tells most and the line after its last, without blank ones at the ends."""
        last = max(len(self._index) + 1 - max_lines, 1)
        words = {top: self._words(top, max_lines) for top in {min(number, last) for number in self._worth}}
        if self._telling.nearness is not None and not _is_clear(words, max_lines, self._all):
            near = self._nearness()
            for number in sorted(near, key=lambda line: (-near[line], line))[:max_lines]:
                words.setdefault(min(number, last), self._words(min(number, last), max_lines))
        if words:
            best = max(words, key=lambda top: (*self._value(top, words[top], max_lines), -top))
        else:
            numbers = range(1, len(self._index) + 1)
            best = next(number for number in numbers if not _is_blank(self._text, self._index, number))
        return _trimmed(self._text, self._index, best, min(best + max_lines, len(self._index) + 1))

    def best_of(self, numbers: range) -> int:
        """The line that tells most of those that are shown."""
        worth = {number: sum(held.values()) for number, held in self._worth.items() if number in numbers}
        asks_meaning = not worth and self._telling.nearness is not None
        near = self._nearness() if asks_meaning else self._near or {}
        weights = {number: self._weight(worth.get(number, 0), near.get(number, 0.0)) for number in {*worth, *near}}
        told = [number for number in weights if number in numbers]
        return max(told, key=lambda number: (weights[number], -number), default=numbers.start)

    def _weight(self, words: int, near: float) -> float:
        """Share of the words, and meaning; sums that differ by the order of their parts are the same."""
        return round(words / self._all + _NEAR * near, 6) if self._near else words

    def shown(self, number: int, first_line: int, longest: int) -> Line:
        """A line, cut around what tells most if it is longer than that."""
        start, end = self._index.line_span(number)
        inside = [span for span in self._near_spans(start, end) if span[0] < end and span[1] > start]
        shown_start, shown_end = self._part(start, end, inside, longest)
        before = "…" if shown_start > start else ""
        after = "…" if shown_end < end else ""
        offset = len(before) - shown_start
        marks: list[Span] = []
        for span in inside:
            mark_start, mark_end = max(span[0], shown_start) + offset, min(span[1], shown_end) + offset
            if marks and mark_start < marks[-1][1]:
                marks[-1] = marks[-1][0], max(marks[-1][1], mark_end)
            elif mark_start < mark_end:
                marks.append((mark_start, mark_end))
        text = before + self._text[shown_start:shown_end] + after
        return Line(number=first_line + number - 1, text=text, spans=tuple(marks))

    def _near_spans(self, start: int, end: int) -> list[Match]:
        # A match that begins on an earlier line may reach into this one; none is longer than a line or two.
        first = bisect_left(self._spans, (max(start - _LONGEST_LINE, 0),))
        return self._spans[first : bisect_left(self._spans, (end,))]

    def _is_said(self, number: int) -> bool:
        start, end = self._index.line_span(number)
        line = self._text[start:end]
        first = line.strip(_SIGNS)[:1].casefold()[:1]
        # Most lines differ in their first letter: to look at that takes a third of the time.
        return (first in self._said_starts or first.strip() == "") and plain_line(line) in self._telling.said

    def _words(self, top: int, max_lines: int) -> int:
        """The worth of the words in a stretch, each where it counts most."""
        held: dict[str, int] = {}
        for number in range(top, top + max_lines):
            # A line that is the first with matches needs no comparison; a passage has a dozen of such stretches.
            if not held and number in self._worth:
                held = dict(self._worth[number])
                continue
            for term, worth in self._worth.get(number, _NO_WORTH).items():
                if worth > held.get(term, 0):
                    held[term] = worth
        return sum(held.values())

    def _value(self, top: int, words: int, max_lines: int) -> tuple[float, int]:
        numbers = range(top, top + max_lines)
        near = max((self._near.get(number, 0.0) for number in numbers), default=0.0) if self._near else 0.0
        count = bisect_left(self._lines, numbers.stop) - bisect_left(self._lines, top)
        return self._weight(words, near), count

    def _nearness(self) -> dict[int, float]:
        """Similarity of each line to the query: of a long line, its nearest sentence."""
        if self._near is None:
            self._near = {}
            assert self._telling.nearness is not None
            telling = sorted(self._worth, key=lambda number: (-sum(self._worth[number].values()), number))
            # A cosine of a line costs 40 µs. Where words tell something, only the lines that have most are compared.
            pieces = list(self._pieces(sorted(telling[:_MOST_JUDGED]) if len(telling) > 1 else None))
            nearness = self._telling.nearness([self._text[start:end] for _, start, end in pieces]) if pieces else ()
            for (number, start, end), near in zip(pieces, nearness, strict=True):
                self._sentences[start, end] = max(float(near), 0.0)
                self._near[number] = max(self._near.get(number, 0.0), self._sentences[start, end])
        return self._near

    def _pieces(self, numbers: Iterable[int] | None) -> Iterator[tuple[int, int, int]]:
        """Those of the lines, or of all lines, that say something, long ones by sentences: number, start, end."""
        for number in range(1, len(self._index) + 1) if numbers is None else numbers:
            start, end = self._index.line_span(number)
            if self._text[start:end].strip() and not self._is_said(number):
                starts = self._starts(start, end) if end - start > _LONGEST_LINE else [start]
                yield from ((number, at, after) for at, after in zip(starts, [*starts[1:], end], strict=True))

    def _starts(self, start: int, end: int) -> list[int]:
        return [start, *[match.end() for match in _sentence_ends().finditer(self._text, start, end)]]

    def _part(self, start: int, end: int, spans: list[Match], longest: int) -> Span:
        """The part of a line that is shown: all of it, or the stretch that tells most, from a sentence if possible."""
        if end - start <= longest:
            return start, end
        some = spans[:: len(spans) // _MOST_TRIED + 1]
        tops = [*self._starts(start, end), *[max(span[0] - _LEAD, start) for span in some]]
        best = max(
            dict.fromkeys(max(min(top, end - longest), start) for top in tops),
            key=lambda top: (self._weight_of(top, top + longest, spans), -top),
        )
        after = best + longest
        from findling.text.chunking.windows import cluster_start  # only a line that is too long is cut

        return max(cluster_start(self._text, best), start), end if after >= end else cluster_start(self._text, after)

    def _weight_of(self, top: int, end: int, spans: Iterable[Match]) -> tuple[float, int]:
        inside = [span for span in spans if span[0] >= top and span[1] <= end]
        words = sum(map(self._telling.units, {term for span in inside for term in span[2]}))
        whole = [near for (start, after), near in self._sentences.items() if top <= start and after <= end]
        return self._weight(words, max(whole, default=0.0)), len(inside)


def _is_clear(words: Mapping[int, int], max_lines: int, all_words: int) -> bool:
    """Whether the words of the query alone tell which lines are shown."""
    if not words:
        return False
    best = max(words, key=lambda top: (words[top], -top))
    rival = max((value for top, value in words.items() if abs(top - best) >= max_lines), default=0)
    return 10 * words[best] > (10 - _SURE) * all_words and 10 * (words[best] - rival) >= _SURE * all_words


def _trimmed(text: str, index: LineIndex, top: int, bottom: int) -> Span:
    while bottom - top > 1 and _is_blank(text, index, bottom - 1):
        bottom -= 1
    while bottom - top > 1 and _is_blank(text, index, top):
        top += 1
    return top, bottom


def _is_blank(text: str, index: LineIndex, number: int) -> bool:
    start, end = index.line_span(number)
    return not text[start:end].strip()
