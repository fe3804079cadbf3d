"""Tables of figures on the pages of a PDF: their rows and columns, told from where the words stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from findling.text.chunking.chunker import caption_above

Place = tuple[float, float, float, float]
"""Of a word: its left and right ends, the height of its middle on the page, and how high its letters are."""

_LEAST_ROWS, _MOST_HEADS = 3, 3
_MOST_ROWS_AROUND = 4  # rows above or below a table that goes over two pages: title, company, page number
_GAP, _GAP_OF_FIGURES = 0.9, 0.5  # heights of a letter between two cells; a space is 0.25, in justified text up to 0.6
_MOST_APART, _LONGEST_ROW = 4, 200  # heights of a letter between rows of a table; characters in one
_NEAR = 4  # cells of a row are drawn after each other, but for the lines of its head; or each column on its own
_LEAST_FILLED = 0.6  # part of the cells; axes of charts and tables of contents have few below each other
_WORD = re.compile(r"\.{4,}|(?:(?!\.{4})\S)+")
_FIGURE = re.compile(r"(?=.*[\d–—−-])(?:[\d.,'’()%$€£¥+–—−* -]|(?<=\d)[eE](?=[-+\d]))+")
_ROW_ENDS = re.compile(r"(?m)(?:^|[\d%)–—-][ \t]+)[$€£(+−-]*[ \t]*[\d.,eE+-]*[\d–—-][%)]*[ \t]*\r?$")
_YEAR = re.compile(r"(?:19|20)\d\d")


class _Cell(NamedTuple):
    """Words of the page that stand close together on one line; cells are numbered as the text has them."""

    number: int
    start: int
    end: int
    text: str
    left: float
    right: float
    middle: float
    height: float


_Row = list[_Cell]
_Columns = list[tuple[float, float]]


class TableRows:
    """Reader of the tables of a document, which remembers the heads of one that goes on over the page."""

    def __init__(self) -> None:
        self._open = "", "", 0  # title, heads and number of columns of the table at the end of the last page

    def written(self, text: str, place: Callable[[int, int], Place]) -> str:
        """The text of the next page with a line `row head | figure | figure` for every row of a table.

        `place` tells where the word of a range of the text stands.
        """
        (open_title, open_head, open_columns), self._open = self._open, ("", "", 0)
        if len(_ROW_ENDS.findall(text)) < _LEAST_ROWS:
            return text
        rows = _rows_of(_cells_of(text, place))
        cuts: list[tuple[int, int, str]] = []
        for first, end in _tables_in(rows):
            if columns := _columns_of(rows[first:end]):
                start = _first_head(rows, first, columns)
                head, lines = _lines_of(rows[start:end], first - start, columns)
                used = [cell for row in rows[start:end] for cell in row]
                begin = min(cell.start for cell in used)
                title = caption_above(text, begin)
                goes_on = not cuts and start <= _MOST_ROWS_AROUND and len(columns) == open_columns
                if goes_on and (not head or (head == open_head and not title)):
                    lines = [open_title, "" if head else open_head, *lines]
                    title, head = open_title, open_head
                cuts += [(begin, begin, "\n".join(filter(None, lines))), *((cell.start, cell.end, "") for cell in used)]
                if len(rows) - end <= _MOST_ROWS_AROUND:
                    self._open = title, head, len(columns)
        return _replaced(text, sorted(cuts, key=lambda cut: cut[:2]))


def _replaced(text: str, cuts: Sequence[tuple[int, int, str]]) -> str:
    written, at = "", 0
    for start, end, lines in cuts:
        written += text[at:start]
        written = f"{written.rstrip()}\n{lines}\n" if lines else written
        at = end
    return written + text[at:]


def _cells_of(text: str, place: Callable[[int, int], Place]) -> list[_Cell]:
    """The cells of the page; a currency sign belongs to the figure after it, and dots that lead to one are none."""
    cells = [_Cell(0, 0, 0, " ", 0, 0, 0, 0)]
    for match in _WORD.finditer(text):
        word, last = match[0], cells[-1]
        if not word.strip("."):
            cells[-1] = last._replace(end=match.end())
            continue
        left, right, middle, height = place(*match.span())
        limit = _GAP_OF_FIGURES if _FIGURE.fullmatch(word) and _FIGURE.fullmatch(last.text) else _GAP
        is_near = left - last.right < limit * height or last.text in "$€£¥"
        if is_near and left > last.left and abs(middle - last.middle) < height / 2:
            cells[-1] = last._replace(end=match.end(), text=f"{last.text} {word}", right=right)
        else:
            cells.append(_Cell(len(cells), *match.span(), word, left, right, middle, height))
    return cells[1:]


def _rows_of(cells: Sequence[_Cell]) -> list[_Row]:
    """The cells by the height at which they stand, from the top down and from left to right."""
    rows: list[_Row] = []
    for cell in sorted(cells, key=lambda cell: -cell.middle):
        if not rows or rows[-1][0].middle - cell.middle >= cell.height / 2:
            rows.append([])
        rows[-1].append(cell)
    return [sorted(row, key=lambda cell: cell.left) for row in rows]


def _tables_in(rows: Sequence[_Row]) -> Iterator[tuple[int, int]]:
    """Ranges of rows with figures below each other; rows between them are short lines at the left."""
    full = [number for number, row in enumerate(rows) if _is_full(row)]
    start = 0
    for at in range(1, len(full) + 1):
        if at == len(full) or not _are_close(rows[full[at - 1] : full[at] + 1]):
            if at - start >= _LEAST_ROWS:
                yield full[start], full[at - 1] + 1
            start = at


def _is_full(row: _Row) -> bool:
    """Whether a row holds two figures, no prose, and nothing of a column of text or a table beside it."""
    near = {0 < right.number - left.number <= _NEAR for left, right in pairwise(row)}
    is_prose = sum(len(cell.text) for cell in row) > _LONGEST_ROW
    return len(_figures(row)) > 1 and len(near) == 1 and not is_prose


def _figures(row: _Row) -> _Row:
    return [cell for cell in row if _FIGURE.fullmatch(cell.text)]


def _are_close(rows: Sequence[_Row]) -> bool:
    """Whether nothing parts the first and the last row: no gap, no line of text from one side to the other."""
    if any(above[0].middle - below[0].middle > _MOST_APART * below[0].height for above, below in pairwise(rows)):
        return False
    edge = min(rows[0][-1].left, rows[-1][-1].left)
    return all(len(row) < 3 and row[0].right < edge for row in rows[1:-1])


def _columns_of(rows: Sequence[_Row]) -> _Columns:
    """The left and right ends of the columns of figures, which have their right ends in common; none of a chart."""
    columns: _Columns = []
    for cell in sorted((cell for row in rows if _is_full(row) for cell in _figures(row)), key=lambda cell: cell.right):
        if columns and (cell.right - columns[-1][1] < cell.height or cell.left < columns[-1][1]):
            columns[-1] = min(columns[-1][0], cell.left), cell.right
        else:
            columns.append((cell.left, cell.right))
    held = [len(figures) for row in rows if (figures := _figures(row))]
    return columns if len(columns) > 1 and sum(held) >= _LEAST_FILLED * len(held) * len(columns) else []


def _first_head(rows: Sequence[_Row], first: int, columns: _Columns) -> int:
    """The first of the rows above a table that have a name for every column."""
    for at in range(first, max(first - _MOST_HEADS, 0), -1):
        names = [cell for cell in rows[at - 1] if (cell.left + cell.right) / 2 > columns[0][0] - cell.height]
        is_text = all(_YEAR.fullmatch(cell.text) for cell in _figures(rows[at - 1]))
        if len(names) != len(columns) or not is_text or not _are_close(rows[at - 1 : at + 1]):
            return at
    return max(first - _MOST_HEADS, 0)


def _lines_of(rows: Sequence[_Row], heads: int, columns: _Columns) -> tuple[str, list[str]]:
    """The line with the heads of the columns, if there are any, and all lines of the table.

    A head over several lines becomes one, wherever its figures stand.
    """
    figures = [cell.text for cell in _figures(rows[heads])]
    heads += bool(figures) and all(map(_YEAR.fullmatch, figures))
    placed = [_placed(row, columns) for row in rows]
    head = " | ".join(" ".join(filter(None, texts)) for texts in zip(*placed[:heads], strict=True)).strip()
    joined: list[list[str]] = []
    for row in placed[heads:]:
        above = joined[-1] if joined else [":"]
        is_part = (row[0] or "a")[0].islower() and not above[0].endswith(":")
        if is_part and not (any(row[1:]) and any(above[1:])):
            joined[-1] = [f"{above[0]} {row[0]}".strip(), *(row if any(row[1:]) else above)[1:]]
        else:
            joined.append(row)
    lines = [" | ".join(row).strip() if any(row[1:]) else f"{row[0]} |" for row in joined]
    return head, [head, *lines]


def _placed(row: _Row, columns: _Columns) -> list[str]:
    """The texts of a row: its head, then what stands in each column."""
    texts = [""] * (len(columns) + 1)
    for cell in row:
        centre = (cell.left + cell.right) / 2
        distances = [max(left - centre, centre - right) for left, right in columns]
        is_right = _FIGURE.fullmatch(cell.text) or centre > columns[0][0] - cell.height
        number = distances.index(min(distances)) + 1 if is_right else 0
        texts[number] = f"{texts[number]} {cell.text}".strip()
    return texts
