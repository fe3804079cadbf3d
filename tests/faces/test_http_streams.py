"""Searching in stages over HTTP, and what happens when too much is asked or nobody listens any more."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.faces.http.security.guards import Guard
from findling.service.engine.client import LocalClient
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from tests.faces.http_servers import ADDRESS, Client, guarded_app, in_process, listening, make_host
from tests.processes import PATIENCE_S


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    for number in range(5):
        (made / f"{number}.md").write_text(f"# Login {number}\n\nA login and its session.\n")
    return made


@pytest.fixture
def served(root: Path) -> Iterator[tuple[Host, Guard]]:
    with in_process(root) as (host, app):
        host.index()
        yield host, app


def test_stages_come_in_their_order(served: tuple[Host, Guard]) -> None:
    client = Client(served[1])
    whole = client.get("/v1/search?q=login&patient=true").json()
    for response in (client.post("/v1/search/stream", {"query": "login"}), client.get("/v1/search/stream?q=login")):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        events = _events(response.text)
        assert [name for name, _ in events] == ["candidates", "reranked", "done"]
        (_, quick), (_, full), (_, done) = events
        assert quick["plan"]["plan"]["rerank_depth"] == 0 < full["plan"]["plan"]["rerank_depth"]
        for answer in (full, whole):
            answer.pop("timings_ms", None)
        assert full == whole
        assert (done["total"], done["shown"], done["strategy"]) == (5, 5, "keyword")
        assert done["timings_ms"] and done["next_cursor"] == ""


def test_a_quick_question_has_one_stage(served: tuple[Host, Guard]) -> None:
    events = _events(Client(served[1]).get("/v1/search/stream?q=login&quick=true").text)
    assert [name for name, _ in events] == ["candidates", "done"]


def test_what_is_wrong_with_the_question_has_a_status(served: tuple[Host, Guard]) -> None:
    client = Client(served[1])
    for path in ("q=login&cursor=x", "q=login&mode=x", "q=login&workspace=absent", "query=login"):
        response = client.get(f"/v1/search/stream?{path}")
        assert response.headers["content-type"] == "application/problem+json"
        assert response.status_code == (404 if "absent" in path else 422)


def test_what_goes_wrong_later_is_an_event(root: Path) -> None:
    """The line is closed between the two stages, as a server does that ends."""
    host, line = make_host(root), WorkLine(threads=1)
    host.index()
    app = guarded_app(host, line)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if b"event: candidates" in message.get("body", b""):
            await asyncio.to_thread(line.close)

    try:
        asyncio.run(_ask(app, "/v1/search/stream", b"q=login", send))
    finally:
        host.close()
    events = _events(b"".join(message.get("body", b"") for message in sent).decode())
    assert [name for name, _ in events] == ["candidates", "error"]
    problem = events[1][1]
    headers = dict(sent[0]["headers"])
    assert (problem["status"], problem["code"]) == (503, "busy")
    assert problem["instance"].encode() == headers[b"x-request-id"]


def test_nothing_is_searched_for_a_client_that_has_gone(served: tuple[Host, Guard]) -> None:
    host, app = served
    gone = asyncio.Event()
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if b"event: candidates" in message.get("body", b""):
            gone.set()
            await asyncio.sleep(60)  # what was sent is not taken: the connection is closed meanwhile

    before = host.statistics.snapshot()["total_queries"]
    asyncio.run(_ask(app, "/v1/search/stream", b"q=login", send, gone))
    assert b"event: reranked" not in b"".join(sent)
    assert host.statistics.snapshot()["total_queries"] == before + 1


def test_events_reach_a_client_one_after_the_other(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a socket: the second stage waits in the line while the first one has been read already."""
    with listening(root) as (host, address):
        host.index()
        release = threading.Event()
        full = LocalClient.search

        def slow(client: LocalClient, request: SearchRequest) -> SearchAnswer:
            if not request.quick:
                assert release.wait(PATIENCE_S)
            return full(client, request)

        monkeypatch.setattr(LocalClient, "search", slow)
        with httpx2.Client() as client, client.stream("GET", f"{address}/v1/search/stream?q=login") as response:
            text = ""
            for part in response.iter_text():
                text += part
                if "event: candidates" in text and text.endswith("\n\n"):
                    release.set()
        assert [name for name, _ in _events(text)] == ["candidates", "reranked", "done"]


def test_too_many_questions_are_turned_away(root: Path) -> None:
    host, line = make_host(root), WorkLine(threads=1, most_waiting=1)
    host.index()
    app = guarded_app(host, line)
    release = threading.Event()

    async def ask() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            blocking = [asyncio.create_task(line.run(release.wait)) for _ in range(2)]
            while line.running + line.waiting < 2:
                await asyncio.sleep(0)
            refused = await client.get("/v1/search?q=login")
            release.set()
            await asyncio.gather(*blocking)
            return [refused, await client.get("/v1/search?q=login")]

    try:
        refused, answered = asyncio.run(ask())
    finally:
        release.set()
        line.close()
        host.close()
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["code"]) == (503, "1", "busy")
    assert answered.json()["total"] == 5


def test_many_at_once_get_their_own_answers(served: tuple[Host, Guard]) -> None:
    async def ask() -> list[int]:
        transport = httpx2.ASGITransport(served[1])
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, timeout=60) as client:
            paths = [f"/v1/search?q=login&limit={number % 5 + 1}" for number in range(40)]
            return [len(one.json()["hits"]) for one in await asyncio.gather(*map(client.get, paths))]

    assert asyncio.run(ask()) == [number % 5 + 1 for number in range(40)]


async def _ask(app: Guard, path: str, query: bytes, send: Any, gone: asyncio.Event | None = None) -> None:
    """One request to an app, whose client goes when `gone` says so."""
    has_begun = False

    async def receive() -> dict[str, Any]:
        nonlocal has_begun
        if has_begun:
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}
        has_begun = True
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(b"host", b"testserver:8080")],
        "client": ("127.0.0.1", 5000),
        "server": ("testserver", 8080),
    }
    await app(scope, receive, send)


def _events(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in text.strip("\n").split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found
