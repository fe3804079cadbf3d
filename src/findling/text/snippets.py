"""The lines of a chunk that show best why it was found."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from findling.domain.results import Line
from findling.text.lines import LineIndex
from findling.text.windows import Span, cluster_start

__all__ = ["Match", "MatchSpan", "show_lines", "snippet"]


class MatchSpan(NamedTuple):
    """Where a word of the text stands that gives these terms of the query."""

    start: int
    end: int
    terms: tuple[str, ...]


Match: TypeAlias = tuple[int, int, tuple[str, ...]]
"""A MatchSpan, or a tuple that is made in a fifth of the time."""


def snippet(
    text: str, first_line: int, spans: Sequence[Match], max_lines: int = 3, context: int = 0, focus: int = 0
) -> tuple[Line, ...]:
    """Up to `max_lines` consecutive lines that hold most of the query, and `context` lines around them.

    `first_line` is the number of the text's first line. Lines are verbatim; one of more than 400 characters is cut
    around its matches and `…` marks each cut. Without a match the lines around the offset `focus` are shown, those
    in front of it that are blank left out.
    """
    return show_lines(text, first_line, spans, max_lines, context, focus)[0]


def show_lines(
    text: str, first_line: int, spans: Sequence[Match], max_lines: int = 3, context: int = 0, focus: int = 0
) -> tuple[tuple[Line, ...], int]:
    """What `snippet` gives, and the number of the line that holds most of the query.

    That is one of those shown, or when none of them holds anything the line at the offset `focus`.
    """
    index = LineIndex(text)
    ordered = sorted([span for span in spans if span[0] < span[1]])
    lines = index.lines_of([span[0] for span in ordered])
    if not text or text.isspace():
        return (), _best_line(first_line, ordered, lines, range(0), index.line_of(focus))
    top, bottom = _best_window(text, index, ordered, lines, max_lines, focus)
    numbers = range(max(top - context, 1), min(bottom + context, len(index) + 1))
    start, end = index.line_span(numbers[0])[0], index.line_span(numbers[-1])[1]
    inside = [span for span in ordered if span[0] < end and span[1] > start]
    shown = tuple([_shown_line(text, index, number, first_line, inside) for number in numbers])
    return shown, _best_line(first_line, ordered, lines, numbers, index.line_of(focus))


def _best_line(first_line: int, spans: list[Match], lines: list[int], shown: range, nearest: int) -> int:
    found: dict[int, set[str]] = {}
    for place in range(bisect_left(lines, shown.start), bisect_left(lines, shown.stop)):
        found.setdefault(lines[place], set()).update(spans[place][2])
    return first_line - 1 + max(found, key=lambda number: (_weight(found[number]), -number), default=nearest)


def _weight(terms: Iterable[str]) -> int:
    # A long term says more than a short one, and a whole identifier more than its parts.
    return sum(map(len, terms))


_LONGEST_LINE = 400
_LEAD = 60
"""Characters kept in front of the first match when a line is cut."""


def _best_window(text: str, index: LineIndex, spans: list[Match], lines: list[int], max_lines: int, focus: int) -> Span:
    """The first line of the best window and the line after its last, without blank lines at the ends."""
    if spans:
        best = lines[_best_run(spans, lines, max_lines)]
        top = max(min(best, len(index) + 1 - max_lines), 1)
    else:
        numbers = range(index.line_of(focus), len(index) + 1)
        top = next((number for number in numbers if not _is_blank(text, index, number)), numbers[0])
    bottom = min(top + max_lines, len(index) + 1)
    while bottom - top > 1 and _is_blank(text, index, bottom - 1):
        bottom -= 1
    while bottom - top > 1 and _is_blank(text, index, top):
        top += 1
    return top, bottom


def _best_run(spans: list[Match], places: list[int], width: int) -> int:
    """The span that begins the best stretch of this width: the weightiest distinct terms, then most matches."""
    held: dict[str, int] = {}
    weight, best, best_weight, best_count = 0, 0, 0, 0
    after, count = 0, len(spans)
    for first, place in enumerate(places):
        reach, before = place + width, after
        while after < count and places[after] < reach:
            for term in spans[after][2]:
                held[term] = held.get(term, 0) + 1
                if held[term] == 1:
                    weight += len(term)
            after += 1
        # A stretch that holds nothing new is no better than the one before it.
        if after > before and (weight > best_weight or (weight == best_weight and after - first > best_count)):
            best, best_weight, best_count = first, weight, after - first
        if after == count:
            break
        for term in spans[first][2]:
            held[term] -= 1
            if not held[term]:
                weight -= len(term)
    return best


def _is_blank(text: str, index: LineIndex, number: int) -> bool:
    start, end = index.line_span(number)
    return not text[start:end].strip()


def _shown_line(text: str, index: LineIndex, number: int, first_line: int, spans: list[Match]) -> Line:
    start, end = index.line_span(number)
    inside = [span for span in spans if span[0] < end and span[1] > start]
    shown_start, shown_end = _shown_part(text, start, end, inside)
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
    return Line(number=first_line + number - 1, text=before + text[shown_start:shown_end] + after, spans=tuple(marks))


def _shown_part(text: str, start: int, end: int, spans: list[Match]) -> Span:
    """The part of a line that is shown: all of it, or the stretch with the most distinct terms."""
    if end - start <= _LONGEST_LINE:
        return start, end
    shown = start
    if spans:
        places = [max(span[0], start) for span in spans]
        best = places[_best_run(spans, places, _LONGEST_LINE - _LEAD)]
        shown = max(min(best - _LEAD, end - _LONGEST_LINE), start)
    shown_end = shown + _LONGEST_LINE
    return max(cluster_start(text, shown), start), shown_end if shown_end >= end else cluster_start(text, shown_end)
