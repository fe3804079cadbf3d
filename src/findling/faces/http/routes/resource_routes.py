"""Writing what is no file: decisions, notes, tasks and types of your own."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from findling.domain.errors import InvalidValueError
from findling.faces.http.request.bodies import WorkspaceBody
from findling.faces.http.request.context import CheckedRoute, Writing
from findling.faces.http.routes.openapi import Report
from findling.service.engine.engine import Engine

router = APIRouter(route_class=CheckedRoute, tags=["writing"])

_MOST_ENTRIES = 10_000


class ResourcesBody(WorkspaceBody):
    """Resources to write, and resources to delete."""

    upsert: Annotated[list[dict[str, Any]], Field(max_length=_MOST_ENTRIES)] = Field(
        default=[],
        description="Items as `findling add` takes them: `type`, `id`, `title`, `body` (or `text`), `tags`, `author`, "
        "`visibility`, and the fields of the type. Without an `id` one follows from the content.",
    )
    delete: Annotated[list[Annotated[str, Field(min_length=1, max_length=4_000)]], Field(max_length=_MOST_ENTRIES)] = (
        Field(default=[], description="Ids of resources that are no files, such as decision:3f2a91c07d.")
    )


@router.post("/v1/resources", response_model=Report)
async def change_resources(body: ResourcesBody, asked: Writing) -> Response:
    """Upsert and delete, all or nothing: first it is deleted, then added, and nothing is done when one entry is wrong.

    `results` names what became of every entry, in the order in which they were given.
    """

    def changed(engine: Engine) -> dict[str, object]:
        report, outcomes = engine.items.change([_with_body(item) for item in body.upsert], body.delete)
        if not body.workspace and engine.writer.exists:
            asked.host.statistics.tell(documents=engine.writer.store.counts()["resources"])
        return {**vars(report), "results": [{"id": rid, "outcome": told} for rid, told in outcomes]}

    return await asked.change(body.workspace, changed)


def _with_body(item: dict[str, Any]) -> dict[str, Any]:
    """The item with its `text` as its body, which is how others call it. Raises InvalidValueError when it has both."""
    if "text" not in item:
        return item
    if "body" in item:
        raise InvalidValueError("an item has a body or a text, not both", hint="leave out one of them")
    return {"body" if key == "text" else key: value for key, value in item.items()}
