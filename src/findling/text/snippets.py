"""The lines of a chunk that show best why it was found, and what it answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from findling.domain.resources import Chunk
from findling.domain.results import Line
from findling.text.analysis.lines import FEW_WORDS, MOST_SHOWN, LineIndex, is_prose, sentences_in

if TYPE_CHECKING:
    from findling.text.chunking.windows import Span


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
    meaning texts are to the query. `aside` are places of the text, in order, that others have said than who was asked.
    """

    weights: Mapping[str, float] = {}
    said: Collection[str] = ()
    nearness: Callable[[Sequence[str]], Sequence[float]] | None = None
    aside: Sequence[Span] = ()

    def units(self, term: str) -> int:
        """Weight of a term: a long one more than a short one, a whole identifier more than its parts.

        In whole numbers, so that sums of equal words are equal in any order.
        """
        return min(max(round(self.weights.get(term, len(term)) * _UNITS), 0), _MOST_UNITS)


_NOTHING = Telling()

_UNITS, _MOST_UNITS = 1 << 16, 1 << 32

_SMALL = 100
"""Characters for each line of a snippet: a passage of no more than all of them is shown whole."""

_SAID = 5
"""A word in a line that is shown elsewhere counts as a fifth, and so does what others have said than who was asked: of
locomo10's questions with several messages as evidence, NDCG@10 of the messages that hits name rises from .302 to .330
by words. Simulated with shares of 1.4, 2 and 4, the half that chose it has .301, .316, .324."""

_NEAR = 0.5
"""The worth of a cosine of 1 in words: half as much as all words of the query."""

_WORDED = 0.1
"""The share of all words that more than a few words are worth, whichever they are: a label, a setting or a cell has the
words that were asked for and answers nothing. Of 131 answers in long documents 79 were in sight without it, now 83."""

_BESIDE, _AGAIN = 0.3, 0.5
"""Shares of all words that a sentence beside the shown ones gains, and that a word keeps which is shown already."""

_MORE = 0.1
"""The share of all words, or the worth of meaning, from which a sentence is shown besides the best ones."""

_LEAD = 60
"""Characters kept in front of the first match when a line is cut."""

_MOST_JUDGED, _MOST_ALONE = 8, 40
"""Sentences whose meaning is compared, at 4 µs each, beside words of the query and without any."""

_MOST_TRIED = 32
"""Matches of one line that a cut may begin at: of 200 in a line without an end, each costs a look at all others."""

WHOLE_PASSAGE = 1000
"""Lines of context from which lines are not cut: so many terms mean everything."""

_FENCES = ("```", "~~~", ".. code")

_NO_WORTH: Mapping[str, int] = {}


def plain_line(text: str) -> str:
    """A line without the signs that make a heading, a label or an entry of it, to be compared with others."""
    return " ".join(text.replace("-", " ").replace("_", " ").strip(_SIGNS).casefold().split())


_SIGNS = "#=*>: \t"


