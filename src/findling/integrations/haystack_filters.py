"""Filters as Haystack writes them, as conditions of a search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any as AnyValue

from findling.domain.errors import InvalidValueError
from findling.domain.queries import All, Any, Field, Node, Not, Range
from findling.service.settings.written_filters import written_filters

__all__ = ["FIELDS", "read_conditions"]

FIELDS = ("path", "ext", "lang", "type", "tag", "system", "author", "rid")
"""Properties of a resource that a comparison may be about, besides `at`."""

_DEEPEST = 50


def read_conditions(filters: Mapping[str, AnyValue]) -> Node:
    """What has to hold for a resource. Raises InvalidValueError for what a search cannot be limited by."""
    return _condition(filters, _DEEPEST)


def _condition(filters: object, depth: int) -> Node:
    if not isinstance(filters, Mapping):
        raise InvalidValueError(f"filters: {filters!r} is no condition", hint="field, operator and value")
    if not depth:
        raise InvalidValueError(f"filters: groups lie in each other {_DEEPEST} deep", hint="write them flat")
    known = ("field", "operator", "value") if "field" in filters else ("operator", "conditions")
    if unknown := [name for name in filters if name not in known]:
        raise InvalidValueError(f"filters: a condition has no {unknown[0]}", hint=f"it has {', '.join(known)}")
    return _compared(filters) if "field" in filters else _grouped(filters, depth)


def _grouped(filters: Mapping[str, AnyValue], depth: int) -> Node:
    operator, conditions = filters.get("operator"), filters.get("conditions")
    if not isinstance(operator, str) or operator not in _LOGIC or not isinstance(conditions, list):
        hint = "operator AND, OR or NOT, and a list of conditions"
        raise InvalidValueError(f"filters: {dict(filters)} is no condition", hint=hint)
    return _LOGIC[operator](tuple([_condition(condition, depth - 1) for condition in conditions]))


def _compared(filters: Mapping[str, AnyValue]) -> Node:
    name = str(filters["field"]).removeprefix("meta.")
    if name == "at":
        return _by_time(str(filters.get("operator")), filters.get("value"))
    if name not in FIELDS:
        raise InvalidValueError(f"filters: nothing is called {name}", hint=f"there are: {', '.join((*FIELDS, 'at'))}")
    return _by_value(name, str(filters.get("operator")), filters.get("value"))


_LOGIC: dict[str, Callable[[tuple[Node, ...]], Node]] = {
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
    node = _at_or_below(values) if name == "path" else Field(name, tuple(values))
    return Not(node) if operator in ("!=", "not in") else node


def _at_or_below(values: list[str]) -> Node:
    paths = written_filters(path=values, called={"path": "filters: path"}).path
    if not paths:
        return All(())  # one of them is the root itself
    files = Field("rid", tuple(f"file:{path}" for path in paths))
    # With a slash at both ends: a condition on `path` alone would hold for every path that contains it.
    return Any((files, Field("path", tuple(f"/{path}/" for path in paths))))


def _by_time(operator: str, value: object) -> Node:
    if operator not in (">", ">=", "<", "<="):
        raise InvalidValueError(f"filters: at cannot be compared by {operator}", hint=">, >=, < or <=")
    moment = _seconds(value)
    if operator in (">", "<="):
        # Times are compared by the second; a range begins with its first one and ends before its last.
        moment = math.floor(moment) + 1
    return Range(after=moment) if operator in (">", ">=") else Range(before=moment)


def _seconds(value: object) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        seconds = float(value) if is_number else datetime.fromisoformat(str(value)).timestamp()  # type: ignore[arg-type]
        if math.isfinite(seconds):
            return seconds
    except (ValueError, OverflowError):
        pass
    raise InvalidValueError(
        f"filters: at must be seconds or a date, not {value!r}", hint="2026-01-31, or 2026-01-31T12:00:00+00:00"
    )
