"""A retriever component of Haystack. Needs the extra `haystack`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any as AnyValue
from typing import Unpack

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.queries import COMPARED, All, Any, Field, Filters, Node, Not, Range
from findling.domain.values import closest_name
from findling.integrations.searcher import AdapterOptions, Closing, Searcher, checked_principals, missing_extra
from findling.service.client.written_requests import filters_document, filters_from
from findling.service.engine.engine import Engine, Viewer
from findling.service.settings.written_filters import written_filters

_DEEPEST = 50


def _condition(filters: object, depth: int) -> Node:
    if not isinstance(filters, Mapping):
        raise InvalidValueError(f"filters: {filters!r} is no condition", hint="field, operator and value")
    if not depth:
        raise InvalidValueError(f"filters: groups lie in each other {_DEEPEST} deep", hint="write them flat")
    known = ("field", "operator", "value") if "field" in filters else ("operator", "conditions")
    if unknown := [name for name in filters if name not in known]:
        raise InvalidValueError(f"filters: a condition has no {unknown[0]}", hint=f"it has {', '.join(known)}")
    return _compared(filters) if "field" in filters else _grouped(filters, depth)


def _grouped(filters: Mapping[str, AnyValue], depth: int) -> Node:
    operator, conditions = filters.get("operator"), filters.get("conditions")
    if not isinstance(operator, str) or operator not in _LOGIC or not isinstance(conditions, list):
        hint = "operator AND, OR or NOT, and a list of conditions"
        raise InvalidValueError(f"filters: {dict(filters)} is no condition", hint=hint)
    return _LOGIC[operator](tuple([_condition(condition, depth - 1) for condition in conditions]))


def _compared(filters: Mapping[str, AnyValue]) -> Node:
    name = str(filters["field"]).removeprefix("meta.")
    if name == "at":
        return _by_time(str(filters.get("operator")), filters.get("value"))
    if name not in COMPARED:
        raise InvalidValueError(f"filters: nothing is called {name}", hint=closest_name(name, (*COMPARED, "at")))
    return _by_value(name, str(filters.get("operator")), filters.get("value"))


_LOGIC: dict[str, Callable[[tuple[Node, ...]], Node]] = {"AND": All, "OR": Any, "NOT": lambda nodes: Not(All(nodes))}


def _by_value(name: str, operator: str, value: object) -> Node:
    is_list = operator in ("in", "not in")
    values = value if is_list else [value]
    if operator not in ("==", "!=", "in", "not in"):
        raise InvalidValueError(f"filters: {name} cannot be compared by {operator}", hint="==, !=, in or not in")
    if not isinstance(values, list) or not values or not all(isinstance(one, str) for one in values):
        wanted = "a list of texts" if is_list else "a text"
        raise InvalidValueError(f"filters: {name} must be {wanted}, not {value!r}", hint=f"correct {name}")
    node = _at_or_below(values) if name == "path" else Field(name, tuple(values))
    return Not(node) if operator in ("!=", "not in") else node


def _at_or_below(values: list[str]) -> Node:
    paths = written_filters(path=values, called={"path": "filters: path"}).path
    if not paths:
        return All(())  # one of them is the root itself
    files = Field("rid", tuple(f"file:{path}" for path in paths))
    # With a slash at both ends: a condition on `path` alone would hold for every path that contains it.
    return Any((files, Field("path", tuple(f"/{path}/" for path in paths))))


def _by_time(operator: str, value: object) -> Node:
    if operator not in (">", ">=", "<", "<="):
        raise InvalidValueError(f"filters: at cannot be compared by {operator}", hint=">, >=, < or <=")
    moment = _seconds(value)
    if operator in (">", "<="):
        # Times are compared by the second; a range begins with its first one and ends before its last.
        moment = math.floor(moment) + 1
    return Range(after=moment) if operator in (">", ">=") else Range(before=moment)


def _seconds(value: object) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        seconds = float(value) if is_number else datetime.fromisoformat(str(value)).timestamp()  # type: ignore[arg-type]
        if math.isfinite(seconds):
            return seconds
    except (ValueError, OverflowError):
        pass
    raise InvalidValueError(
        f"filters: at must be seconds or a date, not {value!r}", hint="2026-01-31, or 2026-01-31T12:00:00+00:00"
    )


try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as error:
    raise missing_extra("haystack", "haystack-ai") from error


@component
class FindlingRetriever(Closing):
    """Finds passages of a workspace, each a document with its whole text.

    The workspace is that of `path`, the one called `workspace`, or an open `engine` or viewer.
    `principals` is whose rights hold, `None` for the owner; no run can change it. `filters` are written as Haystack
    does, or as a table of findling's filters. Without `refresh` the index is asked as it is. The rest are fields of
    SearchRequest.
    """

    def __init__(
        self,
        *,
        path: str | Path | None = None,
        workspace: str | None = None,
        engine: Engine | Viewer | None = None,
        principals: str | Sequence[str] | None = None,
        refresh: bool = True,
        top_k: int = 10,
        **options: Unpack[AdapterOptions],
    ) -> None:
        """Open the workspace. Raises as `findling.open` does, and InvalidValueError for options that do not fit."""
        self.top_k = top_k
        filters = options.pop("filters", None)
        self._searcher = Searcher(
            path=path,
            workspace=workspace,
            engine=engine,
            principals=principals,
            refresh=refresh,
            options={**options, "filters": _read_filters(filters)},
        )
        self._is_given_open = engine is not None
        # As it is now: what is written down must not say otherwise when a list or a table is changed later.
        self._given = {
            "path": None if path is None else str(path),
            "workspace": workspace,
            "principals": None if principals is None else list(checked_principals(principals)),
            "refresh": refresh,
            "filters": filters_document(filters) if isinstance(filters, Filters) else deepcopy(filters),
            **options,
        }

    def to_dict(self) -> dict[str, AnyValue]:
        """Serialise the component. Raises UsageError for an open engine, which has no written form."""
        if self._is_given_open:
            raise UsageError("a retriever with an open engine cannot be written down", hint="give path or workspace")
        return default_to_dict(self, top_k=self.top_k, **deepcopy(self._given))

    @classmethod
    def from_dict(cls, data: dict[str, AnyValue]) -> FindlingRetriever:
        """The component that was written down."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, AnyValue] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Find passages; `filters` and `top_k` take the place of those that were set."""
        limit = self.top_k if top_k is None else top_k
        found = self._searcher.find(query, limit=limit, filters=_read_filters(filters))
        return {
            "documents": [Document(id=one.id, content=one.text, meta=one.metadata, score=one.score) for one in found]
        }

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, AnyValue] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """As `run` does, in a thread."""
        return await asyncio.to_thread(self.run, query, filters, top_k)


def _read_filters(given: Filters | Mapping[str, AnyValue] | None) -> Filters | None:
    if given is None or isinstance(given, Filters):
        return given
    if isinstance(given, Mapping) and "operator" in given:
        return Filters(where=_condition(given, _DEEPEST))
    return filters_from(given)
