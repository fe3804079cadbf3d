"""The lines of a chunk that show best why it was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from findling.domain.results import Line
from findling.text.lines import LineIndex
from findling.text.windows import Span, cluster_start

__all__ = ["MatchSpan", "best_line", "snippet"]


class MatchSpan(NamedTuple):
    """Where a word of the text stands that gives these terms of the query."""

    start: int
    end: int
    terms: tuple[str, ...]


def snippet(
    text: str, first_line: int, spans: Sequence[MatchSpan], max_lines: int = 3, context: int = 0, focus: int = 0
) -> tuple[Line, ...]:
    """Up to `max_lines` consecutive lines that hold most of the query, and `context` lines around them.

    `first_line` is the number of the text's first line. Lines are verbatim; one of more than 400 characters is cut
    around its matches and `…` marks each cut. Without a match the lines around the offset `focus` are shown, those
    in front of it that are blank left out.
    """
    if not text.strip():
        return ()
    index = LineIndex(text)
    ordered = sorted(span for span in spans if span.start < span.end)
    top, bottom = _best_window(text, index, ordered, max_lines, focus)
    shown = range(max(top - context, 1), min(bottom + context, len(index) + 1))
    return tuple(_shown_line(text, index, number, first_line, ordered) for number in shown)


def best_line(text: str, first_line: int, spans: Sequence[MatchSpan], shown: Sequence[Line], focus: int = 0) -> int:
    """The number of the shown line that holds most of the query; that of the offset `focus` when none holds any."""
    index = LineIndex(text)
    found: dict[int, set[str]] = {}
    numbers = {line.number - first_line + 1 for line in shown}
    for span in spans:
        if (number := index.line_of(span.start)) in numbers:
            found.setdefault(number, set()).update(span.terms)
    nearest = index.line_of(focus)
    return first_line - 1 + max(found, key=lambda number: (_weight(found[number]), -number), default=nearest)


def _weight(terms: Iterable[str]) -> int:
    # A long term says more than a short one, and a whole identifier more than its parts.
    return sum(map(len, terms))


_LONGEST_LINE = 400
_LEAD = 60
"""Characters kept in front of the first match when a line is cut."""


def _best_window(text: str, index: LineIndex, spans: list[MatchSpan], max_lines: int, focus: int) -> Span:
    """The first line of the best window and the line after its last, without blank lines at the ends."""
    if spans:
        lines = [index.line_of(span.start) for span in spans]
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


def _best_run(spans: list[MatchSpan], places: list[int], width: int) -> int:
    """The span that begins the best stretch of this width: the weightiest distinct terms, then most matches."""
    held: dict[str, int] = {}
    best, best_value = 0, (0, 0)
    after = 0
    for first, place in enumerate(places):
        while after < len(spans) and places[after] < place + width:
            for term in spans[after].terms:
                held[term] = held.get(term, 0) + 1
            after += 1
        if (value := (_weight(held), after - first)) > best_value:
            best, best_value = first, value
        for term in spans[first].terms:
            held[term] -= 1
            if not held[term]:
                del held[term]
    return best


def _is_blank(text: str, index: LineIndex, number: int) -> bool:
    start, end = index.line_span(number)
    return not text[start:end].strip()


def _shown_line(text: str, index: LineIndex, number: int, first_line: int, spans: list[MatchSpan]) -> Line:
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


def _shown_part(text: str, start: int, end: int, spans: list[MatchSpan]) -> Span:
    """The part of a line that is shown: all of it, or the stretch with the most distinct terms."""
    if end - start <= _LONGEST_LINE:
        return start, end
    shown = start
    if spans:
        places = [max(span.start, start) for span in spans]
        best = places[_best_run(spans, places, _LONGEST_LINE - _LEAD)]
        shown = max(min(best - _LEAD, end - _LONGEST_LINE), start)
    shown_end = shown + _LONGEST_LINE
    return max(cluster_start(text, shown), start), shown_end if shown_end >= end else cluster_start(text, shown_end)
