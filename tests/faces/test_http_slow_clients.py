"""A real server behind real sockets: what is too large, too slow or too many ends, and others notice nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from findling.faces.http.security.guards import Guard
from findling.faces.http.security.protocol import ConnectionLimits, GuardedProtocol, guarded_protocol
from tests.processes import PATIENCE_S, in_time

MAX_BODY = 1 << 20
PATIENT = ConnectionLimits()
HASTY = ConnectionLimits(head_s=1.0, body_s=1.0, body_rate=100.0, write_s=1.0, linger_s=5.0, idle_s=30.0)
"""Limits that slow clients reach soon; a second, because a busy machine stops the test itself for a while."""


def hasty(seconds: float) -> ConnectionLimits:
    """Such limits of so many seconds."""
    return HASTY._replace(head_s=seconds, body_s=seconds, body_rate=100.0 / seconds, write_s=seconds)


LOOPS = ["asyncio"] if sys.platform == "win32" else ["asyncio", "uvloop"]
HEAD = b"Host: localhost\r\n"
GET = b"GET / HTTP/1.1\r\n" + HEAD + b"\r\n"


class Running(NamedTuple):
    """A server in a thread, and where it listens."""

    server: uvicorn.Server
    address: tuple[str, int]
    largest: list[int]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    @property
    def open_connections(self) -> int:
        return len(self.server.server_state.connections)

    def await_connections(self, count: int) -> bool:
        """Whether there are as many connections before long."""
        end = time.monotonic() + PATIENCE_S
        while self.open_connections != count and time.monotonic() < end:
            time.sleep(0.01)
        return self.open_connections == count


def make_app(largest: list[int]) -> Guard:
    async def take(request: Request) -> Response:
        size = 0
        async for part in request.stream():
            size += len(part)
            largest.append(size)
        names = [name for name, _ in request.scope["headers"] if name == b"authorization"]
        caller = request.state.caller
        return JSONResponse({"size": size, "caller": caller.name, "principals": caller.principals, "names": len(names)})

    async def slow(request: Request) -> Response:
        await asyncio.sleep(float(request.query_params.get("seconds", "1.5")))
        return JSONResponse({"done": True})

    async def vast(_: Request) -> Response:
        return StreamingResponse(itertools.repeat(b"x" * 65_536, 3000))

    methods = ["GET", "POST"]
    routes = [Route("/", take, methods=methods), Route("/slow", slow), Route("/vast", vast)]
    app = Starlette(routes=routes)
    return Guard(app, names=(), tokens=None, requires_token=False, max_body=MAX_BODY, rate=0)


@contextmanager
def serving(
    limits: ConnectionLimits = PATIENT,
    *,
    loop: Any = "asyncio",
    sockets: tuple[socket.socket, ...] = (),
    app: Any = None,
) -> Iterator[Running]:
    """A server on a free port, and on more sockets."""
    largest: list[int] = []
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    protocol = GuardedProtocol if limits is PATIENT else guarded_protocol(limits)
    config = uvicorn.Config(app or make_app(largest), http=protocol, loop=loop, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener, *sockets]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield Running(server, listener.getsockname(), largest)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE_S)
        listener.close()
        assert not thread.is_alive()


def read_all(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    received = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            received += part
    return received


def read_answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """The next response, which has a Content-Length: its status and its document."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65_536)
        assert part, f"the connection ended after {received!r}"
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
    while len(body) < size:
        part = connection.recv(65_536)
        assert part
        body += part
    return int(head.split()[1]), json.loads(body)


def ask(running: Running, request: bytes = GET) -> tuple[int, dict[str, Any]]:
    with running.connect() as connection:
        connection.sendall(request)
        return read_answer(connection)


@pytest.mark.parametrize("target", [b"http://evil.example/v1/status", b"http://127.0.0.1/", b"evil.example:80", b"*"])
def test_a_target_that_names_a_host_is_refused(target: bytes) -> None:
    """`GET http://evil.example/v1/status` was answered: the host that was checked is that of the header."""
    with serving() as running:
        method = b"CONNECT" if b"/" not in target and target != b"*" else b"OPTIONS" if target == b"*" else b"GET"
        status, told = ask(running, method + b" " + target + b" HTTP/1.1\r\n" + HEAD + b"\r\n")
        assert (status, told["detail"]) == (421, "the request names a host in place of a path")
        assert ask(running)[0] == 200


# Too large


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", ["whole", "chunked"])
def test_a_body_of_100_mb_is_refused_and_held_nowhere(loop: str, way: str) -> None:
    part = b"x" * MAX_BODY
    if way == "whole":
        header = b"Content-Length: %d\r\n" % (100 * MAX_BODY)
    else:
        header, part = b"Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n" % (MAX_BODY, part)
    with serving(loop=loop) as running, running.connect() as connection:
        tracemalloc.start()
        try:
            connection.sendall(b"POST / HTTP/1.1\r\n" + HEAD + header + b"\r\n")
            for _ in range(100):
                connection.sendall(part)
            connection.sendall(b"" if way == "whole" else b"0\r\n\r\n")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        status, document = read_answer(connection)
        assert (status, document["code"]) == (413, "too-large")
        assert peak < 8 * MAX_BODY
        assert max(running.largest, default=0) <= MAX_BODY
        # All of it was read away, so that the connection is good for more.
        connection.sendall(GET)
        assert read_answer(connection)[0] == 200


