"""Values that another process wrote as JSON, read back as what they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from findling.domain.errors import InvalidValueError
from findling.domain.results import SCHEMA_VERSION, SearchAnswer

__all__ = ["from_json", "read_answer"]

_Value = TypeVar("_Value")
_Reader = Callable[[Any], Any]


def from_json(kind: type[_Value], document: object) -> _Value:
    """The dataclass or named tuple of which JSON was made, with all that is in it.

    Raises InvalidValueError for a document that lacks a field, has one too many, or has another shape.
    """
    try:
        value: _Value = _reader(cast(Any, kind))(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidValueError(
            f"this is no {kind.__name__}: {error!r}", hint="write it with the same version of findling"
        ) from error
    return value


def read_answer(document: Mapping[str, Any]) -> SearchAnswer:
    """The answer of which `SearchAnswer.to_dict` made the document, read as JSON.

    Raises InvalidValueError for anything else.
    """
    values = dict(document) if isinstance(document, Mapping) else {}
    if values.pop("schema", None) != SCHEMA_VERSION:
        raise InvalidValueError("this is no answer of this version", hint=f"write it with schema {SCHEMA_VERSION}")
    answer = from_json(SearchAnswer, values)
    scope = {name: tuple(value) if isinstance(value, list) else value for name, value in answer.scope.items()}
    return replace(answer, scope=scope)


@cache
def _reader(kind: Any) -> _Reader:
    """The function that reads values of a type; each type is looked at once, 1 ms for all of an answer."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _of_union(arguments)
    if origin is tuple:
        return _of_tuple(arguments)
    if origin is list:
        item = _reader(arguments[0])
        return lambda values: [item(value) for value in _listed(values)]
    if origin in (dict, Mapping):
        value_of = _reader(arguments[1])
        return lambda values: {name: value_of(value) for name, value in values.items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _of_fields(kind)
    return Path if kind is Path else lambda value: value


def _of_fields(kind: Any) -> _Reader:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    return lambda values: kind(**{name: readers[name](value) for name, value in values.items()})


def _of_tuple(arguments: tuple[Any, ...]) -> _Reader:
    if arguments[1:] == (...,):
        item = _reader(arguments[0])
        return lambda values: tuple([item(value) for value in _listed(values)])
    items = [_reader(one) for one in arguments]
    return lambda values: tuple([item(value) for item, value in zip(items, _listed(values), strict=True)])


def _of_union(arguments: tuple[Any, ...]) -> _Reader:
    """The one kind of a union that is written as a list or an object reads those; anything else is as it was."""
    shaped = [one for one in arguments if one is not NoneType and (get_origin(one) or is_dataclass(one))]
    if len(shaped) != 1:
        return lambda value: value
    read = _reader(shaped[0])
    return lambda value: read(value) if isinstance(value, list | dict) else value


def _listed(values: Any) -> Iterable[Any]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"{values!r} is no list")
    return values
