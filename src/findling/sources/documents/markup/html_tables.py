"""Tables of a page: rows of cells, with what a cell spans repeated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from findling.sources.extracted import labelled

_SPAN = re.compile(r'\b(col|row)span="([0-9]{1,4})')
_MAX_SPAN = 200


@dataclass(slots=True)
class Cell:
    """A cell: its blocks of text, each with its line of the file."""

    is_header: bool
    columns: int = 1
    rows: int = 1
    blocks: list[tuple[int, str]] = field(default_factory=list)
    size: int = 0

    def add(self, line: int, text: str) -> None:
        """Put another block of text into the cell."""
        self.blocks.append((line, text))
        self.size += len(text)

    @property
    def text(self) -> str:
        """The text of the cell in one line."""
        return " ".join(text for _, text in self.blocks)


@dataclass(slots=True)
class Table:
    """A table that is being read; `is_layout` when its cells only arrange text on the page."""

    is_layout: bool = False
    row: list[Cell] = field(default_factory=list)
    cell: Cell | None = None
    _header: dict[int, str] = field(default_factory=dict)
    _rows_from_above: dict[int, int] = field(default_factory=dict)

    def begin_cell(self, name: str, attributes: str) -> None:
        """Begin the next cell of the row with its `td` or `th` tag."""
        self.cell = Cell(name in ("th", "TH"))
        if "span=" in attributes:
            spans = {which: min(max(int(count), 1), _MAX_SPAN) for which, count in _SPAN.findall(attributes)}
            self.cell.columns, self.cell.rows = spans.get("col", 1), spans.get("row", 1)
        self.row.append(self.cell)

    def end_row(self) -> list[Cell]:
        """The cells of the row that ends here."""
        row, self.row, self.cell = self.row, [], None
        return row

    @property
    def has_header(self) -> bool:
        """Whether the columns have names."""
        return bool(self._header)

    def row_text(self, row: list[Cell]) -> str:
        """The row as a line; a row of nothing but header cells names the columns of the rows after it."""
        columns = self._columns(row)
        if len(row) > 1 and all(cell.is_header for cell in row):
            self._header = {
                column + offset: cell.text
                for column, cell in zip(columns, row, strict=True)
                for offset in range(cell.columns)
            }
            labels = [""] * len(row)
        else:
            labels = [self._header.get(column, "") for column in columns]
        texts = (labelled(label, cell.text) for label, cell in zip(labels, row, strict=True))
        return " | ".join(filter(None, texts))

    def _columns(self, row: list[Cell]) -> list[int]:
        """The first column of each cell, after those that cells of rows above still reach into."""
        above, below = self._rows_from_above, {}
        columns = []
        column = 0
        for cell in row:
            while column in above:
                column += 1
            columns.append(column)
            if cell.rows > 1:
                below.update(dict.fromkeys(range(column, column + cell.columns), cell.rows - 1))
            column += cell.columns
        self._rows_from_above = {column: rows - 1 for column, rows in above.items() if rows > 1} | below
        return columns
