"""Tables in text files (CSV, TSV): one line for every row, each value with the name of its column."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from findling.sources.documents.office.sheet_rows import are_column_names
from findling.sources.extracted import Extracted, Source, TextBuilder
from findling.sources.files.file_text import decode_data

_DELIMITERS = "\t|;,"  # where two fit equally well the first wins: `1,5;2,5` are two numbers
_DELIMITER_OF_NAME = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
_SAMPLE_LINES = 200
_TOP_ROWS = 10
_QUOTED = re.compile(r'"[^"]*+"')
_DECLARATION = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*$', re.IGNORECASE)
_Row = tuple[int, list[str]]
_Quoting = Literal[0, 3]


def extract(source: Source) -> Extracted:
    """Every row of a table, as `column: value | column: value`. Raises `UnreadableError`."""
    lines = list(io.StringIO(decode_data(source.data)[0], newline=""))
    declared = _DECLARATION.match(lines[0]) if lines else None  # Excel's `sep=;` in the first line
    delimiter = declared[1] if declared else _sniffed_delimiter(lines, source.name)
    builder = TextBuilder(source.limit)
    rows = _rows(lines, int(declared is not None), delimiter)
    labels = _write_top(builder, rows)
    for line, row in rows:
        builder.place("", line)
        builder.line(_labelled(labels, row))
        if builder.full:
            break
    return builder.extracted()


csv.field_size_limit(1 << 30)  # the default of 131,072 characters is less than a document in a cell


def _sniffed_delimiter(lines: list[str], name: str) -> str:
    """The delimiter that most lines hold the same number of times; the one of the file's name when none does."""
    sample = _QUOTED.sub("", "".join(lines[:_SAMPLE_LINES])[: 1 << 20])
    sampled = [line for line in sample.splitlines() if line.strip()]
    by_name = next((mark for ending, mark in _DELIMITER_OF_NAME.items() if name.lower().endswith(ending)), "")
    best, best_score = by_name or ",", 0.0
    for delimiter in by_name + _DELIMITERS:
        counts = Counter(line.count(delimiter) for line in sampled)
        count, lines_with_it = max(counts.items(), key=lambda item: (item[1] * (item[0] > 0), item[0]), default=(0, 0))
        score = lines_with_it / len(sampled) if count else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _rows(lines: list[str], start: int, delimiter: str) -> Iterator[_Row]:
    """The line each row begins on, counted from 1, and its cells. A row with broken quotes ends with its first line."""
    patience = 10 * len(lines)  # lines that may be read in vain: a quote that is never closed takes all of the rest
    while start < len(lines):
        rest = map(lines.__getitem__, range(start, len(lines)))
        quoting: _Quoting = csv.QUOTE_MINIMAL if patience > 0 else csv.QUOTE_NONE
        reader = csv.reader(rest, delimiter=delimiter, strict=True, quoting=quoting)
        row_start = start
        try:
            for row in reader:
                yield row_start + 1, row
                row_start = start + reader.line_num
            return
        except csv.Error:
            yield row_start + 1, _broken_row(lines[row_start], delimiter)
            patience -= start + reader.line_num - row_start
            start = row_start + 1


def _broken_row(line: str, delimiter: str) -> list[str]:
    """The cells of a line whose quotes do not pair up, or that has letters after a closing quote."""
    quoting: _Quoting = csv.QUOTE_NONE if line.count('"') % 2 else csv.QUOTE_MINIMAL
    try:
        row = next(csv.reader([line], delimiter=delimiter, quoting=quoting), [])
    except csv.Error:
        row = line.split(delimiter)
    return [cell.strip('" ') for cell in row]


def _write_top(builder: TextBuilder, rows: Iterator[_Row]) -> list[str]:
    """Write the rows down to the one that names the columns; return the names as they stand before the values."""
    for _, (line, row) in zip(range(_TOP_ROWS), rows, strict=False):
        cells = [cell for cell in row if cell.strip()]
        builder.place("", line)
        builder.line(" | ".join(cells))
        if len(cells) > 1:
            return [f"{cell.strip()}: " if cell.strip() else "" for cell in row] if are_column_names(cells) else []
    return []


def _labelled(labels: list[str], row: list[str]) -> str:
    cells = [label + cell for label, cell in zip(labels, row, strict=False) if cell and not cell.isspace()]
    if len(row) > len(labels):
        cells += [cell for cell in row[len(labels) :] if cell and not cell.isspace()]
    return " | ".join(cells)
