"""A line for every request: what kind, how it ended, how long it took. Never what was asked."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["RequestLog"]

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
