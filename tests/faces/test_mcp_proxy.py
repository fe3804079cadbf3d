"""What passes messages on to the daemon, in front of a daemon that does what none should."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from findling.domain.errors import MissingExtraError
from findling.faces.mcp.transport.daemon_connection import routing_headers
from findling.faces.mcp.transport.proxy import pass_on
from tests.processes import PATIENCE_S

Answer = Callable[[socket.socket, dict[str, Any]], None]

OPENING = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def _call(key: Any, name: str = "search") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": {"name": name}}


def _alone(key: Any) -> dict[str, Any]:
    """A call that needs no session."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    return {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": {"name": "search", "_meta": meta}}


def _result(key: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "result": result}


@contextmanager
def _daemon(path: Path, answer: Answer) -> Iterator[list[dict[str, str]]]:
    """Something that listens on a socket and answers each request in a thread; yields the headers that it got."""
    seen: list[dict[str, str]] = []

    def serve(line: socket.socket) -> None:
        with line, line.makefile("rb") as stream:
            if not stream.readline():
                return
            headers = {}
            while text := stream.readline().decode().strip():
                name, _, value = text.partition(":")
                headers[name.lower()] = value.strip()
            seen.append(headers)
            answer(line, json.loads(stream.read(int(headers["content-length"]))))

    def listen() -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(line,)))
            threads[-1].start()

    threads: list[threading.Thread] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        accepting = threading.Thread(target=listen)
        accepting.start()
        try:
            yield seen
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def _respond(line: socket.socket, document: object, status: str = "200 OK", kind: str = "application/json") -> None:
    body = document if isinstance(document, bytes) else json.dumps(document, indent=1).encode()
    line.sendall(f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)


def _passed(
    lines: list[dict[str, Any]] | Iterator[bytes],
    path: Path | None,
    take_over: Callable[[SimpleQueue[str], Callable[[str], None]], None] | None = None,
    patience_s: float = 60.0,
) -> list[dict[str, Any]]:
    written: list[bytes] = []

    def refuse(_: SimpleQueue[str], __: Callable[[str], None]) -> None:
        raise AssertionError("the daemon was there")

    pass_on(
        [json.dumps(line).encode() + b"\n" for line in lines] if isinstance(lines, list) else lines,
        written.append,
        find_daemon=lambda: str(path) if path and path.exists() else None,
        headers={"findling-path": "/somewhere"},
        take_over=take_over or refuse,
        patience_s=patience_s,
    )
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in written)
    return [json.loads(line) for line in written]


def _echo(lines: SimpleQueue[str], write: Callable[[str], None]) -> None:
    """A server that answers each request with its id and method."""
    while line := lines.get():
        message = json.loads(line)
        if "id" in message:
            write(json.dumps(_result(message["id"], by="own", method=message["method"])) + "\n")


def test_answers_come_back_in_a_line_each(tmp_path: Path) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        _respond(line, _result(message["id"], protocolVersion="2025-06-18"))

    with _daemon(tmp_path / "s", answer) as seen:
        answers = _passed([OPENING, READY, _call(2), _call("three"), _result(9)], tmp_path / "s")
    assert answers[0]["id"] == 1
    assert {answer["id"] for answer in answers[1:]} == {2, "three"}
    assert [headers["findling-path"] for headers in seen] == ["/somewhere"] * 3
    # What was settled at the beginning is told with every later request.
    assert [headers.get("mcp-protocol-version") for headers in seen] == [None, "2025-06-18", "2025-06-18"]


def test_progress_is_passed_on_before_the_answer(tmp_path: Path) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        step = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        events = [": ping", f"event: message\r\ndata: {json.dumps(step)}", f"data: {json.dumps(_result(2))}"]
        _respond(line, "".join(f"{event}\r\n\r\n" for event in events).encode(), kind="text/event-stream")

    with _daemon(tmp_path / "s", answer):
        answers = _passed([_alone(2)], tmp_path / "s")
    assert [answer.get("method", answer.get("id")) for answer in answers] == ["notifications/progress", 2]


