"""Chunks of a marked-up text: one per section, small sections joined, large ones cut between paragraphs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from findling.domain.resources import Piece
from findling.text.outlines import OUTLINES, Outline
from findling.text.windows import trim, windows

__all__ = ["MARKUP_LANGS", "chunk_markup"]

MARKUP_LANGS = frozenset(OUTLINES)


def chunk_markup(text: str, lang: str, size: int) -> list[Piece]:
    """Pieces that follow the headings; the heading path is what all sections in the piece share."""
    outline = OUTLINES[lang](text)
    sections = _sections(text, outline)
    pieces = [Piece(*span) for span in windows(text, 0, outline.front, size)] if outline.front else []
    starts = [section.start for section in sections]
    first = 0
    while first < len(sections):
        last = _join_small(sections, first, size)
        start, end = sections[first].start, sections[last].end
        if end - start <= size:
            spans = [trim(text, start, end)]
        else:
            blocks = outline.blocks[bisect_left(outline.blocks, (start,)) : bisect_left(outline.blocks, (end,))]
            spans = windows(text, start, end, size, blocks)
        for span in spans:
            held = sections[bisect_right(starts, span[0]) - 1 : bisect_left(starts, span[1])]
            pieces.append(Piece(*span, _common_path([section.path for section in held if section.path])))
        first = last + 1
    return pieces


def _common_path(paths: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings that all sections of a piece stand under: a piece of two siblings is filed under neither."""
    shared = paths[0] if paths else ()
    for path in paths[1:]:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    return shared


class _Section(NamedTuple):
    start: int
    end: int
    level: int
    path: tuple[str, ...]


def _sections(text: str, outline: Outline) -> list[_Section]:
    """The text after the front matter, cut at every heading; what stands above the first has no path."""
    ends = [*(heading.start for heading in outline.headings), len(text)]
    sections = [_Section(outline.front, ends[0], 0, ())]
    enclosing: list[tuple[int, str]] = []
    for heading, end in zip(outline.headings, ends[1:], strict=True):
        while enclosing and enclosing[-1][0] >= heading.level:
            enclosing.pop()
        enclosing.append((heading.level, heading.title))
        path = tuple(title for _, title in enclosing if title)
        sections.append(_Section(heading.start, end, heading.level, path))
    return sections if text[outline.front : sections[0].end].strip() else sections[1:]


def _join_small(sections: list[_Section], first: int, size: int) -> int:
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
