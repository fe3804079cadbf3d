"""A provider on this machine: a real HTTP server that speaks the wire formats of the services findling knows."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from tests.processes import PATIENCE_S

DIMENSIONS = 8


class Received(NamedTuple):
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Reply(NamedTuple):
    """The response of the server; `cut` closes the connection after so many bytes of the body."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    cut: int | None = None


def as_json(status: int, body: object) -> Reply:
    return Reply(status, json.dumps(body).encode())


def numbers_of(text: str) -> list[float]:
    """The vector that the server gives to a text: any will do as long as texts differ."""
    return [byte / 64 - 2 for byte in hashlib.blake2b(text.encode(), digest_size=DIMENSIONS).digest()]


def relevance(query: str, text: str) -> float:
    """The share of the query's words that a text holds."""
    words = query.lower().split()
    return sum(word in text.lower() for word in words) / len(words)


class ProviderServer(ThreadingHTTPServer):
    """Answers like a provider, unless one of the methods `then…` has said what comes next."""

    daemon_threads = True
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: deque[Callable[[Received], Reply]] = deque()
        self.received: list[Received] = []
        self.most_texts: int | None = None
        self.barrier: threading.Barrier | None = None
        self.released = threading.Event()
        self.busy = 0
        self.most_busy = 0
        self.connections = 0
        self.lock = threading.Lock()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def then(self, status: int, body: object = b"", *, times: int = 1, cut: int | None = None, **headers: str) -> None:
        """Reply so next; a body that is not bytes is written as JSON. Status 0 hangs up without a word."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        self.script.extend([lambda received: Reply(status, data, named, cut)] * times)

    def then_quote(self, status: int, *, times: int = 1) -> None:
        """Refuse next with words that hold the key."""

        def quote(received: Received) -> Reply:
            words = f"bad request with {'x' * 150} {received.headers['Authorization']}"
            return as_json(status, {"error": {"message": words}})._replace(headers=(("Retry-After", "0"),))

        self.script.extend([quote] * times)

    def then_wait(self) -> None:
        """Reply next only when the test is over."""

        def wait(received: Received) -> Reply:
            self.released.wait(PATIENCE_S)
            return as_json(200, {})

        self.script.append(wait)

    def vector(self, text: str) -> list[float]:
        """The numbers that are sent for a text, before they are brought to length 1."""
        return numbers_of(text)

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that gave up waiting is part of the tests
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def reply(self, received: Received) -> Reply:
        with self.lock:
            self.received.append(received)
            scripted = self.script.popleft() if self.script else None
        if scripted is not None:
            return scripted(received)
        if self.barrier is not None:
            self.barrier.wait(timeout=PATIENCE_S)
        if received.path.endswith("/embeddings"):
            return self.embeddings(received.body)
        if received.path.endswith("/v2/embed"):
            return cohere_embeddings(received.body)
        if received.path.endswith("/rerank"):
            return rerank(received.path, received.body)
        if received.path.endswith("/chat/completions"):
            return chat(received.body)
        if received.path.endswith("/messages"):
            return messages(received)
        return as_json(404, {"error": {"message": f"no such path {received.path}"}})

    def embeddings(self, body: dict[str, Any]) -> Reply:
        texts = body["input"]
        if self.most_texts is not None and len(texts) > self.most_texts:
            words = f"batch size {len(texts)} > maximum allowed batch size {self.most_texts}"
            return as_json(422, {"error": words, "error_type": "Validation"})
        rows = [numbers_of(text)[: body.get("dimensions", body.get("output_dimension"))] for text in texts]
        data = [
            {"object": "embedding", "index": index, "embedding": written(row, body.get("encoding_format", "float"))}
            for index, row in enumerate(rows)
        ]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        return as_json(200, {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage})


def written(row: list[float], encoding: str) -> object:
    if encoding == "base64":
        return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()
    return row


def cohere_embeddings(body: dict[str, Any]) -> Reply:
    assert body["embedding_types"] == ["float"]
    assert body["input_type"] in ("search_document", "search_query")
    rows = [numbers_of(text) for text in body["texts"]]
    return as_json(200, {"id": "1", "embeddings": {"float": rows}, "texts": body["texts"], "meta": {}})


def rerank(path: str, body: dict[str, Any]) -> Reply:
    """Cohere and vLLM say `results`, Voyage says `data`, TEI sends a bare list; all of them best first."""
    texts = body["texts"] if path.startswith("/tei") else body["documents"]
    scores = [(index, relevance(body["query"], text)) for index, text in enumerate(texts)]
    scores.sort(key=lambda pair: -pair[1])
    if path.startswith("/tei"):
        return as_json(200, [{"index": index, "score": score} for index, score in scores])
    items = [{"index": index, "relevance_score": score} for index, score in scores]
    if path.startswith("/voyage"):
        return as_json(200, {"object": "list", "data": items, "model": body["model"], "usage": {"total_tokens": 1}})
    return as_json(200, {"id": "1", "results": items, "meta": {}})


def chat(body: dict[str, Any]) -> Reply:
    said = " / ".join(f"{message['role']}: {message['content']}" for message in body["messages"])
    message = {"role": "assistant", "content": f" {said} "}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return as_json(200, {"id": "1", "object": "chat.completion", "choices": [choice]})


def messages(received: Received) -> Reply:
    """Anthropic wants a version and a key in headers of its own, `max_tokens`, and the instructions apart."""
    if "anthropic-version" not in received.headers or not received.headers.get("x-api-key"):
        return as_json(401, {"type": "error", "error": {"type": "authentication_error", "message": "no key"}})
    body = received.body
    assert isinstance(body["max_tokens"], int)
    assert [message["role"] for message in body["messages"]] == ["user"]
    said = f"{body['system']} / {body['messages'][0]['content']}"
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": said}]
    return as_json(200, {"id": "1", "type": "message", "role": "assistant", "content": content})


class _Handler(BaseHTTPRequestHandler):
    server: ProviderServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(body)

    def do_CONNECT(self) -> None:
        self.answer(None)

    def answer(self, body: object) -> None:
        server = self.server
        with server.lock:
            server.busy += 1
            server.most_busy = max(server.most_busy, server.busy)
        try:
            reply = server.reply(Received(self.command, self.path, dict(self.headers), body))
        finally:
            with server.lock:
                server.busy -= 1
        self.send(reply)

    def send(self, reply: Reply) -> None:
        if reply.status == 0:  # hang up without a word
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in (("Content-Type", "application/json"), *reply.headers):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body if reply.cut is None else reply.body[: reply.cut])
        if reply.cut is not None:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    running = ProviderServer()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.released.set()
    running.shutdown()
    running.server_close()
    thread.join()
