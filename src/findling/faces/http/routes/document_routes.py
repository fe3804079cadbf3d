"""Single documents: fetching, explaining, neighbours; paths between things; themes; and completions of a text."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from pydantic import Field
from starlette.responses import Response

from findling.faces.http.request.bodies import ExplainParameters, NameParameters, SuggestParameters, WorkspaceParameters
from findling.faces.http.request.context import CheckedRoute, Reading
from findling.faces.http.routes.openapi import (
    AnswerDocument,
    ExplanationDocument,
    FetchedAnswer,
    Report,
    SuggestionsDocument,
    ThemesDocument,
)
from findling.service.engine.client import LocalClient

router = APIRouter(route_class=CheckedRoute, tags=["documents"])

_Name = Annotated[
    str,
    Path(
        max_length=4_000,
        description="The id of a hit or a resource, or a path in the workspace, also with a line: notes.md:12.",
    ),
]

_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "It is as If-None-Match says."}}


class FetchParameters(WorkspaceParameters):
    """The wanted part of a document."""

    lines: int = Field(default=0, ge=0, le=100_000, description="Lines before and after the passage, too.")


class RelatedParameters(NameParameters):
    """A question for the paths between two things, or for what is around one."""

    of: str = Field(min_length=1, max_length=4_000, description="A name, a title, a path, or the id of a hit.")
    to: str = Field(default="", max_length=4_000, description="Another one; empty: what is around the first.")
    hops: int = Field(default=4, ge=1, le=4, description="The longest path in steps.")


class ThemesParameters(WorkspaceParameters):
    """A question for themes."""

    limit: int = Field(default=20, ge=1, le=100, description="The number of themes.")


@router.get("/v1/fetch/{id:path}", response_model=FetchedAnswer, responses=_UNCHANGED)
async def fetch(
    id: _Name,  # noqa: A002 - the word of the interface
    parameters: Annotated[FetchParameters, Query()],
    asked: Reading,
    if_none_match: Annotated[str | None, Header(max_length=4_000)] = None,
) -> Response:
    """A document, or the passage of it that an id stands for, as the index holds it."""
    response = await asked.answer(
        parameters.workspace, lambda client: client.fetch(id, context=parameters.lines), "fetch"
    )
    # A weak one: the text may be sent compressed or not.
    tag = f'W/"{blake2b(response.body, digest_size=16).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if if_none_match is not None and _names(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return response


@router.get("/v1/explain", response_model=ExplanationDocument)
async def explain(parameters: Annotated[ExplainParameters, Query()], asked: Reading) -> Response:
    """Why a document is in the answer to a question, or what keeps it out."""
    request, workspace = parameters.question(asked.caller)
    return await asked.answer(workspace, lambda client: client.explain(request, parameters.id), "explain")


@router.get("/v1/similar/{id:path}", response_model=AnswerDocument)
async def similar(
    id: _Name,  # noqa: A002 - the word of the interface
    parameters: Annotated[NameParameters, Query()],
    asked: Reading,
) -> Response:
    """The nearest neighbours of a document."""
    return await asked.answer(parameters.workspace, lambda client: client.similar(id, parameters.limit), "similar")


@router.get("/v1/related", response_model=Report)
async def related(parameters: Annotated[RelatedParameters, Query()], asked: Reading) -> Response:
    """The `paths` that connect two things by their `names`, each of the `steps` with the `passage` that proves it.

    For one thing, the `names` and `documents` around it. `unknown` are things that nothing names.
    """
    chosen = parameters.model_dump(exclude={"workspace"})
    return await asked.answer(parameters.workspace, lambda client: client.related(**chosen), "related")


@router.get("/v1/themes", response_model=ThemesDocument)
async def themes(parameters: Annotated[ThemesParameters, Query()], asked: Reading) -> Response:
    """The themes of a workspace: groups of passages that name the same things, those with most documents first."""
    return await asked.answer(parameters.workspace, lambda client: client.themes(parameters.limit), "themes")


@router.get("/v1/themes/{id:path}", response_model=AnswerDocument)
async def theme(
    id: _Name,  # noqa: A002 - the word of the interface
    parameters: Annotated[NameParameters, Query()],
    asked: Reading,
) -> Response:
    """The best passages of the theme that a passage or a document belongs to."""
    return await asked.answer(
        parameters.workspace, lambda client: client.theme_passages(id, parameters.limit), "themes"
    )


@router.get("/v1/suggest", response_model=SuggestionsDocument)
async def suggest(parameters: Annotated[SuggestParameters, Query()], asked: Reading) -> Response:
    """Completions of a text that is being typed."""

    def completed(client: LocalClient) -> dict[str, object]:
        return {"text": parameters.q, "suggestions": client.suggest(parameters.q, parameters.limit)}

    return await asked.answer(parameters.workspace, completed, "suggest")


def _names(header: str, tag: str) -> bool:
    """Whether If-None-Match names a tag, compared weakly, as it is for what is only read."""
    listed = {part.strip().removeprefix("W/") for part in header.split(",")}
    return not listed.isdisjoint((tag.removeprefix("W/"), "*"))
