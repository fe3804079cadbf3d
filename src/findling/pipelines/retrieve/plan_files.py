"""Plans and filters as JSON-ready values, and back: what an answer shows can be carried out again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError
from findling.domain.plans import FIELDS, FUSIONS, GROUPINGS, MODES, TYPOS, WORDS, Plan
from findling.domain.queries import All, Filters, Node

__all__ = ["PLAN_RULES", "Rule", "filters_document", "plan_document", "read_filters", "read_plan"]


class Rule(NamedTuple):
    """What a value has to be; or nothing, if it is `optional`.

    `kind` is `text`, `switch`, `count`, `number`, `texts`, `weights`, `shares` or `days`.
    """

    kind: str
    choices: tuple[str, ...] = ()
    least: float = 0
    most: float = float("inf")
    optional: bool = False


PLAN_RULES: Mapping[str, Rule] = {
    "profile": Rule("text"),
    "mode": Rule("text", MODES),
    "words": Rule("text", WORDS),
    "glossary": Rule("switch"),
    "typos": Rule("text", TYPOS),
    "meaning_finds": Rule("switch"),
    "relax": Rule("switch"),
    "related": Rule("count", most=1000),
    "route": Rule("switch"),
    "types": Rule("texts"),
    "heads": Rule("switch"),
    "weights": Rule("weights"),
    "fusion": Rule("text", FUSIONS),
    "alpha": Rule("number", most=1, optional=True),
    "rrf_k": Rule("number"),
    "overfetch": Rule("number", least=1),
    "min_score": Rule("number", most=1),
    "weak": Rule("switch"),
    "feedback": Rule("switch"),
    "boosts": Rule("switch"),
    "exact_boost": Rule("number", least=1, most=10),
    "prefix_boost": Rule("number", least=1, most=10),
    "phrase_boost": Rule("number", least=1, most=10),
    "collapse": Rule("switch"),
    "diversity": Rule("number", most=1),
    "adaptive_k": Rule("switch"),
    "group": Rule("text", GROUPINGS),
    "around": Rule("count", most=100),
    "affinities": Rule("shares"),
    "half_lives": Rule("days"),
    "rerank_depth": Rule("count"),
    "budget_ms": Rule("number"),
}
"""What each field of a plan has to be, wherever it comes from; the bounds are those of the settings behind them."""


def plan_document(plan: Plan) -> dict[str, Any]:
    """Every field of a plan, defaults included, so that it means the same when the defaults have changed."""
    tables = {name: dict(getattr(plan, name)) for name in ("weights", "affinities", "half_lives")}
    return {**vars(plan), "types": list(plan.types), **tables}


def read_plan(document: Mapping[str, object]) -> Plan:
    """The plan that `plan_document` wrote; a field that is not there has its default.

    Raises InvalidValueError for a field that a plan does not have, and for a value that does not fit.
    """
    return Plan(**_read(document, PLAN_RULES, "plan"))


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
    values = _read(document, _FILTER_RULES | {"where": Rule("text", optional=True)}, "filters")
    if values.get("where") is not None:
        values["where"] = _read_where(values["where"])
    return Filters(**values)


_LARGEST = 1e300
"""Keeps infinity out, which JSON cannot write; "not a number" fails every comparison."""

_FILTER_RULES: dict[str, Rule] = {
    **dict.fromkeys(("ext", "not_ext", "path", "type", "lang", "tag", "author"), Rule("texts")),
    **dict.fromkeys(("after", "before"), Rule("number", least=-_LARGEST, optional=True)),
}

_WEIGHT = _DAYS = Rule("number")
_SHARE = Rule("number", most=1)

_KINDS = {
    "text": "text",
    "switch": "true or false",
    "count": "a whole number",
    "number": "a number",
    "texts": "a list of texts",
    "weights": f"numbers of at least 0 under any of {', '.join(FIELDS)}",
    "shares": "numbers from 0 to 1 under any names",
    "days": "numbers of at least 0 under any names",
}


def _read(document: Mapping[str, object], rules: Mapping[str, Rule], what: str) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise InvalidValueError(f"{what} must be a table of names and values, not {document!r}", hint="correct it")
    values = {}
    for name, value in document.items():
        if name not in rules:
            raise InvalidValueError(f"{what}: nothing is called {name}", hint=_closest(str(name), rules))
        rule = rules[name]
        values[name] = _checked(rule, value)
        if values[name] is None and not (value is None and rule.optional):
            found = "null" if value is None else repr(value)
            raise InvalidValueError(f"{what}: {name} must be {_wanted(rule)}, not {found}", hint=f"correct {name}")
    return values


def _checked(rule: Rule, value: object) -> Any:
    """The value as the plan holds it; `None` if it does not fit."""
    if rule.kind == "text":
        return value if isinstance(value, str) and (not rule.choices or value in rule.choices) else None
    if rule.kind == "switch":
        return value if isinstance(value, bool) else None
    if rule.kind == "texts":
        return tuple(value) if isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value) else None
    if rule.kind == "weights":
        return _checked_numbers(value, _WEIGHT, FIELDS)
    if rule.kind == "shares":
        return _checked_numbers(value, _SHARE)
    if rule.kind == "days":
        return _checked_numbers(value, _DAYS)
    return _checked_number(rule, value)


def _checked_number(rule: Rule, value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    if not rule.least <= value <= min(rule.most, _LARGEST):
        return None
    if rule.kind == "count":
        return value if isinstance(value, int) else None
    return float(value)


def _checked_numbers(value: object, rule: Rule, names: Iterable[str] = ()) -> dict[str, float | None] | None:
    if not isinstance(value, Mapping) or (names and not set(names).issuperset(value)):
        return None
    numbers = {str(name): _checked_number(rule, number) for name, number in value.items()}
    return None if None in numbers.values() else numbers


def _wanted(rule: Rule) -> str:
    if rule.choices:
        return " or ".join(rule.choices)
    wanted = _KINDS[rule.kind]
    if rule.kind in ("count", "number") and rule.least > -_LARGEST:
        wanted += f" of at least {rule.least:g}"
        wanted += f" and at most {rule.most:g}" if rule.most != float("inf") else ""
    return f"{wanted} or null" if rule.optional else wanted


def _closest(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    known = list(names)
    closest = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"{closest[0]} instead" if closest else f"there are: {', '.join(known)}"


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
