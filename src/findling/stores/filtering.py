"""Filters as tests of resources, with the meaning that the keyword leg gives to each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any as Value
from typing import NamedTuple, TypeVar

from findling.domain.errors import InvalidValueError
from findling.domain.queries import CONDITIONS, GROUPS, All, Any, Field, Filters, Node, Not, Range, Same
from findling.domain.resources import Resource
from findling.text.analysis.analysis import terms

__all__ = [
    "PropertyTest",
    "check_filters",
    "condition",
    "dotted",
    "has_extension",
    "holds",
    "passes",
    "prefixes",
    "property_test",
    "property_tests",
    "time_span",
]

T = TypeVar("T")

_END_OF_TIME = 1 << 62


class PropertyTest(NamedTuple):
    """A test of one attribute of a resource."""

    attribute: str
    accepts: Callable[[Value], bool]


def passes(resource: Resource, filters: Filters) -> bool:
    """Whether the resource is among those the filters leave. Raises InvalidValueError as `holds` does."""
    tests = [*property_tests(filters), PropertyTest("updated_at", _changed_within(time_span(filters)))]
    if not all(accepts(getattr(resource, attribute)) for attribute, accepts in tests):
        return False
    if (folders := prefixes(filters)) and not _lies_below(resource.path, folders):
        return False
    if resource.path and (folder := filters.within.strip("/")) and not _lies_below(resource.path, [folder]):
        return False
    return filters.where is None or holds(filters.where, resource)


def holds(node: Node, resource: Resource) -> bool:
    """Whether a tree of conditions on resources holds for one. Raises InvalidValueError when it asks for text."""
    return _on_resources(node)(resource)


def condition(node: Node, bind: Callable[[str, Callable[[Value], bool]], Callable[[T], bool]]) -> Callable[[T], bool]:
    """A tree of conditions as a test of records of any kind; `bind` makes one of a test of an attribute.

    Raises InvalidValueError for a node that asks for text, and for a property that resources do not have.
    """
    if isinstance(node, Field | Range):
        return bind(*property_test(node))
    if isinstance(node, Not):
        inner = condition(node.node, bind)
        return lambda record: not inner(record)
    if isinstance(node, Any | Same | All):
        parts = [condition(part, bind) for part in node.nodes]
        if isinstance(node, All):
            return lambda record: all(part(record) for part in parts)
        return lambda record: any(part(record) for part in parts)
    raise _asks_for_text(node)


def check_filters(filters: Filters) -> None:
    """Raises InvalidValueError for a time that is no number, and for a tree of more than conditions on resources.

    `is` may be among them, which is resolved before a leg is asked.
    """
    time_span(filters)
    if filters.where is not None:
        _check_condition(filters.where)


def property_test(node: Field | Range) -> PropertyTest:
    """The test for one condition. Raises InvalidValueError for a property that resources do not have."""
    if isinstance(node, Range):
        return PropertyTest("updated_at", _changed_within(time_span(node)))
    if node.name not in _PROPERTIES:
        raise InvalidValueError(f"resources have no property {node.name!r}", hint=f"one of {', '.join(_PROPERTIES)}")
    attribute, make_test = _PROPERTIES[node.name]
    return PropertyTest(attribute, make_test(node.values))


def property_tests(filters: Filters) -> list[PropertyTest]:
    """The tests for all filters but those on folders and times, which an index may answer, and the tree."""
    names = [name for name in ("type", "lang", "author", "tag", "ext") if getattr(filters, name)]
    tests = [property_test(Field(name, getattr(filters, name))) for name in names]
    if filters.not_ext:
        unwanted = dotted(filters.not_ext)
        tests.append(PropertyTest("path", lambda path: not has_extension(path, unwanted)))
    return tests


def has_extension(path: str, extensions: tuple[str, ...]) -> bool:
    """Whether the file's name ends in one of the extensions (as `dotted` makes them) and does not begin with it."""
    return path.rpartition("/")[2].lower()[1:].endswith(extensions)


def dotted(extensions: Iterable[str]) -> tuple[str, ...]:
    """Extensions in lower case and with their dot."""
    return tuple(ext.lower() if ext.startswith(".") else f".{ext.lower()}" for ext in extensions)


def prefixes(filters: Filters) -> list[str]:
    """The files and folders that limit the answer; an empty one, the whole tree, is no limit."""
    return [prefix for path in filters.path if (prefix := path.strip("/"))]


