"""A thin process between a client on stdin and stdout and a server at a socket: it copies lines to and fro.

The server is the daemon, or a thread of this process where no daemon runs. When one goes away, the next one gets the
beginning of the session and all open requests again. The client notices nothing.
"""

from __future__ import annotations

import socket
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from findling.domain.errors import FindlingError
from findling.faces.mcp.transport.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LONGEST_LINE,
    awaited_key,
    failure,
    read_message,
)

_LONGEST_S = 600.0
"""Patience with open requests once no more lines come: an index run takes minutes."""

_CLOSING_S = 5.0

_OPENING = ("initialize", "notifications/initialized")


def pass_on(
    lines: Iterable[bytes],
    write: Callable[[bytes], None],
    *,
    connect: Callable[[], socket.socket | None],
    serve: Callable[[socket.socket], None],
    leave: Callable[[], None] = lambda: None,
    patience_s: float = _LONGEST_S,
) -> None:
    """Copy lines of a client to a server, and answers back, until the lines end and all is answered.

    `connect` reaches the daemon, if one runs; `serve` is the server of this process, which gets a socket in a thread.
    `leave` is called when nothing can be written any more.
    """
    proxy = _Proxy(write, connect, serve, leave)
    for line in lines:
        if proxy.is_alone:
            break
        if line.strip():
            proxy.send(line)
    proxy.finish(patience_s)


class _Proxy:
    """The socket of the present server, and the requests that wait for an answer."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        connect: Callable[[], socket.socket | None],
        serve: Callable[[socket.socket], None],
        leave: Callable[[], None],
    ) -> None:
        self.is_alone = False  # whether nobody reads any more
        self._write, self._connect, self._serve, self._leave = write, connect, serve, leave
        self._refusal = ""  # the reason why the server of this process ended
        self._ending = False
        self._opening: list[bytes] = []
        self._waiting: list[tuple[str, bytes]] = []
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._writing = threading.Lock()
        self._server = self._connect() or self._start()
        self._copying = threading.Thread(target=self._copy_back, daemon=True)
        self._copying.start()

    def send(self, line: bytes) -> None:
        """Pass a line on; another server may need it again."""
        line = line.rstrip(b"\r\n") + b"\n"
        message = _message(line)
        if len(line) > LONGEST_LINE:
            told = f"the message is longer than {LONGEST_LINE} bytes; try: send less at once"
            self._put(failure(message.get("id"), INVALID_REQUEST, told))
            return
        method = message.get("method")
        with self._sending:
            if method in _OPENING:
                self._opening.append(line)
            if key := awaited_key(message):
                with self._changed:
                    self._waiting.append((key, line))
                    self._changed.notify_all()
            elif method == "notifications/cancelled":
                params = message.get("params")
                self._settle(awaited_key({"id": params.get("requestId")}) if isinstance(params, dict) else "")
            self._pass(line)
        if self._refusal:
            self._refuse()

    def finish(self, patience_s: float) -> None:
        """Wait for answers, then hang up and copy what the server still says."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self.is_alone, patience_s)
        with self._sending:
            self._ending = True
            with suppress(OSError):  # it has gone
                self._server.shutdown(socket.SHUT_WR)
        with self._changed:
            self._changed.notify_all()
        self._copying.join(_CLOSING_S)

    def _copy_back(self) -> None:
        while True:
            is_useful = False
            with self._server as server, server.makefile("rb") as answers:
                for line in _whole(answers):
                    message = _message(line)
                    key = awaited_key({"id": message.get("id")}) if "method" not in message else ""
                    # No one waits for the answer to a beginning that was sent again.
                    if not key or self._settle(key):
                        is_useful = True
                        self._put(line)
            with self._changed:
                # Only when there is something to ask: a daemon that restarts is back by then.
                self._changed.wait_for(lambda: self._waiting or self._ending or self._refusal)
            if self._refusal or self._ending:
                self._refuse()
                return
            with self._sending:
                # A daemon that answered nothing is not asked again: another one may stand there now.
                self._server = (self._connect() if is_useful else None) or self._start()
                repeated = [line for _, line in self._waiting if line not in self._opening]
                self._pass(b"".join([*self._opening, *repeated]))

    def _start(self) -> socket.socket:
        """Start the server of this process; the socket that reaches it."""
        ours, its = socket.socketpair()

        def run() -> None:
            refusal = "this is a fault in findling"
            try:
                with its.dup() as end:  # `its` stays open until the reason for the end is known
                    self._serve(end)
            except FindlingError as error:
                refusal = f"{error.message}; try: {error.hint}" if error.hint else error.message
            except Exception:  # the client learns of it, and stderr has the rest
                traceback.print_exc()
            with self._changed:
                self._refusal = refusal
                self._changed.notify_all()
            its.close()

        threading.Thread(target=run, daemon=True).start()
        return ours

    def _pass(self, line: bytes) -> None:
        with suppress(OSError):  # the server has gone; the next one gets what was not answered
            self._server.sendall(line)

    def _settle(self, key: str) -> bool:
        """Wait for one answer less; whether there was one to wait for."""
        with self._changed:
            found = next((one for one in self._waiting if one[0] == key), None)
            if found is not None:
                self._waiting.remove(found)
                self._changed.notify_all()
            return found is not None

    def _refuse(self) -> None:
        """Answer what no server is there for any more."""
        with self._changed:
            left, self._waiting = self._waiting, []
            self._changed.notify_all()
        told = "there was no answer in time" if self._ending else self._refusal
        for _, line in left:
            self._put(failure(_message(line)["id"], INTERNAL_ERROR, told))

    def _put(self, line: bytes) -> None:
        with self._writing:
            if self.is_alone:
                return
            try:
                self._write(line)
                return
            except OSError:
                self.is_alone = True
        with self._changed:
            self._changed.notify_all()
        self._leave()


def _message(line: bytes) -> dict[str, Any]:
    """The message in a line; an empty one for what the server refuses."""
    try:
        message = read_message(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _whole(answers: BinaryIO) -> Iterator[bytes]:
    """The lines of a server, up to where it ends or is cut off."""
    with suppress(OSError):
        for line in answers:
            if line.endswith(b"\n"):
                yield line
