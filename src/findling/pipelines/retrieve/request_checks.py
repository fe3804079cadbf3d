"""Whether a request can be carried out, asked before anything is done."""

from __future__ import annotations

import re

from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import SearchRequest
from findling.pipelines.retrieve.legs import check_legs
from findling.pipelines.retrieve.plan_files import read_plan
from findling.stores.filtering import check_filters

__all__ = ["check_plan", "check_request"]


def check_request(request: SearchRequest, plan: Plan) -> re.Pattern[str] | None:
    """The pattern that excludes chunks, if there is one. Raises InvalidValueError naming what cannot be used."""
    if request.limit < 0 or request.offset < 0:
        raise InvalidValueError(f"limit {request.limit} and offset {request.offset} must not be negative")
    check_filters(request.filters)
    check_plan(plan)
    check_legs(plan)
    if request.exclude_pattern is None:
        return None
    try:
        return re.compile(request.exclude_pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidValueError(
            f"exclude pattern {request.exclude_pattern!r} is no regular expression: {error}",
            hint="escape special characters with a backslash",
        ) from error


def check_plan(plan: Plan) -> None:
    """Raises InvalidValueError naming the first value of a plan that cannot be used, as when it is read from a file."""
    if _passed and _passed[0] is plan:
        return  # most searches of an engine share one plan, which cannot change
    read_plan(vars(plan))
    _passed[:] = [plan]


_passed: list[Plan] = []
