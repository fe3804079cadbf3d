"""Lines of an extracted text, said in terms of the file: the page, cell, slide or source line they come from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from findling.domain.resources import Chunk
from findling.domain.results import Line
from findling.text.lines import LineIndex

__all__ = ["placed_lines"]


def placed_lines(lines: Sequence[Line], chunk: Chunk, text: str) -> tuple[Line, ...]:
    """The lines, numbered as in the chunk's own text, with the numbers and places they have in the file."""
    index = LineIndex(text)
    starts = [place.start - chunk.start for place in chunk.places]
    tops = [index.line_of(start) for start in starts]
    placed = []
    for line in lines:
        number = line.number - chunk.line_start + 1
        # A line that begins before a place but holds its start comes from there: a place may follow a list mark.
        which = max(bisect_right(starts, index.line_span(number)[1]) - 1, 0)
        place = chunk.places[which]
        source = line.number
        if place.line:
            following = chunk.places[which + 1].line if which + 1 < len(chunk.places) else 0
            source = place.line + max(number - tops[which], 0)
            # Text between two places may have been wrapped in another way: never beyond the next one that is known.
            source = min(source, max(following, place.line)) if following else source
        placed.append(replace(line, number=source, place=place.label))
    return tuple(placed)
