"""MCP servers for tests, and how they are asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mcp import Client
from mcp.server import Server

import findling
from findling.domain.permissions import OWNER, Caller
from findling.faces.mcp.tool_context import local_desk
from findling.faces.mcp.transport.server import make_server
from findling.service.engine.client import LocalClient
from findling.service.settings.settings import Settings

__all__ = ["Served", "asked", "call", "make_project", "served", "text_of", "told"]

_Result = TypeVar("_Result")


class Served(NamedTuple):
    """An engine, and a server that answers from it."""

    engine: findling.Engine
    server: Server[Any]


@contextmanager
def served(root: Path, caller: Caller = OWNER, **changes: Any) -> Iterator[Served]:
    """A server of a folder, as a process of its own would have it; the settings are written with `__` for a dot.

    Nothing is read of the environment and of settings files, so that it may outlive a test.
    """
    own = {"store.home": str(root.parent / "indexes"), "search.mode": "keyword", "semantic.refine": "never"}
    own |= {name.replace("__", "."): value for name, value in changes.items()}
    settings = Settings().override(own, "test")
    with findling.open(root, settings=settings) as engine:
        client = LocalClient(engine, caller.principals, settings=settings)
        desk = local_desk(lambda: nullcontext(client), caller, settings)
        yield Served(engine, make_server(lambda: desk))


def make_project(root: Path) -> Path:
    """A small project: four files that are indexed, and two directives for `findling sync`."""
    texts = {
        "src/auth.py": "import os\n\n\ndef login(user):\n    token = create_session(user)\n    return token\n",
        "src/shop.ts": "export function basket(user: string) {\n  return user;\n}\n",
        "docs/guide.md": "# Guide\n\n## Signing in\n\nEvery login makes a session token.\n",
        "docs/index.md": "# The index\n\nHow a stale index is noticed.\n",
        ".ai/directives/deploy/release.md": "---\nname: release\ndescription: How to ship a release\ntags: [ship]\n"
        "version: 1.2.0\n---\n# Release day\n\nRun the smoke tests first.\n",
        ".ai/directives/deploy/notes.md": "# Notes\n\n" + "The release of steam and the release of heat. " * 4,
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def asked(server: Any, ask: Callable[[Client], Awaitable[_Result]], era: str = "auto") -> _Result:
    """The answers to a client that connects to a server and asks something."""

    async def connect() -> _Result:
        async with Client(server, mode=era) as client:
            return await ask(client)

    return asyncio.run(connect())


def call(server: Any, name: str, era: str = "auto", /, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool, which is the same as text and as an object."""
    result = asked(server, lambda client: client.call_tool(name, arguments), era)
    assert not result.is_error, text_of(result)
    document: dict[str, Any] = result.structured_content
    assert text_of(result) == json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return document


def told(server: Any, name: str, era: str = "auto", /, **arguments: Any) -> str:
    """The error that a tool answers with."""
    result = asked(server, lambda client: client.call_tool(name, arguments), era)
    assert result.is_error
    return text_of(result)


def text_of(result: Any) -> str:
    """The one text in a result."""
    (content,) = result.content
    text: str = content.text
    return text
