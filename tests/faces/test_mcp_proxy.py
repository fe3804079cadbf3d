"""The process between an MCP client and a server: in front of servers that do what none should, and of the real one."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import findling
from findling.domain.errors import MissingExtraError
from findling.domain.permissions import OWNER
from findling.faces.mcp.tool_context import local_desk
from findling.faces.mcp.transport import jsonrpc, proxy
from findling.faces.mcp.transport.lines import serve_socket
from findling.faces.mcp.transport.proxy import pass_on
from findling.service.engine.client import LocalClient
from findling.service.settings.settings import Settings
from tests.faces.mcp_desks import make_project
from tests.processes import PATIENCE_S

Server = Callable[[socket.socket], None]

OPENING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
READY: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def _call(key: Any, query: str = "login") -> dict[str, Any]:
    params = {"name": "search", "arguments": {"query": query}}
    return {"jsonrpc": "2.0", "id": key, "method": "tools/call", "params": params}


def _result(key: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "result": result}


@contextmanager
def _daemon(path: Path, serve: Server) -> Iterator[None]:
    """A socket whose connections are served in a thread each."""

    def listen() -> None:
        while True:
            try:
                line, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=_closing(serve), args=(line,)))
            threads[-1].start()

    threads: list[threading.Thread] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        accepting = threading.Thread(target=listen)
        accepting.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def _closing(serve: Server) -> Server:
    def closing(line: socket.socket) -> None:
        with line:
            serve(line)

    return closing


def _answering(answer: Callable[[socket.socket, dict[str, Any]], bool]) -> Server:
    """A server that answers message by message, until `answer` says that it hangs up."""

    def serve(line: socket.socket) -> None:
        with line.makefile("rb") as stream:
            for text in stream:
                if answer(line, json.loads(text)):
                    return

    return serve


def _say(line: socket.socket, document: object) -> None:
    line.sendall(json.dumps(document).encode() + b"\n")


def _echo(by: str) -> Server:
    """A server that answers each request with its name."""

    def answer(line: socket.socket, message: dict[str, Any]) -> bool:
        if "id" in message:
            _say(line, _result(message["id"], by=by))
        return False

    return _answering(answer)


def _refuse(_: socket.socket) -> None:
    raise AssertionError("the daemon was there")


def _passed(
    lines: list[dict[str, Any]] | Iterable[bytes],
    path: Path | None,
    serve: Server = _refuse,
    patience_s: float = PATIENCE_S,
) -> list[dict[str, Any]]:
    def connect() -> socket.socket | None:
        if path is None:
            return None
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(path))
        return line

    written: list[bytes] = []
    sent = [json.dumps(line).encode() + b"\n" for line in lines] if isinstance(lines, list) else lines
    pass_on(sent, written.append, connect=connect, serve=serve, patience_s=patience_s)
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in written)
    return [json.loads(line) for line in written]


def test_bytes_go_to_and_fro(tmp_path: Path) -> None:
    def answer(line: socket.socket, message: dict[str, Any]) -> bool:
        if "id" in message and "method" in message:
            _say(line, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
            line.sendall(b'{ "jsonrpc": "2.0", "id": %b, "result": {}  }\n' % json.dumps(message["id"]).encode())
        return False

    with _daemon(tmp_path / "s", _answering(answer)):
        answers = _passed([OPENING, READY, _call(2), _call("three"), _result(9)], tmp_path / "s")
    told = [answer.get("id", "progress") for answer in answers]
    assert told == ["progress", 1, "progress", 2, "progress", "three"]


@pytest.mark.parametrize("half", [b"", b'{"jsonrpc": "2.0", "id": 2, "resu'])
def test_a_daemon_that_hangs_up(tmp_path: Path, half: bytes) -> None:
    """The next one is asked once, and then the server here; both get the beginning of the session again."""
    heard: list[list[str]] = []

    def serve(line: socket.socket) -> None:
        heard.append([])

        def answer(line: socket.socket, message: dict[str, Any]) -> bool:
            heard[-1].append(message["method"])
            if message["method"] == "initialize":
                _say(line, _result(1, by="daemon"))
            elif "id" in message:
                line.sendall(half)
                return True
            return False

        _answering(answer)(line)

    with _daemon(tmp_path / "s", serve):
        answers = _passed([OPENING, READY, _call(2), _call(3)], tmp_path / "s", _echo("own"))
    assert [(answer["id"], answer["result"]["by"]) for answer in answers] == [(1, "daemon"), (2, "own"), (3, "own")]
    assert heard == [["initialize", "notifications/initialized", "tools/call"]] * 2


def test_a_daemon_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    """Nothing is started here meanwhile, when nobody asks."""

    def first(line: socket.socket, message: dict[str, Any]) -> bool:
        if "id" not in message:
            return True
        _say(line, _result(message["id"], by="first"))
        return False

    def lines() -> Iterator[bytes]:
        yield json.dumps(OPENING).encode()
        yield json.dumps(READY).encode()
        daemon.close()
        (tmp_path / "s").unlink()
        daemon.enter_context(_daemon(tmp_path / "s", _echo("second")))
        yield json.dumps(_call(2)).encode()

    with ExitStack() as daemon:
        daemon.enter_context(_daemon(tmp_path / "s", _answering(first)))
        answers = _passed(lines(), tmp_path / "s")
    assert [(answer["id"], answer["result"]["by"]) for answer in answers] == [(1, "first"), (2, "second")]


def test_no_daemon_from_the_first_message_on() -> None:
    answers = _passed([OPENING, READY, _call(2)], None, _echo("own"))
    assert [(answer["id"], answer["result"]["by"]) for answer in answers] == [(1, "own"), (2, "own")]


def test_a_server_that_cannot_be_started_here() -> None:
    def fail(_: socket.socket) -> None:
        raise MissingExtraError("the MCP server needs the package mcp", hint="pip install 'findling[mcp]'")

    answers = _passed([OPENING, READY, _call(2)], None, fail)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert all("pip install" in answer["error"]["message"] for answer in answers)


def test_a_server_that_breaks_here() -> None:
    """Nobody waits for ever, whatever goes wrong."""

    def fail(line: socket.socket) -> None:
        line.recv(1)
        raise ZeroDivisionError

    answers = _passed([OPENING, READY, _call(2)], None, fail)
    assert sorted(answer["id"] for answer in answers) == [1, 2]
    assert {answer["error"]["message"] for answer in answers} == {"this is a fault in findling"}


def test_a_request_that_nobody_waits_for(tmp_path: Path) -> None:
    heard: list[str] = []

    def hear(_: socket.socket, message: dict[str, Any]) -> bool:
        heard.append(message["method"])
        return False

    with _daemon(tmp_path / "s", _answering(hear)):
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
        assert _passed([_call(2), cancelled], tmp_path / "s") == []
    assert heard == ["tools/call", "notifications/cancelled"]


def test_a_client_that_reads_no_more_is_no_lost_daemon(tmp_path: Path) -> None:
    left = threading.Event()

    def write(line: bytes) -> None:
        raise BrokenPipeError

    def lines() -> Iterator[bytes]:
        yield json.dumps(_call(2)).encode()
        assert left.wait(PATIENCE_S)
        yield json.dumps(_call(3)).encode()
        raise AssertionError("nobody is there to read for")

    def connect() -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(tmp_path / "s"))
        return line

    with _daemon(tmp_path / "s", _echo("daemon")):
        pass_on(lines(), write, connect=connect, serve=_refuse, leave=left.set)


@pytest.mark.parametrize("with_daemon", [False, True])
def test_a_server_that_never_answers_is_not_waited_for_for_ever(tmp_path: Path, with_daemon: bool) -> None:
    mute = _answering(lambda _, __: False)
    with _daemon(tmp_path / "s", mute):
        place = tmp_path / "s" if with_daemon else None
        answers = _passed([OPENING, READY, _call(2)], place, mute, patience_s=0.1)
    assert sorted(one["id"] for one in answers) == [1, 2]
    assert {one["error"]["message"] for one in answers} == {"there was no answer in time"}


# The real server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = make_project(tmp_path_factory.mktemp("lines") / "project")
    own = {"store.home": str(root.parent / "indexes"), "search.mode": "keyword", "semantic.refine": "never"}
    settings = Settings().override(own, "test")
    with findling.open(root, settings=settings) as engine:
        engine.index()
        desk = local_desk(lambda: nullcontext(LocalClient(engine, settings=settings)), OWNER, settings)
        yield lambda end: serve_socket(lambda: desk, end)


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
    (b'{"jsonrpc":"2.0","method":"ping","id":9,"params":{"a":' + b"[" * 99999 + b"]" * 99999 + b"}}", -32700, None),
]


def test_what_is_no_request_is_refused(server: Server) -> None:
    sent = [json.dumps(OPENING).encode(), *(line for line, _, _ in NO_REQUESTS), json.dumps(_call(2)).encode()]
    answers = _passed(iter(sent), None, server)
    refused = [(one["error"]["code"], one["id"]) for one in answers if "error" in one]
    assert refused == [(code, key) for _, code, key in NO_REQUESTS]
    assert sorted(one["id"] for one in answers if "result" in one) == [1, 2]


def test_half_a_character_becomes_one_that_says_so(server: Server) -> None:
    first, found = _passed([OPENING, _call("\ud800", "a \ud800 login")], None, server)
    assert (first["id"], found["id"]) == (1, "\ufffd")
    assert found["result"]["structuredContent"]["total"] == 2


def test_two_requests_with_one_id_are_both_answered(server: Server) -> None:
    assert [one["id"] for one in _passed([OPENING, _call(7), _call(7)], None, server)] == [1, 7, 7]


def test_initialize_comes_first(server: Server) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    alone = {**_call(5), "params": {**_call(5)["params"], "_meta": meta}}
    ping = {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    answers = {one["id"]: one for one in _passed([_call(2), ping, OPENING, _call(4)], None, server)}
    assert answers[2]["error"] == {"code": -32600, "message": "Invalid request: initialize comes first"}
    assert all("result" in answers[key] for key in (1, 3, 4))
    (stateless,) = _passed([alone], None, server)
    assert "comes first" not in json.dumps(stateless)


def test_an_initialize_that_wants_no_answer(server: Server) -> None:
    silent = {"jsonrpc": "2.0", "method": "initialize"}
    assert [one["id"] for one in _passed([silent, OPENING, _call(2)], None, server)] == [1, 2]


def test_a_message_that_is_too_long_is_refused_and_the_next_one_answered(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (jsonrpc, proxy):
        monkeypatch.setattr(module, "LONGEST_LINE", 5_000)
    answers = {one["id"]: one for one in _passed([OPENING, _call(2, "x" * 5_000), _call(3)], None, server)}
    assert answers[2]["error"]["message"] == "the message is longer than 5000 bytes; try: send less at once"
    assert all("result" in answers[key] for key in (1, 3))
