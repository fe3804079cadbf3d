"""Writers of an index wait for each other, and hold up no search."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from mcp import Client

import findling
from findling.domain.permissions import OWNER
from findling.faces.mcp.tool_context import local_desk
from findling.faces.mcp.transport.server import make_server
from findling.service.engine.client import LocalClient
from findling.service.engine.executor import WorkLine
from findling.service.settings.settings import Settings
from findling.service.workspace.writer_queue import WriterQueue
from tests.faces.mcp_desks import make_project
from tests.processes import PATIENCE_S


@contextmanager
def _served(root: Path, line: WorkLine) -> Iterator[tuple[Any, WriterQueue]]:
    own = {"store.home": str(root.parent / "indexes"), "search.mode": "keyword", "semantic.refine": "never"}
    settings = Settings().override({**own, "mcp.write": True}, "test")
    with findling.open(root, settings=settings) as engine:
        engine.index()
        desk = local_desk(lambda: nullcontext(LocalClient(engine, settings=settings)), OWNER, settings)
        yield make_server(lambda: desk, line.run), engine.queue
    line.close()


def test_searches_that_wait_for_their_turn_hold_up_no_other_request(tmp_path: Path) -> None:
    async def ask(server: Any, queue: WriterQueue) -> list[Any]:
        with ThreadPoolExecutor(1) as writer:
            has_begun, may_end = threading.Event(), threading.Event()

            def write() -> None:
                with queue.locked(PATIENCE_S):
                    has_begun.set()
                    assert may_end.wait(PATIENCE_S)

            writer.submit(write)
            assert has_begun.wait(PATIENCE_S)
            async with Client(server) as client:
                searches = [asyncio.create_task(client.call_tool("search", {"query": "login"})) for _ in range(4)]
                while len(queue._line) < 5:
                    await asyncio.sleep(0.01)
                # There is one thread in the line, and it is free.
                status = await client.call_tool("status", {})
                assert not any(search.done() for search in searches)
                may_end.set()
                return [status, *await asyncio.gather(*searches)]

    with _served(make_project(tmp_path / "project"), WorkLine(1)) as (server, queue):
        status, *found = asyncio.run(ask(server, queue))
    assert status.structured_content["resources"] == 4
    assert [one.structured_content["total"] for one in found] == [2] * 4


def test_index_and_remember_and_search_take_turns(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")

    async def ask(server: Any) -> list[Any]:
        async with Client(server) as client:
            for number in range(40):
                (root / f"more{number}.md").write_text(f"# More {number}\n\nlogin {number}\n")
            calls: list[tuple[str, dict[str, Any]]] = [
                ("index", {}),
                ("search", {"query": "login", "limit": 50}),
                ("remember", {"text": "The binder is blue."}),
                ("search", {"query": "login", "limit": 50}),
                ("index", {}),
            ]
            return await asyncio.gather(*[client.call_tool(name, arguments) for name, arguments in calls])

    with _served(root, WorkLine(4)) as (server, queue):
        results = asyncio.run(ask(server))
    assert not any(result.is_error for result in results)
    assert [results[at].structured_content["total"] for at in (1, 3)] == [42, 42]
    # A search that meets no writer takes no turn, so another call may begin to write beside it.
    late = "files are being indexed; the latest changes are not searchable yet; ask again"
    assert {note for at in (1, 3) for note in results[at].structured_content["degraded"]} <= {late}
    assert not queue.is_busy


def test_what_stood_in_the_way_of_the_latest_state_is_told(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")

    async def ask(server: Any) -> Any:
        async with Client(server) as client:
            return await client.call_tool("search", {"query": "login"})

    with _served(root, WorkLine(1)) as (server, _):
        root.rename(tmp_path / "elsewhere")
        found = asyncio.run(ask(server)).structured_content
    assert (found["total"], found["quality"]) == (2, "reduced")
    assert any("is gone" in one for one in found["degraded"])
