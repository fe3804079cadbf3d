"""Find the resources that pass the filters in the tables, in the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from findling.domain.queries import Field, Filters, Range
from findling.stores.filter_columns import FilterColumns, split_ids
from findling.stores.filtering import condition, languages_in, property_test, time_span
from findling.stores.rows import Row
from findling.stores.sqlite.connections import rows_in

_Test = Callable[[Any], bool]

_FEW_VALUES = frozenset({"lang", "type"})
"""FilterColumns with few values: SQLite lists them in 6 ms for 50,000 rows, then picks rows in 10; all rows take 35."""

_MOST_SPELLINGS = 500


def find_matching(connection: sqlite3.Connection, filters: Filters) -> list[int]:
    """The numbers of the resources that pass, in no order. Raises InvalidValueError for a tree that asks for text."""
    unwanted, parts = split_ids(filters)
    columns = FilterColumns()
    tests: list[Callable[[Row], bool]] = []
    conditions, values, folders = list[str](), list[Any](), tuple[str, ...]()
    for part in parts:
        if isinstance(part, Range):
            if (span := time_span(part)) is not None:
                conditions.append("CAST(updated_at AS INTEGER) >= ? AND CAST(updated_at AS INTEGER) < ?")
                values += span
        elif not isinstance(part, Field) or languages_in(part):
            tests.append(condition(part, columns.bind))
        elif part.name == "folder" and not folders:
            folders = part.values
        else:
            attribute, accepts = property_test(part)
            spellings = _spellings(connection, attribute, accepts) if attribute in _FEW_VALUES else None
            if spellings is None:
                tests.append(columns.bind(attribute, accepts))
            else:
                conditions.append(f"{attribute} IN ({','.join('?' * len(spellings))})")
                values += spellings
    # Only the columns that are looked at: path and number alone come from an index that is a tenth of the table.
    select = f"SELECT {', '.join(columns.names)} FROM resources WHERE "
    found: list[int] = []
    for place, bounds in _places(folders) if folders else [("true", ())]:
        rows: Iterable[Row] = connection.execute(select + " AND ".join([place, *conditions]), (*bounds, *values))
        for test in tests:
            rows = filter(test, rows)
        found += [row[0] for row in rows]
    if not unwanted and len(folders) < 2:
        return found
    gone = {number for (number,) in rows_in(connection, "SELECT id FROM resources WHERE rid IN ({})", unwanted)}
    return list(set(found) - gone)


def _places(folders: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Conditions on paths at and below folders; the empty one stands for what has no path.

    One statement each, since SQLite neither takes hundreds of alternatives nor finds its way through them by the index.
    """
    for folder in folders:
        yield "path = ?", (folder,)
        if folder:
            # "0" follows "/": the range holds what lies below the folder.
            yield "path >= ? AND path < ?", (f"{folder}/", f"{folder}0")


def _spellings(connection: sqlite3.Connection, column: str, accepts: _Test) -> list[str] | None:
    """The values that the column has and the test accepts; `None` when there are too many to be listed."""
    values = [value for (value,) in connection.execute(f"SELECT DISTINCT {column} FROM resources") if accepts(value)]
    return values if len(values) <= _MOST_SPELLINGS else None
