"""All faces that are served, as one app behind one guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Scope

from findling.domain.permissions import Caller
from findling.faces.daemon.local import local_routes
from findling.faces.daemon.turns import Turns
from findling.faces.http import guards
from findling.faces.http.app import create_app
from findling.faces.http.sharing import Shares
from findling.faces.mcp.http_app import mcp_app
from findling.faces.web import pages
from findling.service.hosting import Host
from findling.service.queueing import WorkLine
from findling.service.tokens import TokenBook

__all__ = ["assemble"]


def assemble(
    host: Host,
    line: WorkLine,
    turns: Turns,
    *,
    tokens: TokenBook,
    needs_tokens: bool,
    stop: Callable[[], None],
    about: Callable[[], dict[str, Any]],
) -> ASGIApp:
    """The HTTP interface, the web page, MCP, and what only the command line asks; `local_routes` says what for."""
    shares = Shares(line)
    mcp = mcp_app(host, shares.run, turn=turns.turn)
    local = local_routes(host, line, turns, stop=stop, about=about)
    app = create_app(
        host,
        line,
        identify=_caller,
        extra_routes=[*pages.page_routes(), mcp.route, *local],
        lifespan=lambda _: mcp.lifespan(),
        shares=shares,
    )
    settings = host.settings
    return guards.Guard(
        app,
        names=(settings["serve.host"], *settings["serve.names"]),
        tokens=tokens,
        requires_token=needs_tokens,
        max_body=settings["serve.max_body"],
        rate=settings["serve.rate"],
        open_paths=(*guards.OPEN_PATHS, *pages.OPEN_PATHS),
    )


def _caller(scope: Scope) -> Caller:
    caller: Caller = scope["state"]["caller"]
    return caller
