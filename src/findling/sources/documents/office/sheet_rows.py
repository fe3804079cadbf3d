"""Rows of a sheet: values as a person reads them, the header in every row, the place in A1 notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from findling.sources.extracted import TextBuilder

_MAX_NAME = 200
_VALUE = re.compile(r"[-+(]?[\d.,]+(?:e[-+]?\d+)?[%)]?|\d+[-/.:]\d+.*|true|false|null|n/?a|none", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
Value = str | bool | int | float | date | time | timedelta
Row = tuple[int, Iterable[tuple[int, Value]]]
"""A row's number and its cells, each a column and a value; rows and columns count from 0."""

# A name that begins with a digit or looks like a cell itself is quoted too.
_PLAIN_NAME = re.compile(r"(?![A-Za-z]{1,3}\d+$)[^\W\d][\w.]*")


def are_column_names(cells: Sequence[str]) -> bool:
    """Whether the cells are different short texts, no numbers or dates, except for years in order."""
    names = [cell.strip() for cell in cells]
    if len(set(names)) < len(names) or any(len(name) > _MAX_NAME for name in names):
        return False
    values = [name for name in names if _VALUE.fullmatch(name)]
    if not values:
        return True
    # A person with the year of birth is a row of values, a column for every year is not.
    in_order = values in (sorted(values), sorted(values, reverse=True))
    return 1 < len(values) < len(names) and in_order and all(map(_YEAR.fullmatch, values))


def write_sheet(builder: TextBuilder, name: str, rows: Iterable[Row]) -> None:
    """Write the rows that hold something as lines, each with the place of its first cell, under the sheet's name.

    A row that names the columns is a header if nothing but titles stands above it.
    """
    labels: Mapping[int, str] | None = None
    is_empty = True
    for number, cells in rows:
        if builder.full:
            break
        texts = [(column, text) for column, value in cells if (text := _TEXT_OF[type(value)](value))]
        if not texts:
            continue
        if is_empty:
            builder.section(name)
            is_empty = False
        builder.place(cell_label(name, number, texts[0][0]))
        if labels:
            builder.line(" | ".join([labels.get(column, "") + text for column, text in texts]))
        else:
            builder.line(" | ".join([text for _, text in texts]))
        if labels is None and len(texts) > 1:
            is_header = are_column_names([text for _, text in texts])
            labels = {column: text.rstrip(": ") + ": " for column, text in texts} if is_header else {}


def cell_label(sheet: str, row: int, column: int) -> str:
    """`Sheet1!A7`, or `'My Sheet'!A7` as spreadsheet programs quote it."""
    return f"{_quoted(sheet)}!{column_letters(column)}{row + 1}"


def column_index(letters: str) -> int:
    """The column that letters name, counted from 0: `A` is 0, `XFD` 16383."""
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - 64
    return index - 1


@lru_cache(maxsize=256)
def column_letters(column: int) -> str:
    """Letters of a column, counted from 0."""
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return letters


@lru_cache(maxsize=16)
def _quoted(sheet: str) -> str:
    return sheet if _PLAIN_NAME.fullmatch(sheet) else "'" + sheet.replace("'", "''") + "'"


def _number_text(number: float) -> str:
    if number.is_integer() and abs(number) < 1e21:
        return str(int(number))
    return f"{number:.15g}"  # what is beyond 15 digits is noise of the arithmetic


def _datetime_text(moment: datetime) -> str:
    moment += timedelta(milliseconds=1)  # times are fractions of days: a full second may come out just before it
    if not (moment.hour or moment.minute or moment.second):
        return moment.date().isoformat()
    return moment.isoformat(" ", "seconds" if moment.second else "minutes")


def _duration_text(duration: timedelta) -> str:
    sign = "-" if duration < timedelta() else ""
    minutes, seconds = divmod(round(abs(duration).total_seconds()), 60)
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"


_TEXT_OF: dict[type, Callable[[Any], str]] = {
    str: str.strip,
    bool: lambda value: "TRUE" if value else "FALSE",
    int: str,
    float: _number_text,
    date: date.isoformat,
    datetime: _datetime_text,
    time: lambda value: value.isoformat("seconds" if value.second else "minutes"),
    timedelta: _duration_text,
}
