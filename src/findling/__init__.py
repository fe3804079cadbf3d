"""Search over what you already have; every result says why it is there.

import findling

with findling.open("docs") as engine:
    engine.index()
    answer = engine.search("how is a stale index noticed")
    for hit in answer:
        print(hit.path, hit.line_start, hit.score)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from findling.domain.errors import FindlingError
    from findling.domain.plans import Plan
    from findling.domain.progress import IndexProgress
    from findling.domain.queries import Filters, SearchRequest
    from findling.domain.reports import IndexReport
    from findling.domain.resources import Resource
    from findling.domain.results import Hit, SearchAnswer
    from findling.service.engine import Engine
    from findling.service.engine import open_engine as open  # noqa: A004 - findling.open reads as it should
    from findling.service.settings import Settings

__all__ = [
    "Engine",
    "Filters",
    "FindlingError",
    "Hit",
    "IndexProgress",
    "IndexReport",
    "Plan",
    "Resource",
    "SearchAnswer",
    "SearchRequest",
    "Settings",
    "open",
]

__version__ = "0.4.0"

_HOMES = {
    "Engine": "findling.service.engine",
    "Filters": "findling.domain.queries",
    "FindlingError": "findling.domain.errors",
    "Hit": "findling.domain.results",
    "IndexProgress": "findling.domain.progress",
    "IndexReport": "findling.domain.reports",
    "Plan": "findling.domain.plans",
    "Resource": "findling.domain.resources",
    "SearchAnswer": "findling.domain.results",
    "SearchRequest": "findling.domain.queries",
    "Settings": "findling.service.settings",
    "open": "findling.service.engine",
}


def __getattr__(name: str) -> Any:
    # Public names load their module on first use: `findling --version` must not pay for an index library.
    if name not in _HOMES:
        raise AttributeError(f"module 'findling' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_HOMES[name])
    return getattr(module, "open_engine" if name == "open" else name)
