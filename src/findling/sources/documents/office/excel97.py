"""Workbooks of Excel 2 to 2003 (BIFF): the cells of every sheet, read by xlrd.

calamine reads these files faster, but ends a sheet at its first embedded chart and takes the chart's values for cells.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

import xlrd  # type: ignore[import-untyped]

from findling.sources.documents.extracted import TextBuilder
from findling.sources.documents.office.sheet_rows import Row, Value, write_sheet
from findling.sources.files.file_text import UnreadableError

__all__ = ["is_biff", "write_biff"]

_FILE_PASS, _END_OF_GLOBALS = 0x2F, 0x0A
_STARTS = (b"\x09\x00\x04\x00", b"\x09\x02\x06\x00", b"\x09\x04\x06\x00", b"\x09\x08")
"""The first record of a stream: Excel 2, 3, 4, and 5 to 2003."""


def is_biff(data: bytes) -> bool:
    """Whether the bytes begin as a stream of cells does; before Excel 5 a file was nothing else."""
    return data.startswith(_STARTS)


def write_biff(builder: TextBuilder, stream: bytes) -> None:
    """Write all sheets that can be read. Raises `UnreadableError` when none can."""
    if _is_encrypted(stream):
        raise UnreadableError("encrypted", "needs a password")
    book = _open(stream)
    failures = 0
    for index in range(book.nsheets):
        try:
            sheet = book.sheet_by_index(index)
        except _BIFF_ERRORS:
            failures += 1
        else:
            write_sheet(builder, sheet.name, _rows(book, sheet))
            book.unload_sheet(index)
    if failures and failures == book.nsheets:
        raise UnreadableError("damaged", "the cells cannot be read")


# xlrd trusts most of the numbers it reads, so a broken file may raise any of these.
_BIFF_ERRORS = (
    xlrd.XLRDError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


def _open(stream: bytes) -> Any:
    """Open a workbook; one with broken formats is opened without them, its durations are then dates."""
    failure: Exception | None = None
    for encoding, with_formats in ((None, True), (None, False), ("cp1252", False)):
        try:
            return xlrd.open_workbook(
                file_contents=stream,
                logfile=io.StringIO(),
                encoding_override=encoding,
                formatting_info=with_formats,
                on_demand=True,
                ragged_rows=True,
            )
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


def _rows(book: Any, sheet: Any) -> Iterator[Row]:
    for number in range(sheet.nrows):
        types, values = sheet.row_types(number), sheet.row_values(number)
        cells = [
            (column, _value(book, sheet, number, column, kind, value))
            for column, (kind, value) in enumerate(zip(types, values, strict=True))
            if kind not in _EMPTY
        ]
        if cells:
            yield number, cells


_EMPTY = (xlrd.XL_CELL_EMPTY, xlrd.XL_CELL_BLANK)


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