class JudgedText:
    """The sentences of a text and how much each of them tells."""

    def __init__(self, text: str, spans: Sequence[Match], telling: Telling = _NOTHING) -> None:
        self._text, self._spans, self._telling = text, sorted([span for span in spans if span[0] < span[1]]), telling
        self.sentences = sentences_in(text)
        self._index = LineIndex(text)
        self._worth: dict[int, dict[str, int]] = {}
        self._counts: dict[int, int] = {}
        starts, units = self.sentences.starts, dict[str, int]()
        for start, _, terms in self._spans:
            place = max(bisect_right(starts, start) - 1, 0)
            if place not in self._worth:
                self._worth[place], self._counts[place] = {}, 0
            self._counts[place] += 1
            for term in terms:
                if term not in units:
                    units[term] = telling.units(term)
                self._worth[place][term] = units[term]
        self._all = sum(units.values()) or 1
        self._longest_said = max(map(len, telling.said), default=0) + 8
        self._said = {one for one in self._worth if self._is_said(one)}
        for place in [one for one in self._worth if one in self._said or self._is_aside(one)]:
            self._worth[place] = {term: worth // _SAID for term, worth in self._worth[place].items()}
        self._near = self._nearness() if telling.nearness is not None else {}
        ends, told = self.sentences.ends, {*self._worth, *self._near}
        self._worded = {one for one in told if text.count(" ", starts[one], ends[one] - 1) > FEW_WORDS}

    def show(self, first_line: int, max_lines: int = 3, context: int = 0) -> tuple[tuple[Line, ...], int]:
        """The sentences that tell most, each whole, and the number of the line that tells most; a small text whole.

        `first_line` is the number of the text's first line. A stretch of up to `max_lines` lines comes first; sentences
        beside it and in one other place follow, up to twice as many lines and 400 characters, with `context` lines
        around them. Lines are verbatim; one of more than 400 characters is cut to the sentences that tell most, and
        `…` marks each cut. Where nothing tells anything the first lines are shown that are not blank.
        """
        places = range(len(self.sentences.starts))
        if not places:
            return (), first_line
        runs = self._choice(max_lines) if len(self._text) > _SMALL * max_lines else [places]
        longest = MOST_SHOWN if context < WHOLE_PASSAGE else len(self._text)
        shown = [self._shown(number, runs, first_line, longest) for number in self._numbers(runs, context)]
        return tuple(shown), first_line - 1 + self._best_line(runs)

    def answer(self) -> float:
        """The value of the best sentence: its share of all words of the query, and its meaning."""
        return max(self._answers().values(), default=0.0)

    def window(self, most: int) -> str:
        """The sentence that tells most with those around it, as many as `most` characters take; a short text whole."""
        told, starts, ends = self._answers(), self.sentences.starts, self.sentences.ends
        if len(self._text) <= most or not starts:
            return self._text[:most]
        first = last = min(told, key=lambda place: (-told[place], place), default=0)
        while True:
            # By turns, so that the best sentence stays in the middle.
            if last + 1 < len(starts) and ends[last + 1] - starts[first] <= most:
                last += 1
                if first and ends[last] - starts[first - 1] <= most:
                    first -= 1
            elif first and ends[last] - starts[first - 1] <= most:
                first -= 1
            else:
                return self._text[starts[first] : min(ends[last], starts[first] + most)]

    def _answers(self) -> dict[int, float]:
        """The value of each sentence that tells something: its share of all words of the query, and its meaning."""
        most = sum(map(self._telling.units, self._telling.weights)) or self._all
        words = {place: sum(self._worth.get(place, _NO_WORTH).values()) / most for place in {*self._worth, *self._near}}
        return {
            place: told + _NEAR * self._near.get(place, 0.0) + _WORDED * (place in self._worded)
            for place, told in words.items()
        }

    def _choice(self, max_lines: int) -> list[range]:
        """The sentences to show: the stretch of lines that tells most, and what else tells much and has room."""
        last = len(self.sentences.starts) - 1
        nearest = sorted(self._near, key=lambda place: (-self._near[place], place))[:max_lines]
        told = sorted({*self._worth, *nearest}) or [0]
        tops = [place for place in told if place not in self._said] or told
        stretches = [self._stretch(top, max_lines) for top in tops]
        best = max(stretches, key=self._value)
        while best.stop > last and best.start and self._has_room([range(best.start - 1, best.stop)], max_lines):
            best = range(best.start - 1, best.stop)
        runs, room = [best], 2 * max_lines if max_lines > 1 else 1
        held = set().union(*[self._worth.get(place, _NO_WORTH) for place in best])
        others = {*self._worth, *self._near, max(best.start - 1, 0), min(best.stop, last)} - {*best}
        # In code nothing is prose: the cheapest test comes first.
        prose = [one for one in others if is_prose(self.sentences.text(self._text, one)) and not self._is_said(one)]
        further = {place: value for place in prose if (value := self._further(place, best, held)) >= _MORE}
        shown = {self.sentences.text(self._text, place).strip() for place in best}
        for place in sorted(further, key=lambda place: (-further[place], place)):
            more, text = _joined(runs, place), self.sentences.text(self._text, place).strip()
            if len(more) < 3 and text not in shown and self._has_room(more, room):
                runs = more
                shown.add(text)
        return [self._without_ends(run) for run in runs]

    def _best_line(self, runs: Sequence[range]) -> int:
        """The line that tells most of the sentence that tells most of those."""
        places = [place for run in runs for place in run]
        best = max(places, key=lambda place: self._value((place,)))
        first = self.sentences.first_lines[best]
        if first == self.sentences.last_lines[best] or best not in self._worth:
            return first
        worth: dict[int, int] = {}
        start, end = self.sentences.starts[best], self.sentences.ends[best]
        for span in self._spans[bisect_left(self._spans, (start,)) : bisect_left(self._spans, (end,))]:
            number = self._index.line_of(span[0])
            worth[number] = worth.get(number, 0) + sum(map(self._worth[best].__getitem__, span[2]))
        return max(worth, key=lambda number: (worth[number], -number), default=first)

    def _numbers(self, runs: Sequence[range], context: int) -> list[int]:
        """The lines of those sentences, in order, with the lines around them."""
        numbers: set[int] = set()
        for run in runs:
            top, bottom = self.sentences.first_lines[run.start], self.sentences.last_lines[run.stop - 1]
            numbers.update(range(max(top - context, 1), min(bottom + context, len(self._index)) + 1))
        return sorted(numbers)

    def _shown(self, number: int, runs: Sequence[range], first_line: int, longest: int) -> Line:
        """A line, cut to what tells most if it is longer than that."""
        start, end = self._index.line_span(number)
        # A match that begins on an earlier line may reach into this one; none is longer than a line or two.
        first = bisect_left(self._spans, (max(start - MOST_SHOWN, 0),))
        near = self._spans[first : bisect_left(self._spans, (end,))]
        inside = [span for span in near if span[1] > start]
        text = ""
        marks: list[Span] = []
        for top, bottom in self._parts(start, end, inside, runs, longest):
            text += "… " if text else "…" if top > start else ""
            shift = len(text) - top
            for span_start, span_end, _ in inside:
                mark_start, mark_end = max(span_start, top) + shift, min(span_end, bottom) + shift
                if marks and mark_start < min(marks[-1][1], mark_end):
                    marks[-1] = marks[-1][0], max(marks[-1][1], mark_end)
                elif mark_start < mark_end:
                    marks.append((mark_start, mark_end))
            text += self._text[top:bottom]
        text += "…" if bottom < end else ""
        return Line(number=first_line + number - 1, text=text, spans=tuple(marks))

    def _stretch(self, top: int, max_lines: int) -> range:
        """The sentence and those after it that have room beside it in as many lines as are asked for."""
        _, _, _, _, rows, last_rows, tops, bottoms = self.sentences
        last_row, last = rows[top] + max_lines - 1, tops[top] + MOST_SHOWN
        stop = top + 1
        while stop < len(rows) and last_rows[stop] <= last_row and bottoms[stop] <= last:
            stop += 1
        return range(top, stop)

    def _has_room(self, runs: Sequence[range], max_lines: int) -> bool:
        _, _, _, _, rows, last_rows, tops, bottoms = self.sentences
        lines = sum([last_rows[run.stop - 1] - rows[run.start] + 1 for run in runs])
        size = sum([bottoms[run.stop - 1] - tops[run.start] for run in runs])
        for one, other in pairwise(runs):
            if last_rows[one.stop - 1] == rows[other.start]:  # a line of both is shown once
                lines, size = lines - 1, size - max(bottoms[one.stop - 1] - tops[other.start], 0)
        return lines <= max_lines and size <= MOST_SHOWN

    def _value(self, run: Sequence[int]) -> tuple[float, int]:
        """Share of the words, each where it counts most, and meaning; then the number of matches."""
        held, count = _NO_WORTH, 0
        near = max([self._near.get(place, 0.0) for place in run]) if self._near else 0.0
        for place in run:
            if place in self._worth:
                own, count = self._worth[place], count + self._counts[place]
                held = {**own, **{term: max(worth, own.get(term, 0)) for term, worth in held.items()}} if held else own
        # Sums that differ by the order of their parts are the same.
        worded = 0.0 if self._worded.isdisjoint(run) else _WORDED
        return round(sum(held.values()) / self._all + _NEAR * near + worded, 6), count

    def _without_ends(self, run: range) -> range:
        """The run without a fence at its end, or a closing one at its start, that fences nothing of it."""
        fences = [place for place in run if self._text.startswith(_FENCES, self.sentences.starts[place])]
        if len(fences) % 2 and len(run) > 1:
            return run[:-1] if fences[-1] == run[-1] else run[1:] if fences[0] == run[0] else run
        return run

    def _further(self, place: int, best: range, held: Collection[str]) -> float:
        """The value of a sentence beside the best: what is shown already counts less, and a neighbour more."""
        words = self._worth.get(place, _NO_WORTH)
        told = sum([worth * _AGAIN if term in held else worth for term, worth in words.items()]) / self._all
        return told + _NEAR * self._near.get(place, 0.0) + (_BESIDE if best.start - 1 <= place <= best.stop else 0.0)

    def _is_said(self, place: int) -> bool:
        """Whether a sentence is shown elsewhere."""
        start, end = self.sentences.starts[place], self.sentences.ends[place]
        return end - start <= self._longest_said and plain_line(self._text[start:end]) in self._telling.said

    def _is_aside(self, place: int) -> bool:
        """Whether others than who was asked have said a sentence."""
        aside, start = self._telling.aside, self.sentences.starts[place]
        at = bisect_right(aside, start, key=lambda span: span[0]) - 1
        return at >= 0 and start < aside[at][1]

    def _nearness(self) -> dict[int, float]:
        """Similarity of sentences to the query: of those that hold most words of it, and of others."""
        told = {place: sum(held.values()) for place, held in self._worth.items() if place not in self._said}
        judged = sorted(told, key=lambda place: (-told[place], place))[:_MOST_JUDGED]
        places = range(len(self.sentences.starts))
        others = (place for place in places if place not in self._worth and not self._is_said(place))
        judged += islice(others, _MOST_JUDGED - len(judged) if told else _MOST_ALONE)
        assert self._telling.nearness is not None
        texts = [self.sentences.text(self._text, place) for place in judged]
        found = self._telling.nearness(texts) if texts else ()
        return {
            place: max(float(near), 0.0) / (_SAID if self._is_aside(place) else 1)
            for place, near in zip(judged, found, strict=True)
        }

    def _parts(self, start: int, end: int, spans: list[Match], runs: Sequence[range], longest: int) -> list[Span]:
        """The parts of a line to show: all of it, its sentences of the runs, or what tells most of a long one."""
        if end - start <= longest:
            return [(start, end)]
        starts, ends = self.sentences.starts, self.sentences.ends
        own = [(max(starts[run.start], start), min(ends[run.stop - 1], end)) for run in runs]
        parts = [part for part in own if part[0] < part[1]] or [(start, end)]
        if sum([bottom - top for top, bottom in parts]) > longest:
            (first, _), (_, last) = parts[0], parts[-1]
            tops = [first, *[max(span[0] - _LEAD, first) for span in spans[:: len(spans) // _MOST_TRIED + 1]]]
            places = dict.fromkeys(max(min(place, last - longest), first) for place in tops)
            top = max(places, key=lambda place: (self._weight_of(place, place + longest, spans), -place))
            parts = [(top, top + longest)]
        from findling.text.chunking.windows import cluster_start  # only a line that is too long is cut

        return [(max(cluster_start(self._text, top), start), cluster_start(self._text, at)) for top, at in parts]

    def _weight_of(self, top: int, end: int, spans: Iterable[Match]) -> tuple[int, int]:
        inside = [span for span in spans if span[0] >= top and span[1] <= end]
        return sum(map(self._telling.units, {term for span in inside for term in span[2]})), len(inside)


def _joined(runs: Sequence[range], place: int) -> list[range]:
    """The runs with one more place, those that touch each other as one, in order."""
    joined: list[range] = []
    for run in sorted([*runs, range(place, place + 1)], key=lambda one: one.start):
        if joined and run.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, run.stop))
        else:
            joined.append(run)
    return joined
