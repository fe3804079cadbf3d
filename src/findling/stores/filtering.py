"""Filters as tests of resources, with the meaning that the keyword leg gives to each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from typing import Any as Value
from typing import NamedTuple, TypeVar

from findling.domain.errors import InvalidValueError
from findling.domain.queries import (
    COMPARED,
    CONDITIONS,
    GROUPS,
    PROPERTIES,
    All,
    Any,
    Field,
    Filters,
    Node,
    Not,
    Range,
    Same,
)
from findling.domain.resources import Resource
from findling.text.analysis.analysis import terms

T = TypeVar("T")

_END_OF_TIME = 1 << 62


class PropertyTest(NamedTuple):
    """A test of one attribute of a resource."""

    attribute: str
    accepts: Callable[[Value], bool]


def passes(resource: Resource, filters: Filters) -> bool:
    """Whether the resource is among those the filters leave. Raises InvalidValueError as `holds` does."""
    return holds(All(tuple(conditions(filters))), resource)


def conditions(filters: Filters) -> list[Node]:
    """Everything that has to hold, as trees of conditions on resources."""
    found: list[Node] = [Field(name, values) for name in _PLAIN if (values := getattr(filters, name))]
    if filters.not_ext:
        found.append(Not(Field("ext", filters.not_ext)))
    if filters.after is not None or filters.before is not None:
        found.append(Range(filters.after, filters.before))
    # An empty folder is the whole tree in `path`, and what lies nowhere beside `within`.
    if folders := [folder for path in filters.path if (folder := path.strip("/"))]:
        found.append(Field("folder", tuple(folders)))
    if within := filters.within.strip("/"):
        found.append(Field("folder", ("", within)))
    where = filters.where
    return found if where is None else [*found, *(where.nodes if isinstance(where, All) else (where,))]


def holds(node: Node, resource: Resource) -> bool:
    """Whether a tree of conditions on resources holds for one. Raises InvalidValueError when it asks for text."""
    return _on_resources(node)(resource)


def condition(node: Node, bind: Callable[[str, Callable[[Value], bool]], Callable[[T], bool]]) -> Callable[[T], bool]:
    """A tree of conditions as a test of records of any kind; `bind` makes one of a test of an attribute.

    Raises InvalidValueError for a node that asks for text, and for a property that resources do not have.
    """
    if isinstance(node, Field | Range):
        test = bind(*property_test(node))
        if (languages := languages_in(node)) is None:
            return test
        other = bind(*property_test(languages))
        return lambda record: test(record) or other(record)
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
    for node in conditions(filters):
        _check_condition(node)


def property_test(node: Field | Range) -> PropertyTest:
    """The test for one condition. Raises InvalidValueError for a property that resources do not have."""
    if isinstance(node, Range):
        return PropertyTest("updated_at", _changed_within(time_span(node)))
    attribute, key, kind = held_in(node.name)
    accepts = _TESTS[kind](node.values) if kind in _TESTS else _one_of(node.values, _HELD[kind])
    return PropertyTest(attribute, (lambda fields: accepts(fields.get(key, ""))) if key else accepts)


def languages_in(node: Field | Range) -> Field | None:
    """The languages of people that a condition on `lang` names, as a condition on theirs."""
    if isinstance(node, Range) or node.name != "lang":
        return None
    from findling.text.analysis.prose_languages import spoken

    return Field("language", values) if (values := spoken(node.values)) else None


@cache
def held_in(name: str) -> tuple[str, str, str]:
    """The attribute, its key and the kind of a property of resources. Raises InvalidValueError for any other."""
    known = PROPERTIES.get(name)
    if known is None or known.kind not in _HELD:
        raise no_property(name)
    attribute, _, key = known.attribute.partition(".")
    return attribute, key, known.kind


def no_property(name: str) -> InvalidValueError:
    """Error for a name that is no property of resources."""
    return InvalidValueError(f"resources have no property {name!r}", hint=f"one of {', '.join(COMPARED)}")


def values_held(resource: Resource, name: str) -> Sequence[str]:
    """The values of a property that a resource has, as tokens and facets know them."""
    attribute, key, kind = held_in(name)
    value = getattr(resource, attribute)
    return _HELD[kind](value.get(key, "") if key else value)


def dotted(extensions: Iterable[str]) -> tuple[str, ...]:
    """Extensions in lower case and with their dot."""
    return tuple(ext.lower() if ext.startswith(".") else f".{ext.lower()}" for ext in extensions)


def time_span(limits: Filters | Range) -> tuple[int, int] | None:
    """The first second that passes and the first later one that does not; `None` without a limit.

    Raises InvalidValueError for a time that is no number.
    """
    if limits.after is None and limits.before is None:
        return None
    first = -_END_OF_TIME if limits.after is None else math.ceil(_within_time("after", limits.after))
    end = _END_OF_TIME if limits.before is None else math.floor(_within_time("before", limits.before))
    return first, end


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


def _one_of(values: Iterable[str], held: Callable[[Value], Sequence[str]]) -> Callable[[Value], bool]:
    wanted = frozenset(value.lower() for value in values)
    return lambda value: any(one.lower() in wanted for one in held(value))


def _ends_in(values: Iterable[str]) -> Callable[[str], bool]:
    """A name that is nothing but an extension has none. This takes a third of the time of a look at all endings."""
    extensions = dotted(values)
    return lambda path: path.rpartition("/")[2].lower()[1:].endswith(extensions)


def _lies_below(folders: Iterable[str]) -> Callable[[str], bool]:
    """A test of paths against any number of folders: each path has few folders above it."""
    known = frozenset(folders)

    def lies(path: str) -> bool:
        at = len(path)
        while path[:at] not in known:
            at = path.rfind("/", 0, at)
            if at <= 0:
                return False
        return True

    return lies


def _folders(path: str) -> list[str]:
    """A path and every folder above it."""
    parts = path.split("/")
    return ["/".join(parts[: at + 1]) for at in range(len(parts))]


def _endings(path: str) -> list[str]:
    name = path.rpartition("/")[2].lower()
    return [name[at:] for at, letter in enumerate(name) if letter == "." and at]


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


def _given(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


_HELD: dict[str, Callable[[Value], Sequence[str]]] = {
    "text": _given,
    "names": _given,
    "texts": lambda values: values,
    "list": lambda value: [part for one in value.split(",") if (part := one.strip())],
    "ending": _endings,
    "path": _folders,
    "folder": _folders,
    "exact": lambda value: (value,),
}
"""The kind of a property → the values that a resource has of it."""

_TESTS: dict[str, Callable[[Iterable[str]], Callable[[Value], bool]]] = {
    "names": _written_by,
    "ending": _ends_in,
    "path": _lies_at,
    "folder": _lies_below,
    "exact": lambda values: frozenset(values).__contains__,
}
"""The kind of a property → the function from values to a test; any other holds where one value is the same."""

_PLAIN = [name for name in vars(Filters()) if name in COMPARED and name != "path"]
