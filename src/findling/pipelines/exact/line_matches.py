"""The lines of a text that match a pattern, with their spans and the lines around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from findling.domain.reports import MatchedLine
from findling.text.query.line_patterns import LinePattern, places_of
from findling.text.query.patterns import fold

_WINDOW = 1 << 16
"""Characters that are folded at a time: 64 kB stay in the cache of a processor, and most matches are near the start."""

_LINES_A_LOOK = 256
"""Lines between two looks at the clock."""


class LineSpan(NamedTuple):
    """A line from `start` to `end`, which is where its line feed stands, or the end of the text."""

    start: int
    end: int


def matching_lines(pattern: LinePattern, text: str, is_over: Callable[[], bool] = lambda: False) -> Iterator[LineSpan]:
    """The lines that the pattern matches, in order, as if each stood alone; they end early when time is over."""
    if pattern.looks:
        found = _tried_one_by_one(pattern, text)
    elif pattern.literals:
        found = _lines_with_literals(pattern, text, _occurrences(pattern, text))
    else:
        found = _lines_anywhere(pattern, text)
    while batch := tuple(islice(found, _LINES_A_LOOK)):
        yield from batch
        if len(batch) == _LINES_A_LOOK and is_over():
            return


def inverted(spans: Iterator[LineSpan], text: str) -> Iterator[LineSpan]:
    """The other lines of a text."""
    position = 0
    for start, end in spans:
        yield from _lines(text, position, start)
        position = end + 1
    yield from _lines(text, position, len(text))


def with_context(
    pattern: LinePattern, text: str, spans: list[LineSpan], before: int, after: int, *, with_spans: bool = True
) -> Iterator[MatchedLine]:
    """The lines as an answer shows them: numbered, with their matches, and with the lines around them."""
    number, counted, bytes_before = 1, 0, 0
    is_ascii = text.isascii()
    shown = 0  # the end of the lines that were shown

    def line(start: int, end: int, is_match: bool) -> MatchedLine:
        nonlocal number, counted, bytes_before
        number += text.count("\n", counted, start)
        bytes_before += start - counted if is_ascii else len(text[counted:start].encode("utf-8", "surrogatepass"))
        counted = start
        found = _spans(pattern, text, start, end) if is_match and with_spans else ()
        return MatchedLine(number, text[start : end + 1], bytes_before, is_match, found)

    for place, (start, end) in enumerate(spans):
        for one in _lines_before(text, start, shown, before):
            yield line(*one, False)
        yield line(start, end, True)
        shown = end + 1
        limit = spans[place + 1].start if place + 1 < len(spans) else len(text)
        for one in islice(_lines(text, shown, limit), after):
            yield line(*one, False)
            shown = one.end + 1


def count_spans(pattern: LinePattern, text: str, spans: list[LineSpan]) -> int:
    """The number of matches in some lines; several may stand in one."""
    return sum(len(_spans(pattern, text, *one)) for one in spans)


def _spans(pattern: LinePattern, text: str, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """The matches in one line, from its beginning on; one without a letter is none."""
    found = pattern.regex.finditer(text[start:end])
    return tuple([match.span() for match in found if match.end() > match.start()])


def _lines(text: str, start: int, end: int) -> Iterator[LineSpan]:
    """The lines between two beginnings of lines; behind a final line feed there is none."""
    while start < end:
        feed = text.find("\n", start, end)
        stop = end if feed < 0 else feed
        yield LineSpan(start, stop)
        start = stop + 1


def _lines_before(text: str, start: int, shown: int, most: int) -> list[LineSpan]:
    """Up to `most` lines in front of one, none of which was shown."""
    found: list[LineSpan] = []
    while len(found) < most and start > shown:
        end = start - 1
        start = text.rfind("\n", shown, end) + 1 or shown
        found.append(LineSpan(start, end))
    return found[::-1]


def _line_at(text: str, position: int) -> LineSpan:
    end = text.find("\n", position)
    return LineSpan(text.rfind("\n", 0, position) + 1, len(text) if end < 0 else end)


def _tried_one_by_one(pattern: LinePattern, text: str) -> Iterator[LineSpan]:
    search = pattern.regex.search
    return (line for line in _lines(text, 0, len(text)) if search(text[line.start : line.end]))


def _lines_anywhere(pattern: LinePattern, text: str) -> Iterator[LineSpan]:
    """Lines found by the expression in the whole text.

    A line that matches alone has a match that begins in it here, too. That one may reach into further lines, so then
    the line is tried alone.
    """
    search, position, end = pattern.regex.search, 0, len(text)
    while position < end and (match := search(text, position)) is not None:
        if match.start() >= end and text.endswith("\n"):
            return  # behind the last line
        line = _line_at(text, match.start())
        if match.end() <= line.end or search(text[line.start : line.end]) is not None:
            yield line
        position = line.end + 1


def _lines_with_literals(pattern: LinePattern, text: str, places: Iterator[int]) -> Iterator[LineSpan]:
    """Lines that hold one of the literals and match: nothing else can."""
    search, position = pattern.regex.search, 0
    for found in places:
        if found >= position:
            line = _line_at(text, found)
            if pattern.plain or search(text, line.start, line.end) is not None:
                yield line
            position = line.end + 1


def _occurrences(pattern: LinePattern, text: str) -> Iterator[int]:
    """Places of literals that do not fall, of several in one line at least the first."""
    literals = pattern.literals
    if not pattern.ignores_case:
        return places_of(literals, text)
    if text.isascii() and len(text) > _WINDOW:
        return _found_in_windows(literals, text)
    return places_of(literals, fold(text))


def _found_in_windows(literals: tuple[str, ...], text: str) -> Iterator[int]:
    """The same in a long text. Windows overlap, so that no literal is cut."""
    overlap = max(map(len, literals)) - 1
    for start in range(0, len(text), _WINDOW):
        yield from places_of(literals, text[start : start + _WINDOW + overlap].lower(), start)
