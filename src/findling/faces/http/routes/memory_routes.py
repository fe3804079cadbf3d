"""Memories: remembered, recalled as of any day, reviewed and taken back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from findling.faces.http.request.bodies import WorkspaceBody, WorkspaceParameters
from findling.faces.http.request.context import CheckedRoute, Owning, Reading, Writing
from findling.faces.http.routes.openapi import Report
from findling.service.content.memories import WorkspaceMemories
from findling.service.engine.engine import Engine

router = APIRouter(route_class=CheckedRoute, prefix="/v1/memories", tags=["memories"])

_Text = Annotated[str, Field(max_length=1_000)]
_Texts = Annotated[list[_Text], Field(max_length=100)]
_Id = Annotated[str, Field(min_length=1, max_length=300, description="The id of a memory.")]
_Day = Annotated[str, Field(max_length=40)]


class MemoryBody(WorkspaceBody):
    """A text to remember."""

    text: Annotated[str, Field(min_length=1, max_length=100_000, description="One fact, understandable by itself.")]
    importance: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, description="0.5 for a new memory.")
    tags: _Texts = Field(default=[])
    author: _Text = Field(default="", description="Who says so.")
    id: _Text = Field(default="", description="Its own id, under which it can be changed later.")
    visibility: _Texts | None = Field(default=None, description="Who may see it, such as user:ada.")
    source: _Text = Field(default="", description="Where it comes from.")
    since: _Day = Field(default="", description="The first day on which it holds, such as 2026-06-03.")
    until: _Day = Field(default="", description="The last day on which it holds.")


class RecallParameters(WorkspaceParameters):
    """A question to memories."""

    query: Annotated[str, Field(max_length=10_000)] = Field(default="", description="Empty: the most important.")
    limit: Annotated[int, Field(ge=1, le=1_000)] = 10
    mode: Literal["hybrid", "keyword", "semantic"] | None = None
    min_importance: Annotated[float, Field(ge=0, le=1)] = 0.0
    at: _Day = Field(default="", description="A day: the answer is what held then.")
    all_versions: bool = Field(default=False, description="Also what does not hold any more.")


class HistoryParameters(WorkspaceParameters):
    """A memory."""

    id: _Id


class UndoBody(WorkspaceBody):
    """A memory whose latest decision is taken back."""

    id: _Id


class ReviewBody(WorkspaceBody):
    """A decision on two memories: both hold, they are one, or the newer one takes the place of the older one."""

    newer: _Id
    older: _Id
    decision: Literal["keep", "merge", "supersede"]


@router.post("", response_model=Report)
async def remember(body: MemoryBody, asked: Writing) -> Response:
    """Keep a text, in `memory`: the same in other words updates a memory, a newer value supersedes an older one."""
    given = body.model_dump(exclude={"workspace"})
    return await asked.change(body.workspace, lambda engine: {"memory": engine.memories.remember(**given)})


@router.get("", response_model=Report)
async def recall(parameters: Annotated[RecallParameters, Query()], asked: Reading) -> Response:
    """The memories that answer a query, best first, with their receipts; without one the most important."""
    principals = asked.caller.principals
    return await asked.report(
        parameters.workspace, lambda engine: _recalled(engine.memories, parameters, principals), "recall"
    )


@router.get("/review", response_model=Report)
async def review(parameters: Annotated[WorkspaceParameters, Query()], asked: Owning) -> Response:
    """The pairs of memories that may not hold together, in `pairs`; `trouble` kept a language model from helping."""
    return await asked.change(parameters.workspace, lambda engine: engine.memories.review())


@router.post("/review", response_model=Report)
async def decide(body: ReviewBody, asked: Writing) -> Response:
    """Decide on a pair; `decided` is the memory that undoing takes it back by."""

    def decided(engine: Engine) -> dict[str, object]:
        return {"decided": engine.memories.decide(body.newer, body.older, body.decision), "decision": body.decision}

    return await asked.change(body.workspace, decided)


@router.post("/undo", response_model=Report)
async def undo(body: UndoBody, asked: Writing) -> Response:
    """Take back the latest decision about a memory, in `undone`; both texts stay."""
    return await asked.change(body.workspace, lambda engine: {"undone": engine.memories.undo(body.id)})


@router.get("/history", response_model=Report)
async def history(parameters: Annotated[HistoryParameters, Query()], asked: Reading) -> Response:
    """All states of the fact that a memory tells, in `versions`, the present one first."""

    def versions(engine: Engine) -> dict[str, object]:
        return {"versions": engine.memories.history(parameters.id, principals=asked.caller.principals)}

    return await asked.report(parameters.workspace, versions, "history")


def _recalled(
    memories: WorkspaceMemories, parameters: RecallParameters, principals: tuple[str, ...] | None
) -> dict[str, Any]:
    if not parameters.query.strip():
        every = memories.list(principals=principals, all_versions=parameters.all_versions)
        kept = [one for one in every if one.importance >= parameters.min_importance]
        return {"memories": kept[: parameters.limit], "total": len(kept)}
    given: dict[str, Any] = parameters.model_dump(exclude={"workspace", "query"})
    answer = memories.recall(parameters.query, principals=principals, **given)
    return {name: value for name, value in answer.to_dict().items() if name != "schema"}
