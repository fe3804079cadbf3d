"""Whole workspaces: what there is, how they are, and taking in what has changed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from findling.domain.errors import NotIndexedError
from findling.domain.permissions import ALL_WORKSPACES
from findling.faces.http.base.json_text import json_response, report_text
from findling.faces.http.request.bodies import WorkspaceBody, WorkspaceParameters
from findling.faces.http.request.context import Asked, CheckedRoute, Owning, Reading, Writing
from findling.faces.http.routes.openapi import Report
from findling.service.engine.engine import Engine

router = APIRouter(route_class=CheckedRoute, tags=["workspaces"])

_OfWorkspace = Annotated[WorkspaceParameters, Query()]


class IndexBody(WorkspaceBody):
    """The workspace to bring up to date."""


@router.get("/v1/status", response_model=Report)
async def status(parameters: _OfWorkspace, asked: Reading) -> Response:
    """The content of a workspace: `resources` and `chunks` that the caller may see.

    The owner gets all of `findling status --json`, `is_indexed`, the progress of a requested run (`indexing`), and the
    counts of the server (`daemon`).
    """
    run = asked.run_beside if asked.caller.is_owner else asked.run
    return json_response(await run(lambda: _status(asked, parameters.workspace)))


@router.get("/v1/failed", response_model=Report)
async def failed(parameters: _OfWorkspace, asked: Owning) -> Response:
    """The files that could not be read, or not all of them, and why. For the owner."""

    def failed(engine: Engine) -> dict[str, object]:
        entries = [{"path": one.path, "reason": one.reason, "detail": one.detail} for one in engine.failed()]
        return {"failed_paths": entries}

    return await asked.report(parameters.workspace, failed)


@router.get("/v1/workspaces", response_model=Report)
async def workspaces(asked: Reading) -> Response:
    """The workspaces that the caller may ask; the owner sees the content of each.

    Others see those that have a name, and the served one, whose name may be empty.
    """
    return json_response(await asked.run(lambda: _listed(asked)))


@router.post("/v1/index", status_code=202, response_model=Report)
async def index(body: IndexBody, asked: Writing) -> Response:
    """Begin to index what is new, changed or gone on disk; `/v1/status` says how far it is.

    `started` is false when a run is under way already.
    """

    def started() -> bytes:
        has_begun = asked.runs.start(body.workspace)
        return report_text({"started": has_begun, "indexing": asked.runs.account(body.workspace)})

    return json_response(await asked.run(started), status=202)


def _status(asked: Asked, workspace: str) -> bytes:
    caller = asked.caller
    # First: what is told of a run that is done is counted after it.
    indexing = asked.runs.account(workspace) if caller.is_owner else None
    try:
        with asked.host.client(caller, workspace) as client:
            told = client.status()
            is_indexed = True
    except NotIndexedError:
        told, is_indexed = {"resources": 0, "chunks": 0}, False
    if not caller.is_owner:
        return report_text(told)
    counted = {**asked.host.statistics.snapshot(), "queue_depth": asked.line.waiting, "running": asked.line.running}
    more = {"is_indexed": is_indexed, "indexing": indexing, "daemon": counted}
    return report_text({**told, **more})


def _listed(asked: Asked) -> bytes:
    caller, served = asked.caller, asked.host.default
    listed: list[dict[str, Any]] = []
    for one in asked.host.workspaces(caller):
        may_name = caller.is_owner or not {ALL_WORKSPACES, one.label}.isdisjoint(caller.workspaces)
        is_default = not may_name or served in (one.root, str(one.folder))
        if caller.is_owner:
            listed.append({**vars(one), "label": one.label, "is_default": is_default})
        elif one.name or is_default:
            # Neither how much there is, which counts what they may not see, nor where: one without a name goes by it.
            listed.append({"name": one.name if may_name else "", "is_default": is_default})
    return report_text({"workspaces": listed})
