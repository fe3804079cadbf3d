"""Filters as Haystack writes them, as conditions of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any as AnyValue

from findling.domain.errors import InvalidValueError
from findling.domain.queries import All, Any, Field, Node, Not, Range

__all__ = ["FIELDS", "read_conditions"]

FIELDS = ("path", "ext", "lang", "type", "tag", "system", "author", "rid")
"""Properties of a resource that a comparison may be about, besides `at`."""


def read_conditions(filters: Mapping[str, AnyValue]) -> Node:
    """What has to hold for a resource. Raises InvalidValueError for what a search cannot be limited by."""
    operator = filters.get("operator")
    if "field" not in filters:
        conditions = filters.get("conditions")
        if operator not in _LOGIC or not isinstance(conditions, list):
            raise InvalidValueError(f"filters: {dict(filters)} is no condition", hint="operator AND, OR or NOT")
        return _LOGIC[operator](tuple([read_conditions(condition) for condition in conditions]))
    name = str(filters["field"]).removeprefix("meta.")
    if name == "at":
        return _by_time(str(operator), filters.get("value"))
    if name not in FIELDS:
        raise InvalidValueError(f"filters: nothing is called {name}", hint=f"there are: {', '.join((*FIELDS, 'at'))}")
    return _by_value(name, str(operator), filters.get("value"))


_LOGIC: dict[object, Callable[[tuple[Node, ...]], Node]] = {
    "AND": All,
    "OR": Any,
    "NOT": lambda nodes: Not(All(nodes)),
}


def _by_value(name: str, operator: str, value: object) -> Node:
    is_list = operator in ("in", "not in")
    values = value if is_list else [value]
    if operator not in ("==", "!=", "in", "not in"):
        raise InvalidValueError(f"filters: {name} cannot be compared by {operator}", hint="==, !=, in or not in")
    if not isinstance(values, list) or not values or not all(isinstance(one, str) for one in values):
        wanted = "a list of texts" if is_list else "a text"
        raise InvalidValueError(f"filters: {name} must be {wanted}, not {value!r}", hint=f"correct {name}")
    node = Any(tuple([_at_or_below(path) for path in values])) if name == "path" else Field(name, tuple(values))
    return Not(node) if operator in ("!=", "not in") else node


def _at_or_below(path: str) -> Node:
    # A condition on `path` alone would hold for every path that contains it.
    path = path.strip("/")
    return Any((Field("rid", (f"file:{path}",)), Field("path", (f"/{path}/",))))


def _by_time(operator: str, value: object) -> Node:
    if operator not in (">", ">=", "<", "<="):
        raise InvalidValueError(f"filters: at cannot be compared by {operator}", hint=">, >=, < or <=")
    moment = _seconds(value)
    if operator in (">", "<="):
        # Times are compared by the second; a range begins with its first one and ends before its last.
        moment = math.floor(moment) + 1
    return Range(after=moment) if operator in (">", ">=") else Range(before=moment)


def _seconds(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        raise InvalidValueError(
            f"filters: at must be seconds or a date, not {value!r}", hint="2026-01-31, or 2026-01-31T12:00:00+00:00"
        ) from None
