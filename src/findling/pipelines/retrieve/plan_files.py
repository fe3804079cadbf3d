"""Plans and filters as JSON-ready values, and back: what an answer shows can be carried out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from findling.domain.errors import InvalidValueError
from findling.domain.plans import KNOBS, Knob, Plan
from findling.domain.queries import OFFERED, All, Filters, Node
from findling.domain.values import LARGEST, Row, closest_name, fit


def read_plan(document: Mapping[str, object]) -> Plan:
    """The plan that `plain` wrote; a field that is not there has its default.

    Raises InvalidValueError for a field that a plan does not have, and for a value that does not fit.
    """
    return Plan(**read_changes(document))


def read_changes(document: Mapping[str, object]) -> dict[str, Any]:
    """Some fields of a plan. Raises InvalidValueError as `read_plan` does."""
    return _read(_renamed(document), KNOBS, "plan")


def filters_document(filters: Filters) -> dict[str, Any]:
    """The filters that limit something; `where` as the query language writes it."""
    document: dict[str, Any] = {}
    for name, rule in _FILTER_RULES.items():
        value = getattr(filters, name)
        if value is not None and (value != () or rule.optional):
            document[name] = list(value) if rule.kind == "texts" else value
    if filters.where is not None:
        from findling.text.query.tree import canonical

        document["where"] = canonical(filters.where)
    return document


def read_filters(document: Mapping[str, object]) -> Filters:
    """The filters that `filters_document` wrote; what is not there does not filter.

    Raises InvalidValueError as `read_plan` does, and for a `where` that is about more than resources.
    """
    values = _read(document, _FILTER_RULES | {"where": Knob("text", None, "", optional=True)}, "filters")
    if values.get("where") is not None:
        values["where"] = _read_where(values["where"])
    return Filters(**values)


_FILTER_RULES = {
    name: Knob("texts", (), "") if one.default == () else Knob("number", None, "", minimum=-LARGEST, optional=True)
    for name, one in OFFERED.items()
}


def _renamed(document: Mapping[str, object]) -> Mapping[str, object]:
    """A plan of findling 0.8 under the names of today: answers that were kept hold whole plans."""
    if not isinstance(document, Mapping) or "legs" not in document:
        return document
    return {"leg_weights" if name == "legs" else name: value for name, value in document.items()}


def _read(document: Mapping[str, object], rules: Mapping[str, Row], what: str) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise InvalidValueError(f"{what} must be a table of names and values, not {document!r}", hint="correct it")
    values = {}
    for name, value in document.items():
        if name not in rules:
            raise InvalidValueError(f"{what}: nothing is called {name}", hint=closest_name(str(name), rules))
        try:
            values[name] = fit(rules[name], value)
        except ValueError as error:
            found = "null" if value is None else repr(value)
            raise InvalidValueError(f"{what}: {name} must be {error}, not {found}", hint=f"correct {name}") from None
    return values


def _read_where(text: str) -> Node:
    from findling.text.query.parser import parse
    from findling.text.query.tree import split_where

    parsed = parse(text)
    rest, where = split_where(parsed.node)
    if where is None or rest != All(()):
        raise InvalidValueError(f"filters: where is about more than resources: {text}", hint="correct where")
    if parsed.notes:
        # A person who types is understood as well as can be; a filter must not become wider than it was.
        raise InvalidValueError(f"filters: where is not clear: {text}", hint="; ".join(parsed.notes))
    return where
