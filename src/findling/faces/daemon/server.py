"""The daemon: one process that keeps indexes and models ready, and holds all faces that are served together."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from findling import __version__
from findling.domain.errors import DaemonError
from findling.faces.daemon.assembling import assemble
from findling.faces.daemon.keeping import Keeper
from findling.faces.daemon.listening import bind_tcp, bind_unix, is_loopback, require_tokens
from findling.faces.daemon.request_log import RequestLog
from findling.faces.daemon.turns import Turns
from findling.faces.http.protocol import GuardedProtocol
from findling.service.daemon_state import (
    LOCK_FILE,
    DaemonState,
    how_to_kill,
    make_folder,
    read_state,
    remove_state,
    socket_path,
    write_state,
)
from findling.service.hosting import Host
from findling.service.queueing import WorkLine
from findling.service.settings import Settings
from findling.service.tokens import TokenBook
from findling.service.workspace import home_folder
from findling.stores.lock import WriteLock

__all__ = ["run_daemon"]

_FINISHING_S = 5
"""How long requests that are being answered may take when the daemon is to end."""


def run_daemon(
    settings: Settings,
    path: str | None = None,
    *,
    root: Path | None = None,
    watches: bool = True,
    verbose: bool = False,
    on_listening: Callable[[DaemonState], None] = lambda _: None,
) -> None:
    """Serve until a signal, or the command line, says to stop. `root` is what is followed, if that is files.

    Raises DaemonError when another daemon serves this home, when an address cannot be had, and when others could
    connect without any token.
    """
    home = home_folder(settings["store.home"])
    tokens = TokenBook(home)
    with _only_one(home), _sockets(settings, home) as (unix, tcp), contextlib.ExitStack() as stack:
        needs_tokens = settings["serve.require_token"] or not is_loopback(tcp)
        if needs_tokens:
            require_tokens(settings["serve.host"], tokens)
        _log_to_stderr(verbose)
        state = _state(unix, tcp)
        host = Host(settings, path, served_by=f"the daemon of process {state.pid}")
        stack.callback(host.close)
        line = WorkLine(settings["serve.threads"], settings["serve.waiting"])
        stack.callback(line.close)
        turns = Turns()
        keeper = Keeper(host, turns, root, watches=watches)

        def begin() -> None:
            write_state(home, state)
            keeper.start()
            on_listening(state)

        app = assemble(
            host,
            line,
            turns,
            tokens=tokens,
            needs_tokens=needs_tokens,
            stop=lambda: server.stop(),
            about=lambda: _about(state, host, line),
        )
        server = _Server(RequestLog(app) if verbose else app, begin)
        with server.stopped_by_signals():
            server.run(sockets=[one for one in (unix, tcp) if one is not None])
            keeper.stop(_FINISHING_S)


class _Server(uvicorn.Server):
    """Uvicorn without signals of its own, which would end the process before it has cleared up."""

    def __init__(self, app: ASGIApp, begin: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=GuardedProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_FINISHING_S,
            )
        )
        self._begin = begin

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._begin()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Have SIGTERM and SIGINT end it in good order; a second one ends the process at once."""
        before = {one: signal.signal(one, self._on_signal) for one in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self.should_exit = True

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + number)  # nothing is lost: it is the same as being killed
        self.stop()


@contextlib.contextmanager
def _only_one(home: Path) -> Iterator[None]:
    """Be the daemon of a home; what one that was killed has left is cleared away. Raises DaemonError if one runs."""
    lock = WriteLock(make_folder(home) / LOCK_FILE)
    if not lock.acquire(0.0):
        state, holder = read_state(home), lock.holder() or 0
        at = f" at {state.address}" if state else ""
        hint = "findling serve --stop" if state else how_to_kill(holder)
        raise DaemonError(f"process {holder} serves {home} already{at}", hint=hint)
    with contextlib.ExitStack() as stack:
        stack.callback(lock.release)
        remove_state(home)
        try:
            yield
        finally:
            remove_state(home)


@contextlib.contextmanager
def _sockets(settings: Settings, home: Path) -> Iterator[tuple[socket.socket | None, socket.socket]]:
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(bind_tcp(settings["serve.host"], settings["serve.port"]))
        path = socket_path(home)
        if path.parent.name.startswith("findling-"):
            stack.callback(_discard, path)
        unix = bind_unix(path)
        if unix is not None:
            stack.enter_context(unix)
        yield unix, tcp


def _discard(path: Path) -> None:
    """Clear away a socket that lies in a folder of its own."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _state(unix: socket.socket | None, tcp: socket.socket) -> DaemonState:
    host, port = tcp.getsockname()[:2]
    return DaemonState(os.getpid(), __version__, unix.getsockname() if unix else "", host, port, time.time())


def _about(state: DaemonState, host: Host, line: WorkLine) -> dict[str, Any]:
    """Which daemon this is, what it has ready, and what it has counted."""
    facts = {"address": state.address, "root": host.default, "ready": host.is_ready}
    return {**state._asdict(), **facts, **host.statistics.snapshot(), "queue_depth": line.waiting}


def _log_to_stderr(verbose: bool) -> None:
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("findling").setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("findling.daemon").setLevel(logging.INFO)  # which folders it follows, and what is in the way
    logging.getLogger("findling.indexing").setLevel(logging.INFO)  # where an index run starts, and why
