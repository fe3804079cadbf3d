"""Cutting a text into pieces worth finding: sections of prose, definitions of code, messages, or plain windows."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from findling.domain.resources import Piece
from findling.text.analysis.lines import with_plain_breaks
from findling.text.chunking.chat_messages import chunk_chat
from findling.text.chunking.chunk_plan import PRESETS, ChunkPlan, check_plan
from findling.text.chunking.code_chunks import chunk_code
from findling.text.chunking.code_grammars import CODE_LANGS, dialect_of
from findling.text.chunking.data_outlines import DATA_OUTLINES
from findling.text.chunking.measures import Measure, characters_of, measure_of
from findling.text.chunking.outlines import OUTLINES, Outline
from findling.text.chunking.syntax import SYNTAXES
from findling.text.chunking.windows import Span, cluster_start, windows


class Section(NamedTuple):
    """From one heading to the next; the path holds the heading itself and those above it."""

    start: int
    end: int
    level: int
    path: tuple[str, ...]


def _sections_of(text: str, outline: Outline) -> list[Section]:
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


def _heading_paths(sections: Sequence[Section], spans: Sequence[Span]) -> list[tuple[str, ...]]:
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


def _with_table_headers(text: str, pieces: list[Piece], *, ruled: bool = True) -> list[Piece]:
    """The pieces, those that begin inside a table of rows with `|` filed under its header.

    A table is `ruled` when a line of dashes stands above or below its header. Where that is not asked, the first row is
    the header if it looks like names.
    """
    if "|" not in text:
        return pieces
    filed: list[Piece] = []
    header: tuple[str, ...] = ()
    for before, piece in zip([None, *pieces], pieces, strict=False):
        if before is None or not _continues_table(text, before.end, piece.start):
            header = ()
        else:
            header = _header_at_end(text, before, ruled) or header
        filed.append(piece._replace(heading=tuple(dict.fromkeys((*piece.heading, *header)))) if header else piece)
    return filed


def caption_above(text: str, start: int) -> str:
    """The short lines right above an offset, which name the table that begins there."""
    lines: list[str] = []
    for line in reversed(text[max(start - 4 * _MAX_STEP, 0) : start].strip().splitlines()):
        line = " ".join(line.split())
        if not line or _is_row(line) or line.endswith(".") or len(" ".join((line, *lines))) > _MAX_STEP:
            break
        lines.insert(0, line)
    return " ".join(lines)


_MAX_STEP = 120
_RULE = re.compile(r"[|+: \t]*+[=-][|+:= \t-]*+")


def _continues_table(text: str, end: int, start: int) -> bool:
    """Whether the row of a table stands on either side of the cut, with nothing between them."""
    return text.count("\n", end, start) <= 1 and _is_row(_line(text, end - 1)) and _is_row(_line(text, start))


def _header_at_end(text: str, piece: Piece, ruled: bool) -> tuple[str, ...]:
    """The header of the table that the piece ends with; empty when the table did not begin in it, or has none.

    Without rules that tell a table from text, the lines above it are its title.
    """
    rows: list[str] = []
    for line in reversed(text[piece.start : piece.end].split("\n")):
        if not _is_row(line):
            break
        rows.append(line)
    fills_piece = len(rows) == text.count("\n", piece.start, piece.end) + 1
    if not rows or (fills_piece and _continues_above(text, piece.start)):
        return ()
    first, second = rows[-1], rows[-2] if len(rows) > 1 else ""
    if _is_rule(first):
        header = _cells(second)
    else:
        header = _cells(first) if _is_rule(second) or (not ruled and _names_columns(first)) else ""
    title = "" if ruled else caption_above(text, piece.end - len("\n".join(rows)))
    return tuple(filter(None, (title, header)))


def _names_columns(row: str) -> bool:
    """Whether a row looks like names or years: `Name | Price`, not `Ann | 12` and not `name: Ann | age: 12`."""
    if ": " in row or not any(character.isdigit() for character in row):
        return ": " not in row
    held = [cell for cell in row.split("|")[1:] if any(character.isdigit() for character in cell)]
    return len(held) > 1 and all(map(_YEAR.search, held))


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _continues_above(text: str, start: int) -> bool:
    return start > 0 and _is_row(_line(text, text.rfind("\n", 0, start)))


def _line(text: str, offset: int) -> str:
    """The line that holds the offset; the break at its end belongs to it."""
    end = text.find("\n", offset)
    return text[text.rfind("\n", 0, offset) + 1 : end if end >= 0 else len(text)]


def _is_row(line: str) -> bool:
    return "|" in line or (line.lstrip()[:1] == "+" and _is_rule(line))


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None


def _cells(row: str) -> str:
    cells = " | ".join(" ".join(cell.split()) for cell in row.strip().strip("|").split("|"))
    if not cells.strip(" |"):
        return ""
    return cells if len(cells) <= _MAX_STEP else cells[: _MAX_STEP - 1] + "…"


def _chunk_sections(text: str, outline: Outline, measure: Measure) -> list[Piece]:
    """Pieces that follow the headings; the heading path is what all sections in the piece share."""
    size, fit = measure
    sections, blocks = _sections_of(text, outline), outline.blocks
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
        Piece(*span, path) for span, path in zip(spans, _heading_paths(sections, spans), strict=True)
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


def _chunk_fixed(text: str, outline: Outline, plan: ChunkPlan) -> list[Piece]:
    """Windows of the plan's size under the headings that they stand under; they overlap if the plan says so.

    An overlap is taken out of the size: a window is cut to what is left and then begins that much earlier.
    """
    overlap = plan.overlap if plan.strategy == "overlapping" else 0
    size, fit = measure_of(text, plan._replace(size=plan.size - overlap))
    spans = windows(text, 0, len(text), size, outline.blocks, fit=fit, least=0.75)
    paths = _heading_paths(_sections_of(text, outline), spans)
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
    """Start of the window with its overlap: at a sentence, a line or at least a word."""
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


def chunk_text(text: str, lang: str, plan: ChunkPlan = PRESETS["default"]) -> list[Piece]:
    """Ordered pieces that hold every visible character of the text, exactly once unless the plan lets them overlap.

    Code is cut at its definitions and sized in characters, whatever the plan's unit is. Of the rest only a fenced
    block makes a piece larger than the plan says: up to twice the size together with the lines that introduce it, up
    to four times the size alone. An unknown `lang` is cut like plain text. Raises `ValueError` for a plan that
    cannot be.
    """
    check_plan(plan)
    plain = _with_plain_breaks(text)
    if plan.strategy == "semantic" and lang in CODE_LANGS:
        dialect = dialect_of(plain, lang)
        return chunk_code(plain, dialect, characters_of(plan), syntax=parses(plan, dialect))
    if plan.strategy == "semantic" and lang == "chat":
        return chunk_chat(plain, measure_of(plain, plan))
    outline = _OUTLINES[lang](plain) if lang in _OUTLINES else _NO_OUTLINE
    return _with_table_headers(plain, _along(plain, outline, plan))


def chunk_outline(text: str, outline: Outline, plan: ChunkPlan = PRESETS["default"]) -> list[Piece]:
    """Pieces of a text whose headings are known. Rows with `|` are a table, the first of them is its header.

    Raises `ValueError` for a plan that cannot be.
    """
    check_plan(plan)
    plain = _with_plain_breaks(text)
    return _with_table_headers(plain, _along(plain, outline, plan), ruled=False)


def parses(plan: ChunkPlan, lang: str) -> bool:
    """Whether texts of this language are cut by their syntax tree."""
    if plan.strategy != "semantic" or plan.code == "patterns":
        return False
    return lang in (SYNTAXES if plan.code == "syntax" else _WITHOUT_KEYWORD)


_WITHOUT_KEYWORD = SYNTAXES.keys() & {
    *("c", "cpp", "csharp", "cuda", "dart", "haskell", "java", "javascript", "objectivec", "powershell", "typescript")
}
"""Languages in which more than the first word tells a function from a call. Patterns cut 23 to 54 in 100 pieces of C
and C++ elsewhere than a tree does, often inside a signature; where `def`, `fn` or `func` lead, they differ in trifles,
and a tree costs ten times as much."""

_OUTLINES = OUTLINES | DATA_OUTLINES
_NO_OUTLINE = Outline([], [])


def _along(text: str, outline: Outline, plan: ChunkPlan) -> list[Piece]:
    if plan.strategy == "semantic":
        return _chunk_sections(text, outline, measure_of(text, plan))
    return _chunk_fixed(text, outline, plan)


def _with_plain_breaks(text: str) -> str:
    """The text with `\\n` as its only break, at equal length; a blank line is `\\n\\n`, which is what cuts look for."""
    return with_plain_breaks(text.replace("\r\n\r\n", "  \n\n")) if "\r" in text else text
