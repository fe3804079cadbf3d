"""The parts of an Office Open XML workbook, and a copy of it in which no sheet is mostly empty space.

The library that reads the cells keeps a sheet as one dense grid: two cells in opposite corners take 550 GB and end the
process (https://github.com/tafia/calamine/issues/693). Such sheets are packed together before they are handed to it.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants, local_name
from findling.sources.documents.containers.zip_packages import MAX_MEMBER_BYTES, read_member, read_side_xml, read_xml
from findling.sources.documents.extracted import TextBuilder
from findling.sources.documents.office.ooxml import (
    chart_lines,
    frame_lines,
    main_part,
    relationship_id,
    relationships_of,
)
from findling.sources.documents.office.sheet_rows import cell_label, column_index, column_letters
from findling.sources.files.file_text import UnreadableError

__all__ = ["PackedRow", "dense_workbook", "sheet_parts", "write_notes"]


def write_notes(builder: TextBuilder, archive: zipfile.ZipFile, sheet: str, part: str) -> None:
    """Write the comments of a sheet at their cells, then the text of its drawings and charts."""
    for kind, target in relationships_of(archive, part).values():
        if kind == "comments" and (comments := read_side_xml(archive, target)) is not None:
            _write_comments(builder, sheet, comments)
        elif kind == "drawing" and (drawing := read_side_xml(archive, target)) is not None:
            lines = [line for body in descendants(drawing, "txBody") for line in frame_lines(body)]
            _write_lines(builder, sheet, lines)
            _write_charts(builder, archive, sheet, target)


_CELL_NAME = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")


def _write_comments(builder: TextBuilder, sheet: str, comments: Element) -> None:
    for comment in descendants(comments, "comment"):
        text = "".join(run.text or "" for run in descendants(comment, "t")).strip()
        cell = _CELL_NAME.fullmatch(attribute_of(comment, "ref"))
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


class PackedRow(NamedTuple):
    """Original row and columns of a row in a packed sheet, counted from 0."""

    row: int
    columns: list[int]


def sheet_parts(archive: zipfile.ZipFile) -> dict[str, str]:
    """The members that hold the sheets, by the names of the sheets. Raises `UnreadableError`."""
    workbook = main_part(archive, "xl/workbook.xml")
    if workbook.endswith(".bin"):
        return {}
    root = read_xml(archive, workbook)
    relationships = relationships_of(archive, workbook)
    return {
        attribute_of(element, "name"): relationships[identifier].target
        for element in (() if root is None else root.iter())
        if local_name(element.tag) == "sheet" and (identifier := relationship_id(element)) in relationships
    }


def dense_workbook(
    data: bytes, archive: zipfile.ZipFile, parts: Mapping[str, str]
) -> tuple[bytes, dict[str, list[PackedRow]]]:
    """The workbook, sparse sheets packed and long ones cut, and the packed rows by sheet. Raises `UnreadableError`."""
    _refuse_bombs(archive, frozenset(parts.values()))
    read = {part: _read_sheet(archive, part) for part in parts.values()}
    sheets = {part: xml for part, (xml, _) in read.items()}
    packed: dict[str, list[PackedRow]] = {}
    for name, part in parts.items():
        if _is_sparse(sheets[part]):
            sheets[part], packed[name] = _pack(sheets[part])
    if packed or any(is_cut for _, is_cut in read.values()):
        return _rebuilt(archive, sheets), packed
    return data, {}


def _refuse_bombs(archive: zipfile.ZipFile, sheets: Collection[str]) -> None:
    """Look at the sizes of what calamine may unpack whole; sheets come one by one."""
    for info in archive.infolist():
        is_read = info.filename.endswith((".xml", ".bin", ".rels")) and info.filename not in sheets
        if is_read and info.file_size > MAX_MEMBER_BYTES:
            raise UnreadableError("too-large", f"unpacks to more than {MAX_MEMBER_BYTES >> 20} MB")


_MAX_GRID = 8 << 20
"""Cells in the rectangle around all cells of a sheet; each takes 32 bytes, used or not."""

_MAX_SHEET_BYTES = 32 << 20
"""XML read of one sheet: several times what gives as much text as a document may have."""

_ROW_END = re.compile(rb"</((?:\w+:)?)row\s*>")
_BOUNDED_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


def _read_sheet(archive: zipfile.ZipFile, part: str) -> tuple[bytes, bool]:
    """The XML of a sheet, and whether it was cut: after the last row that fits, or altogether when it is broken."""
    info = archive.NameToInfo.get(part)
    try:
        if info is None or info.file_size <= _MAX_SHEET_BYTES or info.compress_type not in _BOUNDED_METHODS:
            return read_member(archive, part) or b"", False
        with archive.open(info) as member:
            xml = member.read(_MAX_SHEET_BYTES)
    except (UnreadableError, zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError):
        return b"", True
    last = deque(_ROW_END.finditer(xml), maxlen=1)
    if not last:
        return b"", True
    prefix = last[0][1]
    return xml[: last[0].end()] + b"</%ssheetData></%sworksheet>" % (prefix, prefix), True


# Most sheets lie in one of these areas, which one look at each reference can tell; both are smaller than `_MAX_GRID`.
_BEYOND_26_COLUMNS_99999_ROWS = re.compile(rb' r="(?:[A-Z]{2}|[A-Z]\d{6})')
_BEYOND_702_COLUMNS_9999_ROWS = re.compile(rb' r="(?:[A-Z]{3}|[A-Z]{1,2}\d{5})')

# An element without content is a cell that only has a style.
_CELL = re.compile(rb"""<(?:\w+:)?c\s(?:[^>]*?\s)?r=["']([A-Z]{1,3})(\d{1,7})["'][^>]*(?<!/)>""")


def _is_sparse(xml: bytes) -> bool:
    """Whether the rectangle around all cells is too large to be kept in memory."""
    if b"r='" not in xml and not (
        _BEYOND_26_COLUMNS_99999_ROWS.search(xml) and _BEYOND_702_COLUMNS_9999_ROWS.search(xml)
    ):
        return False
    cells = _CELL.findall(xml)
    if not cells:
        return False
    columns = [column_index(letters.decode()) for letters in {letters for letters, _ in cells}]
    rows = [int(number) for number in {number for _, number in cells}]
    return (max(columns) - min(columns) + 1) * (max(rows) - min(rows) + 1) > _MAX_GRID


_ROW_OR_CELL = re.compile(
    rb"""<((?:\w+:)?)(?:row\s(?:[^>]*?\s)?r=["'](?P<row>\d{1,7})["'][^>]*"""
    rb"""|c\s(?P<before>(?:[^>]*?\s)?)r=["'](?P<column>[A-Z]{1,3})\d{1,7}["'](?P<after>[^>]*))>"""
)


def _pack(xml: bytes) -> tuple[bytes, list[PackedRow]]:
    """The sheet with its rows and cells moved together to the upper left, rows of more cells than usual broken."""
    cell_count = len(_CELL.findall(xml))
    width = max(1, cell_count // max(1, xml.count(b"row>") + xml.count(b"row >")))
    rows: list[PackedRow] = []

    def moved(match: re.Match[bytes]) -> bytes:
        prefix, row = match[1], match["row"]
        if row:
            rows.append(PackedRow(int(row) - 1, []))
            return b'<%srow r="%d"%s>' % (prefix, len(rows), b"/" if match[0].endswith(b"/>") else b"")
        if match["after"].endswith(b"/") or not rows:
            return match[0] if not rows else b""
        break_ = b""
        if len(rows[-1].columns) == width:
            rows.append(PackedRow(rows[-1].row, []))
            break_ = b'</%srow><%srow r="%d">' % (prefix, prefix, len(rows))
        rows[-1].columns.append(column_index(match["column"].decode()))
        reference = f"{column_letters(len(rows[-1].columns) - 1)}{len(rows)}".encode()
        return b'%s<%sc %sr="%s"%s>' % (break_, prefix, match["before"], reference, match["after"])

    return _ROW_OR_CELL.sub(moved, xml), rows


_NEEDED = frozenset({"sharedStrings", "styles"})


def _rebuilt(archive: zipfile.ZipFile, sheets: Mapping[str, bytes]) -> bytes:
    """A workbook of the given sheets and what their cells refer to."""
    workbook = main_part(archive, "xl/workbook.xml")
    folder, _, name = workbook.rpartition("/")
    needed: Iterable[str] = (
        "[Content_Types].xml",
        "_rels/.rels",
        workbook,
        f"{folder}/_rels/{name}.rels",
        *(each.target for each in relationships_of(archive, workbook).values() if each.kind in _NEEDED),
    )
    members = {part: content for part in needed if (content := read_member(archive, part)) is not None}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as copy:
        for part, content in {**members, **sheets}.items():
            copy.writestr(part, content)
    return file.getvalue()
