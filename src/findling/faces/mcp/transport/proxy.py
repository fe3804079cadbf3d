"""Between a client on stdin and stdout and the daemon: a thin process that starts at once.

It loads nothing but the standard library. Where there is no daemon, or it goes away, the server is started here, and
goes on where the daemon has left off: a client never notices.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from queue import SimpleQueue
from typing import Any, Protocol

from findling.domain.errors import DaemonError, FindlingError
from findling.faces.mcp.transport.daemon_connection import Exchange, routing_headers, says_version
from findling.faces.mcp.transport.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, failure, is_request, read_envelope

__all__ = ["TakeOver", "pass_on"]

_RETRIES = 1
"""Another daemon may have taken the place of the one that went."""

_LONGEST_S = 600.0
"""How long it is waited for answers when no more lines come: an index run that somebody asked for takes minutes."""

_CLOSING_S = 5.0

_BEFORE_ALL = ("initialize", "ping", "server/discover")
"""What may be asked before a session has begun."""


class TakeOver(Protocol):
    """Serves a client by itself: takes its lines from a queue until an empty one comes, and writes lines."""

    def __call__(self, lines: SimpleQueue[str], write: Callable[[str], None], /) -> None: ...


def pass_on(
    lines: Iterable[bytes],
    write: Callable[[bytes], None],
    *,
    find_daemon: Callable[[], str | None],
    headers: Mapping[str, str | bytes],
    take_over: TakeOver,
    leave: Callable[[], None] = lambda: None,
    patience_s: float = _LONGEST_S,
) -> None:
    """Pass the lines of a client on to the daemon, several at once, and write what comes back.

    `find_daemon` gives the socket of the daemon, if one runs. Returns when the lines end and everything is answered, or
    `patience_s` after they have ended. When nothing can be written any more, `leave` is called, from whichever thread
    finds out, and nothing more is done.
    """
    proxy = _Proxy(write, find_daemon, headers, take_over, leave)
    for line in lines:
        if proxy.is_alone:
            return
        if line.strip():
            proxy.handle(line)
    proxy.finish(time.monotonic() + patience_s)


class _Proxy:
    """Passes messages on, and becomes the server when there is no daemon any more."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        find_daemon: Callable[[], str | None],
        headers: Mapping[str, str | bytes],
        take_over: TakeOver,
        leave: Callable[[], None],
    ) -> None:
        self.is_alone = False  # whether nobody reads any more
        self._leave = leave
        self._write = write
        self._find_daemon = find_daemon
        self._headers = headers
        self._take_over = take_over
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._version = ""
        self._opening: list[tuple[Any, bytes]] = []
        self._own: _OwnServer | None = None
        self._under_way: dict[str, Exchange] = {}
        self._threads: list[threading.Thread] = []

    def handle(self, line: bytes) -> None:
        """See to one line of the client."""
        message, line = read_envelope(line)
        if message is None:
            if line:
                self._put(line)
            return
        method = message["method"]
        if method in ("initialize", "notifications/initialized"):
            self._opening.append((message.get("id"), line))
        if is_request(message):
            self._request(message, line)
        elif self._own is not None:
            self._own.put(message, line)
        elif method == "notifications/cancelled":
            self._cancel(message)

    def finish(self, deadline: float) -> None:
        """Wait for what is under way."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._own is not None and not self.is_alone:
            self._own.finish(deadline)

    def _request(self, message: dict[str, Any], line: bytes) -> None:
        method = message["method"]
        if method not in _BEFORE_ALL and not self._opening and not says_version(message):
            self._put(failure(message["id"], INVALID_REQUEST, "Invalid request: initialize comes first"))
        elif method == "initialize":
            self._exchange(message, line)  # nothing that follows makes sense before it is answered
        elif self._own is not None:
            self._own.put(message, line)
        else:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            thread = threading.Thread(target=self._exchange, args=(message, line), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _exchange(self, message: dict[str, Any], line: bytes) -> None:
        """Have a request answered: by the daemon, by another one, or here."""
        for _ in range(_RETRIES + 1):
            socket = None if self._own is not None else self._find_daemon()
            if socket is None:
                break
            exchange = Exchange(socket, {**self._headers, **routing_headers(message, self._version)})
            try:
                self._ask(exchange, message, line)
                return
            except DaemonError as refusal:
                self._put(failure(message["id"], INTERNAL_ERROR, _told(refusal)))
                return
            except (OSError, HTTPException):
                if exchange.is_cancelled or self.is_alone:
                    return
        self._answer_here(message, line)

    def _ask(self, exchange: Exchange, message: dict[str, Any], line: bytes) -> None:
        key = json.dumps(message["id"])
        with self._guard:
            self._under_way[key] = exchange
        try:
            for answer in exchange.send(line):
                if message["method"] == "initialize":
                    self._version = _negotiated(answer) or self._version
                self._put(_addressed(answer, message["id"]))
        finally:
            with self._guard:
                self._under_way.pop(key, None)
            exchange.close()

    def _cancel(self, message: dict[str, Any]) -> None:
        """Hang up on a request that nobody waits for any more: that is how the daemon learns of it."""
        params = message.get("params")
        key = json.dumps(params.get("requestId") if isinstance(params, dict) else None)
        with self._guard:
            exchange = self._under_way.get(key)
        if exchange is not None:
            exchange.cancel()

    def _answer_here(self, message: dict[str, Any], line: bytes) -> None:
        with self._guard:
            if self._own is None:
                # It is told what the daemon was told at the beginning, so far as this is not about that itself.
                self._own = _OwnServer(self._take_over, self._put, [one for one in self._opening if one[1] is not line])
        self._own.put(message, line)

    def _put(self, message: bytes) -> None:
        # A line each: outside of strings, which hold none, line ends are but spaces.
        text = message.strip().replace(b"\r", b" ").replace(b"\n", b" ")
        with self._writing:
            if self.is_alone:
                return
            try:
                self._write(text + b"\n")
            except OSError:
                # Not for whoever asks the daemon to see: it is the client that has gone.
                self.is_alone = True
        if self.is_alone:
            self._leave()


class _OwnServer:
    """The server in a thread of this process."""

    def __init__(self, take_over: TakeOver, put: Callable[[bytes], None], opening: Iterable[tuple[Any, bytes]]) -> None:
        self._take_over = take_over
        self._put = put
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._changed = threading.Condition()
        self._is_up = True
        # How many answers are due to an id: nothing keeps a client from using one twice.
        self._waiting: Counter[str] = Counter()
        # What the client has been answered already, by the daemon.
        self._known = [json.dumps(key) for key, _ in opening if key is not None]
        for _, line in opening:
            self.put(json.loads(line), line)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def put(self, message: dict[str, Any], line: bytes) -> None:
        """Pass a line on, and the message in it."""
        params = message.get("params")
        with self._changed:
            if is_request(message):
                self._waiting[json.dumps(message["id"])] += 1
            elif message["method"] == "notifications/cancelled" and isinstance(params, dict):
                self._settle(json.dumps(params.get("requestId")))
            is_up = self._is_up
        if is_up:
            self._lines.put(line.decode())
        else:
            self._give_up()

    def finish(self, deadline: float) -> None:
        """Wait for what is under way, and say that no more lines come: the server would drop what it is at."""
        with self._changed:
            left_s = max(0.0, deadline - time.monotonic())
            self._changed.wait_for(lambda: not self._waiting or not self._is_up, left_s)
        self._lines.put("")
        self._thread.join(_CLOSING_S)

    def _settle(self, key: str) -> None:
        """Wait for one answer less."""
        self._waiting[key] -= 1
        if self._waiting[key] <= 0:
            del self._waiting[key]

    def _serve(self) -> None:
        try:
            self._run()
        finally:
            with self._changed:
                self._is_up = False
                self._changed.notify_all()
            self._give_up()

    def _run(self) -> None:
        try:
            self._take_over(self._lines, self._answer)
            return
        except FindlingError as error:
            told = _told(error)
        while line := self._lines.get():
            message = json.loads(line)
            if is_request(message):
                self._answer(failure(message["id"], INTERNAL_ERROR, told).decode())

    def _give_up(self) -> None:
        """Answer what nobody is there for any more, which a fault of the server must have left."""
        with self._changed:
            left = list(self._waiting.elements())
            self._waiting.clear()
        for key in left:
            self._put(failure(json.loads(key), INTERNAL_ERROR, "this is a fault in findling"))

    def _answer(self, text: str) -> None:
        message = json.loads(text)
        key = json.dumps(message.get("id")) if "method" not in message else ""
        if key and key in self._known:
            self._known.remove(key)
        else:
            self._put(text.encode())
        with self._changed:
            self._settle(key)
            self._changed.notify_all()


def _told(error: FindlingError) -> str:
    return f"{error.message}; try: {error.hint}" if error.hint else error.message


def _addressed(answer: bytes, key: str | int) -> bytes:
    """An answer that says what it is to: HTTP has refused the request before it has read that."""
    message = json.loads(answer)
    return answer if "method" in message or message.get("id") == key else json.dumps({**message, "id": key}).encode()


def _negotiated(answer: bytes) -> str:
    """The version of the protocol that an answer to `initialize` settles."""
    try:
        version = json.loads(answer)["result"]["protocolVersion"]
    except (ValueError, KeyError, TypeError):
        return ""
    return version if isinstance(version, str) else ""
