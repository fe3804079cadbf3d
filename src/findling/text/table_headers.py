"""Tables that are cut between rows: the later pieces carry the header row as the last step of their heading path."""

from __future__ import annotations

import re

from findling.domain.resources import Piece

__all__ = ["with_table_headers"]


def with_table_headers(text: str, pieces: list[Piece], *, ruled: bool = True) -> list[Piece]:
    """The pieces, those that begin inside a table of rows with `|` filed under its header.

    A table is `ruled` when a line of dashes stands above or below its header. Where that is not asked, the first row is
    the header if it looks like names.
    """
    if "|" not in text:
        return pieces
    filed: list[Piece] = []
    header = ""
    for before, piece in zip([None, *pieces], pieces, strict=False):
        if before is None or not _continues_table(text, before.end, piece.start):
            header = ""
        else:
            header = _header_at_end(text, before, ruled) or header
        filed.append(piece._replace(heading=(*piece.heading, header)) if header else piece)
    return filed


_MAX_STEP = 120
_RULE = re.compile(r"[|+: \t]*+[=-][|+:= \t-]*+")


def _continues_table(text: str, end: int, start: int) -> bool:
    """Whether the row of a table stands on either side of the cut, with nothing between them."""
    return text.count("\n", end, start) <= 1 and _is_row(_line(text, end - 1)) and _is_row(_line(text, start))


def _header_at_end(text: str, piece: Piece, ruled: bool) -> str:
    """The header of the table that the piece ends with; empty when the table did not begin in it, or has none."""
    rows: list[str] = []
    for line in reversed(text[piece.start : piece.end].split("\n")):
        if not _is_row(line):
            break
        rows.append(line)
    fills_piece = len(rows) == text.count("\n", piece.start, piece.end) + 1
    if not rows or (fills_piece and _continues_above(text, piece.start)):
        return ""
    first, second = rows[-1], rows[-2] if len(rows) > 1 else ""
    if _is_rule(first):
        return _cells(second)
    return _cells(first) if _is_rule(second) or (not ruled and _names_columns(first)) else ""


def _names_columns(row: str) -> bool:
    """Whether a row looks like names: `Name | Price`, not `Ann | 12` and not `name: Ann | age: 12`."""
    return ": " not in row and not any(character.isdigit() for character in row)


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
