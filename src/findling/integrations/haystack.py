"""A retriever component of Haystack. Needs the extra `haystack`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Unpack

from findling.domain.errors import UsageError
from findling.domain.queries import Filters
from findling.integrations.haystack_filters import read_conditions
from findling.integrations.searcher import (
    Closing,
    Searcher,
    SearchOptions,
    checked_principals,
    filters_from,
    missing_extra,
)
from findling.pipelines.retrieve.plan_files import filters_document
from findling.service.engine.engine import Engine
from findling.service.engine.viewer import Viewer

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ModuleNotFoundError as error:
    raise missing_extra("haystack", "haystack-ai") from error

__all__ = ["FindlingRetriever"]


@component
class FindlingRetriever(Closing):
    """Finds passages of a workspace, each a document with its whole text.

    The workspace is that of `path` (a folder or a file), the one called `workspace`, or an `engine` or viewer that is
    open already. `principals` is whose rights hold, `None` for the owner; no run can change it. `filters` are written
    as Haystack does, or as a table of findling's filters. Without `refresh` the index is asked as it is. The rest are
    fields of SearchRequest.
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
        **options: Unpack[SearchOptions],
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

    def to_dict(self) -> dict[str, Any]:
        """How a pipeline is written down. Raises UsageError when an open engine was given: it cannot be written."""
        if self._is_given_open:
            raise UsageError("a retriever with an open engine cannot be written down", hint="give path or workspace")
        return default_to_dict(self, top_k=self.top_k, **deepcopy(self._given))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FindlingRetriever:
        """The component that was written down."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Find passages; `filters` and `top_k` take the place of those that were set."""
        limit = self.top_k if top_k is None else top_k
        found = self._searcher.find(query, limit=limit, filters=_read_filters(filters))
        return {
            "documents": [Document(id=one.id, content=one.text, meta=one.metadata, score=one.score) for one in found]
        }

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """As `run` does, in a thread."""
        return await asyncio.to_thread(self.run, query, filters, top_k)


def _read_filters(given: Filters | Mapping[str, Any] | None) -> Filters | None:
    if given is None or isinstance(given, Filters):
        return given
    return Filters(where=read_conditions(given)) if _is_haystacks(given) else filters_from(given)


def _is_haystacks(given: object) -> bool:
    return isinstance(given, Mapping) and "operator" in given
