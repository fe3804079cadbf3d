"""Searching: at once, or in stages as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from findling.domain.errors import FindlingError
from findling.domain.results import Degradation, SearchAnswer
from findling.faces.http.base.json_text import NO_STORE, answer_text, json_response, with_schema
from findling.faces.http.base.problems import problem_document
from findling.faces.http.request.bodies import PlacedRequest, SearchBody, SearchParameters
from findling.faces.http.request.context import Asked, CheckedRoute, DirectRoute, Reading
from findling.faces.http.routes.openapi import AnswerDocument

EVENTS = "text/event-stream"


def event(name: str, data: bytes) -> bytes:
    """One event; its data must be a single line."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


direct = APIRouter(route_class=DirectRoute, tags=["search"])
router = APIRouter(route_class=CheckedRoute, tags=["search"])

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events: candidates, reranked, done; or error.", "content": {EVENTS: {}}}
}


@direct.post("/v1/search", response_model=AnswerDocument)
async def search(body: SearchBody, asked: Reading) -> Response:
    """Answer a question."""
    return json_response(await asked.run(partial(searched, asked, body)))


@direct.get("/v1/search", response_model=AnswerDocument)
async def search_by_address(parameters: Annotated[SearchParameters, Query()], asked: Reading) -> Response:
    """Answer a question that is all in the address."""
    return json_response(await asked.run(partial(searched, asked, parameters)))


@router.post("/v1/search/stream", responses=_STREAM, response_class=StreamingResponse)
async def stream(body: SearchBody, asked: Reading, request: Request) -> Response:
    """Answer a question in stages: a quick answer as `candidates`, the whole one as `reranked`, then `done`.

    A question that cannot be answered gets the errors of `/v1/search`; later errors are the event `error`.
    """
    return await _streamed(asked, body.question(asked.caller), request)


@router.get("/v1/search/stream", responses=_STREAM, response_class=StreamingResponse)
async def stream_by_address(
    parameters: Annotated[SearchParameters, Query()], asked: Reading, request: Request
) -> Response:
    """The same for a question that is all in the address, as an `EventSource` asks it."""
    return await _streamed(asked, parameters.question(asked.caller), request)


def searched(asked: Asked, given: SearchBody | SearchParameters) -> bytes:
    """The text of the answer to a question. Raises as `LocalClient.search` does, and as `given.question`."""
    answer, root = _answered(asked, given.question(asked.caller))
    return answer_text(answer, asked.caller, root)


def _answered(asked: Asked, question: PlacedRequest) -> tuple[SearchAnswer, str]:
    request, workspace = question
    with asked.host.client(asked.caller, workspace) as client:
        return client.search(request), str(client.root)


async def _streamed(asked: Asked, question: PlacedRequest, request: Request) -> Response:
    quick = question._replace(request=replace(question.request, quick=True))
    # Before anything is sent, so that a question that cannot be answered still gets a status of its own.
    first = await asked.run(lambda: _answered(asked, quick))
    return StreamingResponse(_stages(asked, question, first, request), media_type=EVENTS, headers=NO_STORE)


async def _stages(
    asked: Asked, question: PlacedRequest, first: tuple[SearchAnswer, str], request: Request
) -> AsyncIterator[bytes]:
    answer, root = first
    yield event("candidates", answer_text(answer, asked.caller, root))
    if not question.request.quick:
        question = question._replace(request=replace(question.request, patient=True))
        if await request.is_disconnected():
            return
        try:
            answer, root = await asked.run(lambda: _whole(asked, question, first))
        except ClientDisconnect:
            return
        except FindlingError as error:
            instance = request.scope.get("state", {}).get("request_id", "")
            told = problem_document(error, instance=instance, is_owner=asked.caller.is_owner)
            yield event("error", with_schema(told))
            return
        yield event("reranked", answer_text(answer, asked.caller, root))
    yield event("done", _summary(answer))


def _whole(asked: Asked, question: PlacedRequest, quick: tuple[SearchAnswer, str]) -> tuple[SearchAnswer, str]:
    """The whole answer, or the quick one again where that has taken more than half of what both may take."""
    if asked.budget.allows_again("nothing was read again"):
        return _answered(asked, question)
    told = Degradation(what=asked.budget.refused[-1], fix="ask for less")
    return replace(quick[0], degraded=(*quick[0].degraded, told), quality="reduced"), quick[1]


def _summary(answer: SearchAnswer) -> bytes:
    told = ("total", "weaker", "total_is_exact", "strategy", "quality", "timings_ms", "next_cursor", "served_by")
    return with_schema({"shown": len(answer.hits), **{name: getattr(answer, name) for name in told}})
