"""What only the command line asks, over the unix socket: searching under settings of its own, and the daemon itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from findling.domain.errors import FindlingError, InvalidValueError, NotIndexedError
from findling.domain.permissions import Caller
from findling.domain.queries import SearchRequest
from findling.domain.results import SCHEMA_VERSION, Degradation
from findling.faces.http.base.problems import problem_response
from findling.faces.http.security.guards import is_local
from findling.service.engine.background import tend
from findling.service.engine.engine import Engine
from findling.service.engine.executor import WorkLine
from findling.service.server.daemon_client import read_request
from findling.service.server.engine_pool import Host
from findling.service.settings.portable_settings import read_settings
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import folder_of, indexed_root
from findling.service.workspace.writer_queue import REFRESH_PATIENCE_S, WriterQueue

__all__ = ["local_routes"]


def local_routes(
    host: Host, line: WorkLine, *, stop: Callable[[], None], about: Callable[[], dict[str, Any]]
) -> list[Route]:
    """The routes below `/local`. `stop` ends the daemon, `about` says what is known of it."""

    async def search(request: Request) -> Response:
        if (refused := _refused(request)) is not None:
            return refused
        body = await request.body()
        try:
            asked = await line.run(partial(_prepare, host, body))
            if not asked.refresh:
                return _json_response(await line.run(partial(_search, host, asked)))
            # Not in one of the threads, of which there are few: others want to be answered meanwhile.
            async with WriterQueue.of(asked.folder).awaited(REFRESH_PATIENCE_S) as run:
                refreshed = await line.run(partial(run, partial(_refresh, host, asked)))
            return _json_response(await line.run(partial(_search, host, asked, refreshed)))
        except FindlingError as error:
            return problem_response(error)

    async def status(request: Request) -> Response:
        return _refused(request) or _json_response(_encode(about()))

    async def end(request: Request) -> Response:
        refused = _refused(request)
        if refused is None:
            stop()
        return refused or _json_response(b"{}")

    return [
        Route("/local/search", search, methods=["POST"]),
        Route("/local/status", status, methods=["GET"]),
        Route("/local/stop", end, methods=["POST"]),
    ]


def _refused(request: Request) -> Response | None:
    known: dict[str, Any] = request.scope["state"]
    caller: Caller = known["caller"]
    if is_local(request.scope) and caller.is_owner:
        return None
    return problem_response(404, instance=known["request_id"])


class _Asked(NamedTuple):
    """What the command line wants to know, and where."""

    path: Path
    folder: Path
    settings: Settings
    requests: list[SearchRequest]
    refresh: bool


def _prepare(host: Host, body: bytes) -> _Asked:
    """The questions in a body. Raises NotIndexedError for what the command line has to index first."""
    asked = _read(body)
    settings = _settings(host, asked)
    path = _place(host, asked, settings)
    requests = [read_request(one) for one in asked["requests"]]
    refresh = asked["refresh"] and settings["search.refresh"] == "auto"
    with host.opened_local(path, settings) as engine:
        if refresh:
            _require_index(engine)
        return _Asked(path, engine.home, settings, requests, refresh)


class _Refreshed(NamedTuple):
    """What stood in the way of a refresh, and how long it took."""

    notes: Sequence[Degradation] = ()
    seconds: float = 0.0


def _refresh(host: Host, asked: _Asked) -> _Refreshed:
    started = time.perf_counter()
    with host.opened_local(asked.path, asked.settings) as engine:
        _require_index(engine)  # again: it may have been dropped while others had their turn
        notes = engine.refresh()
    return _Refreshed(notes, time.perf_counter() - started)


def _search(host: Host, asked: _Asked, refreshed: _Refreshed = _Refreshed()) -> bytes:  # noqa: B008 - a constant
    """Answer as `findling search` would, and have done what it would have done next."""
    answers, reading = [], None
    with host.opened_local(asked.path, asked.settings) as engine:
        for request in asked.requests:
            started = time.perf_counter()
            answer = engine.search(request, refresh=False, notes=refreshed.notes)
            seconds = time.perf_counter() - started + refreshed.seconds
            host.count(answer, seconds)
            refresh_ms = answer.timings_ms["refresh"] + refreshed.seconds * 1000
            timings = {**answer.timings_ms, "refresh": round(refresh_ms, 3)}
            answers.append(replace(answer, served_by=host.served_by, timings_ms=timings))
            refreshed = _Refreshed()
        if answers:
            reading = tend(engine, asked.settings, answers[-1])
        return _encode(
            {
                "answers": [{"schema": SCHEMA_VERSION, **vars(answer)} for answer in answers],
                "root": str(engine.root),
                "folder": str(engine.home),
                "reading": reading._asdict() if reading else None,
            }
        )


def _require_index(engine: Engine) -> None:
    """Raises NotIndexedError for what has to be indexed first, which the command line asks its user about."""
    if not engine.is_indexed():
        raise NotIndexedError(f"{engine.root} is not indexed", hint=f"findling index {engine.root}")


def _settings(host: Host, asked: Mapping[str, Any]) -> Settings:
    """The settings of the command line, which find the same opened workspaces as those of the daemon."""
    if asked["home"] != str(host.home):
        raise InvalidValueError(f"this is the daemon of {host.home}", hint="FINDLING_HOME")
    own = host.settings
    return read_settings(asked["settings"]).override({"store.home": own["store.home"]}, own.origin("store.home"))


def _place(host: Host, asked: Mapping[str, Any], settings: Settings) -> Path:
    """What is searched: a path, or all of a workspace that is named from outside of it."""
    path, name = Path(asked["path"]), settings["workspace.name"] or settings["context.workspace"]
    if not name:
        return path
    root = indexed_root(folder_of(name, host.home))
    if root is None:
        raise NotIndexedError(f"there is no workspace {name}", hint="findling workspaces list")
    is_outside = asked["is_here"] and root not in (resolved := path.resolve(), *resolved.parents)
    return root if is_outside else path


def _read(body: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise InvalidValueError(f"this is no JSON: {error}", hint="send a document") from error
    wanted = {"home": str, "path": str, "is_here": bool, "refresh": bool, "settings": dict, "requests": list}
    if not isinstance(asked, dict) or set(asked) != set(wanted):
        raise InvalidValueError("this is no question of the command line", hint=f"it takes {', '.join(wanted)}")
    for name, kind in wanted.items():
        if not isinstance(asked[name], kind):
            raise InvalidValueError(f"{name} {asked[name]!r} is of the wrong kind", hint=f"correct {name}")
    return asked


def _encode(document: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(document, enc_hook=_plain)
    except UnicodeEncodeError:  # a path whose bytes are no UTF-8, which msgspec does not write
        return json.dumps(document, default=_plain).encode()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    return asdict(value)  # type: ignore[call-overload]


def _json_response(content: bytes) -> Response:
    return Response(content, media_type="application/json", headers={"cache-control": "no-store"})
