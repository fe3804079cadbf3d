"""From the lines of a printed page to running text: words that a line break cut in two, and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["join_lines", "split_lines", "usual_width"]


def split_lines(text: str) -> list[str]:
    """The lines of a page, no word hyphenated at the end of one; an empty line stands before each that is indented."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _LINE_END_HYPHEN.sub(_mended, text).replace(_PDFIUM_HYPHEN, "-")
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and line[0].isspace():
            lines.append("")
        lines.append(stripped)
    return lines


def usual_width(lines: Sequence[str]) -> int:
    """How long a full line of the page is: the longest tenth may be something else, such as a wide table."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[len(lengths) * 9 // 10] if lengths else 0


def join_lines(lines: Sequence[str], width: int) -> str:
    """The text of lines: where a sentence runs on they become one, and an empty line ends a paragraph."""
    parts: list[str] = []
    previous = ""
    for line in lines:
        if line:
            if parts:
                parts.append(_joint(previous, line, width))
            parts.append(line)
        previous = line
    return "".join(parts)


# pdfium writes U+FFFE for a hyphen that ends a line, and leaves the line break out.
_PDFIUM_HYPHEN = "\ufffe"
_LINE_END_HYPHEN = re.compile("(?<=\\w)(?:\ufffe\n?|[-\u00ad\u2010][ \t]*\n)(?=\\w)")


def _mended(hyphen: re.Match[str]) -> str:
    before, after = hyphen.string[hyphen.start() - 1], hyphen.string[hyphen.end()]
    return "" if before.isalpha() and after.islower() else "-"


_PROSE_WIDTH = 40  # pages with shorter lines are lists, tables, slides: their lines mean something
_FULL = 0.7
_SENTENCE_ENDS = tuple('.!?:;…。！？”"»)')


def _joint(line: str, following: str, width: int) -> str:
    """What stands between two lines of a page: a space, a line break or an empty line."""
    if not line:
        return "\n\n"
    if width < _PROSE_WIDTH:
        return "\n"
    is_full = len(line) >= _FULL * width
    if line.endswith(_SENTENCE_ENDS) and not following[0].islower():
        return "\n" if is_full else "\n\n"
    if not is_full or not following[0].isalpha() or not (line[-1].isalpha() or following[0].islower()):
        return "\n"
    return "" if _is_unspaced(line[-1]) and _is_unspaced(following[0]) else " "


def _is_unspaced(character: str) -> bool:
    """Whether the character belongs to Chinese or Japanese, which put no spaces between words."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff" or "\uff00" <= character <= "\uff9f"
