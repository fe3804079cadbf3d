"""The server in this process, spoken to by lines that somebody passes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.stdio import stdio_server
from mcp_types import jsonrpc_message_adapter

from findling.faces.mcp.tool_context import Desk
from findling.faces.mcp.transport.jsonrpc import INVALID_REQUEST, failure, is_request
from findling.faces.mcp.transport.server import make_server

if TYPE_CHECKING:
    from mcp.server import Server

__all__ = ["serve_lines"]


def serve_lines(desk: Callable[[], Desk], lines: SimpleQueue[str], write: Callable[[str], None]) -> None:
    """Serve a client whose lines somebody else reads, until an empty one comes; `write` takes a line each.

    Lines are messages: objects in JSON.
    """
    anyio.run(_serve, make_server(desk), _Lines(lines, write), _Answers(write))


class _Lines:
    """As much of a file as the server reads from."""

    def __init__(self, lines: SimpleQueue[str], write: Callable[[str], None]) -> None:
        self._lines = lines
        self._write = write

    def readline(self) -> str:
        """The next message that the server can read: it never answers any other one."""
        while line := self._lines.get():
            try:
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                message = json.loads(line)
                if is_request(message):
                    self._write(failure(message["id"], INVALID_REQUEST, "Invalid request").decode() + "\n")
            else:
                return line
        return ""


class _Answers:
    """As much of a file as the server writes to."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write

    def flush(self) -> None:
        """Every line is written at once."""


async def _serve(server: Server[Any], lines: _Lines, answers: _Answers) -> None:
    files = anyio.wrap_file(cast(Any, lines)), anyio.wrap_file(cast(Any, answers))
    async with stdio_server(*files) as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
