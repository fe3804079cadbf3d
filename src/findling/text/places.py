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
