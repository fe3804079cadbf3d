"""The real app behind its guard: in this process, or listening on a free port in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import Scope

from findling.domain.permissions import Caller
from findling.faces.http.app import create_app
from findling.faces.http.security.guards import Guard
from findling.service.engine.executor import WorkLine
from findling.service.server.engine_pool import MAX_BODY, Host
from findling.service.server.tokens import TokenBook
from findling.service.settings.settings import load_settings
from tests.processes import PATIENCE_S

__all__ = ["ADDRESS", "Client", "guarded_app", "in_process", "listening", "make_host"]

ADDRESS = "http://testserver:8080"
"""With a port: without one the guard takes a request for one from the socket of the machine."""


def make_host(root: Path, changes: Mapping[str, Any] | None = None, processes: int = 0) -> Host:
    """A host of a folder under settings of the test alone: its index lies beside the folder."""
    own = {
        "store.home": str(root.parent / "workspaces"),
        "semantic.refine": "never",
        "search.mode": "keyword",
        "serve.timeout_s": PATIENCE_S,  # a first search in a process of its own took 12 s on a busy machine
    }
    settings = load_settings(root, environ={"FINDLING_CONFIG": str(root.parent / "config.toml")})
    settings = settings.override({**own, **(changes or {})}, "test")
    return Host(settings, root, served_by="findling test", processes=processes)


def guarded_app(
    host: Host, line: WorkLine, *, requires_token: bool = False, extra_routes: Sequence[BaseRoute] = ()
) -> Guard:
    """The app as it is served."""
    return _guarded(create_app(host, line, identify=_caller, extra_routes=extra_routes), host, requires_token)


class Client:
    """Asks an app in this process, one request after the other."""

    def __init__(self, app: Any, token: str = "") -> None:
        self._app = app
        self._headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {token}"} if token else {})

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """The response, read to its end."""
        return asyncio.run(self._ask(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx2.Response:
        """The same for reading."""
        return self.ask("GET", path, **options)

    def post(self, path: str, document: Any = None, **options: Any) -> httpx2.Response:
        """The same with a document."""
        return self.ask("POST", path, **({} if document is None else {"json": document}), **options)

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **options: Any
    ) -> httpx2.Response:
        transport = httpx2.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, timeout=60) as client:
            return await client.request(method, path, headers={**self._headers, **(headers or {})}, **options)


@contextmanager
def in_process(
    root: Path,
    changes: Mapping[str, Any] | None = None,
    *,
    requires_token: bool = False,
    extra_routes: Sequence[BaseRoute] = (),
    processes: int = 0,
) -> Iterator[tuple[Host, Guard]]:
    """A host and its app, without a socket."""
    host, line = make_host(root, changes, processes), WorkLine()
    app = create_app(host, line, identify=_caller, extra_routes=extra_routes)
    try:
        yield host, _guarded(app, host, requires_token)
    finally:
        app.state.served.runs.close()
        line.close()
        host.close()


@contextmanager
def listening(root: Path, changes: Mapping[str, Any] | None = None, **options: Any) -> Iterator[tuple[Host, str]]:
    """A host and the address of its server, which is ended in the end."""
    with in_process(root, changes, **options) as (host, app):
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="on", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the server did not start"
                thread.join(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield host, f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()


def _guarded(app: FastAPI, host: Host, requires_token: bool) -> Guard:
    return Guard(
        app,
        names=("testserver",),
        tokens=TokenBook(host.home),
        requires_token=requires_token,
        max_body=MAX_BODY,
        rate=0.0,
    )


def _caller(scope: Scope) -> Caller:
    caller: Caller = scope["state"]["caller"]
    return caller
