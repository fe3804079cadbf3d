"""Chunks of a text with headings: one per section, small sections joined, large ones cut between paragraphs."""

from __future__ import annotations

from bisect import bisect_left

from findling.domain.resources import Piece
from findling.text.measures import Measure
from findling.text.outlines import Outline
from findling.text.sections import Section, heading_paths, sections_of
from findling.text.windows import Span, windows

__all__ = ["chunk_sections"]


def chunk_sections(text: str, outline: Outline, measure: Measure) -> list[Piece]:
    """Pieces that follow the headings; the heading path is what all sections in the piece share."""
    size, fit = measure
    sections, blocks = sections_of(text, outline), outline.blocks
    spans: list[Span] = []
    first = 0
    while first < len(sections):
        last = _join_small(sections, first, size)
        start, end = sections[first].start, sections[last].end
        held = blocks[bisect_left(blocks, (start,)) : bisect_left(blocks, (end,))]
        spans += windows(text, start, end, size, held, fit=fit)
        first = last + 1
    front = windows(text, 0, outline.front, size, fit=fit)
    return [Piece(*span) for span in front] + [
        Piece(*span, path) for span, path in zip(spans, heading_paths(sections, spans), strict=True)
    ]


def _join_small(sections: list[Section], first: int, size: int) -> int:
    """The last of the sections that make one chunk with the first: siblings and children, while it is small.

    A small section in front of one that has to be cut anyway goes along with that one's beginning.
    """
    start, _, level, _ = sections[first]
    last = first
    while sections[last].end - start < size // 4 and last + 1 < len(sections):
        follower = sections[last + 1]
        fits = follower.end - start <= size or follower.end - follower.start > size
        if follower.level < level or not fits:
            break
        last += 1
    return last
