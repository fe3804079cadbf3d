"""Writing what is no file: decisions, notes, tasks and types of your own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from findling.domain.errors import InvalidValueError, UsageError
from findling.domain.resources import Resource
from findling.faces.http.base.json_text import json_response, report_text
from findling.faces.http.request.bodies import WorkspaceName
from findling.faces.http.request.checked_routes import CheckedRoute
from findling.faces.http.request.context import Asked, Writing
from findling.faces.http.routes.openapi import Report
from findling.pipelines.content.items import compose
from findling.pipelines.content.items_reading import Entry
from findling.pipelines.content.resource_types import resource_type
from findling.service.engine.engine import Engine

__all__ = ["ResourcesBody", "router"]

router = APIRouter(route_class=CheckedRoute, tags=["writing"])

_MOST_ENTRIES = 10_000


class ResourcesBody(BaseModel):
    """What shall be there, and what shall not."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    workspace: WorkspaceName = ""
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
    return json_response(await asked.write(lambda: _changed(asked, body)))


def _changed(asked: Asked, body: ResourcesBody) -> bytes:
    items = [_with_body(item) for item in body.upsert]
    entries = [Entry({"delete": rid}, f"delete {place}") for place, rid in enumerate(body.delete, 1)]
    entries += [Entry(item, f"upsert {place}") for place, item in enumerate(items, 1)]
    with asked.host.opened(asked.caller, body.workspace) as engine:
        rids = [_id_of(engine, item) for item in items]
        before = {rid: _known(engine, rid) for rid in rids}
        report = engine.items.add_document(entries)
        results = [_result(rid, "missing" if rid in report.missing else "deleted") for rid in body.delete]
        results += [_result(rid, _outcome(before[rid], _known(engine, rid))) for rid in rids]
        if not body.workspace and engine.writer.exists:
            asked.host.statistics.tell(documents=engine.writer.store.counts()["resources"])
    return report_text({**asdict(report), "results": results})


def _with_body(item: dict[str, Any]) -> dict[str, Any]:
    """The item with its `text` as its body, which is how others call it. Raises InvalidValueError when it has both."""
    if "text" not in item:
        return item
    if "body" in item:
        raise InvalidValueError("an item has a body or a text, not both", hint="leave out one of them")
    return {"body" if key == "text" else key: value for key, value in item.items()}


def _id_of(engine: Engine, item: dict[str, Any]) -> str:
    """The id that an item has or gets; empty for what is no item, as the writing itself is going to say."""
    try:
        kind = resource_type(str(item.get("type") or ""), engine.writer.settings.types)
        return compose(kind, item)[0].rid
    except UsageError:
        return ""


def _known(engine: Engine, rid: str) -> tuple[Resource, str] | None:
    document = engine.writer.store.document(rid) if engine.writer.exists else None
    return None if document is None else (document.resource, document.text)


def _outcome(before: tuple[Resource, str] | None, after: tuple[Resource, str] | None) -> str:
    if before is None:
        return "added"
    return "unchanged" if before == after else "changed"


def _result(rid: str, outcome: str) -> dict[str, str]:
    return {"id": rid, "outcome": outcome}
