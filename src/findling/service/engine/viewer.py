"""A workspace as one caller may see it: the part of the engine that serves callers with limited rights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from findling.domain.permissions import check_principal
from findling.domain.queries import SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import Explanation, Hit, SearchAnswer

if TYPE_CHECKING:
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.engine.engine import Engine
    from findling.service.index.documents import FetchedDocument

__all__ = ["Viewer"]


class Viewer:
    """Answers as if nothing else were there than what the principals may see. Nothing can be changed through it."""

    def __init__(self, engine: Engine, principals: tuple[str, ...] | None) -> None:
        """Without principals it is the owner who looks. Raises InvalidValueError for what is no principal."""
        self._engine = engine
        self.principals = None if principals is None else tuple([check_principal(one) for one in principals])

    def search(self, request: SearchRequest | str, **options: Any) -> SearchAnswer:
        """Answer a question from the index as it is; options are the fields of SearchRequest."""
        return self._engine.search(self._asked(request, options), refresh=False)

    def search_in_stages(self, request: SearchRequest | str, **options: Any) -> Iterator[tuple[str, SearchAnswer]]:
        """A quick answer as `candidates`, and then the whole one as `reranked`."""
        asked = self._asked(request, options)
        yield "candidates", self._engine.search(replace(asked, quick=True), refresh=False)
        if not asked.quick:
            yield "reranked", self._engine.search(asked, refresh=False)

    def cursor_after(self, request: SearchRequest, answer: SearchAnswer, count: int) -> str:
        """What asks for the hits behind the first `count` of an answer, for whoever shows no more; empty for none.

        It is the one that the same search with that limit would have given, without asking again.
        """
        if count >= len(answer.hits):
            return answer.next_cursor
        if count < 1:
            return ""
        from findling.pipelines.answer.cursors import cursor_after

        asked = self._engine.asked_as(self._asked(request, {}))
        # Later pages are those of the workspace itself.
        own = [hit for hit in answer.hits[:count] if not hit.workspace]
        return cursor_after(asked, own, self.group_of)

    def explain(self, request: SearchRequest | str, name: str, **options: Any) -> Explanation:
        """Why a document is in the answer to a question, or what keeps it out, as `Engine.explain` does."""
        return self._engine.explain(self._asked(request, options), name, refresh=False)

    def fetch(self, name: str, *, context: int = 0) -> FetchedDocument:
        """One document, as `Engine.fetch` gives it."""
        return self._engine.fetch(name, context=context, principals=self.principals)

    def passages(self, ids: Sequence[str]) -> dict[str, str]:
        """The whole texts of hits, as `Engine.passages` gives them."""
        return self._engine.passages(ids, principals=self.principals)

    def similar(self, name: str, limit: int = 10) -> SearchAnswer:
        """What is most like a document, as `Engine.similar` finds it."""
        return self._engine.similar(name, limit, principals=self.principals)

    def suggest(self, text: str, limit: int = 10) -> tuple[Completion, ...]:
        """How a text may go on, as `Engine.suggest` does."""
        return self._engine.suggest(text, limit, principals=self.principals)

    def ls(self, prefix: str = "") -> Iterator[Resource]:
        """The resources in order of their ids, or those at and below a path."""
        return self._engine.ls(prefix, principals=self.principals)

    def status(self) -> dict[str, Any]:
        """What the workspace holds: everything for its owner, for others how much of it they may see."""
        return self._engine.status_for(self.principals)

    def group_of(self, hit: Hit, by: str) -> str:
        """The group of a hit, as `Engine.group_of` names it."""
        return self._engine.group_of(hit, by, principals=self.principals)

    def _asked(self, request: SearchRequest | str, options: dict[str, Any]) -> SearchRequest:
        # Whoever calls is not for the caller to say, and neither is when files are read.
        options = {**options, "principals": self.principals}
        return SearchRequest(query=request, **options) if isinstance(request, str) else replace(request, **options)
