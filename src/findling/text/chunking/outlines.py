"""The outline of a marked-up text: where its headings stand and which blocks must not be torn apart.

Every reader makes one pass with a pattern that starts at a line break. The regular expression engine skips the lines
between. Lines end with `\\n`; patterns run over `"\\n" + text`, so that a match begins at the offset of its line in the
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from findling.text.chunking.windows import Span


class Heading(NamedTuple):
    """A section title; `start` is where the section begins, labels above its title included."""

    start: int
    level: int
    title: str


class Outline(NamedTuple):
    """Outline of a text. `front` is the length of the front matter; blocks are fences and the like, in order."""

    headings: list[Heading]
    blocks: list[Span]
    front: int = 0


_MAX_TITLE = 120

_FRONT_START = re.compile(r"(---|\+\+\+)[ \t]*+(?=\n[ \t]*+(?:\#|[\w\"'.-]++[ \t]*+[:=]))")
_FRONT_END = {"---": re.compile(r"\n(?:---|\.\.\.)[ \t]*+(?:\n|\Z)"), "+++": re.compile(r"\n\+\+\+[ \t]*+(?:\n|\Z)")}
_MARKDOWN = re.compile(
    r"\n(?: {0,3}+(?:(?P<atx>\#{1,6}+)(?=[ \t\n]|\Z)|(?P<underline>=++|-++)[ \t]*+(?=\n|\Z))"
    r"|[ \t>]*+(?:(?:[-*+]|\d{1,9}+[.)])[ \t]++)?(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*+))"
)
_MARKDOWN_NO_TITLE = re.compile(r"[ ]{0,3}(?:[-*+|<>]|\d+[.)]\s|[ ]|\t)")
_MARKDOWN_TITLE_END = re.compile(r"(?:[ \t]+\{[#.][^{}]*\})?(?:[ \t]+#+)?[ \t]*$")
_RST = re.compile(r"\n([!-/:-@\[-`{-~])\1++[ \t]*+(?=\n|\Z)")
_ASCIIDOC = re.compile(
    r"\n(?:(?P<atx>={1,6}+|\#{1,6}+)[ \t]++(?=\S)"
    r"|(?P<rule>-{2,}+|={2,}+|~{2,}+|\^{2,}+|\+{2,}+|\.{4,}+|/{4,}+|\*{4,}+|_{4,}+|`{3,}+)(?P<info>[^\n]*+))"
)
_ORG = re.compile(r"\n(?:(?P<stars>\*++)[ \t]|[ \t]*+\#\+(?i:(?P<edge>begin|end)_))")
_ORG_DRESS = re.compile(
    r"^(?:(?:TODO|DONE|NEXT|WAIT(?:ING)?|HOLD|STARTED|CANCELL?ED)\s+)?(?:\[#\w\]\s+)?|\s+:[\w@#%:]+:\s*$"
)


def _markdown(text: str) -> Outline:
    front = _front_matter(text)
    headings: list[Heading] = []
    blocks: list[Span] = []
    fence, fence_start, after = "", 0, front
    for match in _MARKDOWN.finditer("\n" + text, front):
        line, end = match.start(), line_end(text, match.end() - 1)
        if fence:
            if (match["fence"] or "").startswith(fence) and not match["info"].strip():
                blocks.append((fence_start, end))
                fence, after = "", end + 1
        elif match["atx"]:
            title = _MARKDOWN_TITLE_END.sub("", text[match.end() - 1 : end])
            headings.append(_heading(text, line, len(match["atx"]), title, after, ("<a ", ">")))
            after = end + 1
        elif match["underline"]:
            start = text.rfind("\n", after, max(line - 1, after)) + 1 or after
            if _is_setext_title(text, start, line, after):
                level = 1 if match["underline"][0] == "=" else 2
                headings.append(_heading(text, start, level, text[start:line], after, ("<a ", ">")))
                after = end + 1
        elif match["fence"][0] == "~" or "`" not in match["info"]:
            fence, fence_start = match["fence"], line
    if fence:
        blocks.append((fence_start, len(text)))
    return Outline(headings, blocks, front)


def _front_matter(text: str) -> int:
    opening = _FRONT_START.match(text)
    closing = opening and _FRONT_END[opening[1]].search(text, opening.end())
    return closing.end() if closing else 0


def _is_setext_title(text: str, start: int, line: int, after: int) -> bool:
    """Whether the line above an underline is a paragraph of its own, and no list item, quote or table row."""
    title = text[start:line]
    if not title.strip() or _MARKDOWN_NO_TITLE.match(title):
        return False
    return start == after or _is_blank_above(text, start)


def _rst(text: str) -> Outline:
    headings: list[Heading] = []
    styles: list[tuple[str, bool]] = []
    after = 0
    for match in _RST.finditer("\n" + text):
        line, mark = match.start(), match[0].strip()
        start = text.rfind("\n", 0, max(line - 1, 0)) + 1
        title = text[start:line].rstrip()
        is_rule = not title[:1].isalnum() and title == title[:1] * len(title)
        if start < after or not title or is_rule:
            continue
        above = text.rfind("\n", 0, max(start - 1, 0)) + 1
        overlined = after <= above < start and text[above:start].rstrip() == mark
        if overlined:
            start = above
        elif not _is_rst_title(text, start, title, mark, after):
            continue
        style = (mark[0], overlined)
        if style not in styles:
            styles.append(style)
        headings.append(_heading(text, start, styles.index(style) + 1, title, after, (".. _", ":")))
        after = line_end(text, match.end() - 1) + 1
    return Outline(headings, [])


def _is_rst_title(text: str, start: int, title: str, mark: str, after: int) -> bool:
    if title[0].isspace() or title.startswith(".. ") or len(mark) < min(len(title), 4):
        return False
    if start == after or _is_blank_above(text, start):
        return True
    return text.startswith(".. ", text.rfind("\n", 0, start - 1) + 1)


def _asciidoc(text: str) -> Outline:
    headings: list[Heading] = []
    blocks: list[Span] = []
    rule, rule_start, after = "", 0, 0
    for match in _ASCIIDOC.finditer("\n" + text):
        line, end = match.start(), line_end(text, match.end() - 1)
        mark, info = match["rule"], (match["info"] or "").strip()
        if rule:
            if mark == rule and not info:
                blocks.append((rule_start, end))
                rule, after = "", end + 1
        elif match["atx"]:
            headings.append(_heading(text, line, len(match["atx"]), text[match.end() - 1 : end], after, ("[", "]")))
            after = end + 1
        elif title := _asciidoc_underlined(text, line, mark, info, after):
            level = _ASCIIDOC_UNDERLINES.index(mark[0]) + 1
            headings.append(_heading(text, line - len(title) - 1, level, title, after, ("[", "]")))
            after = end + 1
        elif mark[0] == "`" or (not info and mark[0] in _ASCIIDOC_BLOCKS and (len(mark) >= 4 or mark == "--")):
            rule, rule_start = mark, line
    if rule:
        blocks.append((rule_start, len(text)))
    return Outline(headings, blocks)


_ASCIIDOC_UNDERLINES = "=-~^+"
_ASCIIDOC_BLOCKS = "-=+./*_"


def _asciidoc_underlined(text: str, line: int, mark: str, info: str, after: int) -> str:
    """The title above an underline that is as long as it, give or take one; empty when there is none."""
    start = max(text.rfind("\n", 0, max(line - 1, 0)) + 1, after)
    title = text[start : max(line - 1, start)]
    fits = not info and mark[0] in _ASCIIDOC_UNDERLINES and abs(len(title.rstrip()) - len(mark)) <= 1
    if not fits or not title or not title[0].isalnum() or not (start == after or _is_blank_above(text, start)):
        return ""
    return title


def _org(text: str) -> Outline:
    headings: list[Heading] = []
    blocks: list[Span] = []
    block_start = -1
    for match in _ORG.finditer("\n" + text):
        line, end = match.start(), line_end(text, match.end() - 1)
        if match["stars"]:
            title = _ORG_DRESS.sub("", text[match.end() - 1 : end].strip())
            headings.append(Heading(line, len(match["stars"]), clean_title(title)))
            block_start = -1
        elif match["edge"].lower() == "begin":
            block_start = line
        elif block_start >= 0:
            blocks.append((block_start, end))
            block_start = -1
    return Outline(headings, blocks)


def _heading(text: str, start: int, level: int, title: str, floor: int, label: tuple[str, str]) -> Heading:
    """A heading that begins with the labels (lines with this start and end) right above its title."""
    while True:
        stop = start
        while stop > floor and text[stop - 1] == "\n":
            stop -= 1
        above = max(text.rfind("\n", floor, stop) + 1, floor)
        line = text[above:stop].rstrip()
        if above == stop or not (line.startswith(label[0]) and line.endswith(label[1])):
            return Heading(start, level, clean_title(title))
        start = above


def clean_title(title: str) -> str:
    """A title on one line, cut to 120 characters."""
    title = " ".join(title.split())
    return title if len(title) <= _MAX_TITLE else title[: _MAX_TITLE - 1] + "…"


def _is_blank_above(text: str, line: int) -> bool:
    return line == 0 or not text[text.rfind("\n", 0, line - 1) + 1 : line].strip()


def line_end(text: str, offset: int) -> int:
    """The end of the line that holds the offset, without its break."""
    end = text.find("\n", offset)
    return end if end >= 0 else len(text)


OUTLINES: dict[str, Callable[[str], Outline]] = {
    "asciidoc": _asciidoc,
    "markdown": _markdown,
    "mdx": _markdown,
    "org": _org,
    "rst": _rst,
}
