"""A retriever of LangChain. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from findling.domain.queries import Filters
from findling.integrations.searcher import Closing, Searcher, SearchOptions, missing_extra
from findling.service.engine import Engine
from findling.service.viewer import Viewer

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
except ModuleNotFoundError as error:
    raise missing_extra("langchain", "langchain-core") from error

__all__ = ["FindlingRetriever"]

if TYPE_CHECKING:
    GivenFilters = Filters | Mapping[str, Any]
else:
    # pydantic would make Filters of a table by rules of its own.
    GivenFilters = Any


class FindlingRetriever(Closing, BaseRetriever):
    """Finds passages of a workspace, each a document with its whole text.

    The workspace is that of `path` (a folder or a file), the one called `workspace`, or an `engine` or viewer that is
    open already. `principals` is whose rights hold, `None` for the owner; no query can change it. `k` and `filters` may
    also be given to `invoke`. Without `refresh` the index is asked as it is. The rest are fields of SearchRequest.
    """

    model_config: ClassVar = {"extra": "forbid"}

    path: str | Path | None = Field(default=None, frozen=True)
    workspace: str | None = Field(default=None, frozen=True)
    engine: Engine | Viewer | None = Field(default=None, frozen=True)
    principals: str | Sequence[str] | None = Field(default=None, frozen=True)
    refresh: bool = Field(default=True, frozen=True)
    k: int = 10
    filters: GivenFilters | None = Field(default=None, frozen=True)
    exclude_pattern: str | None = Field(default=None, frozen=True)
    min_score: float = Field(default=0.0, frozen=True)
    profile: str = Field(default="", frozen=True)
    in_context: bool = Field(default=True, frozen=True)
    within: str | None = Field(default=None, frozen=True)
    quick: bool = Field(default=False, frozen=True)
    timeout_s: float = Field(default=0.0, frozen=True)

    if not TYPE_CHECKING:
        _searcher: Searcher  # pydantic wants to know it; a type checker would take it for an argument

    def model_post_init(self, context: Any, /) -> None:
        """Open the workspace. Raises as `findling.open` does, and InvalidValueError for filters that do not fit."""
        options = SearchOptions(
            filters=self.filters,
            exclude_pattern=self.exclude_pattern,
            min_score=self.min_score,
            profile=self.profile,
            in_context=self.in_context,
            within=self.within,
            quick=self.quick,
            timeout_s=self.timeout_s,
        )
        self._searcher = Searcher(
            path=self.path,
            workspace=self.workspace,
            engine=self.engine,
            principals=self.principals,
            refresh=self.refresh,
            options=options,
        )

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filters: GivenFilters | None = None,
    ) -> list[Document]:
        found = self._searcher.find(query, limit=self.k if k is None else k, filters=filters)
        return [
            # Chains that name their sources go by `source`.
            Document(id=one.id, page_content=one.text, metadata={"source": one.metadata["path"], **one.metadata})
            for one in found
        ]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        filters: GivenFilters | None = None,
    ) -> list[Document]:
        ask = partial(self._get_relevant_documents, run_manager=run_manager.get_sync(), k=k, filters=filters)
        return await run_in_executor(None, ask, query)
