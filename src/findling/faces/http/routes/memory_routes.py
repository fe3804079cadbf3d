"""Memories: remembered, recalled as of any day, reviewed and taken back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from findling.faces.http.base.json_text import json_response, report_text
from findling.faces.http.request.bodies import WorkspaceName, WorkspaceParameters
from findling.faces.http.request.context import Asked, CheckedRoute, Owning, Reading, Writing
from findling.faces.http.routes.openapi import Report

router = APIRouter(route_class=CheckedRoute, prefix="/v1/memories", tags=["memories"])

_IN_BODY = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
_Text = Annotated[str, Field(max_length=1_000)]
_Texts = Annotated[list[_Text], Field(max_length=100)]
_Id = Annotated[str, Field(min_length=1, max_length=300, description="The id of a memory.")]
_Day = Annotated[str, Field(max_length=40)]


class MemoryBody(BaseModel):
    """A text to remember."""

    model_config = _IN_BODY

    workspace: WorkspaceName = ""
    text: Annotated[str, Field(min_length=1, max_length=100_000, description="One fact, understandable by itself.")]
    importance: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, description="0.5 for a new memory.")
    tags: _Texts = []
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


class UndoBody(BaseModel):
    """A memory whose latest decision is taken back."""

    model_config = _IN_BODY

    workspace: WorkspaceName = ""
    id: _Id


class ReviewBody(BaseModel):
    """A decision on two memories: both hold, they are one, or the newer one takes the place of the older one."""

    model_config = _IN_BODY

    workspace: WorkspaceName = ""
    newer: _Id
    older: _Id
    decision: Literal["keep", "merge", "supersede"]


@router.post("", response_model=Report)
async def remember(body: MemoryBody, asked: Writing) -> Response:
    """Keep a text, in `memory`: the same in other words updates a memory, a newer value supersedes an older one."""

    def work() -> bytes:
        with asked.host.opened(asked.caller, body.workspace) as engine:
            memory = engine.memories.remember(**body.model_dump(exclude={"workspace"}))
        return report_text({"memory": memory})

    return json_response(await asked.write(work))


@router.get("", response_model=Report)
async def recall(parameters: Annotated[RecallParameters, Query()], asked: Reading) -> Response:
    """The memories that answer a query, best first, with their receipts; without one the most important."""
    return json_response(await asked.run(lambda: _recalled(asked, parameters), stage="recall"))


@router.get("/review", response_model=Report)
async def review(parameters: Annotated[WorkspaceParameters, Query()], asked: Owning) -> Response:
    """The pairs of memories that may not hold together, in `pairs`; `trouble` kept a language model from helping."""

    def work() -> bytes:
        with asked.host.opened(asked.caller, parameters.workspace) as engine:
            found = engine.memories.review()
        return report_text({"pairs": found.pairs, "trouble": found.trouble})

    return json_response(await asked.write(work))


@router.post("/review", response_model=Report)
async def decide(body: ReviewBody, asked: Writing) -> Response:
    """Decide on a pair; `decided` is the memory that undoing takes it back by."""

    def work() -> bytes:
        with asked.host.opened(asked.caller, body.workspace) as engine:
            done = engine.memories.decide(body.newer, body.older, body.decision)
        return report_text({"decided": done, "decision": body.decision})

    return json_response(await asked.write(work))


@router.post("/undo", response_model=Report)
async def undo(body: UndoBody, asked: Writing) -> Response:
    """Take back the latest decision about a memory, in `undone`; both texts stay."""

    def work() -> bytes:
        with asked.host.opened(asked.caller, body.workspace) as engine:
            done = engine.memories.undo(body.id)
        return report_text({"undone": done})

    return json_response(await asked.write(work))


@router.get("/history", response_model=Report)
async def history(parameters: Annotated[HistoryParameters, Query()], asked: Reading) -> Response:
    """All states of the fact that a memory tells, in `versions`, the present one first."""

    def work() -> bytes:
        with asked.host.opened(asked.caller, parameters.workspace) as engine:
            found = engine.memories.history(parameters.id, principals=asked.caller.principals)
        return report_text({"versions": found})

    return json_response(await asked.run(work, stage="history"))


def _recalled(asked: Asked, parameters: RecallParameters) -> bytes:
    principals = asked.caller.principals
    with asked.host.opened(asked.caller, parameters.workspace) as engine:
        memories = engine.memories
        if not parameters.query.strip():
            every = memories.list(principals=principals, all_versions=parameters.all_versions)
            kept = [one for one in every if one.importance >= parameters.min_importance]
            return report_text({"memories": kept[: parameters.limit], "total": len(kept)})
        given: dict[str, Any] = parameters.model_dump(exclude={"workspace", "query"})
        answer = memories.recall(parameters.query, principals=principals, **given)
    return report_text({name: value for name, value in answer.to_dict().items() if name != "schema"})
