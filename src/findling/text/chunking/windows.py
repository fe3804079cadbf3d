"""Cutting text that has no structure to go by: at blank lines, else line ends, sentences, spaces."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence

Span = tuple[int, int]

Fit = Callable[[str, int, int], int]
"""Of a text, a start and an end: the furthest end, up to that one, that a window may have. A window that may have none
holds one character all the same."""

_CEILING = 2
"""A window may grow to this many times its size to keep a block with the line that introduces it."""

BLOCK_CEILING = 4
"""A block up to this many times the size stays whole."""


def fits_whole(_text: str, _start: int, end: int) -> int:
    """The bound of windows that nothing but their number of characters limits."""
    return end


def windows(
    text: str,
    start: int,
    end: int,
    size: int,
    blocks: Sequence[Span] = (),
    *,
    fit: Fit = fits_whole,
    least: float = 0.25,
) -> list[Span]:
    """Trimmed spans of at most `size` characters that cover `text[start:end]`, never inside one of the blocks.

    Lines end with `\\n`. Blocks are spans in order that stay whole up to `BLOCK_CEILING` times the size. `fit` may
    allow less than `size`. Cuts are sought where at least the part `least` of a window stands before them.
    """
    spans = []
    start = _skip_blank_lines(text, start, end)
    while (limit := max(fit(text, start, min(start + size, end)), start + 1)) < end:
        # The last window gets at least a quarter: a few left-over lines make a poor result.
        cut = _fitting_cut(text, start, min(limit, end - (limit - start) // 4), fit, least)
        if blocks:
            cut = min(end, _outside_blocks(start, cut, size, blocks))
        spans.append((start, start + len(text[start:cut].rstrip())))
        start = _skip_blank_lines(text, cut, end)
    spans.append((start, start + len(text[start:end].rstrip())))
    return [span for span in spans if span[0] < span[1]]


def trim(text: str, start: int, end: int) -> Span:
    """The span without blank lines at either end; the first line keeps its indentation. Empty when all is blank."""
    start = _skip_blank_lines(text, start, end)
    return start, start + len(text[start:end].rstrip())


def cluster_start(text: str, position: int) -> int:
    """The nearest position at or before this one that does not part a letter from its combining marks."""
    for candidate in range(position, max(position - _LONGEST_CLUSTER, 0), -1):
        if candidate >= len(text) or not _extends(text[candidate]):
            return candidate
    return position


_LONGEST_CLUSTER = 32
_LONGEST_WORD = 64
_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？")
_WHITESPACE = re.compile(r"\s*+")
_WHITE_LINE = re.compile(r"\n[ \t]++\n")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def _skip_blank_lines(text: str, start: int, end: int) -> int:
    if start >= end or not text[start].isspace():
        return start
    first = _skip_whitespace(text, start, end)
    return first if first == end else max(start, text.rfind("\n", start, first) + 1)


def _skip_whitespace(text: str, start: int, end: int) -> int:
    match = _WHITESPACE.match(text, start, end)
    return match.end() if match else start


def _outside_blocks(start: int, cut: int, size: int, blocks: Sequence[Span]) -> int:
    """The cut, moved out of the block it falls into: before the block when enough stands there, else after it."""
    index = bisect_left(blocks, (cut,)) - 1
    if index < 0 or cut >= blocks[index][1]:
        return cut
    block_start, block_end = blocks[index]
    if block_start > start and (block_start - start >= size // 4 or block_end - start > _CEILING * size):
        return block_start
    return block_end if block_end - block_start <= BLOCK_CEILING * size else cut


def _fitting_cut(text: str, start: int, limit: int, fit: Fit, least: float) -> int:
    cut = _cut(text, start, limit, least)
    if fit is fits_whole:
        return cut
    # A text within the limit also fits up to a space before it; part of a word can have more tokens than the word.
    while cut > start + 1 and not (text[cut - 1].isspace() or text[cut].isspace()):
        limit = max(fit(text, start, cut), start + 1)
        if limit == cut:
            break
        cut = _cut(text, start, limit, least)
    return cut


def _cut(text: str, start: int, limit: int, least: float) -> int:
    """End of a window that begins at `start`; a cut that leaves less than the least part is the last choice."""
    content = min(_skip_whitespace(text, start, limit), limit - 1)
    floor = max(start + int((limit - start) * least), content)
    for find in (_after_paragraph, _after_line, _after_sentence, _after_space):
        if (cut := find(text, floor, limit)) > start and not _extends(text[cut]):
            return _before_indentation(text, content, cut)
    for find in (_after_line, _after_space):
        if (cut := find(text, content, floor)) > start:
            return _before_indentation(text, content, cut)
    return _between_words(text, content, limit)


def _before_indentation(text: str, content: int, cut: int) -> int:
    """The cut, moved to the beginning of its line when nothing but indentation stands between them."""
    line = text.rfind("\n", content, cut) + 1
    return line if line and not text[line:cut].strip() else cut


def _after_paragraph(text: str, floor: int, limit: int) -> int:
    """After the last blank line, or one in the upper half that an unindented line follows."""
    half = (floor + limit) // 2
    last = here = text.rfind("\n\n", floor, limit)
    while here >= half:
        if text[here + 2] not in " \t":
            return here + 2
        here = text.rfind("\n\n", floor, here + 1)
    if last >= 0:
        return last + 2
    return max((match.end() for match in _WHITE_LINE.finditer(text, floor, limit)), default=-1)


def _after_line(text: str, floor: int, limit: int) -> int:
    return text.rfind("\n", floor, limit) + 1


def _after_sentence(text: str, floor: int, limit: int) -> int:
    return max((at + len(mark) for mark in _SENTENCE_ENDS if (at := text.rfind(mark, floor, limit)) >= 0), default=-1)


def _after_space(text: str, floor: int, limit: int) -> int:
    return max(text.rfind(" ", floor, limit), text.rfind("\t", floor, limit)) + 1


def _between_words(text: str, start: int, limit: int) -> int:
    for cut in range(limit, max(limit - _LONGEST_WORD, start), -1):
        if not _in_word(text[cut - 1]) and not _extends(text[cut]):
            return cut
    cut = cluster_start(text, limit)
    return cut if cut > start else limit


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or _extends(character)


def _extends(character: str) -> bool:
    """Whether the character only continues the one before it (marks, joiners, the second half of a pair)."""
    return unicodedata.category(character)[0] == "M" or character in _JOINERS or "\udc00" <= character <= "\udfff"
