"""`/api/v2/search`: the same search for clients that know no more than paths, texts and scores."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from findling.domain.errors import InvalidValueError
from findling.domain.plans import MODES
from findling.domain.queries import SearchRequest
from findling.domain.results import Hit
from findling.faces.http.request.bodies import IN_BODY, QueryText, WorkspaceName
from findling.faces.http.request.context import CheckedRoute, Reading
from findling.faces.http.routes.openapi import Report
from findling.service.engine.client import LocalClient
from findling.service.settings.written_filters import written_filters

router = APIRouter(route_class=CheckedRoute, tags=["search"])

_MOST_HITS = 100
"""Of every hit the whole passage is read."""

_Mode = Literal[MODES]  # type: ignore[valid-type]
_Fusion = Literal["rrf", "weighted", "rrf_weighted"]


class SecondBody(BaseModel):
    """A question in the words of other search servers; of keys that mean the same, one may be given."""

    model_config = IN_BODY

    query: QueryText
    workspace: WorkspaceName = ""
    path: Annotated[str, Field(max_length=1_000)] = Field(default="/", description="The folder that is searched.")
    limit: int = Field(default=10, ge=1, le=_MOST_HITS, description="The most results.")
    type: _Mode | None = Field(default=None, description="By words, by meaning, or both (hybrid, the default).")
    search_type: _Mode | None = Field(default=None, description="The same.")
    search_mode: _Mode | None = Field(default=None, description="The same.")
    alpha: float = Field(default=0.5, ge=0, le=1, description="Weight of meaning against words.")
    fusion: _Fusion | None = Field(default=None, description="How both become one ranking (rrf by default).")
    fusion_method: _Fusion | None = Field(default=None, description="The same.")
    rrf_k: float = Field(default=60.0, ge=0, le=1e6, description="The constant of rrf.")
    adaptive_k: bool = Field(default=False, description="Show fewer results when the rest is far behind.")
    min_score: float = Field(default=0.0, ge=0, le=1, description="Results that score less are left out.")

    def mode(self) -> str:
        """Raises InvalidValueError when two keys disagree."""
        return self._one_of("type", "search_type", "search_mode") or "hybrid"

    def changes(self) -> dict[str, Any]:
        """Changes of the plan. Raises InvalidValueError when two keys disagree."""
        chosen = {"mode": self.mode(), "fusion": self._one_of("fusion", "fusion_method") or "rrf"}
        return {**chosen, **self.model_dump(include={"alpha", "rrf_k", "adaptive_k", "min_score"})}

    def _one_of(self, *keys: str) -> str:
        given = {getattr(self, key) for key in keys} - {None}
        if len(given) > 1:
            raise InvalidValueError(f"{' and '.join(keys)} disagree", hint=f"give {keys[0]} only")
        return str(given.pop()) if given else ""


@router.post("/api/v2/search", response_model=Report)
async def search(body: SecondBody, asked: Reading) -> Response:
    """Answer a question with `results`: path, whole passage, lines, and the score of each leg."""
    filters = written_filters(path=[body.path.strip("/") or "."])
    request = SearchRequest(query=body.query, limit=body.limit, filters=filters, changes=body.changes())

    def searched(client: LocalClient) -> dict[str, Any]:
        started = time.perf_counter()
        answer = client.search(request)
        return {
            "query": answer.query,
            "search_type": body.mode(),
            "strategy": answer.strategy,
            "results": [_result(hit, text) for hit, text in zip(answer.hits, client.texts(answer.hits), strict=True)],
            "total": answer.total,
            "degraded": answer.degraded,
            "latency_ms": round((time.perf_counter() - started) * 1000, 3),
        }

    return await asked.answer(body.workspace, searched)


def _result(hit: Hit, text: str | None) -> dict[str, Any]:
    receipt = hit.receipt
    return {
        "path": hit.path or hit.rid,
        "chunk_id": hit.id,
        # Of a hit that is gone since it was found, the lines are left that were shown.
        "chunk_text": "\n".join(line.text for line in hit.lines) if text is None else text,
        "score": hit.score,
        "start_line": hit.line_start,
        "end_line": hit.line_end,
        "keyword_score": receipt.keyword_score if receipt.keyword_rank else None,
        "vector_score": receipt.vector_score if receipt.vector_rank else None,
        "fused_score": receipt.fused_score,
    }
