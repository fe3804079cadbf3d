"""The server under the daemon: streamable HTTP at /mcp, and lines on a unix socket of its own.

The guard in front of HTTP names the caller of each request. A process of the owner connects to the socket. Its
first line names a folder and settings, and the daemon answers as that process would.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from functools import cache
from socket import socket
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qs

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from findling.domain.permissions import OWNER, Caller
from findling.faces.mcp.tool_context import Desk, local_desk
from findling.faces.mcp.transport.jsonrpc import LONGEST_LINE
from findling.faces.mcp.transport.lines import serve_lines
from findling.faces.mcp.transport.server import Runner, make_server
from findling.service.server.engine_pool import MAX_BODY, Host
from findling.service.settings.portable_settings import read_settings

_Result = TypeVar("_Result")
_log = logging.getLogger("findling.mcp")


CallersRunner = Callable[[Caller, Callable[[], Any]], Awaitable[Any]]
"""Does work of a caller that blocks where it holds up nobody else."""


class McpApp(NamedTuple):
    """The parts that a server mounts: a route, and a context for as long as the server runs."""

    route: Route
    lifespan: Callable[[], AbstractAsyncContextManager[None]]


class _Sender(NamedTuple):
    """The caller of a request, and the workspace that it names."""

    caller: Caller
    workspace: str


_sender: ContextVar[_Sender] = ContextVar("_sender")


def mcp_app(host: Host, run: CallersRunner, *, lines: socket | None = None) -> McpApp:
    """The MCP server of a host; `run` does the work of a caller, `lines` listens for processes of the owner.

    The guard in front checks each request of HTTP, above all its Host and Origin, and puts the caller into
    `scope["state"]["caller"]`. A request without one is a fault, and fails.
    """
    server = make_server(lambda: _desk(host, _sender.get()), _runner(run))
    # Clients get one JSON document, or a stream of events when there is progress to report.
    manager = StreamableHTTPSessionManager(app=server, stateless=True, max_request_body_size=MAX_BODY)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with manager.run(), anyio.create_task_group() as connections:

            async def admit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                connections.start_soon(_serve_process, host, run, reader, writer)

            if lines is not None:
                listening = await asyncio.start_unix_server(admit, sock=lines, limit=LONGEST_LINE)
            yield
            if lines is not None:
                listening.close()
            connections.cancel_scope.cancel()

    return McpApp(Route("/mcp", endpoint=_Endpoint(manager)), lifespan)


class _Endpoint:
    """The ASGI app at /mcp."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            # Without sessions there is nothing to listen to, and nothing to end.
            await Response(status_code=405, headers={"allow": "POST"})(scope, receive, send)
            return
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        _sender.set(_Sender(scope["state"]["caller"], query.get("workspace", [""])[-1]))
        await self._manager.handle_request(scope, receive, send)


def _desk(host: Host, sender: _Sender) -> Desk:
    return Desk(sender.caller, host.settings, lambda: host.client(sender.caller, sender.workspace))


async def _serve_process(
    host: Host, run: CallersRunner, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Serve a process of the owner; its first line has a path, principals for whom it asks, and settings."""
    try:
        path, principals, document = json.loads(await reader.readline())
        caller = OWNER if principals is None else OWNER._replace(name="local", principals=tuple(principals))
        server = make_server(cache(lambda: _local_desk(host, path, caller, document)), _runner(run, caller))
        await serve_lines(server, reader, writer)
    except Exception:  # of one process; the others go on
        _log.exception("a connection failed")
        writer.close()


def _local_desk(host: Host, path: str, caller: Caller, document: dict[str, Any]) -> Desk:
    """The desk that the process itself would have. Raises FindlingError for settings that cannot be."""
    own = host.settings
    # So that the same workspaces are found as those that the daemon has opened.
    settings = read_settings(document).override({"store.home": own["store.home"]}, own.origin("store.home"))
    return local_desk(
        lambda: host.local_client(path, settings, caller, longest_s=own["serve.timeout_s"]), caller, settings
    )


def _runner(run: CallersRunner, caller: Caller | None = None) -> Runner:
    def as_caller(work: Callable[[], _Result], /) -> Awaitable[_Result]:
        return run(caller or _sender.get().caller, work)

    return as_caller
