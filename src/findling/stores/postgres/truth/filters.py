"""Find the resources that pass the filters, in one statement; tests that SQL does not know look at its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from findling.domain.queries import Field, Filters, Range
from findling.stores.filter_columns import FilterColumns, parts_of, split_ids
from findling.stores.filtering import condition, prefixes, property_test, property_tests, time_span
from findling.stores.postgres.server.arrays import byteas
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.truth.values import escape, hash_of, unescape
from findling.stores.rows import Row

__all__ = ["find_matching"]

_FEW_VALUES = frozenset({"author", "fields", "lang", "tags", "type", "visibility"})
"""Columns in which many rows have the same value: the server groups them, and each value is tested once."""

_MOST_FOLDERS = 20
"""Folders that a statement lists; with more of them, each path is looked up."""

_INDEXED = 500
"""Letters of a path that the index holds."""

_RowTest = Callable[[Row], bool]


def find_matching(connections: PostgresConnections, filters: Filters) -> list[int]:
    """The numbers of the resources that pass, in no order. Raises InvalidValueError for a tree that asks for text."""
    columns = FilterColumns("number", unescape)
    conditions, values = ["ws = %s"], [connections.ws]
    unwanted, parts = split_ids(parts_of(filters.where))
    _add(conditions, values, *_ids("<> ALL", unwanted))
    _add(conditions, values, *_times(time_span(filters)))
    others = []
    for part in parts:
        if isinstance(part, Field) and part.name == "rid":
            _add(conditions, values, "rid_hash = ANY(%s)", byteas(map(hash_of, part.values)))
        elif isinstance(part, Range):
            _add(conditions, values, *_times(time_span(part)))
        else:
            others.append(part)
    tests = [columns.bind(*test) for test in property_tests(filters)]
    tests += [columns.bind(*property_test(part)) for part in others if isinstance(part, Field)]
    tests += [condition(part, columns.bind) for part in others if not isinstance(part, Field)]
    folders, within = prefixes(filters), filters.within.strip("/")
    for places in ([*folders], ["", within] if within else []):
        if len(places) > _MOST_FOLDERS or any(len(place) >= _INDEXED - 1 for place in places):
            tests.append(columns.bind("path", _lies_below(places)))
        elif places:
            _add(conditions, values, *_places(places))
    return _ask(connections, columns.names, " AND ".join(conditions), values, tests)


def _ask(
    connections: PostgresConnections, names: list[str], where: str, values: list[Any], tests: Iterable[_RowTest]
) -> list[int]:
    looked_at = names[1:]
    if looked_at and _FEW_VALUES.issuperset(looked_at):
        grouped = ", ".join(looked_at)
        statement = f"SELECT array_agg(number), {grouped} FROM findling.resources WHERE {where} GROUP BY {grouped}"
        return [number for row in _passing(connections.rows(statement, values), tests) for number in row[0]]
    statement = f"SELECT {', '.join(names)} FROM findling.resources WHERE {where}"
    return [row[0] for row in _passing(connections.rows(statement, values), tests)]


def _passing(rows: Iterable[Row], tests: Iterable[_RowTest]) -> Iterable[Row]:
    for test in tests:
        rows = filter(test, rows)
    return rows


def _add(conditions: list[str], values: list[Any], statement: str, *more: object) -> None:
    if statement:
        conditions.append(statement)
        values += more


def _ids(operator: str, rids: list[str]) -> tuple[Any, ...]:
    return (f"rid_hash {operator}(%s)", byteas(map(hash_of, rids))) if rids else ("",)


def _times(span: tuple[int, int] | None) -> tuple[Any, ...]:
    if span is None:
        return ("",)
    return "trunc(updated_at) >= %s AND trunc(updated_at) < %s", float(span[0]), float(span[1])


def _places(folders: Iterable[str]) -> tuple[Any, ...]:
    """A condition on paths at and below folders; the empty one stands for what has no path."""
    conditions, values = [], []
    for folder in map(escape, folders):
        conditions.append('"left"(path, 500) = %s')
        values.append(folder)
        if folder:
            # "0" follows "/": the range holds what lies below the folder.
            conditions.append('("left"(path, 500) >= %s AND "left"(path, 500) < %s)')
            values += [f"{folder}/", f"{folder}0"]
    return f"({' OR '.join(conditions)})", *values


def _lies_below(folders: Iterable[str]) -> Callable[[str], bool]:
    """A test of paths against any number of folders: each path has few folders above it."""
    known = frozenset(folders)

    def lies(path: str) -> bool:
        if path in known:
            return True
        at = path.rfind("/")
        while at > 0:
            if path[:at] in known:
                return True
            at = path.rfind("/", 0, at)
        return False

    return lies