def time_span(limits: Filters | Range) -> tuple[int, int] | None:
    """The first second that passes and the first later one that does not; `None` without a limit.

    Raises InvalidValueError for a time that is no number.
    """
    if limits.after is None and limits.before is None:
        return None
    first = -_END_OF_TIME if limits.after is None else math.ceil(_within_time("after", limits.after))
    end = _END_OF_TIME if limits.before is None else math.floor(_within_time("before", limits.before))
    return first, end


def _lies_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _within_time(name: str, moment: float) -> float:
    if not isinstance(moment, (int, float)) or math.isnan(moment):
        raise InvalidValueError(f"{name} must be a number, not {moment!r}", hint="count the seconds since 1970")
    return min(max(moment, -_END_OF_TIME), _END_OF_TIME)


def _check_condition(node: Node) -> None:
    if isinstance(node, Not):
        _check_condition(node.node)
    elif isinstance(node, GROUPS):
        for part in node.nodes:
            _check_condition(part)
    elif not isinstance(node, CONDITIONS):
        raise _asks_for_text(node)
    elif not (isinstance(node, Field) and node.name == "is"):
        property_test(node)


def _asks_for_text(node: Node) -> InvalidValueError:
    from findling.text.query.tree import canonical

    message = f"`{canonical(node)}` asks for text, which no filter looks at"
    return InvalidValueError(message, hint="put the words into the query")


@lru_cache(maxsize=64)
def _on_resources(node: Node) -> Callable[[Resource], bool]:
    return condition(node, lambda attribute, accepts: lambda resource: accepts(getattr(resource, attribute)))


def _changed_within(span: tuple[int, int] | None) -> Callable[[float | None], bool]:
    return lambda at: span is None or (at is not None and span[0] <= int(at) < span[1])


def _one_of(values: Iterable[str]) -> Callable[[str], bool]:
    wanted = frozenset(value.lower() for value in values)
    return lambda value: value.lower() in wanted


def _one_that_is(values: Iterable[str]) -> Callable[[str], bool]:
    """A resource without a language or an author is not found by an empty value, either."""
    return _one_of(filter(None, values))


def _shares(values: Iterable[str]) -> Callable[[Iterable[str]], bool]:
    is_wanted = _one_of(values)
    return lambda held: any(map(is_wanted, held))


def _belongs_to(values: Iterable[str]) -> Callable[[dict[str, str]], bool]:
    is_wanted = _one_that_is(values)
    return lambda fields: any(is_wanted(system.strip()) for system in fields.get("system", "").split(","))


def _ends_in(values: Iterable[str]) -> Callable[[str], bool]:
    extensions = dotted(values)
    return lambda path: has_extension(path, extensions)


def _written_by(values: Iterable[str]) -> Callable[[str], bool]:
    asked = [names for value in values if (names := frozenset(terms(value)))]
    return lambda author: any(names.issubset(terms(author)) for names in asked)


def _lies_at(values: Iterable[str]) -> Callable[[str], bool]:
    places = [_place(value.lower()) for value in values]

    def lies(path: str) -> bool:
        lowered = path.lower()
        return any(place(lowered) for place in places)

    return lies


def _place(value: str) -> Callable[[str], bool]:
    if "*" in value or "?" in value:
        covers = _glob(value)
        return lambda path: covers.match(f"/{path}/") is not None
    if value.startswith("/"):
        return lambda path: path.startswith(value[1:])
    return lambda path: value in path


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    """The pattern that a path between two slashes has to begin with.

    The end is open, so the first fit of a piece between two stars is as good as any later one. So every piece is an
    atomic group, which is never tried again: 5,000 stars take 2 ms for a path of 200,000 characters.
    """
    anchored = pattern.startswith("/")
    pieces = [re.escape(piece).replace(r"\?", ".") for piece in re.split(r"\*+", f"/{pattern.removeprefix('/')}/")]
    start = pieces.pop(0) if anchored else ""
    return re.compile(start + "".join(f"(?>.*?{piece})" for piece in pieces), re.DOTALL)


_PROPERTIES: dict[str, tuple[str, Callable[[Iterable[str]], Callable[[Value], bool]]]] = {
    "path": ("path", _lies_at),
    "ext": ("path", _ends_in),
    "lang": ("lang", _one_that_is),
    "type": ("type", _one_of),
    "tag": ("tags", _shares),
    "system": ("fields", _belongs_to),
    "author": ("author", _written_by),
    "here": ("fields", lambda values: lambda fields: fields.get("here", "") in values),
    "rid": ("rid", lambda values: frozenset(values).__contains__),
}
"""The name of a `Field` → the attribute of a resource, and the function from values to a test."""
