"""Limits of one caller over HTTP: names, keys, bodies and threads, also of callers that have gone."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from findling.domain.errors import BusyError, OverdueError, UnreachableError
from findling.domain.permissions import OWNER, Caller
from findling.faces.http.base.problems import TooManyError, as_problem
from findling.faces.http.request.fair_queue import Shares
from findling.faces.http.security.guards import Guard
from findling.service.engine.client import LocalClient
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import Host
from findling.service.server.tokens import TokenBook
from tests.faces.http_servers import ADDRESS, Client, guarded_app, in_process, make_host
from tests.processes import PATIENCE_S, run_process

ANN, BOB = (Caller(name, (f"user:{name}",), frozenset({"read"})) for name in ("ann", "bob"))
JSON = {"content-type": "application/json"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    (made / "a.md").write_text("# Login\n\nA login and its session.\n")
    return made


@pytest.fixture
def served(root: Path) -> Iterator[tuple[Host, Guard]]:
    with in_process(root) as (host, app):
        host.index()
        host.warm_up()
        yield host, app


# Names, keys and bodies


@pytest.mark.parametrize("path", ["/v1/search", "/v1/search/stream", "/api/v2/search", "/v1/resources"])
def test_a_number_of_100000_digits_is_a_stated_error(served: tuple[Host, Guard], path: str) -> None:
    body = '{"query": "login", "limit": ' + "9" * 100_000 + "}"
    response = Client(served[1]).ask("POST", path, content=body.encode(), headers=JSON)
    assert response.status_code in (400, 422) and response.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/search", "/v1/status", "/v1/workspaces", "/metrics", "/docs"])
def test_more_than_200_parameters_are_refused(served: tuple[Host, Guard], path: str) -> None:
    names = "&".join(f"n{number}=" for number in range(201))
    response = Client(served[1]).get(f"{path}?{names}")
    assert (response.status_code, response.json()["detail"]) == (422, "there are more than 200 parameters")


def test_many_values_of_a_list_may_be_given(served: tuple[Host, Guard]) -> None:
    values = "&".join(f"ext=x{number}" for number in range(99))
    assert Client(served[1]).get(f"/v1/search?q=login&{values}&ext=md").json()["total"] == 1
    twice = Client(served[1]).get("/v1/search?q=login&limit=1&q=session")
    assert (twice.status_code, twice.json()["detail"]) == (422, "q is there twice")


def test_health_does_not_look_at_parameters(served: tuple[Host, Guard]) -> None:
    many = "&".join(f"n{number}=" for number in range(5_000))
    for path in ("/healthz", "/readyz"):
        for query in ("a=1", "a=1&a=2", many):
            assert Client(served[1]).get(f"{path}?{query}").status_code == 200


def test_health_answers_head(root: Path) -> None:
    with in_process(root) as (host, app):
        client = Client(app)
        assert client.ask("HEAD", "/healthz").status_code == 200
        assert client.ask("HEAD", "/readyz").status_code == 503
        host.warm_up()
        assert client.ask("HEAD", "/readyz").status_code == 200
        assert client.ask("HEAD", "/v1/search").status_code == 405
        assert "head" not in client.get("/openapi.json").json()["paths"]["/healthz"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('{"query": "login", "query": "session"}', "query"),
        ('{"query": "login", "filters": {"ext": ["md"], "ext": ["py"]}}', "ext"),
        ('{"query": "login", "plan": {"weights": {"body": 1, "body": 2}}}', "body"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(served: tuple[Host, Guard], body: str, name: str) -> None:
    for path in ("/v1/search", "/v1/search/stream", "/api/v2/search"):
        response = Client(served[1]).post(path, content=body, headers=JSON)
        assert (response.status_code, response.json()["detail"]) == (422, f"{name} is there twice")
        assert response.json()["code"] == "invalid-value"


def test_unknown_keys_are_told_in_part_and_not_without_end(served: tuple[Host, Guard]) -> None:
    client = Client(served[1])
    some = client.post("/v1/search", {"query": "login", **{f"k{number}": 1 for number in range(999)}})
    assert some.status_code == 422 and len(some.json()["errors"]) == 20
    for more in (
        {f"k{number}": 1 for number in range(1_001)},
        {"filters": {f"k{number}": 1 for number in range(1_001)}},
    ):
        response = client.post("/v1/search", {"query": "login", **more})
        assert (response.status_code, response.json()["detail"]) == (422, "an object has more than 1,000 keys")
    long = client.post("/v1/search", {"query": "login", "plan": {"types": [1] * 50_000}})
    assert long.status_code == 422 and len(long.json()["errors"]) <= 20


def test_a_question_of_more_than_256_kb_is_refused(served: tuple[Host, Guard]) -> None:
    client, large = Client(served[1]), {"query": "x" * 270_000}
    for path in ("/v1/search", "/api/v2/search", "/v1/index"):
        response = client.post(path, large)
        assert (response.status_code, response.json()["code"]) == (413, "too-large")
    item = {"type": "knowledge", "title": "Long", "body": "word " * 60_000}
    assert client.post("/v1/resources", {"upsert": [item]}).json()["added"] == 1


@pytest.mark.parametrize("path", ["/v1/resources", "/v1/index"])
def test_a_body_is_not_read_of_whoever_may_not_send_it(served: tuple[Host, Guard], path: str) -> None:
    host, app = served
    token = TokenBook(host.home).create("ann", principals=("user:ann",), scopes=("read", "write"))
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body is read")

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {"host": "testserver:8080", "content-length": "100000", "authorization": f"Bearer {token}", **JSON}
    asyncio.run(app(_scope(path, headers), receive, send))
    assert sent[0]["status"] == 403 and json.loads(sent[1]["body"])["code"] == "denied"


# Threads


def test_a_client_that_goes_away_frees_its_place(root: Path) -> None:
    host, line = make_host(root), WorkLine(threads=1)
    host.index()
    app, release = guarded_app(host, line), threading.Event()

    async def ask() -> list[Message]:
        gone, sent = asyncio.Event(), []
        messages = [{"type": "http.request", "body": b'{"query": "login"}', "more_body": False}]

        async def receive() -> Message:
            if not messages:
                await gone.wait()
                return {"type": "http.disconnect"}
            return messages.pop()

        async def send(message: Message) -> None:
            sent.append(message)

        blocking = asyncio.create_task(line.run(release.wait))
        asking = asyncio.create_task(app(_scope("/v1/search", {"host": "testserver:8080", **JSON}), receive, send))
        await _until(lambda: (line.running, line.waiting) == (1, 1))
        gone.set()
        await asking
        await _until(lambda: line.waiting == 0)
        release.set()
        await blocking
        return sent

    try:
        sent = asyncio.run(ask())
    finally:
        release.set()
        line.close()
        host.close()
    assert sent[0]["status"] == 499
    assert host.statistics.snapshot()["total_queries"] == 0


def test_the_owner_sees_how_it_goes_while_all_threads_are_taken(root: Path) -> None:
    host, line = make_host(root), WorkLine(threads=1, most_waiting=1)
    host.index()
    app, release = guarded_app(host, line), threading.Event()

    async def ask() -> list[int]:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, timeout=60) as client:
            blocking = [asyncio.create_task(line.run(release.wait)) for _ in range(2)]
            await _until(lambda: line.running + line.waiting == 2)
            paths = ("/metrics", "/v1/status", "/healthz", "/v1/search?q=login")
            statuses = [(await client.get(path)).status_code for path in paths]
            release.set()
            await asyncio.gather(*blocking)
            return statuses

    try:
        assert asyncio.run(ask()) == [200, 200, 200, 503]
    finally:
        release.set()
        line.close()
        host.close()


def test_one_caller_never_has_every_thread() -> None:
    async def ask(line: WorkLine, shares: Shares, release: threading.Event) -> None:
        greedy = [asyncio.create_task(shares.run(ANN, release.wait, receive=_never)) for _ in range(5)]
        await _until(lambda: line.running == 2)
        assert line.waiting == 0
        assert await shares.run(BOB, lambda: "bob", receive=_never) == "bob"
        assert await shares.run(OWNER, lambda: "owner", receive=_never) == "owner"
        with pytest.raises(TooManyError, match="5 of your questions"):
            await shares.run(ANN, lambda: "ann", receive=_never)
        release.set()
        assert await asyncio.gather(*greedy) == [True] * 5
        assert await shares.run(ANN, lambda: "ann", receive=_never) == "ann"

    _with_shares(ask, threads=3, waiting=6)


def test_one_caller_never_has_every_search_process() -> None:
    async def ask(line: WorkLine, shares: Shares, release: threading.Event) -> None:
        shares = Shares(line, 2)
        greedy = [asyncio.create_task(shares.run(ANN, release.wait, receive=_never)) for _ in range(3)]
        await _until(lambda: line.running == 1)
        assert await shares.run(BOB, lambda: "bob", receive=_never) == "bob"
        assert (line.running, line.waiting) == (1, 0)
        release.set()
        assert await asyncio.gather(*greedy) == [True] * 3

    _with_shares(ask, threads=4, waiting=6)


def test_work_that_nobody_waits_for_keeps_the_place_of_its_caller() -> None:
    async def ask(line: WorkLine, shares: Shares, release: threading.Event) -> None:
        begun: list[int] = []
        # On a busy machine it may be given up before it has begun.
        while line.running < 2:
            with pytest.raises((BusyError, OverdueError)):
                await shares.run(ANN, lambda: release.wait(), receive=_never, timeout_s=0.05)
        with pytest.raises(BusyError, match="others were answered"):
            await shares.run(ANN, lambda: begun.append(1), receive=_never, timeout_s=0.05)
        with pytest.raises(ClientDisconnect):
            await shares.run(ANN, lambda: begun.append(2), receive=_gone)
        assert (line.running, line.waiting, begun) == (2, 0, [])
        release.set()
        await shares.run(ANN, lambda: begun.append(3), receive=_never)
        await _until(lambda: line.running == 0)
        assert begun == [3]

    _with_shares(ask, threads=3, waiting=6)


def test_the_time_of_an_answer_begins_with_its_work() -> None:
    """Those who have only waited ask too soon, not for too much."""

    async def ask(line: WorkLine, shares: Shares, release: threading.Event) -> None:
        others = [asyncio.create_task(shares.run(OWNER, release.wait)) for _ in range(line.threads)]
        await _until(lambda: line.running == line.threads)
        with pytest.raises(BusyError) as refused:
            await shares.run(OWNER, lambda: "late", timeout_s=0.05)
        assert not isinstance(refused.value, TooManyError)
        problem = as_problem(refused.value)
        assert (problem.status, problem.code, problem.headers) == (503, "busy", {"retry-after": "1"})
        release.set()
        await asyncio.gather(*others)

    _with_shares(ask, threads=2, waiting=6)


def test_work_without_a_connection_to_look_at_keeps_the_place_of_its_caller_too() -> None:
    """That of an MCP client, whose request has been read to its end."""

    async def ask(line: WorkLine, shares: Shares, release: threading.Event) -> None:
        given_up = [asyncio.create_task(shares.run(ANN, lambda: release.wait())) for _ in range(2)]
        await _until(lambda: line.running == 2)
        for one in given_up:
            one.cancel()
        third = asyncio.create_task(shares.run(ANN, lambda: "later"))
        assert await shares.run(BOB, lambda: "at once") == "at once"
        assert (line.running, third.done()) == (2, False)
        release.set()
        assert await third == "later"

    _with_shares(ask, threads=3, waiting=6)


def test_too_many_questions_of_one_token_are_429(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, line = make_host(root), WorkLine(threads=2, most_waiting=2)
    host.index()
    app, release = guarded_app(host, line), threading.Event()
    token = TokenBook(host.home).create("ann", principals=("user:ann",))
    search = LocalClient.search
    monkeypatch.setattr(LocalClient, "search", lambda *given: (release.wait(), search(*given))[1])

    async def ask() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app)
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers, timeout=60) as client:
            first = [asyncio.create_task(client.get("/v1/search?q=login")) for _ in range(2)]
            await _until(lambda: line.running == 1)
            refused = await client.get("/v1/search?q=login")
            release.set()
            return [refused, *await asyncio.gather(*first)]

    try:
        refused, *answered = asyncio.run(ask())
    finally:
        release.set()
        line.close()
        host.close()
    assert (refused.status_code, refused.headers["retry-after"], refused.json()["code"]) == (429, "1", "busy")
    assert [one.status_code for one in answered] == [200, 200]


def _with_shares(ask: Callable[[WorkLine, Shares, threading.Event], Any], *, threads: int, waiting: int) -> None:
    line, release = WorkLine(threads, waiting), threading.Event()
    try:
        asyncio.run(ask(line, Shares(line), release))
    finally:
        release.set()
        line.close()


async def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "it never came to that"
        await asyncio.sleep(0.005)


async def _never() -> Message:
    await asyncio.Event().wait()
    return {}


async def _gone() -> Message:
    return {"type": "http.disconnect"}


def _scope(path: str, headers: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 5000),
        "server": ("testserver", 8080),
    }


def test_a_uvicorn_without_the_private_parts_is_refused_at_import() -> None:
    code = (
        "from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol\n"
        "del HttpToolsProtocol._start_asgi_task\n"
        "import findling.faces.http.security.protocol\n"
    )
    run = run_process([sys.executable, "-c", code])
    assert run.returncode != 0
    assert "this uvicorn has no _start_asgi_task; type: pip install 'findling[serve]'" in run.stderr


def test_a_database_that_is_away_is_no_fault_of_the_server() -> None:
    problem = as_problem(UnreachableError("postgresql://db.example/search#notes does not answer"))
    assert (problem.status, problem.headers) == (503, {"retry-after": "5"})
