"""Chunks of one size, cut at the best place near it, and the overlap that a chunk may have with the one before it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from findling.domain.resources import Piece
from findling.text.chunk_plan import ChunkPlan
from findling.text.measures import Measure, measure_of
from findling.text.outlines import Outline
from findling.text.sections import heading_paths, sections_of
from findling.text.windows import Span, cluster_start, windows

__all__ = ["chunk_fixed"]


def chunk_fixed(text: str, outline: Outline, plan: ChunkPlan) -> list[Piece]:
    """Windows of the plan's size under the headings that they stand under; they overlap if the plan says so.

    An overlap is taken out of the size: a window is cut to what is left and then begins that much earlier.
    """
    overlap = plan.overlap if plan.strategy == "overlapping" else 0
    size, fit = measure_of(text, plan._replace(size=plan.size - overlap))
    spans = windows(text, 0, len(text), size, outline.blocks, fit=fit, least=0.75)
    paths = heading_paths(sections_of(text, outline), spans)
    if overlap:
        whole, shared = measure_of(text, plan), measure_of(text, plan._replace(size=overlap))
        spans = spans[:1] + [
            (_overlap_start(text, before[0], span, outline.blocks, whole, shared), span[1])
            for before, span in pairwise(spans)
        ]
    return [Piece(*span, path) for span, path in zip(spans, paths, strict=True)]


_SENTENCE_START = re.compile(r"\n(?=[ \t]*+\S)|[.!?][ \t]++(?=\S)|[。！？](?=\S)")
_WORD_START = re.compile(r"\s++(?=\S)")
_UNSPACED = "\u2e80"
"""From here on most scripts set no spaces between words."""


def _overlap_start(text: str, floor: int, span: Span, blocks: Sequence[Span], whole: Measure, shared: Measure) -> int:
    """Where the window begins together with the text before it: at a sentence, a line or at least a word."""
    start, end = span
    low = max(floor + 1, start - shared.size)
    while low < start and (reached := shared.fit(text, low, start)) < start:
        low += start - reached
    low = max((block[1] for block in _around(blocks, low)), default=low)
    if low >= start:
        return start
    begin = _first_start(text, low, start)
    begin = min((block[0] for block in _around(blocks, begin)), default=begin)
    if cluster_start(text, begin) < begin:
        return start
    # A window that begins inside a word may have other tokens together with the rest of that word.
    fits = text[start - 1].isspace() or whole.fit(text, begin, end) == end
    return begin if fits else start


def _around(blocks: Sequence[Span], position: int) -> Sequence[Span]:
    """The block that the position is inside of, if any."""
    index = bisect_left(blocks, (position,)) - 1
    return blocks[index : index + 1] if index >= 0 and position < blocks[index][1] else ()


def _first_start(text: str, low: int, start: int) -> int:
    sentence = _SENTENCE_START.search(text, low - 1, start)
    if sentence and sentence.end() - low <= (start - low) // 2:
        return sentence.end()
    if word := _WORD_START.search(text, low - 1, start):
        return word.end()
    return low if text[low] >= _UNSPACED else start
