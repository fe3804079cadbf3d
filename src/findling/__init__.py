"""Search over what you already have; every result says why it is there.

import findling

with findling.open("docs") as engine:
    engine.index()
    answer = engine.search("how is a stale index noticed")
    for hit in answer:
        print(hit.path, hit.line_start, hit.score)
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes 10 ms to load: a warm search takes 20 in all
if TYPE_CHECKING:
    from typing import Any

    from findling.domain.errors import FindlingError
    from findling.domain.plans import Plan
    from findling.domain.queries import Filters, SearchRequest
    from findling.domain.records import Message, Thread
    from findling.domain.reports import IndexProgress, IndexReport
    from findling.domain.resources import FieldRule, Resource, ResourceType
    from findling.domain.results import Hit, SearchAnswer
    from findling.pipelines.content.resource_types import register as register_type
    from findling.service.engine.async_engine import AsyncEngine, AsyncViewer
    from findling.service.engine.engine import Engine, Viewer
    from findling.service.engine.engine import open_engine as open  # noqa: A004 - findling.open reads as it should
    from findling.service.settings.settings import Settings

__all__ = [
    "AsyncEngine",
    "AsyncViewer",
    "Engine",
    "FieldRule",
    "Filters",
    "FindlingError",
    "Hit",
    "IndexProgress",
    "IndexReport",
    "Message",
    "Plan",
    "Resource",
    "ResourceType",
    "SearchAnswer",
    "SearchRequest",
    "Settings",
    "Thread",
    "Viewer",
    "open",
    "register_type",
]

__version__ = "0.8.0"

_HOMES = {
    "AsyncEngine": "findling.service.engine.async_engine",
    "AsyncViewer": "findling.service.engine.async_engine",
    "Engine": "findling.service.engine.engine",
    "FieldRule": "findling.domain.resources",
    "Filters": "findling.domain.queries",
    "FindlingError": "findling.domain.errors",
    "Hit": "findling.domain.results",
    "IndexProgress": "findling.domain.reports",
    "IndexReport": "findling.domain.reports",
    "Message": "findling.domain.records",
    "Plan": "findling.domain.plans",
    "Resource": "findling.domain.resources",
    "ResourceType": "findling.domain.resources",
    "SearchAnswer": "findling.domain.results",
    "SearchRequest": "findling.domain.queries",
    "Settings": "findling.service.settings.settings",
    "Thread": "findling.domain.records",
    "Viewer": "findling.service.engine.engine",
    "open": "findling.service.engine.engine",
    "register_type": "findling.pipelines.content.resource_types",
}

_ELSEWHERE = {"open": "open_engine", "register_type": "register"}
"""Public names that are longer, or shorter, at home."""


def __getattr__(name: str) -> Any:
    # Public names load their module on first use: `findling --version` must not pay for an index library.
    if name not in _HOMES:
        raise AttributeError(f"module 'findling' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), _ELSEWHERE.get(name, name))
