"""Connections with limits: clients that send or read too slowly, or too much, are disconnected."""

from __future__ import annotations

import asyncio
import logging
import math
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from findling.faces.http.base.problems import Problem, problem_response, protection

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

# Private parts of uvicorn that GuardedProtocol overrides or calls. Without one of them its limits would not hold.
_PRIVATE_PARTS = (
    "_should_upgrade_to_ws",
    "_start_asgi_task",
    "_unset_keepalive_if_required",
    "_unsupported_upgrade_warning",
    "timeout_keep_alive_handler",
)
if _missing := [name for name in _PRIVATE_PARTS if not hasattr(HttpToolsProtocol, name)]:
    raise ImportError(f"this uvicorn has no {', '.join(_missing)}; type: pip install 'findling[serve]'")

_LAST_WORDS = {
    400: Problem(400, "the request is no HTTP/1.1", headers={"connection": "close"}),
    408: Problem(408, "the request did not come in time", headers={"connection": "close"}),
    421: Problem(421, "the request names a host in place of a path", "send the path", headers={"connection": "close"}),
    431: Problem(431, "the head of the request is too large", headers={"connection": "close"}),
    503: Problem(503, "there are too many connections", headers={"connection": "close", "retry-after": "5"}),
}


class ConnectionLimits(NamedTuple):
    """Limits of a connection, in seconds and bytes.

    A body may take longer by a second for every `body_rate` bytes of it. `linger_s` is for how long the rest of a body
    is thrown away that was answered before its end, so that the client reads the answer instead of a broken connection.
    """

    head_s: float = 10.0
    body_s: float = 30.0
    body_rate: float = 16_384.0
    write_s: float = 30.0
    linger_s: float = 2.0
    idle_s: float = 15.0
    head_bytes: int = 65_536
    pipelined: int = 16
    connections: int = 512


def guarded_protocol(limits: ConnectionLimits) -> type[GuardedProtocol]:
    """The protocol for uvicorn with other limits: `Config(app, http=guarded_protocol(limits))`."""
    return type("LimitedProtocol", (GuardedProtocol,), {"limits": limits})


class GuardedProtocol(HttpToolsProtocol):
    """HTTP/1.1 without websockets, without a log of addresses, and with the limits of the class."""

    limits = ConnectionLimits()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.access_log = False  # it would hold what people search for
        self.logger.addFilter(_is_worth_a_line)
        self.timeout_keep_alive = self.limits.idle_s  # type: ignore[assignment]  # only added to the clock
        # Looked at in turns: a timer for every request would cost more than all other checks together.
        self._turn_s = min(self.limits.head_s, self.limits.body_s, self.limits.write_s, self.limits.linger_s)
        self._turn: asyncio.TimerHandle | None = None
        self._part = "head"
        """The awaited part of a request: its `head`, its `body`, its `rest` that nobody needs, or nothing: `""`."""
        self._has_begun = False
        self._since = 0.0
        self._bytes = 0
        self._blocked_since: float | None = None
        self._answering: RequestResponseCycle | None = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await("head")
        self._turn = self.loop.call_later(self._turn_s, self._look)
        is_local = self.server is not None and self.server[1] is None
        # The owner gets in however many others there are.
        if len(self.connections) > self.limits.connections and not is_local:
            self._end(503)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._turn is not None:
            self._turn.cancel()
        if self._answering is not None and not self._answering.response_complete:
            # Only the latest request of the connection would be told, which waits behind the one that is answered.
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        if self._part == "":
            self._await("head")
        if self._part == "head":
            self._bytes += len(data)
        super().data_received(data)
        if self._part == "head" and self._bytes > self.limits.head_bytes and not self.transport.is_closing():
            self._end(431)

    def pause_writing(self) -> None:
        self._blocked_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._blocked_since = None
        super().resume_writing()

    # The request, as the parser finds it

    def on_message_begin(self) -> None:
        if self._part == "":  # behind another one, in the same packet
            self._await("head")
        self._has_begun = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # What follows a body in pieces would join the headers that were checked already.
        if self._part == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.head_bytes or len(self.pipeline) >= self.limits.pipelined:
            self._end(431)
            raise _RefusedError  # which stops the parser
        if not self.url.startswith(b"/"):  # its host would count in place of the one that is checked
            self._end(421)
            raise _RefusedError
        self._await("body")
        super().on_headers_complete()
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False  # nothing behind it would be parsed

    def on_body(self, body: bytes) -> None:
        self._bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        was_answered = self._part == "rest"
        self._part, self._has_begun = "", False
        super().on_message_complete()
        if was_answered and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def on_response_complete(self) -> None:
        if self._part == "body" and self.cycle.response_complete:
            self._await("rest")
        elif self._part == "head":  # of the next request, which begins to be late only now
            self._since = self.loop.time()
        super().on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _should_upgrade_to_ws(self) -> bool:
        return False

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: anybody could fill the log with it."""

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            self._end(400)

    # The limits

    def _await(self, part: str) -> None:
        self._part, self._since, self._bytes = part, self.loop.time(), 0

    def _look(self) -> None:
        """Let the connection go if it is late, or look again in a while."""
        now = self.loop.time()
        if self.transport.is_closing() and self._blocked_since is None:
            self._blocked_since = now  # it closes when the client has read what is left
        if self._blocked_since is not None and now - self._blocked_since >= self.limits.write_s:
            self.transport.abort()
            return
        if not self.transport.is_closing() and self._is_late(now):
            self._end(408 if self._has_begun and self._part != "rest" else 0)
        self._turn = self.loop.call_later(self._turn_s, self._look)

    def _is_late(self, now: float) -> bool:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if self.flow.read_paused or (self._part == "head" and is_answering):
            self._since = now  # it is for us to go on
        allowed = {
            "": math.inf,
            "head": self.limits.head_s,
            "body": self.limits.body_s + self._bytes / self.limits.body_rate,
            "rest": self.limits.linger_s,
        }
        return now - self._since >= allowed[self._part]

    def _end(self, status: int) -> None:
        """Close the connection, with a last word unless the status is 0 or a response is under way."""
        if status and (self.cycle is None or self.cycle.response_complete or not self.cycle.response_started):
            request_id = token_hex(8)
            response = problem_response(_LAST_WORDS[status], instance=request_id)
            headers = b"".join(b"%b: %b\r\n" % header for header in (*response.raw_headers, *protection(request_id)))
            self.transport.write(STATUS_LINE[status] + headers + b"\r\n" + bytes(response.body))
        self.transport.close()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether something is to be logged: not what anybody can send who connects."""
    return record.msg != "Invalid HTTP request received."


class _RefusedError(Exception):
    """The head of a request is too large or names a host, or too many requests were sent at once."""
