"""The sections of a text by its outline, and the headings that a piece stands under."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from findling.text.chunking.outlines import Outline
from findling.text.chunking.windows import Span

__all__ = ["Section", "heading_paths", "sections_of"]


class Section(NamedTuple):
    """From one heading to the next; the path holds the heading itself and those above it."""

    start: int
    end: int
    level: int
    path: tuple[str, ...]


def sections_of(text: str, outline: Outline) -> list[Section]:
    """The text after the front matter, cut at every heading; what stands above the first has no path."""
    ends = [*(heading.start for heading in outline.headings), len(text)]
    sections = [Section(outline.front, ends[0], 0, ())]
    enclosing: list[tuple[int, str]] = []
    for heading, end in zip(outline.headings, ends[1:], strict=True):
        while enclosing and enclosing[-1][0] >= heading.level:
            enclosing.pop()
        enclosing.append((heading.level, heading.title))
        path = tuple(title for _, title in enclosing if title)
        sections.append(Section(heading.start, end, heading.level, path))
    return sections if text[outline.front : sections[0].end].strip() else sections[1:]


def heading_paths(sections: Sequence[Section], spans: Sequence[Span]) -> list[tuple[str, ...]]:
    """For each span the headings that all its sections stand under: one of two siblings is filed under neither."""
    starts = [section.start for section in sections]
    paths = []
    for start, end in spans:
        held = sections[max(bisect_right(starts, start) - 1, 0) : bisect_left(starts, end)]
        paths.append(_common([section.path for section in held if section.path]))
    return paths


def _common(paths: list[tuple[str, ...]]) -> tuple[str, ...]:
    shared = paths[0] if paths else ()
    for path in paths[1:]:
        while path[: len(shared)] != shared:
            shared = shared[:-1]
    return shared
