"""The daemon: one process that keeps indexes and models ready, and holds all faces that are served together."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from findling import __version__
from findling.domain.errors import DaemonError
from findling.faces.daemon.background_tasks import Keeper
from findling.faces.daemon.cli_routes import local_routes
from findling.faces.http.app import create_app
from findling.faces.http.base.json_text import encoded
from findling.faces.http.request.fair_queue import Shares
from findling.faces.http.security import guards
from findling.faces.http.security.protocol import GuardedProtocol
from findling.faces.mcp.transport.http_app import mcp_app
from findling.faces.web import pages
from findling.service.client.daemon_state import DaemonState, mcp_socket, only_daemon, socket_path, write_state
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import MAX_BODY, Host
from findling.service.server.search_pool import process_count
from findling.service.server.tokens import TokenBook, issuer_of
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import home_folder

_BACKLOG = 512


def bind_unix(path: Path) -> socket.socket | None:
    """A socket that nobody but the owner can connect to; `None` where the system has none."""
    if not hasattr(socket, "AF_UNIX"):
        return None
    before = os.umask(0o177)  # there must be no moment in which others could connect
    try:
        return _listening(socket.AF_UNIX, str(path))
    except OSError as error:
        raise DaemonError(f"no socket can be made at {path}: {error.strerror}", hint="check its folder") from error
    finally:
        os.umask(before)


def bind_tcp(host: str, port: int) -> socket.socket:
    """A socket at an address. Raises DaemonError that says what is wrong with it, and what to try."""
    family, address = _resolve(host, port)
    try:
        return _listening(family, address)
    except OSError as error:
        told, hint = f"nothing can listen on {host}:{port}: {error.strerror}", "--set serve.host=127.0.0.1"
        if error.errno == errno.EADDRINUSE:
            told, hint = f"port {port} of {host} is taken", f"findling serve --port {port + 1}, or --port 0"
        elif error.errno == errno.EACCES:
            told, hint = f"port {port} is not for everybody", "findling serve --port 3463"
        raise DaemonError(told, hint=hint) from error


def _listening(family: int, address: Any) -> socket.socket:
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket(family))
        if os.name == "posix" and family != socket.AF_UNIX:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
        stack.pop_all()
        return listening


def is_loopback(listening: socket.socket) -> bool:
    """Whether only this machine can connect to a socket. It is asked itself: a name may lead elsewhere next time."""
    return ip_address(str(listening.getsockname()[0]).partition("%")[0]).is_loopback


def require_tokens(host: str, tokens: TokenBook) -> None:
    """Raises DaemonError unless there is a token for callers from elsewhere."""
    if tokens.issuer is None and not tokens.list():
        raise DaemonError(
            f"others could connect to {host}, and there is no token to know them by",
            hint="findling token create NAME --as owner (or --as user:NAME), or --set serve.host=127.0.0.1",
        )


def _resolve(host: str, port: int) -> tuple[int, tuple[Any, ...]]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return family, address
    except (OSError, UnicodeError) as error:
        raise DaemonError(f"{host} is no address of this machine", hint="--set serve.host=127.0.0.1") from error


_log = logging.getLogger("findling.requests")

_PARTS = 2
"""Parts of a path that say what kind of a request it is; what follows may be the name of a document."""


class RequestLog:
    """ASGI middleware that logs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            kind = ascii("/".join(scope["path"].split("/")[: _PARTS + 1]))[1:-1]
            _log.info("%s %s %d %.1f ms", scope["method"], kind, status, (time.perf_counter() - started) * 1000)


_FINISHING_S = 5
"""Time for requests under way when the daemon ends."""


