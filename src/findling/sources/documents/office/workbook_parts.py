"""Parts of an Office Open XML workbook, and a copy of it in which no sheet is mostly empty space.

calamine keeps a sheet as one dense grid: two cells in opposite corners take 550 GB and end the process. Such sheets are
packed together first (https://github.com/tafia/calamine/issues/693).
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from findling.sources.documents.containers.xml_tree import attribute_of, descendants
from findling.sources.documents.containers.zip_packages import MAX_MEMBER_BYTES, Package
from findling.sources.documents.office import ooxml
from findling.sources.documents.office.sheet_rows import cell_label, column_index, column_letters
from findling.sources.extracted import TextBuilder
from findling.sources.files.file_text import UnreadableError

_CELL_NAME = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_MAX_GRID = 8 << 20  # cells in the rectangle around all cells of a sheet; each takes 32 bytes, used or not
_MAX_SHEET_BYTES = 32 << 20  # XML read of one sheet: several times what gives as much text as a document may have
_ROW_END = re.compile(rb"</((?:\w+:)?)row\s*>")
# Most sheets lie in one of these areas, both smaller than `_MAX_GRID`; one look at each reference tells.
_BEYOND_26_COLUMNS_99999_ROWS = re.compile(rb' r="(?:[A-Z]{2}|[A-Z]\d{6})')
_BEYOND_702_COLUMNS_9999_ROWS = re.compile(rb' r="(?:[A-Z]{3}|[A-Z]{1,2}\d{5})')
# An element without content is a cell that only has a style.
_CELL = re.compile(rb"""<(?:\w+:)?c\s(?:[^>]*?\s)?r=["']([A-Z]{1,3})(\d{1,7})["'][^>]*(?<!/)>""")
_ROW_OR_CELL = re.compile(
    rb"""<((?:\w+:)?)(?:row\s(?:[^>]*?\s)?r=["'](?P<row>\d{1,7})["'][^>]*"""
    rb"""|c\s(?P<before>(?:[^>]*?\s)?)r=["'](?P<column>[A-Z]{1,3})\d{1,7}["'](?P<after>[^>]*))>"""
)


def write_notes(builder: TextBuilder, package: Package, sheet: str, part: str) -> None:
    """Write the comments of a sheet at their cells, then the text of its drawings and charts."""
    for kind, target in ooxml.relationships_of(package, part).values():
        if kind == "comments":
            _write_comments(builder, sheet, package.side_xml(target))
        elif kind == "drawing":
            charts = ooxml.related(package, ooxml.relationships_of(package, target), "chart")
            bodies = descendants(package.side_xml(target), "txBody")
            frames = [line for body in bodies for line in ooxml.frame_lines(body)]
            for lines in (frames, *map(ooxml.chart_lines, charts)):
                if lines and not builder.full:
                    builder.section(sheet)
                    builder.place(sheet)
                    for line in lines:
                        builder.line(line)


def _write_comments(builder: TextBuilder, sheet: str, comments: Element) -> None:
    for comment in descendants(comments, "comment"):
        text = "".join(run.text or "" for run in descendants(comment, "t")).strip()
        cell = _CELL_NAME.fullmatch(attribute_of(comment, "ref"))
        if text and not builder.full:
            builder.section(sheet)
            builder.place(cell_label(sheet, int(cell[2]) - 1, column_index(cell[1])) if cell else sheet)
            builder.line(text)


class PackedRow(NamedTuple):
    """Original row and columns of a row in a packed sheet, counted from 0."""

    row: int
    columns: list[int]


def sheet_parts(package: Package) -> dict[str, str]:
    """The members that hold the sheets, by the names of the sheets. Raises `UnreadableError`."""
    workbook = ooxml.main_part(package, "xl/workbook.xml")
    root = None if workbook.endswith(".bin") else package.xml(workbook)
    relationships = ooxml.relationships_of(package, workbook)
    return {
        attribute_of(element, "name"): relationships[identifier].target
        for element in (() if root is None else descendants(root, "sheet"))
        if (identifier := ooxml.relationship_id(element)) in relationships
    }


def dense_workbook(data: bytes, package: Package, parts: Mapping[str, str]) -> tuple[bytes, dict[str, list[PackedRow]]]:
    """The workbook, sparse sheets packed and long ones cut, and the packed rows by sheet. Raises `UnreadableError`."""
    for info in package.infolist():  # calamine may unpack these whole; sheets come one by one
        is_read = info.filename.endswith((".xml", ".bin", ".rels")) and info.filename not in parts.values()
        if is_read and info.file_size > MAX_MEMBER_BYTES:
            raise UnreadableError("too-large", f"unpacks to more than {MAX_MEMBER_BYTES >> 20} MB")
    read = {part: _read_sheet(package, part) for part in parts.values()}
    sheets = {part: xml for part, (xml, _) in read.items()}
    packed: dict[str, list[PackedRow]] = {}
    for name, part in parts.items():
        if _is_sparse(sheets[part]):
            sheets[part], packed[name] = _pack(sheets[part])
    if packed or any(is_cut for _, is_cut in read.values()):
        return _rebuilt(package, sheets), packed
    return data, {}


def _read_sheet(package: Package, part: str) -> tuple[bytes, bool]:
    """The XML of a sheet, cut after the last row that fits, and whether it was; a broken one is empty."""
    try:
        xml = package.part(part, _MAX_SHEET_BYTES + 1) or b""
    except UnreadableError:
        return b"", True
    if len(xml) <= _MAX_SHEET_BYTES:
        return xml, False
    last = deque(_ROW_END.finditer(xml), maxlen=1)
    if not last:
        return b"", True
    prefix = last[0][1]
    return xml[: last[0].end()] + b"</%ssheetData></%sworksheet>" % (prefix, prefix), True


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


def _rebuilt(package: Package, sheets: Mapping[str, bytes]) -> bytes:
    """A workbook of the given sheets and what their cells refer to."""
    workbook = ooxml.main_part(package, "xl/workbook.xml")
    folder, _, name = workbook.rpartition("/")
    references = ooxml.relationships_of(package, workbook).values()
    needed = ["[Content_Types].xml", "_rels/.rels", workbook, f"{folder}/_rels/{name}.rels"]
    needed += [to for kind, to in references if kind in ("sharedStrings", "styles")]
    members = {part: content for part in needed if (content := package.part(part)) is not None}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as copy:
        for part, content in {**members, **sheets}.items():
            copy.writestr(part, content)
    return file.getvalue()
