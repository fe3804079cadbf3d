"""A retriever of LangChain. Needs the extra `langchain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from findling.domain.errors import UsageError
from findling.domain.queries import Filters
from findling.integrations.searcher import AdapterOptions, Closing, Searcher, checked_principals, missing_extra
from findling.service.engine.engine import Engine, Viewer

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
except ModuleNotFoundError as error:
    raise missing_extra("langchain", "langchain-core") from error
from findling.service.client.written_requests import filters_from

if TYPE_CHECKING:
    GivenFilters = Filters | Mapping[str, Any]
else:
    # pydantic would make Filters of a table by rules of its own.
    GivenFilters = Any


class FindlingRetriever(Closing, BaseRetriever):
    """Finds passages of a workspace, each a document with its whole text.

    The workspace is that of `path`, the one called `workspace`, or an open `engine` or viewer.
    `principals` is whose rights hold, `None` for the owner; no query can change it. `k` and `filters` may also be given
    to `invoke`. Without `refresh` the index is asked as it is. The rest are fields of SearchRequest. All but `k` stay
    as they were given: to change them, or to make a copy that differs in them, raises UsageError.
    """

    model_config: ClassVar = {"extra": "forbid"}

    path: str | Path | None = None
    workspace: str | None = None
    engine: Engine | Viewer | None = None
    principals: str | Sequence[str] | None = None
    refresh: bool = True
    k: int = 10
    filters: GivenFilters | None = None
    exclude_pattern: str | None = None
    min_score: float = 0.0
    profile: str = ""
    in_context: bool = True
    within: str | None = None
    quick: bool = False
    timeout_s: float = 0.0

    if not TYPE_CHECKING:
        _searcher: Searcher  # pydantic wants to know it; a type checker would take it for an argument

    def model_post_init(self, context: Any, /) -> None:
        """Open the workspace. Raises as `findling.open` does, and InvalidValueError for filters that do not fit."""
        # Fields are copies: a caller could change a list or a table in place.
        if self.principals is not None:
            super().__setattr__("principals", checked_principals(self.principals))
        if self.filters is not None:
            super().__setattr__("filters", filters_from(self.filters))
        options = cast("AdapterOptions", {name: getattr(self, name) for name in AdapterOptions.__annotations__})
        self._searcher = Searcher(
            path=self.path,
            workspace=self.workspace,
            engine=self.engine,
            principals=self.principals,
            refresh=self.refresh,
            options=options,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        _must_stay(name)
        super().__setattr__(name, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy that asks the same workspace, with another `k` if need be. Raises UsageError for other changes."""
        _must_stay(*(update or ()))
        return super().model_copy(update=update, deep=deep)

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


def _must_stay(*changed: str) -> None:
    for name in changed:
        if name in FindlingRetriever.model_fields and name != "k" and name not in BaseRetriever.model_fields:
            raise UsageError(f"{name} of a retriever cannot be changed", hint="make a new FindlingRetriever")
