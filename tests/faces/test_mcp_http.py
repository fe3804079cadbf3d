"""MCP over HTTP, from a server that really listens: who asks follows from the connection, and from nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

import findling
from findling.domain.permissions import OWNER, Caller
from findling.faces.mcp.transport.http_app import mcp_app
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.settings.settings import Settings
from tests.faces.mcp_desks import asked, call, make_project, text_of, told

CALLERS = {
    "owner": OWNER,
    "ann": Caller("ann", ("user:ann",), frozenset({"read"})),
    "bob": Caller("bob", ("user:bob",), frozenset({"read", "write"}), ("other",)),
}


class _Listening(NamedTuple):
    url: str


@asynccontextmanager
async def _connected(url: str, **headers: str) -> AsyncIterator[Client]:
    """A client that sends these headers, with dashes for their underscores, in every request."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        httpx2.AsyncClient(headers=sent) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


class _Naming:
    """Stands where the guard does: says who asks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            name = dict(scope["headers"]).get(b"x-caller", b"owner").decode()
            scope.setdefault("state", {})["caller"] = CALLERS[name]
        await self._app(scope, receive, send)


@contextmanager
def _listening(app: ASGIApp) -> Iterator[int]:
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Listening]:
    """A host with a project, of which Ann may see one file, and with another workspace, which Bob may ask."""
    folder = tmp_path_factory.mktemp("daemon")
    root = make_project(folder / "project")
    own = {"store.home": str(folder / "home"), "search.mode": "keyword", "semantic.refine": "never", "mcp.write": True}
    settings = Settings().override(own, "test")
    with findling.open(root, settings=settings) as engine:
        engine.index()
        engine.permissions.share("file:docs/guide.md", "user:ann")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "note.md").write_text("A zebra in another workspace.\n")
    with findling.open(folder / "elsewhere", workspace="other", settings=settings) as engine:
        engine.index()
        engine.permissions.share("file:note.md", "user:bob")
    host, line = Host(settings, root), WorkLine(2)
    mcp = mcp_app(host, lambda caller, work: line.run(work))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        async with mcp.lifespan():
            yield

    with _listening(_Naming(Starlette(routes=[mcp.route], lifespan=lifespan))) as port:
        yield _Listening(f"http://127.0.0.1:{port}/mcp")
    line.close()
    host.close()


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_every_tool_answers(daemon: _Listening, era: str) -> None:
    found = call(daemon.url, "search", era, query="session token")
    assert {hit["id"] for hit in found["results"]} == {"file:src/auth.py", "file:docs/guide.md"}
    assert call(daemon.url, "fetch", era, id="docs/guide.md")["text"].startswith("# Guide")
    assert call(daemon.url, "explain", era, query="token", id="src/auth.py")["found"]
    assert call(daemon.url, "similar", era, id="src/auth.py")["results"]
    assert call(daemon.url, "status", era)["types"]["file"] == 4
    assert call(daemon.url, "remember", era, text="The binder is blue.")["id"].startswith("memory:")
    assert told(daemon.url, "fetch", era, id="nope").startswith("there is no nope in the index")


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_progress_comes_as_it_goes(daemon: _Listening, era: str) -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def ask(client: Client) -> CallToolResult:
        return await client.call_tool("index", {}, progress_callback=note)

    assert not asked(daemon.url, ask, era).is_error
    assert steps


def test_callers_see_what_is_theirs_also_at_once(daemon: _Listening) -> None:
    async def ask(name: str) -> list[tuple[list[str], str]]:
        async with _connected(daemon.url, x_caller=name) as client:
            seen = []
            for _ in range(8):
                result = await client.call_tool("search", {"query": "login"})
                tools = await client.list_tools()
                document = json.loads(text_of(result))
                seen.append(([hit["id"] for hit in document["results"]], tools.tools[-1].name))
            return seen

    async def all_at_once() -> list[list[tuple[list[str], str]]]:
        return await asyncio.gather(*map(ask, CALLERS))

    owner, ann, bob = asyncio.run(all_at_once())
    assert all(len(ids) == 2 and last == "index" for ids, last in owner)
    assert ann == [(["file:docs/guide.md"], "status")] * 8
    assert bob == [([], "memory")] * 8


def test_another_workspace_for_whom_may_ask_it(daemon: _Listening) -> None:
    async def ask(name: str) -> CallToolResult:
        async with _connected(f"{daemon.url}?workspace=other", x_caller=name) as client:
            return await client.call_tool("search", {"query": "zebra"})

    assert json.loads(text_of(asyncio.run(ask("owner"))))["total"] == 1
    assert json.loads(text_of(asyncio.run(ask("bob"))))["total"] == 1
    refused = asyncio.run(ask("ann"))
    assert refused.is_error
    assert text_of(refused) == "there is no workspace other; try: findling workspaces list"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_nothing_but_posting(daemon: _Listening, method: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(daemon.url, method=method), timeout=10)
    assert refused.value.code == 405
    assert refused.value.headers["allow"] == "POST"
    refused.value.close()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 5000])
def test_nonsense_is_refused(daemon: _Listening, body: bytes) -> None:
    kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(daemon.url, body, kinds, method="POST"), timeout=10)
    assert refused.value.code == 400
    assert "error" in json.loads(refused.value.read())
    refused.value.close()
    assert call(daemon.url, "search", query="login")["total"] == 2
