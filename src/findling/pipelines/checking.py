"""Whether a request can be carried out, asked before anything is done."""

from __future__ import annotations

import re

from findling.domain.errors import InvalidValueError
from findling.domain.plans import FIELDS, FUSIONS, MODES, TYPOS, WORDS, Plan
from findling.domain.queries import SearchRequest

__all__ = ["check_plan", "check_request"]


def check_request(request: SearchRequest, plan: Plan) -> re.Pattern[str] | None:
    """The pattern that excludes chunks, if there is one. Raises InvalidValueError naming what cannot be used."""
    if request.limit < 0 or request.offset < 0:
        raise InvalidValueError(f"limit {request.limit} and offset {request.offset} must not be negative")
    if not 0 <= request.min_score <= 1:
        raise InvalidValueError(f"min_score {request.min_score} is not between 0 and 1", hint="scores run from 0 to 1")
    check_plan(plan)
    if request.exclude_pattern is None:
        return None
    try:
        return re.compile(request.exclude_pattern)
    except re.error as error:
        raise InvalidValueError(
            f"exclude pattern {request.exclude_pattern!r} is no regular expression: {error}",
            hint="escape special characters with a backslash",
        ) from error


def check_plan(plan: Plan) -> None:
    """Raises InvalidValueError naming the first value of a plan that cannot be used."""
    for name, choices in _CHOICES:
        if getattr(plan, name) not in choices:
            raise InvalidValueError(f"{name} {getattr(plan, name)!r} is unknown", hint=f"one of {', '.join(choices)}")
    for name, least, most in _BOUNDS:
        if not least <= getattr(plan, name) <= most:
            raise InvalidValueError(f"{name} {getattr(plan, name)} is not between {least:g} and {most:g}")
    if plan.alpha is not None and not 0 <= plan.alpha <= 1:
        raise InvalidValueError(
            f"alpha {plan.alpha} is not between 0 and 1", hint="0 counts words only, 1 meaning only"
        )
    for name, weight in plan.weights.items():
        if name not in FIELDS:
            raise InvalidValueError(f"weight of {name!r}: there is no such field", hint=f"one of {', '.join(FIELDS)}")
        if not 0 <= weight <= 1000:
            raise InvalidValueError(f"weight {weight} of {name} is not between 0 and 1000")


_CHOICES = (("mode", MODES), ("fusion", FUSIONS), ("words", WORDS), ("typos", TYPOS))
_BOUNDS = (
    ("diversity", 0.0, 1.0),
    ("overfetch", 1.0, 1000.0),
    ("rrf_k", 0.0, 1e6),
    ("min_score", 0.0, 1.0),
    ("related", 0, 1000),
    ("rerank_depth", 1, 1e6),
    ("budget_ms", 0.0, 1e9),
    ("exact_boost", 1.0, 10.0),
    ("prefix_boost", 1.0, 10.0),
    ("phrase_boost", 1.0, 10.0),
)