def test_whoever_goes_on_sending_a_refused_body_is_let_go() -> None:
    with serving(HASTY._replace(linger_s=0.4)) as running, running.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n" + HEAD + b"\r\n")
        status, _ = read_answer(connection)
        assert status == 413
        with pytest.raises(ConnectionError):
            for _ in range(2000):
                connection.sendall(b"x" * 1000)
                time.sleep(0.01)
        assert running.await_connections(0)


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET / HTTP/1.1\r\n" + HEAD + b"X-Long: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HEAD + b"X: y\r\n" * 17_000 + b"\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET / HTTP/1.1\r\n" + HEAD + b"X-Endless: " + b"x" * 1_000_000,
    ],
)
def test_a_head_that_is_too_large_is_refused(request_head: bytes) -> None:
    with serving() as running, running.connect() as connection:
        with suppress(ConnectionError):  # it may end before all of it is sent
            connection.sendall(request_head)
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")
        assert ask(running)[0] == 200


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(nonsense: bytes) -> None:
    with serving() as running, running.connect() as connection:
        connection.sendall(nonsense)
        assert b" 400 Bad Request\r\n" in read_all(connection)
        assert ask(running)[0] == 200


def test_a_request_for_a_tunnel_is_refused() -> None:
    with serving() as running, running.connect() as connection:
        connection.sendall(b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 421 Misdirected Request\r\n" in read_all(connection)
        assert ask(running)[0] == 200


def test_too_many_requests_at_once_on_a_connection_end_it() -> None:
    with serving() as running, running.connect() as connection:
        connection.sendall((b"GET /slow HTTP/1.1\r\n" + HEAD + b"\r\n") * 1000)
        read_all(connection)
        assert running.await_connections(0)
    with serving() as running, running.connect() as connection:
        connection.sendall(GET * 5)
        assert read_all_of(connection, 5) == 5


def read_all_of(connection: socket.socket, count: int) -> int:
    """The number of responses, up to so many."""
    received = b""
    while received.count(b"HTTP/1.1 200 OK") < count or not received.endswith(b"}"):
        part = connection.recv(65_536)
        if not part:
            break
        received += part
    return received.count(b"HTTP/1.1 200 OK")


# Too slow


SLOW = {
    "nothing": (b"", b""),
    "empty lines": (b"", b"\r\n"),
    "head": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"x"),
    "body": (b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n" + HEAD + b"\r\n", b"x"),
    "chunked body": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"\r\n", b"1\r\nx\r\n"),
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", SLOW)
def test_slow_clients_are_let_go_and_others_notice_nothing(kind: str, loop: str) -> None:
    in_time(lambda seconds: let_go(hasty(seconds)._replace(body_rate=100_000.0), kind, loop), 1.0)


def let_go(limits: ConnectionLimits, kind: str, loop: str) -> None:
    first, drop = SLOW[kind]
    with serving(limits, loop=loop) as running, ExitStack() as stack:
        slow = [stack.enter_context(running.connect()) for _ in range(50)]
        for connection in slow:
            connection.sendall(first)
        assert ask(running)[0] == 200  # with all of them open
        ended: set[socket.socket] = set()
        while len(ended) < len(slow):
            for connection in set(slow) - ended:
                try:
                    connection.sendall(drop)
                    connection.setblocking(False)
                    answer = connection.recv(65_536)
                    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
                    ended.add(connection)
                except BlockingIOError:
                    connection.settimeout(PATIENCE_S)
                except ConnectionError:
                    ended.add(connection)
            assert ask(running)[0] == 200
            time.sleep(0.02)
        assert running.await_connections(0)
        assert not running.server.server_state.tasks


def test_a_slow_line_is_not_a_slow_client() -> None:
    def send(seconds: float) -> None:
        with serving(hasty(seconds)) as running, running.connect() as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 2000\r\n" + HEAD + b"\r\n")
            for _ in range(10):  # for longer than a body may stall, but every piece is worth twice as long
                connection.sendall(b"x" * 200)
                time.sleep(0.15 * seconds)
            assert read_answer(connection) == (200, {"size": 2000, "caller": "owner", "principals": None, "names": 0})

    in_time(send, 1.0)


def test_a_slow_answer_is_not_a_slow_client() -> None:
    def send(seconds: float) -> None:
        with serving(hasty(seconds)) as running, running.connect() as connection:
            slow = b"GET /slow?seconds=%f HTTP/1.1\r\n" % (1.5 * seconds)
            connection.sendall(slow + HEAD + b"\r\n" + b"GET / HTTP/1.1\r\nHost: loc")
            assert read_answer(connection) == (200, {"done": True})
            connection.sendall(b"alhost\r\n\r\n")
            assert read_answer(connection)[0] == 200

    in_time(send, 1.0)


@pytest.mark.parametrize("loop", LOOPS)
def test_whoever_does_not_read_the_answer_is_let_go(loop: str) -> None:
    with serving(HASTY, loop=loop) as running, running.connect() as connection:
        connection.sendall(b"GET /vast HTTP/1.1\r\n" + HEAD + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        assert running.await_connections(0)
        assert ask(running)[0] == 200


def test_an_idle_connection_is_closed() -> None:
    def send(seconds: float) -> None:
        with serving(PATIENT._replace(idle_s=seconds)) as running, running.connect() as connection:
            for _ in range(3):
                connection.sendall(GET)
                assert read_answer(connection)[0] == 200
            assert connection.recv(100) == b""

    in_time(send, 0.2)


def test_a_connection_is_not_kept_by_empty_lines() -> None:
    with serving(HASTY) as running, running.connect() as connection:
        connection.sendall(GET)
        assert read_answer(connection)[0] == 200
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                connection.sendall(b"\r\n")
                time.sleep(0.01)


def test_a_body_that_stops_leaves_nothing_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving(HASTY) as running, running.connect() as connection:
        connection.sendall(b"POST /?q=question HTTP/1.1\r\nContent-Length: 10\r\n" + HEAD + b"\r\nab")
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
        assert ask(running, b"GET /?q=question HTTP/1.1\r\n" + HEAD + b"\r\n")[0] == 200
    assert "Traceback" not in caplog.text and "question" not in caplog.text


# Too many, and other ways in


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no unix sockets")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_owner_gets_in_however_many_others_there_are(tmp_path: Path, loop: str) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        with serving(PATIENT._replace(connections=5), loop=loop, sockets=(listener,)) as running, ExitStack() as stack:
            others = [stack.enter_context(running.connect()) for _ in range(5)]
            assert running.await_connections(5)
            with running.connect() as one_more:
                assert read_all(one_more).startswith(b"HTTP/1.1 503 ")
            with socket.socket(socket.AF_UNIX) as local:
                local.settimeout(20)
                local.connect(path)
                local.sendall(b"GET / HTTP/1.1\r\n\r\n")
                told = {"size": 0, "caller": "owner", "principals": None, "names": 0}
                assert read_answer(local) == (200, told)
            others[0].sendall(GET)
            assert read_answer(others[0])[0] == 200
            others.pop().close()
            assert running.await_connections(4)
            assert ask(running)[0] == 200


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no unix sockets")
def test_a_slow_client_of_the_unix_socket_is_let_go(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        with serving(HASTY, sockets=(listener,)), socket.socket(socket.AF_UNIX) as local:
            local.settimeout(20)
            local.connect(path)
            local.sendall(b"GET / HT")
            assert read_all(local).startswith(b"HTTP/1.1 408 ")


def test_trailers_do_not_join_the_headers_that_were_checked() -> None:
    request = b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    end = b"1\r\nx\r\n0\r\nHost: evil.example\r\nAuthorization: Bearer wrong\r\n\r\n"
    with serving() as running:
        assert ask(running, request + end) == (200, {"size": 1, "caller": "owner", "principals": None, "names": 0})
        refused = ask(running, request.replace(HEAD, HEAD + b"Authorization: Bearer wrong\r\n") + end)
        assert refused[0] == 401


def test_a_websocket_is_not_opened() -> None:
    upgrade = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n"
    )
    with serving() as running, running.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + HEAD + upgrade)
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")


def test_an_upgrade_to_http_2_is_passed_over() -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    with serving() as running:
        assert ask(running, b"GET / HTTP/1.1\r\n" + HEAD + upgrade)[0] == 200


@pytest.mark.parametrize("host", [b"evil.example", b"localhost.", b"user@localhost"])
def test_a_rebound_name_is_refused_on_the_wire(host: bytes) -> None:
    with serving() as running:
        assert ask(running, b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)[0] == 421
        # The name in the request line does not count.
        assert ask(running, b"GET http://localhost/ HTTP/1.1\r\nHost: %b\r\n\r\n" % host)[0] == 421


# Last words


def test_last_words_are_answers_like_all_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    large = b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 70_000
    late = b"GET / HTTP/1.1\r\nHost: loc"
    seen = set()
    with serving(HASTY) as running:
        for request, status in ((b"no http at all\r\n\r\n", 400), (large, 431), (late, 408)):
            with running.connect() as connection:
                connection.sendall(request)
                head, _, body = read_all(connection).partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
            problem = json.loads(body)
            assert problem["status"] == status
            assert problem["instance"] == headers["x-request-id"] and len(problem["instance"]) == 16
            assert headers["x-content-type-options"] == "nosniff"
            seen.add(problem["instance"])
    assert len(seen) == 3
    assert "Invalid HTTP request" not in caplog.text


def test_a_request_with_another_behind_it_learns_that_its_client_has_gone() -> None:
    told = threading.Event()

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        told.set()

    with serving(app=waits) as running:
        with running.connect() as connection:
            connection.sendall(GET + GET)
            assert running.await_connections(1)
        assert told.wait(PATIENCE_S)
