"""The lines of a chunk that are shown of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from findling.domain.resources import Chunk, StoredChunk
from findling.domain.results import Line
from findling.pipelines.answer.types import HighlightSpec
from findling.text.analysis.analysis import WordSpan, matching_spans
from findling.text.analysis.lines import LineIndex
from findling.text.snippets import Match, Telling, plain_line, show_lines

__all__ = ["Shown", "line_span", "show"]


class Shown(NamedTuple):
    """What is shown of a chunk: some of its lines, the best of them, and where that ends in the chunk's text.

    `words` are all words of the text that were asked for.
    """

    lines: tuple[Line, ...]
    best: Line
    offset: int
    words: list[WordSpan]


def show(stored: StoredChunk, asked: HighlightSpec) -> Shown:
    """The lines of a chunk that say best why it was found."""
    chunk, _, text = stored
    words = matching_spans(text, asked.forms)
    forms = asked.forms
    spans = _shown_spans(
        [(start, end, tuple([forms[term] for term in found])) for start, end, found in words], asked.identifiers
    )
    telling = Telling(asked.weights, _said(stored), asked.nearness)
    lines, number = show_lines(text, chunk.line_start, spans, asked.snippet_lines, asked.context, telling)
    best = Line(number=number, text="")
    offset = 0
    if chunk.places:
        from findling.text.snippets import placed_lines

        offset = LineIndex(text).line_span(best.number - chunk.line_start + 1)[1]
        placed = placed_lines([*lines, best], chunk, text)
        lines, best = placed[:-1], placed[-1]
    return Shown(lines, best, offset, words)


def _said(stored: StoredChunk) -> set[str]:
    """The lines that stand above a hit wherever it is shown."""
    return {plain_line(text) for text in (stored.resource.title, *stored.chunk.heading)} - {""}


def line_span(chunk: Chunk) -> tuple[int, int]:
    """The first and the last line of a chunk in its file; 0 in files that have no lines."""
    if not chunk.places:
        return chunk.line_start, chunk.line_end
    numbers = [place.line for place in chunk.places if place.line]
    return (numbers[0], max(numbers)) if numbers else (0, 0)


def _shown_spans(spans: list[Match], identifiers: Mapping[str, set[str]]) -> list[Match]:
    """The spans to show: where an identifier stands as a whole, its parts elsewhere in the chunk are noise."""
    if not identifiers:
        return spans
    present = {term for _, _, terms in spans for term in terms}
    noise = set().union(*(parts for whole, parts in identifiers.items() if whole in present))
    return [span for span in spans if not noise.issuperset(span[2])] if noise else spans
