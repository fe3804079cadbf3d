"""Other hosts that write what a daemon serves: its legs are brought up before somebody asks."""

from __future__ import annotations

import threading
from contextlib import nullcontext

from findling.domain.permissions import OWNER
from findling.service.server.engine_pool import Host
from findling.service.workspace.workspace import backend_at, place_of

_NEWS_S = 5.0
"""Longest wait for news: a daemon that ends does not hear."""

_POLL_S = 1.0
"""Pause between two looks where nobody tells."""


def is_shared(host: Host) -> bool:
    """Whether other hosts may write what is served."""
    with host.opened(OWNER) as engine:
        return bool(place_of(engine.home))


def follow_hosts(host: Host, stopped: threading.Event) -> None:
    """Bring up the legs with every write of another host, until that is stopped. Raises WorkspaceError."""
    with host.opened(OWNER) as engine:
        backend = backend_at(engine.home)
    seen = backend.version()
    listener = backend.listen()
    with listener or nullcontext(stopped.wait) as wait:
        while not stopped.is_set():
            if seen != (now := backend.version()):
                seen = now
                with host.opened(OWNER) as engine:
                    engine.opened.level_all()
            else:
                wait(_POLL_S if listener is None else _NEWS_S)
