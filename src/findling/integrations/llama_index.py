"""A retriever of LlamaIndex. Needs the extra `llama-index`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from findling.integrations.searcher import AdapterOptions, Closing, FoundText, Searcher, missing_extra
from findling.service.engine.engine import Engine, Viewer

try:
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
except ModuleNotFoundError as error:
    raise missing_extra("llama-index", "llama-index-core") from error

_TOLD_TO_MODELS = ("id", "path", "title", "heading", "line_start", "line_end", "place", "author")
"""Metadata that a model reads beside the text of a passage; programs read the rest."""


class FindlingRetriever(Closing, BaseRetriever):
    """Finds passages of a workspace, each a node with its whole text.

    The workspace is that of `path`, the one called `workspace`, or an open `engine` or viewer.
    `principals` is whose rights hold, `None` for the owner; no query can change it. Without `refresh` the index is
    asked as it is. The options are fields of SearchRequest.
    """

    def __init__(
        self,
        *,
        path: str | Path | None = None,
        workspace: str | None = None,
        engine: Engine | Viewer | None = None,
        principals: str | Sequence[str] | None = None,
        refresh: bool = True,
        similarity_top_k: int = 10,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
        **options: Unpack[AdapterOptions],
    ) -> None:
        """Open the workspace. Raises as `findling.open` does, and InvalidValueError for options that do not fit."""
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self.similarity_top_k = similarity_top_k
        self._searcher = Searcher(
            path=path, workspace=workspace, engine=engine, principals=principals, refresh=refresh, options=options
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(found) for found in self._searcher.find(query_bundle.query_str, limit=self.similarity_top_k)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def _node(found: FoundText) -> NodeWithScore:
    hidden = [name for name, value in found.metadata.items() if name not in _TOLD_TO_MODELS or not value]
    node = TextNode(
        id_=found.id,
        text=found.text,
        metadata=found.metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=str(found.metadata["rid"]))},
    )
    return NodeWithScore(node=node, score=found.score)
