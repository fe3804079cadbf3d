"""Routes for the command line alone, over the unix socket: searching under its own settings, and the daemon itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from findling.domain.errors import FindlingError, InvalidValueError, NotIndexedError
from findling.domain.permissions import OWNER, Caller
from findling.faces.http.base.json_text import encoded, json_response, with_schema
from findling.faces.http.base.problems import problem_response
from findling.faces.http.security.guards import is_local
from findling.service.client.daemon import from_json, read_request
from findling.service.engine.client import LocalClient, Refreshed
from findling.service.engine.engine import Engine
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.settings.portable_settings import read_settings
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import folder_of, indexed_root
from findling.service.workspace.writer_queue import REFRESH_PATIENCE_S, WriterQueue


def local_routes(
    host: Host, line: WorkLine, *, stop: Callable[[], None], about: Callable[[], dict[str, Any]]
) -> list[Route]:
    """The routes below `/local`. `stop` ends the daemon, `about` says what is known of it."""

    async def ask(request: Request) -> Response:
        if (refused := _refused(request)) is not None:
            return refused
        body = await request.body()
        try:
            asked = await line.run(partial(_prepare, host, body))
            if not asked.refresh:
                return json_response(await line.run(partial(_answer, host, asked)))
            # Not in one of the threads, of which there are few: others want to be answered meanwhile.
            async with WriterQueue.of(asked.folder).awaited(REFRESH_PATIENCE_S) as run:
                refreshed = await line.run(partial(run, partial(_refresh, host, asked)))
            return json_response(await line.run(partial(_answer, host, asked, refreshed)))
        except FindlingError as error:
            return problem_response(error)

    async def status(request: Request) -> Response:
        return _refused(request) or json_response(encoded(about()))

    async def end(request: Request) -> Response:
        refused = _refused(request)
        if refused is None:
            stop()
        return refused or json_response(b"{}")

    return [
        Route("/local/ask", ask, methods=["POST"]),
        Route("/local/status", status, methods=["GET"]),
        Route("/local/stop", end, methods=["POST"]),
    ]


def _refused(request: Request) -> Response | None:
    return None if is_local(request.scope) else problem_response(404, instance=request.scope["state"]["request_id"])


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A question of the command line, as it comes."""

    home: str
    path: str
    is_here: bool
    settings: dict[str, Any]
    principals: tuple[str, ...] | None
    verb: str
    arguments: dict[str, Any]
    refresh: bool


class _Prepared(NamedTuple):
    """A question that was read, and the place that it is about."""

    path: Path
    folder: Path
    settings: Settings
    caller: Caller
    verb: str
    arguments: dict[str, Any]
    refresh: bool


_VERBS: Mapping[str, Mapping[str, type]] = {
    "search": {"requests": list},
    "explain": {"request": dict, "name": str},
    "fetch": {"name": str, "context": int},
    "similar": {"name": str, "limit": int},
    "suggest": {"text": str, "limit": int},
}
"""The methods of a client that can be called, with their arguments."""


def _prepare(host: Host, body: bytes) -> _Prepared:
    """Read the question in a body. Raises NotIndexedError for a place that the command line has to index first."""
    try:
        asked = from_json(_Question, json.loads(body))
    except ValueError as error:
        raise InvalidValueError(f"this is no JSON: {error}", hint="send a document") from error
    verb, arguments = asked.verb, asked.arguments
    wanted = _VERBS.get(verb)
    if wanted is None:
        raise InvalidValueError(f"there is no verb {verb!r:.60}", hint=f"one of {', '.join(_VERBS)}")
    if set(arguments) != set(wanted) or not all(isinstance(arguments[name], kind) for name, kind in wanted.items()):
        raise InvalidValueError(f"these are no arguments of {verb}", hint=f"it takes {', '.join(wanted)}")
    settings = _settings(host, asked)
    path = _place(host, asked, settings)
    if verb == "search":
        arguments = {"requests": [read_request(one) for one in arguments["requests"]]}
    elif verb == "explain":
        arguments = {**arguments, "request": read_request(arguments["request"])}
    refresh = asked.refresh and settings["search.refresh"] == "auto"
    with host.opened_local(path, settings) as engine:
        if refresh:
            _require_index(engine)
        caller = OWNER._replace(principals=asked.principals)
        return _Prepared(path, engine.home, settings, caller, verb, arguments, refresh)


def _refresh(host: Host, asked: _Prepared) -> Refreshed:
    started = time.perf_counter()
    with host.opened_local(asked.path, asked.settings) as engine:
        _require_index(engine)  # again: it may have been dropped while others had their turn
        first = next(iter(asked.arguments.get("requests", ())), None)
        question = first.query if first is not None and first.quick else None
        notes = engine.refresh(principals=asked.caller.principals, question=question)
    return Refreshed(notes, time.perf_counter() - started)


def _answer(host: Host, asked: _Prepared, refreshed: Refreshed = Refreshed()) -> bytes:  # noqa: B008 - a constant
    """Answer as a command would, and have done what it would have done next."""
    with host.local_client(asked.path, asked.settings, asked.caller) as client:
        result = _carried_out(client, asked, refreshed)
        reading = client.finish()
        rest = {"root": client.root, "folder": client.home, "reading": reading._asdict() if reading else None}
    return b'{"result":%b,%b' % (result, encoded(rest)[1:])


def _carried_out(client: LocalClient, asked: _Prepared, refreshed: Refreshed) -> bytes:
    if asked.verb == "search":
        first, *others = asked.arguments["requests"] or [None]
        answers = [client.search(first, refreshed=refreshed)] if first else []
        answers += [client.search(request) for request in others]
        return b"[%b]" % b",".join(map(with_schema, answers))
    if asked.verb == "explain":
        told = client.explain(**asked.arguments)
        return encoded(replace(told, degraded=(*refreshed.notes, *told.degraded)))
    return encoded(getattr(client, asked.verb)(**asked.arguments))


def _require_index(engine: Engine) -> None:
    """Raises NotIndexedError for what has to be indexed first, which the command line asks its user about."""
    if not engine.is_indexed():
        raise NotIndexedError(f"{engine.root} is not indexed", hint=f"findling index {engine.root}")


def _settings(host: Host, asked: _Question) -> Settings:
    """The settings of the command line, which find the same opened workspaces as those of the daemon."""
    if asked.home != str(host.home):
        raise InvalidValueError(f"this is the daemon of {host.home}", hint="FINDLING_HOME")
    own = host.settings
    return read_settings(asked.settings).override({"store.home": own["store.home"]}, own.origin("store.home"))


def _place(host: Host, asked: _Question, settings: Settings) -> Path:
    """The place to search: a path, or all of a workspace that is named from outside of it."""
    path, name = Path(asked.path), settings["workspace.name"] or settings["context.workspace"]
    if not name:
        return path
    root = indexed_root(folder_of(name, host.home))
    if root is None:
        raise NotIndexedError(f"there is no workspace {name}", hint="findling workspaces list")
    is_outside = asked.is_here and root not in (resolved := path.resolve(), *resolved.parents)
    return root if is_outside else path
