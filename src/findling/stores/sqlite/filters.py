"""Find the resources that pass the filters in the tables, in the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from findling.domain.queries import All, Field, Filters, Range
from findling.stores.filter_columns import FilterColumns, parts_of, split_ids
from findling.stores.filtering import condition, prefixes, property_test, property_tests, time_span
from findling.stores.rows import Row
from findling.stores.sqlite.connections import rows_in

__all__ = ["find_matching"]

_Test = Callable[[Any], bool]

_FEW_VALUES = frozenset({"lang", "type"})
"""FilterColumns with few values: SQLite lists them in 6 ms for 50,000 rows, then picks rows in 10; all rows take 35."""

_MOST_SPELLINGS = 500


def find_matching(connection: sqlite3.Connection, filters: Filters) -> list[int]:
    """The numbers of the resources that pass, in no order. Raises InvalidValueError for a tree that asks for text."""
    unwanted, parts = split_ids(parts_of(filters.where))
    if unwanted:
        rest = find_matching(connection, replace(filters, where=All(parts) if parts else None))
        numbers = rows_in(connection, "SELECT id FROM resources WHERE rid IN ({})", unwanted)
        return list(set(rest).difference(number for (number,) in numbers))
    plain = [property_test(part) for part in parts if isinstance(part, Field | Range)]
    columns = FilterColumns()
    tests = []
    conditions, values = _times(filters)
    for attribute, accepts in [*property_tests(filters), *plain]:
        spellings = _spellings(connection, attribute, accepts) if attribute in _FEW_VALUES else None
        if spellings is None:
            tests.append(columns.bind(attribute, accepts))
        else:
            conditions.append(f"{attribute} IN ({','.join('?' * len(spellings))})")
            values += spellings
    tests += [condition(part, columns.bind) for part in parts if not isinstance(part, Field | Range)]
    # Only the columns that are looked at: path and number alone come from an index that is a tenth of the table.
    select = f"SELECT {', '.join(columns.names)} FROM resources WHERE "
    folders, within = prefixes(filters), filters.within.strip("/")
    if within and folders:
        tests.append(columns.bind("path", lambda path: not path or path == within or path.startswith(f"{within}/")))
        select = f"SELECT {', '.join(columns.names)} FROM resources WHERE "
    elif not folders and not within:
        return _passing(connection.execute(select + " AND ".join(conditions or ["true"]), values), tests)
    found: dict[int, None] = {}
    for place, bounds in _places(folders or ["", within]):
        rows = connection.execute(select + " AND ".join([place, *conditions]), (*bounds, *values))
        found |= dict.fromkeys(_passing(rows, tests))
    return list(found)


def _places(folders: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Conditions on paths at and below folders; the empty one stands for what has no path.

    One statement each, since SQLite neither takes hundreds of alternatives nor finds its way through them by the index.
    """
    for folder in folders:
        yield "path = ?", (folder,)
        if folder:
            # "0" follows "/": the range holds what lies below the folder.
            yield "path >= ? AND path < ?", (f"{folder}/", f"{folder}0")


def _passing(rows: Iterable[Row], tests: list[Callable[[Row], bool]]) -> list[int]:
    for test in tests:
        rows = filter(test, rows)
    return [row[0] for row in rows]


def _times(filters: Filters) -> tuple[list[str], list[Any]]:
    span = time_span(filters)
    if span is None:
        return [], []
    return ["CAST(updated_at AS INTEGER) >= ? AND CAST(updated_at AS INTEGER) < ?"], [*span]


def _spellings(connection: sqlite3.Connection, column: str, accepts: _Test) -> list[str] | None:
    """The values that the column has and the test accepts; `None` when there are too many to be listed."""
    values = [value for (value,) in connection.execute(f"SELECT DISTINCT {column} FROM resources") if accepts(value)]
    return values if len(values) <= _MOST_SPELLINGS else None
