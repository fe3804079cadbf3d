"""Questions as documents, so that another process can answer them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from findling.domain.errors import InvalidValueError
from findling.domain.queries import Filters, SearchRequest

__all__ = ["read_request", "request_document"]

_TUPLES = ("facets", "principals")


def request_document(request: SearchRequest) -> dict[str, Any]:
    """Everything that bears on the answer."""
    document = dict(vars(request))
    filters, plan = document.pop("filters"), document.pop("plan")
    # Few questions have any of these, and what writes them down takes a while to load.
    if filters != Filters():
        from findling.pipelines.plan_files import filters_document

        document["filters"] = filters_document(filters)
    if plan is not None:
        from findling.pipelines.plan_files import plan_document

        document["plan"] = plan_document(plan)
    return document


def read_request(document: Mapping[str, Any]) -> SearchRequest:
    """The question that `request_document` wrote. Raises InvalidValueError for what it never writes."""
    from findling.pipelines.plan_files import read_filters, read_plan

    values = {**document, "filters": read_filters(document.get("filters", {}))}
    if "plan" in document:
        values["plan"] = read_plan(document["plan"])
    try:
        for name in _TUPLES:
            if values[name] is not None:
                values[name] = tuple(values[name])
        return SearchRequest(**values)
    except (KeyError, TypeError) as error:
        raise InvalidValueError(f"this is no question: {error!r}", hint="send what request_document gives") from error
