"""Lines that belong together: the items of a list, the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable

from findling.sources.documents.extracted import TextBuilder

__all__ = ["LineGroups"]


class LineGroups:
    """Writes the items of lists and the rows of tables, with an empty line between one group and another."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._kind = ""

    def item(self, text: str) -> None:
        """Write an item of a list, unless it is empty."""
        if text.strip():
            self._write("item", f"- {text}")

    def row(self, cells: Iterable[str]) -> None:
        """Write a row of a table, unless all its cells are empty."""
        cells = list(cells)
        if any(cell.strip() for cell in cells):
            self._write("row", " | ".join(cells))

    def begin(self) -> None:
        """What follows is another group, even if it is of the same kind."""
        self._kind = ""

    def _write(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self._builder.end_paragraph()
            self._kind = kind
        self._builder.line(text)
