"""The server under the daemon: streamable HTTP at /mcp, one exchange for each request and no state in between.

The caller is whoever the guard in front has found out. On the unix socket, whose caller is the user of the machine,
headers say which folder is meant and under which settings, so that it is as if that user's own process answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qs, unquote

from anyio.to_thread import run_sync
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from findling.domain.permissions import Caller
from findling.faces.mcp.tool_context import Desk, local_desk
from findling.faces.mcp.transport.server import Runner, make_server
from findling.service.server.engine_pool import MAX_BODY, Host
from findling.service.settings.settings import Settings, load_settings

__all__ = ["CallersRunner", "McpApp", "mcp_app"]

_Result = TypeVar("_Result")


class CallersRunner(Protocol):
    """Does work of a caller that blocks where it holds up nobody else."""

    def __call__(self, caller: Caller, work: Callable[[], _Result], /) -> Awaitable[_Result]: ...


class McpApp(NamedTuple):
    """What a server mounts: a route, and what has to be entered, once, for as long as the server runs."""

    route: Route
    lifespan: Callable[[], AbstractAsyncContextManager[None]]


class _Asked(NamedTuple):
    """Who sends a request, and what of the workspace it says. `path` is `None` on anything but the unix socket."""

    caller: Caller
    workspace: str = ""
    path: str | None = None
    settings: str = ""


_asked: ContextVar[_Asked] = ContextVar("_asked")


def mcp_app(host: Host, run: CallersRunner | None = None, *, path: str = "/mcp") -> McpApp:
    """The MCP server of a host; `run` does the work of a caller, if it is given. Writers have threads of their own.

    Whatever is in front of it has checked the request, above all its Host and Origin, and has put the caller into
    `scope["state"]["caller"]`. A request without one is a fault, and fails.
    """
    server = make_server(lambda: _desk(host, _asked.get()), _runner(run))
    # Clients get one JSON document, or a stream of events when there is progress to tell.
    manager = StreamableHTTPSessionManager(app=server, stateless=True, max_request_body_size=MAX_BODY)
    return McpApp(Route(path, endpoint=_Endpoint(manager)), manager.run)


class _Endpoint:
    """The ASGI app at /mcp."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            # Without sessions there is nothing to listen to, and nothing to end.
            await Response(status_code=405, headers={"allow": "POST"})(scope, receive, send)
            return
        _asked.set(_read(scope))
        await self._manager.handle_request(scope, receive, send)


def _read(scope: Scope) -> _Asked:
    caller: Caller = scope["state"]["caller"]
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    workspace = query.get("workspace", [""])[-1]
    server = scope.get("server")
    if server is None or server[1] is not None:
        return _Asked(caller, workspace)
    headers = {name: unquote(value.decode("latin-1")) for name, value in scope["headers"]}
    return _Asked(
        caller,
        headers.get(b"findling-workspace", workspace),
        headers.get(b"findling-path"),
        headers.get(b"findling-settings", ""),
    )


def _desk(host: Host, asked: _Asked) -> Desk:
    """What a request works with. Raises FindlingError for settings that cannot be."""
    where = asked.path
    if where is None:
        return Desk(asked.caller, host.settings, lambda: host.client(asked.caller, asked.workspace))
    settings = _sent_settings(asked.settings) if asked.settings else load_settings(where)
    # So that the same workspaces are found as those that the daemon has opened.
    settings = settings.override({"store.home": host.settings["store.home"]}, host.settings.origin("store.home"))
    longest_s = host.settings["serve.timeout_s"]
    return local_desk(
        lambda: host.local_client(where, settings, asked.caller, asked.workspace, longest_s), asked.caller, settings
    )


@lru_cache(maxsize=64)
def _sent_settings(text: str) -> Settings:
    import json

    from findling.service.settings.portable_settings import read_settings

    return read_settings(json.loads(text))


def _runner(run: CallersRunner | None) -> Runner:
    if run is None:
        return run_sync

    async def as_caller(work: Callable[[], _Result], /) -> _Result:
        return await run(_asked.get().caller, work)

    return as_caller
