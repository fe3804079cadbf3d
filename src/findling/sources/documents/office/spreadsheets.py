"""Spreadsheets of Excel and OpenDocument: every row of every sheet, hidden ones too, with its cell."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, TypeVar
from xml.etree.ElementTree import Element

import xlrd  # type: ignore[import-untyped]
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError, SheetTypeEnum

from findling.sources.documents.containers.ole import open_compound, read_stream, read_summary
from findling.sources.documents.containers.xml_tree import parse_xml
from findling.sources.documents.containers.zip_packages import OLE_MAGIC, PARSER_ERRORS, Package
from findling.sources.documents.office import ooxml
from findling.sources.documents.office.opendocument import meta_properties, opendocument_sheets, refuse_encrypted
from findling.sources.documents.office.sheet_rows import Row, Value, write_sheet
from findling.sources.documents.office.workbook_parts import PackedRow, dense_workbook, sheet_parts, write_notes
from findling.sources.extracted import Extracted, Properties, Source, TextBuilder, write_parts
from findling.sources.files.file_text import UnreadableError

_FILE_PASS, _END_OF_GLOBALS = 0x2F, 0x0A
# The first record of a stream: Excel 2, 3, 4, and 5 to 2003.
_STARTS = (b"\x09\x00\x04\x00", b"\x09\x02\x06\x00", b"\x09\x04\x06\x00", b"\x09\x08")
_BIFF_ERRORS = (*PARSER_ERRORS, xlrd.XLRDError, MemoryError)
_EMPTY = (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK)
_BEFORE_XML = b"\xef\xbb\xbf \t\r\n"
# calamine is five times as fast as a tree of elements. It keeps the value of a date, not its format.
_DATE_CELL = b'value-type="date"'
_NO_CELLS = (SheetTypeEnum.ChartSheet, SheetTypeEnum.Vba)
_Result = TypeVar("_Result")


def extract(source: Source) -> Extracted:
    """The rows of a spreadsheet, whichever of the formats its bytes are. Raises `UnreadableError`."""
    builder = TextBuilder(source.limit)
    data = source.data
    properties = Properties()
    if data.startswith(OLE_MAGIC):
        properties = _write_excel97(builder, data)
    elif data.startswith(_STARTS):
        _write_biff(builder, data)
    elif data.startswith(b"PK"):
        with Package(data) as package:
            write = _write_opendocument if package.has("content.xml") else _write_excel
            properties = write(builder, data, package)
    elif data.lstrip(_BEFORE_XML).startswith(b"<"):
        root = parse_xml(data.lstrip(_BEFORE_XML))
        if not root.tag.endswith("}document"):
            raise UnreadableError("unsupported", "XML, but not of an OpenDocument spreadsheet")
        _write_elements(builder, root)
        properties = meta_properties(root)
    else:
        raise UnreadableError("damaged", "does not begin as a spreadsheet does")
    return builder.titled(properties, by_headings=False)


def _write_excel97(builder: TextBuilder, data: bytes) -> Properties:
    with open_compound(data) as compound:
        properties = read_summary(compound)
        stream = read_stream(compound, "Workbook") or read_stream(compound, "Book")
    if not stream:
        raise UnreadableError("damaged", "holds no workbook")
    _write_biff(builder, stream)
    return properties


def _write_biff(builder: TextBuilder, stream: bytes) -> None:
    """Write all sheets that can be read. Raises `UnreadableError` when none can."""
    if _is_encrypted(stream):
        raise UnreadableError("encrypted", "needs a password")
    book = _open(stream)
    write_parts([partial(_write_biff_sheet, builder, book, index) for index in range(book.nsheets)])


def _write_biff_sheet(builder: TextBuilder, book: Any, index: int) -> None:
    try:
        sheet = book.sheet_by_index(index)
    except _BIFF_ERRORS:
        raise UnreadableError("damaged", "the cells cannot be read") from None
    write_sheet(builder, sheet.name, _excel97_rows(book, sheet))
    book.unload_sheet(index)


def _open(stream: bytes) -> Any:
    """Open a workbook; one with broken formats is opened without them, its durations are then dates."""
    failure: Exception | None = None
    for encoding, with_formats in ((None, True), (None, False), ("cp1252", False)):
        try:
            how = {"encoding_override": encoding, "formatting_info": with_formats, "on_demand": True}
            return xlrd.open_workbook(file_contents=stream, logfile=io.StringIO(), ragged_rows=True, **how)
        except _BIFF_ERRORS as error:
            failure = error
    raise UnreadableError("damaged", str(failure).partition("\n")[0] or "not a workbook") from failure


def _is_encrypted(stream: bytes) -> bool:
    """Whether the workbook has a password."""
    offset = 0
    while offset + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, offset)
        if kind in (_FILE_PASS, _END_OF_GLOBALS):
            return bool(kind == _FILE_PASS)
        offset += 4 + length
    return False


def _excel97_rows(book: Any, sheet: Any) -> Iterator[Row]:
    for number in range(sheet.nrows):
        types, values = sheet.row_types(number), sheet.row_values(number)
        cells = [
            (column, _value(book, sheet, number, column, kind, value))
            for column, (kind, value) in enumerate(zip(types, values, strict=True))
            if kind not in _EMPTY
        ]
        if cells:
            yield number, cells


def _value(book: Any, sheet: Any, row: int, column: int, kind: int, value: Any) -> Value:
    if kind == xlrd.XL_CELL_TEXT:
        return str(value)
    if kind == xlrd.XL_CELL_BOOLEAN:
        return bool(value)
    if kind == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(value, ""))
    if kind == xlrd.XL_CELL_DATE:
        return _moment(float(value), book.datemode, _format(book, sheet, row, column))
    return float(value)


def _format(book: Any, sheet: Any, row: int, column: int) -> str:
    if not book.formatting_info:
        return ""
    try:
        key = book.xf_list[sheet.cell_xf_index(row, column)].format_key
        return str(book.format_map[key].format_str)
    except _BIFF_ERRORS:
        return ""


def _moment(number: float, datemode: int, format_: str) -> date | time | timedelta | float:
    """A date, a time of day, or a duration where the format counts hours beyond a day (`[h]:mm`)."""
    try:
        if format_.lower().startswith(("[h", "[m", "[s")):
            return timedelta(days=number)
        moment: datetime = xlrd.xldate.xldate_as_datetime(number, datemode)
    except _BIFF_ERRORS:
        return number
    return moment.time() if 0 <= number < 1 else moment


def _write_excel(builder: TextBuilder, data: bytes, package: Package) -> Properties:
    parts = sheet_parts(package)
    dense, packed = dense_workbook(data, package, parts)
    _write_workbook(builder, _open_workbook(dense), packed)
    for name, part in parts.items():
        write_notes(builder, package, name, part)
    return ooxml.properties_of(package)


def _write_opendocument(builder: TextBuilder, data: bytes, package: Package) -> Properties:
    refuse_encrypted(package)
    properties = meta_properties(package.side_xml("meta.xml"))
    content = package.part("content.xml") or b""
    if _DATE_CELL not in content:
        try:
            _write_workbook(builder, _open_workbook(data), {})
            return properties
        except UnreadableError:  # calamine refuses sheets whose cells lie far apart
            if not content:
                raise
    _write_elements(builder, parse_xml(content))
    return properties


def _write_elements(builder: TextBuilder, root: Element) -> None:
    for name, rows in opendocument_sheets(root):
        write_sheet(builder, name, rows)


def _open_workbook(data: bytes) -> CalamineWorkbook:
    return _call_calamine(partial(CalamineWorkbook.from_filelike, io.BytesIO(data)))


def _write_workbook(
    builder: TextBuilder, workbook: CalamineWorkbook, packed: Mapping[str, Sequence[PackedRow]]
) -> None:
    """Write all sheets that can be read. Raises `UnreadableError` when none can."""

    def write(name: str) -> None:
        sheet = _call_calamine(partial(workbook.get_sheet_by_name, name))
        write_sheet(builder, name, _unpacked(sheet, packed[name]) if name in packed else _rows(sheet))

    names = [sheet.name for sheet in workbook.sheets_metadata if sheet.typ not in _NO_CELLS]
    write_parts([partial(write, name) for name in names])


def _rows(sheet: CalamineSheet) -> Iterator[Row]:
    """The rows of a sheet; calamine begins at its first row, but at the first column that is used."""
    _, first_column = sheet.start or (0, 0)
    for number, values in enumerate(sheet.iter_rows()):
        yield number, enumerate(values, first_column)


def _unpacked(sheet: CalamineSheet, packed: Sequence[PackedRow]) -> Iterator[Row]:
    """The rows of a packed sheet where they really are."""
    pending: list[tuple[int, Value]] = []
    number = -1
    for (_, cells), (row, columns) in zip(_rows(sheet), packed, strict=False):
        if row != number and pending:
            yield number, pending
            pending = []
        number = row
        pending.extend((columns[column], value) for column, value in cells if value != "")
    if pending:
        yield number, pending


def _call_calamine(call: Callable[[], _Result]) -> _Result:
    try:
        return call()
    except PasswordError as error:
        raise UnreadableError("encrypted", "needs a password") from error
    except CalamineError as error:
        raise UnreadableError("damaged", str(error).partition("\n")[0]) from error
    except BaseException as error:
        # A panic in Rust derives from BaseException alone, and its class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableError("damaged", "the cells cannot be read") from error
