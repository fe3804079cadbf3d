"""What stands on a sheet of an Office Open XML workbook besides its cells: comments, text boxes and charts."""

from __future__ import annotations

import re
import zipfile
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants
from findling.sources.documents.containers.zip_packages import read_side_xml
from findling.sources.documents.extracted import TextBuilder
from findling.sources.documents.office.drawingml import chart_lines, frame_lines
from findling.sources.documents.office.ooxml import relationships_of
from findling.sources.documents.office.sheet_rows import cell_label, column_index

__all__ = ["write_notes"]


def write_notes(builder: TextBuilder, archive: zipfile.ZipFile, sheet: str, part: str) -> None:
    """Write the comments of a sheet at their cells, then the text of its drawings and charts."""
    for kind, target in relationships_of(archive, part).values():
        if kind == "comments" and (comments := read_side_xml(archive, target)) is not None:
            _write_comments(builder, sheet, comments)
        elif kind == "drawing" and (drawing := read_side_xml(archive, target)) is not None:
            lines = [line for body in descendants(drawing, "txBody") for line in frame_lines(body)]
            _write_lines(builder, sheet, lines)
            _write_charts(builder, archive, sheet, target)


_CELL = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")


def _write_comments(builder: TextBuilder, sheet: str, comments: Element) -> None:
    for comment in descendants(comments, "comment"):
        text = "".join(run.text or "" for run in descendants(comment, "t")).strip()
        cell = _CELL.fullmatch(attribute_of(comment, "ref"))
        if text and not builder.full:
            builder.section(sheet)
            builder.place(cell_label(sheet, int(cell[2]) - 1, column_index(cell[1])) if cell else sheet)
            builder.line(text)


def _write_charts(builder: TextBuilder, archive: zipfile.ZipFile, sheet: str, drawing: str) -> None:
    for kind, target in relationships_of(archive, drawing).values():
        if kind == "chart" and (chart := read_side_xml(archive, target)) is not None:
            _write_lines(builder, sheet, chart_lines(chart))


def _write_lines(builder: TextBuilder, sheet: str, lines: list[str]) -> None:
    if lines and not builder.full:
        builder.section(sheet)
        builder.place(sheet)
        for line in lines:
            builder.line(line)
