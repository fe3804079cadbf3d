"""The MCP server on a stream of lines, a message each: for this process, and for those that the daemon serves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from socket import socket
from typing import TYPE_CHECKING, Any, cast

from mcp.server.stdio import stdio_server
from mcp_types import jsonrpc_message_adapter

from findling.faces.mcp.tool_context import Desk
from findling.faces.mcp.transport.jsonrpc import (
    INVALID_REQUEST,
    LONGEST_LINE,
    awaited_key,
    failure,
    problem_of,
    read_message,
)
from findling.faces.mcp.transport.server import make_server

if TYPE_CHECKING:
    from mcp.server import Server

_BEFORE_ALL = ("initialize", "ping", "server/discover")
"""Methods that need no session."""

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


def serve_socket(desk: Callable[[], Desk], end: socket) -> None:
    """Serve the client at the other end of a socket, until it hangs up."""

    async def serve() -> None:
        await serve_lines(make_server(desk), *await asyncio.open_connection(sock=end, limit=LONGEST_LINE))

    asyncio.run(serve())


async def serve_lines(server: Server[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve a client until its lines end."""
    lines = cast(Any, _Lines(reader, writer))
    try:
        async with stdio_server(lines, lines) as (messages, answers):
            await server.run(messages, answers, server.create_initialization_options())
    finally:
        writer.close()


class _Lines:
    """As much of two files as the SDK uses: it reads lines that it can answer, and writes answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._has_session = False

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._next():
            if not line.strip():
                continue
            text, refusal = self._checked(line)
            if text:
                yield text
            elif refusal:
                self._writer.write(refusal)
                await self.flush()

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        with suppress(OSError):  # the client has hung up, which the reader notices, too
            await self._writer.drain()

    async def _next(self) -> bytes:
        try:
            return await self._reader.readline()
        except (OSError, ValueError):  # cut off, or longer than LONGEST_LINE
            return b""

    def _checked(self, line: bytes) -> tuple[str, bytes]:
        """The message for the SDK, which never answers one that it cannot read; or the refusal of it."""
        try:
            message = read_message(line)
        except (ValueError, RecursionError):
            return "", failure(None)
        refusal = problem_of(message)
        if refusal is not None:
            return "", refusal
        key = message.get("id")
        if not self._may_come(message):
            return "", failure(key, INVALID_REQUEST, "Invalid request: initialize comes first")
        text = json.dumps(message)
        try:
            jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:
            return "", failure(key, INVALID_REQUEST, "Invalid request") if awaited_key(message) else b""
        return text, b""

    def _may_come(self, message: dict[str, Any]) -> bool:
        """Whether a session has begun, or a message needs none; since 2026 each may name its version instead."""
        self._has_session = self._has_session or message["method"] in ("initialize", "notifications/initialized")
        if self._has_session or message["method"] in _BEFORE_ALL or "id" not in message:
            return True
        meta = (message.get("params") or {}).get("_meta")
        return isinstance(meta, dict) and isinstance(meta.get(_VERSION_KEY), str) and bool(meta[_VERSION_KEY])