def run_daemon(
    settings: Settings,
    path: str | None,
    *,
    root: Path | None,
    watches: bool,
    verbose: bool,
    on_listening: Callable[[DaemonState], None],
) -> None:
    """Serve until a signal, or the command line, says to stop. `root` is what is followed, if that is files.

    Raises DaemonError when another daemon serves this home, when an address is taken, and when strangers could connect
    without a token.
    """
    home = home_folder(settings["store.home"])
    tokens = TokenBook(home, issuer=issuer_of(settings["serve.issuer"]))
    with only_daemon(home), _sockets(settings, home) as (unix, mcp_lines, tcp):
        needs_tokens = settings["serve.require_token"] or not is_loopback(tcp)
        if needs_tokens:
            require_tokens(settings["serve.host"], tokens)
        _log_to_stderr(verbose)
        state = _state(unix, tcp)
        with _answering(settings, path) as (host, line):
            keeper = Keeper(host, root, watches=watches)

            def begin() -> None:
                write_state(home, state)
                keeper.start()
                on_listening(state)

            faces = _faces(host, line, state, lambda: server.stop(), mcp_lines)
            app = _guarded(faces, settings, tokens, needs_tokens)
            server = _Server(RequestLog(app) if verbose else app, begin)
            with server.stopped_by_signals():
                server.run(sockets=[one for one in (unix, tcp) if one is not None])
                keeper.stop(_FINISHING_S)


@contextlib.contextmanager
def _answering(settings: Settings, path: str | None) -> Iterator[tuple[Host, WorkLine]]:
    """The engines that answer, and the line in which questions wait for them."""
    served_by = f"the daemon of process {os.getpid()}"
    host = Host(settings, path, served_by=served_by, processes=process_count(settings), encode=encoded)
    with contextlib.ExitStack() as stack:
        stack.callback(host.close)
        line = WorkLine()
        stack.callback(line.close)
        stack.callback(host.end_processes)  # before the line is closed, which waits for what they are at
        yield host, line


def _faces(
    host: Host, line: WorkLine, state: DaemonState, stop: Callable[[], None], mcp_lines: socket.socket | None
) -> ASGIApp:
    """The HTTP interface, the web page, MCP, and the routes that only the command line uses."""
    shares = Shares(line, host.processes)
    mcp = mcp_app(host, shares.run, lines=mcp_lines)
    local = local_routes(host, line, stop=stop, about=lambda: _about(state, host, line))
    return create_app(
        host,
        line,
        identify=lambda scope: scope["state"]["caller"],
        extra_routes=[*pages.page_routes(), mcp.route, *local],
        lifespan=lambda _: mcp.lifespan(),
        shares=shares,
    )


def _guarded(app: ASGIApp, settings: Settings, tokens: TokenBook, needs_tokens: bool) -> ASGIApp:
    return guards.Guard(
        app,
        names=(settings["serve.host"], *settings["serve.names"]),
        tokens=tokens,
        requires_token=needs_tokens,
        max_body=MAX_BODY,
        rate=settings["serve.rate"],
        open_paths=(*guards.OPEN_PATHS, *pages.OPEN_PATHS),
    )


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
def _sockets(
    settings: Settings, home: Path
) -> Iterator[tuple[socket.socket | None, socket.socket | None, socket.socket]]:
    """The sockets for the command line, for MCP clients, and for everybody."""
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(bind_tcp(settings["serve.host"], settings["serve.port"]))
        path = socket_path(home)
        if path.parent.name.startswith("findling-"):
            stack.callback(_discard, path)
        unix, lines = bind_unix(path), bind_unix(mcp_socket(path))
        for one in (unix, lines):
            if one is not None:
                stack.enter_context(one)
        yield unix, lines, tcp


def _discard(path: Path) -> None:
    """Clear away sockets that lie in a folder of their own."""
    path.unlink(missing_ok=True)
    mcp_socket(path).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _state(unix: socket.socket | None, tcp: socket.socket) -> DaemonState:
    host, port = tcp.getsockname()[:2]
    return DaemonState(os.getpid(), __version__, unix.getsockname() if unix else "", host, port, time.time())


def _about(state: DaemonState, host: Host, line: WorkLine) -> dict[str, Any]:
    """Facts of this daemon: its process, what is loaded, and its counts."""
    facts = {"address": state.address, "root": host.default, "ready": host.is_ready}
    return {**state._asdict(), **facts, **host.statistics.snapshot(), "queue_depth": line.waiting}


def _log_to_stderr(verbose: bool) -> None:
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("findling").setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("findling.daemon").setLevel(logging.INFO)  # which folders it follows, and what is in the way
    logging.getLogger("findling.indexing").setLevel(logging.INFO)  # where an index run starts, and why