def test_what_stands_before_the_server_may_refuse(tmp_path: Path) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        if message["id"] == 2:
            _respond(line, {"detail": "too many", "hint": "wait"}, "503 Busy", "application/problem+json")
        else:
            _respond(line, b"<html>", "500 Error", "text/html")

    with _daemon(tmp_path / "s", answer):
        answers = _passed([_alone(2), _alone(3)], tmp_path / "s")
    told = {answer["id"]: answer["error"]["message"] for answer in answers}
    assert told == {2: "too many; try: wait", 3: "the daemon answers with status 500; try: restart the daemon"}


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: ping\r\n\r\n",
    ],
)
def test_a_daemon_that_hangs_up(tmp_path: Path, half: bytes) -> None:
    """It is asked once more, and then the server here is told what the daemon was told."""

    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        if message["method"] == "initialize":
            _respond(line, _result(1, by="daemon", protocolVersion="2025-06-18"))
        else:
            line.sendall(half)

    with _daemon(tmp_path / "s", answer) as seen:
        answers = _passed([OPENING, READY, _call(2), _call(3)], tmp_path / "s", _echo)
    assert [answer["result"]["by"] for answer in answers] == ["daemon", "own", "own"]
    assert {answer["id"] for answer in answers[1:]} == {2, 3}
    assert len(seen) <= 5


def test_no_daemon_from_the_first_message_on(tmp_path: Path) -> None:
    answers = _passed([OPENING, READY, _call(2)], None, _echo)
    assert [(answer["id"], answer["result"]["by"]) for answer in answers] == [(1, "own"), (2, "own")]


def test_a_server_that_cannot_be_started_here(tmp_path: Path) -> None:
    def fail(_: SimpleQueue[str], __: Callable[[str], None]) -> None:
        raise MissingExtraError("the MCP server needs the package mcp", hint="pip install 'findling[mcp]'")

    answers = _passed([OPENING, READY, _call(2)], None, fail)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert all("pip install" in answer["error"]["message"] for answer in answers)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_that_breaks_here(tmp_path: Path) -> None:
    """Nobody waits for ever, whatever goes wrong."""

    def fail(lines: SimpleQueue[str], _: Callable[[str], None]) -> None:
        lines.get()
        raise ZeroDivisionError

    answers = _passed([OPENING, READY, _call(2)], None, fail)
    assert sorted(answer["id"] for answer in answers) == [1, 2]
    assert {answer["error"]["message"] for answer in answers} == {"this is a fault in findling"}


def test_a_request_that_nobody_waits_for(tmp_path: Path) -> None:
    """Cancelling hangs up on the daemon, and there is no answer, and no second try."""
    asked, hung_up = threading.Event(), threading.Event()

    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        asked.set()
        assert line.recv(1) == b""
        hung_up.set()

    def lines() -> Iterator[bytes]:
        yield json.dumps(_alone(2)).encode()
        assert asked.wait(PATIENCE_S)
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        yield json.dumps(cancelled).encode()
        assert hung_up.wait(PATIENCE_S)

    with _daemon(tmp_path / "s", answer) as seen:
        assert _passed(lines(), tmp_path / "s") == []
    assert len(seen) == 1


def test_headers_of_the_protocol_of_2026() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    message = {"method": "tools/call", "params": {"name": "suche-ü", "_meta": meta}}
    assert routing_headers(message, "2025-06-18") == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?c3VjaGUtw7w=?=",
    }
    assert routing_headers({"method": "ping", "params": [1]}, "") == {}


NO_REQUESTS: list[tuple[bytes, int, Any]] = [
    (b'{"method":"ping","id":5}', -32600, 5),
    (b'{"jsonrpc":"1.0","method":"ping","id":5}', -32600, 5),
    (b'{"jsonrpc":"2.0","method":"ping","id":1.5}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"ping","id":true}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"ping","id":[1]}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"ping","id":null}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"ping","id":9,"params":[1]}', -32600, 9),
    (b'{"jsonrpc":"2.0","method":"ping","id":9,"params":"x"}', -32600, 9),
    (b'{"jsonrpc":"2.0","method":7,"id":9}', -32600, 9),
    (b'{"jsonrpc":"2.0","id":9}', -32600, 9),
    (b'[{"jsonrpc":"2.0","method":"ping","id":1}]', -32600, None),
    (b'{"jsonrpc":"2.0","method":"ping","id":9,"params":{"a":NaN}}', -32700, None),
    ('{"jsonrpc":"2.0","method":"ping","id":9}'.encode("utf-16-le"), -32700, None),
]


@pytest.mark.parametrize("with_daemon", [False, True])
def test_what_is_no_request_is_answered_before_anybody_is_asked(tmp_path: Path, with_daemon: bool) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        _respond(line, _result(message["id"]))

    sent = [json.dumps(OPENING).encode(), *(line for line, _, _ in NO_REQUESTS), json.dumps(_call(2)).encode()]
    with _daemon(tmp_path / "s", answer) as seen:
        answers = _passed(iter(sent), tmp_path / "s" if with_daemon else None, _echo)
    refused = [(one["error"]["code"], one["id"]) for one in answers if "error" in one]
    assert refused == [(code, key) for _, code, key in NO_REQUESTS]
    assert sorted(one["id"] for one in answers if "result" in one) == [1, 2]
    assert len(seen) == (2 if with_daemon else 0)


