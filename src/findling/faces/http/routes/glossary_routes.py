"""The glossary queue: terms that were found and wait for the owner's decision."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from findling.domain.errors import NotFoundError
from findling.domain.records import GlossaryTerm
from findling.faces.http.request.bodies import WorkspaceParameters
from findling.faces.http.request.context import CheckedRoute, Owning, Writing
from findling.faces.http.routes.openapi import Report
from findling.service.engine.engine import Engine

router = APIRouter(route_class=CheckedRoute, prefix="/v1/glossary", tags=["glossary"])


class DecisionParameters(WorkspaceParameters):
    """The use of an approved term."""

    canonical: bool = Field(default=False, description="Make an approved term the name of its group.")


@router.get("/candidates", response_model=Report)
async def candidates(parameters: Annotated[WorkspaceParameters, Query()], asked: Owning) -> Response:
    """The terms that wait for a decision, in `pending`."""
    return await asked.report(parameters.workspace, lambda engine: _pending(engine, refill=False))


@router.post("/refill", response_model=Report)
async def refill(parameters: Annotated[WorkspaceParameters, Query()], asked: Writing) -> Response:
    """Look for terms in what has changed, and list all that wait for a decision, in `pending`.

    `trouble` is what kept a language model from helping.
    """
    return await asked.change(parameters.workspace, lambda engine: _pending(engine, refill=True))


@router.post("/candidates/{id}/{decision}", response_model=Report)
async def decide(
    id: Annotated[str, Path(max_length=100, description="The id of a pending term.")],  # noqa: A002 - as it is called
    decision: Literal["approve", "reject"],
    parameters: Annotated[DecisionParameters, Query()],
    asked: Writing,
) -> Response:
    """Take a term into use, or never have it suggested for its group again; `terms` are those that have changed."""

    def decided(engine: Engine) -> dict[str, object]:
        glossary = engine.glossary
        term = next((one for one in glossary.pending(refill=False) if _id_of(one) == id), None)
        if term is None:
            raise NotFoundError("there is no such candidate any more", hint="GET /v1/glossary/candidates")
        if decision == "approve":
            edit = glossary.approve(term.surface, term.group, canonical=parameters.canonical)
        else:
            edit = glossary.reject(term.surface, term.group)
        return {"id": id, "decision": decision, "terms": edit.put}

    return await asked.change(parameters.workspace, decided)


def _pending(engine: Engine, *, refill: bool) -> dict[str, object]:
    glossary = engine.glossary
    listed = [{"id": _id_of(term), **term._asdict()} for term in glossary.pending(refill=refill)]
    return {"pending": listed, "trouble": glossary.trouble}


def _id_of(term: GlossaryTerm) -> str:
    """Of the pair that is decided on: one term may be suggested for several groups."""
    return blake2b(f"{term.group}\0{term.key}".encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
