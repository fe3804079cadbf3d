"""Single documents: fetching, explaining, neighbours; paths between things; themes; and completions of a text."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from pydantic import Field
from starlette.responses import Response

from findling.faces.http.base.json_text import answer_text, json_response, report_text, with_schema
from findling.faces.http.request.bodies import ExplainParameters, NameParameters, SuggestParameters, WorkspaceParameters
from findling.faces.http.request.context import Asked, CheckedRoute, Reading
from findling.faces.http.routes.openapi import (
    AnswerDocument,
    ExplanationDocument,
    FetchedAnswer,
    Report,
    SuggestionsDocument,
    ThemesDocument,
)

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
    text = await asked.run(lambda: _fetched(asked, id, parameters), stage="fetch")
    # A weak one: the text may be sent compressed or not.
    tag = f'W/"{blake2b(text, digest_size=16).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if if_none_match is not None and _names(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    return json_response(text, headers=headers)


@router.get("/v1/explain", response_model=ExplanationDocument)
async def explain(parameters: Annotated[ExplainParameters, Query()], asked: Reading) -> Response:
    """Why a document is in the answer to a question, or what keeps it out."""
    return json_response(await asked.run(lambda: _explained(asked, parameters), stage="explain"))


@router.get("/v1/similar/{id:path}", response_model=AnswerDocument)
async def similar(
    id: _Name,  # noqa: A002 - the word of the interface
    parameters: Annotated[NameParameters, Query()],
    asked: Reading,
) -> Response:
    """The nearest neighbours of a document."""
    return json_response(await asked.run(lambda: _neighbours(asked, id, parameters), stage="similar"))


@router.get("/v1/related", response_model=Report)
async def related(parameters: Annotated[RelatedParameters, Query()], asked: Reading) -> Response:
    """The `paths` that connect two things by their `names`, each of the `steps` with the `passage` that proves it.

    For one thing, the `names` and `documents` around it. `unknown` are things that nothing names.
    """
    return json_response(await asked.run(lambda: _connected(asked, parameters), stage="related"))


@router.get("/v1/themes", response_model=ThemesDocument)
async def themes(parameters: Annotated[ThemesParameters, Query()], asked: Reading) -> Response:
    """The themes of a workspace: groups of passages that name the same things, those with most documents first."""
    return json_response(await asked.run(lambda: _themed(asked, parameters), stage="themes"))


@router.get("/v1/themes/{id:path}", response_model=AnswerDocument)
async def theme(
    id: _Name,  # noqa: A002 - the word of the interface
    parameters: Annotated[NameParameters, Query()],
    asked: Reading,
) -> Response:
    """The best passages of the theme that a passage or a document belongs to."""
    return json_response(await asked.run(lambda: _of_theme(asked, id, parameters), stage="themes"))


@router.get("/v1/suggest", response_model=SuggestionsDocument)
async def suggest(parameters: Annotated[SuggestParameters, Query()], asked: Reading) -> Response:
    """Completions of a text that is being typed."""
    return json_response(await asked.run(lambda: _completed(asked, parameters), stage="suggest"))


def _fetched(asked: Asked, name: str, parameters: FetchParameters) -> bytes:
    with asked.host.client(asked.caller, parameters.workspace) as client:
        return with_schema(client.fetch(name, context=parameters.lines))


def _explained(asked: Asked, parameters: ExplainParameters) -> bytes:
    request, workspace = parameters.question(asked.caller)
    with asked.host.client(asked.caller, workspace) as client:
        return with_schema(client.explain(request, parameters.id))


def _neighbours(asked: Asked, name: str, parameters: NameParameters) -> bytes:
    with asked.host.client(asked.caller, parameters.workspace) as client:
        return answer_text(client.similar(name, parameters.limit), asked.caller, str(client.root))


def _connected(asked: Asked, parameters: RelatedParameters) -> bytes:
    with asked.host.client(asked.caller, parameters.workspace) as client:
        answer = client.related(parameters.of, parameters.to, limit=parameters.limit, hops=parameters.hops)
        return report_text(answer.to_dict())


def _themed(asked: Asked, parameters: ThemesParameters) -> bytes:
    with asked.host.client(asked.caller, parameters.workspace) as client:
        return with_schema(client.themes(parameters.limit))


def _of_theme(asked: Asked, name: str, parameters: NameParameters) -> bytes:
    with asked.host.client(asked.caller, parameters.workspace) as client:
        return answer_text(client.theme_passages(name, parameters.limit), asked.caller, str(client.root))


def _completed(asked: Asked, parameters: SuggestParameters) -> bytes:
    with asked.host.client(asked.caller, parameters.workspace) as client:
        found = client.suggest(parameters.q, parameters.limit)
    return report_text({"text": parameters.q, "suggestions": found})


def _names(header: str, tag: str) -> bool:
    """Whether If-None-Match names a tag, compared weakly, as it is for what is only read."""
    listed = [part.strip().removeprefix("W/") for part in header.split(",")]
    return tag.removeprefix("W/") in listed or "*" in listed