@pytest.mark.parametrize("with_daemon", [False, True])
def test_half_a_character_becomes_one_that_says_so(tmp_path: Path, with_daemon: bool) -> None:
    names: list[str] = []

    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        names.append(message["params"]["name"])
        _respond(line, _result(message["id"]))

    def own(lines: SimpleQueue[str], write: Callable[[str], None]) -> None:
        while line := lines.get():
            names.append(json.loads(line.encode())["params"]["name"])
            write(json.dumps(_result(json.loads(line)["id"])))

    sent = json.dumps({**_alone(2), "params": {**_alone(2)["params"], "name": "a \ud800 \U0001f600"}}).encode()
    with _daemon(tmp_path / "s", answer):
        answers = _passed(iter([sent]), tmp_path / "s" if with_daemon else None, own)
    assert ([one["id"] for one in answers], names) == ([2], ["a \ufffd \U0001f600"])


@pytest.mark.parametrize("with_daemon", [False, True])
def test_two_requests_with_one_id_are_both_answered(tmp_path: Path, with_daemon: bool) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        _respond(line, _result(message["id"]))

    def slow(lines: SimpleQueue[str], write: Callable[[str], None]) -> None:
        """It answers at its end, as far as somebody still waits then."""
        held = [json.loads(lines.get()) for _ in range(3)]
        for message in held:
            write(json.dumps(_result(message["id"])))
            threading.Event().wait(0.05)
        lines.get()

    with _daemon(tmp_path / "s", answer):
        answers = _passed([OPENING, _call(7), _call(7)], tmp_path / "s" if with_daemon else None, slow)
    assert [one["id"] for one in answers] == [1, 7, 7]


@pytest.mark.parametrize("with_daemon", [False, True])
def test_initialize_comes_first(tmp_path: Path, with_daemon: bool) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        _respond(line, _result(message["id"]))

    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    with _daemon(tmp_path / "s", answer):
        answers = _passed([_call(2), ping, OPENING, _call(4)], tmp_path / "s" if with_daemon else None, _echo)
    refused = {one["id"]: one["error"] for one in answers if "error" in one}
    assert refused == {2: {"code": -32600, "message": "Invalid request: initialize comes first"}}
    assert {one["id"] for one in answers if "result" in one} == {1, 3, 4}


@pytest.mark.parametrize("with_daemon", [False, True])
def test_an_initialize_that_wants_no_answer(tmp_path: Path, with_daemon: bool) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        _respond(line, _result(message["id"]))

    with _daemon(tmp_path / "s", answer):
        silent = {"jsonrpc": "2.0", "method": "initialize"}
        answers = _passed([silent, OPENING, _call(2)], tmp_path / "s" if with_daemon else None, _echo)
    assert [one["id"] for one in answers] == [1, 2]


def test_a_refusal_that_does_not_say_of_what(tmp_path: Path) -> None:
    """HTTP refuses some requests before it has read their ids."""

    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        error = {"code": -32700, "message": "Parse error"}
        _respond(line, {"jsonrpc": "2.0", "id": None, "error": error}, "400 Bad Request")

    with _daemon(tmp_path / "s", answer):
        answers = _passed([_alone(2)], tmp_path / "s")
    assert [(one["id"], one["error"]["code"]) for one in answers] == [(2, -32700)]


def test_a_client_that_reads_no_more_is_no_lost_daemon(tmp_path: Path) -> None:
    left = threading.Event()

    def answer(line: socket.socket, message: dict[str, Any]) -> None:
        _respond(line, _result(message["id"]))

    def write(line: bytes) -> None:
        raise BrokenPipeError

    def take_over(_: SimpleQueue[str], __: Callable[[str], None]) -> None:
        raise AssertionError("the daemon was there")

    def lines() -> Iterator[bytes]:
        yield json.dumps(_alone(2)).encode()
        assert left.wait(PATIENCE_S)
        yield json.dumps(_alone(3)).encode()
        raise AssertionError("nobody is there to read for")

    with _daemon(tmp_path / "s", answer):
        find = str(tmp_path / "s")
        pass_on(lines(), write, find_daemon=lambda: find, headers={}, take_over=take_over, leave=left.set)


def test_a_server_that_never_answers_is_not_waited_for_for_ever() -> None:
    def mute(lines: SimpleQueue[str], _: Callable[[str], None]) -> None:
        while lines.get():
            pass

    answers = _passed([OPENING, READY, _call(2)], None, mute, patience_s=0.1)
    assert sorted(one["id"] for one in answers) == [1, 2]
    assert all("error" in one for one in answers)
