"""The server in this process, spoken to by lines that somebody passes on."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp.server.stdio import stdio_server

from findling.faces.mcp.desk import Desk
from findling.faces.mcp.server import make_server

if TYPE_CHECKING:
    from mcp.server import Server

__all__ = ["serve_lines"]


def serve_lines(desk: Callable[[], Desk], lines: SimpleQueue[str], write: Callable[[str], None]) -> None:
    """Serve a client whose lines somebody else reads, until an empty one comes; `write` takes a line each."""
    anyio.run(_serve, make_server(desk), _Lines(lines), _Answers(write))


class _Lines:
    """As much of a file as the server reads from."""

    def __init__(self, lines: SimpleQueue[str]) -> None:
        self.readline = lines.get


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
