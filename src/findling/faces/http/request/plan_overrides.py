"""Changes of a plan that a request asks for, on top of the plan that the workspace would follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from findling.domain.queries import SearchRequest
from findling.service.engine.engine import Engine
from findling.service.settings.profiles import plan_of
from findling.service.workspace.scope import prepared

__all__ = ["planned"]


def planned(engine: Engine, request: SearchRequest, changes: Mapping[str, Any]) -> SearchRequest:
    """The request with a plan of its own, if it changes anything. Raises InvalidValueError for an unknown profile."""
    if not changes:
        return request
    settings = engine.writer.settings
    base = replace(plan_of(settings, request.profile), **changes)
    # What a search is limited to decides weights, and whether only the latest counts; what was asked for wins.
    plan = prepared(request, {}, settings, engine.scope, lambda _: base).request.plan
    return replace(request, plan=replace(plan or base, **changes))
