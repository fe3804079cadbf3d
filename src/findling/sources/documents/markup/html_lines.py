"""Line numbers that survive an HTML parser which keeps no positions.

The first block tag of each line gets an attribute with the number of its line before the page is parsed, and the
parser carries it along, even where it moves elements around. The attribute is named by a control character, so that
no page has one of that name and what is left of it in a title or a script can be told from text.
"""

from __future__ import annotations

import re

__all__ = ["LINE_MARK", "marked_line", "with_line_marks", "without_line_marks"]

LINE_MARK = " \x01="
"""How the attributes of a marked tag begin."""

_BLOCK_NAMES = (
    "p|div|h[1-6]|li|t[rdh]|d[td]|pre|br|hr|[uod]l|table|section|article|main|header|footer|aside|nav|summary|details"
    "|blockquote|figcaption|caption|form|fieldset|address|center|body|textarea|legend"
)
# A name with anything but white space, `/` or `>` after it may be the end of a comment (`<!--<p-->`), which a mark
# would break; inside a quoted value or a comment a mark does no harm. Both cases are spelled out because a pattern
# that ignores case takes twice the time.
_FIRST_BLOCK_TAG = re.compile(rf"(<(?:{_BLOCK_NAMES}|{_BLOCK_NAMES.upper()})(?=[\s/>]))[^\n]*")
_MARK = re.compile(' \x01="?([0-9]+)')
_UNPARSED_MARK = re.compile(" \x01=[0-9]+ ")
_FIRST_LINE_END_OF_PRE = re.compile(r"<(?:pre|PRE)\b[^<>]*>(?=\n)")


def with_line_marks(markup: str) -> str:
    """The markup, whose lines end with a line feed, with the first block tag of each line marked."""
    markup = markup.replace("\x01", "")
    parts: list[str] = []
    line, end = 1, 0
    for match in _FIRST_BLOCK_TAG.finditer(markup):
        start, end = end, match.end(1)
        line += markup.count("\n", start, end)
        parts += markup[start:end], f"{LINE_MARK}{line} "
    parts.append(markup[end:])
    marked = "".join(parts)
    # The parser drops a line break right after `<pre>`; a second one keeps the count of lines.
    return _FIRST_LINE_END_OF_PRE.sub("\\g<0>\n", marked)


def marked_line(attributes: str) -> int:
    """The line that attributes which begin with a mark are marked with."""
    mark = _MARK.match(attributes)
    return int(mark[1]) if mark else 0


def without_line_marks(text: str) -> str:
    """The text without the marks of tags that the parser took for text."""
    return _UNPARSED_MARK.sub("", text) if "\x01" in text else text
