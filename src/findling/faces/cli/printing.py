"""Reports on stdout: as one JSON document, or as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from findling.faces.cli.columns import display_width, show_controls
from findling.faces.cli.terminal import write

__all__ = ["write_json", "write_table"]


def write_json(values: Mapping[str, object] | None = None, /, **more: object) -> None:
    """Print values as one document, with the schema version first."""
    from findling.faces.cli.documents import dump, report_document

    write(dump(report_document({**(values or {}), **more}), indent=2))


def write_table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows with every column but the last as wide as its widest cell."""
    shown = [[show_controls(cell) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [cell + " " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True)]
        write("  ".join(cells).rstrip() + "\n")
