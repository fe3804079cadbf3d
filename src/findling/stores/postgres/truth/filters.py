"""Find the resources that pass the filters, in one statement; tests that SQL does not know look at its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from findling.domain.queries import All, Field, Filters, Node, Not, Range
from findling.domain.queries import Any as AnyOf
from findling.stores.filter_columns import FilterColumns, parts_of, split_ids
from findling.stores.filtering import condition, dotted, prefixes, property_test, property_tests, time_span
from findling.stores.postgres.server.arrays import byteas, texts
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.truth.values import escape, hash_of, unescape
from findling.stores.rows import Row

__all__ = ["find_matching"]

_UNDECIDED = "CASE WHEN ending IS NULL THEN path ELSE '' END"
"""The path where the server does not know the ending of the name; no path at all where it does.

It decides 50,000 names in 31 ms, where fetching and testing them takes 88. An index is no quicker.
"""

_FEW_VALUES = frozenset({"author", "fields", "lang", "tags", "type", "visibility", _UNDECIDED})
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
    others, endings = list[Node](), list[Node]()
    for part in (*parts, *_asked_endings(filters)):
        if isinstance(part, Field) and part.name == "rid":
            _add(conditions, values, "rid_hash = ANY(%s)", byteas(map(hash_of, part.values)))
        elif isinstance(part, Range):
            _add(conditions, values, *_times(time_span(part)))
        elif (known := _endings(part)) is not None:
            _add(conditions, values, f"(ending IS NULL OR {known[0]})", *known[1:])
            endings.append(part)
        else:
            others.append(part)
    tests = [columns.bind(*test) for test in property_tests(replace(filters, ext=(), not_ext=()))]
    tests += [_undecided(columns, part) for part in endings]
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


def _asked_endings(filters: Filters) -> Iterator[Node]:
    if filters.ext:
        yield Field("ext", filters.ext)
    if filters.not_ext:
        yield Not(Field("ext", filters.not_ext))


def _endings(node: Node) -> tuple[Any, ...] | None:
    """A tree of conditions on endings alone as a condition on known ones, and its values; None for any other."""
    if isinstance(node, Field) and node.name == "ext":
        return "ending LIKE ANY(%s)", texts("%" + _quoted(escape(ext)) for ext in dotted(node.values))
    if isinstance(node, Not):
        inner = _endings(node.node)
        return None if inner is None else (f"NOT {inner[0]}", *inner[1:])
    if isinstance(node, All | AnyOf):
        parts = [_endings(part) for part in node.nodes]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        joined = (" AND " if isinstance(node, All) else " OR ").join(part[0] for part in known)
        return f"({joined})", *(value for part in known for value in part[1:])
    return None


def _quoted(text: str) -> str:
    """A text that a pattern of LIKE takes letter by letter."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _undecided(columns: FilterColumns, node: Node) -> _RowTest:
    """The test of conditions on endings for names whose ending the server does not know."""
    is_known = columns.bind(_UNDECIDED, lambda path: not path)
    holds = condition(node, lambda _, accepts: columns.bind(_UNDECIDED, accepts))
    return lambda row: is_known(row) or holds(row)


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
