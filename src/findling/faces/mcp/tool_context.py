"""What one request works with: who asks, under which settings, and the workspace that answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from findling.domain.errors import DeniedError
from findling.domain.permissions import Caller
from findling.domain.queries import SearchRequest
from findling.domain.reports import Progress
from findling.domain.results import Degradation, SearchAnswer
from findling.service.engine.background import tend
from findling.service.engine.engine import Engine
from findling.service.engine.viewer import Viewer
from findling.service.server.engine_pool import Host
from findling.service.settings.settings import Settings
from findling.service.workspace.workspace import is_vast

__all__ = ["Desk", "Searching", "hosted_desk", "local_desk"]


class Searching(Protocol):
    """Answers a question from the index as it is; `notes` say what stood in the way of bringing that up to date."""

    def __call__(self, request: SearchRequest, notes: Sequence[Degradation] = ()) -> SearchAnswer: ...


class Desk(NamedTuple):
    """Who asks, the settings that hold for them, the workspace, and how a question is answered there.

    With `looks_first`, what has changed on disk is taken in before a search.
    """

    caller: Caller
    settings: Settings
    opened: Callable[[], AbstractContextManager[Engine]]
    search: Searching
    looks_first: bool = False

    def refresh(self, on_progress: Progress | None = None) -> Sequence[Degradation]:
        """Bring the index up to the state of the disk; what stood in the way. Raises as `Engine.refresh` does."""
        with self.opened() as engine:
            # A home folder or a whole disk is not indexed because somebody's program asks something.
            if is_vast(engine.subject) and not engine.is_indexed():
                return ()
            return engine.refresh(on_progress=self.told(on_progress), principals=self.caller.principals)

    def told(self, on_progress: Progress | None) -> Progress | None:
        """What is told how far an indexing run is: only the owner may know what lies there, and how much."""
        return on_progress if self.caller.is_owner else None

    def viewer(self, engine: Engine) -> Viewer:
        """The opened workspace as the caller may see it. Raises DeniedError for one who may not read."""
        self.check("read")
        return Viewer(engine, self.caller.principals)

    def root(self, engine: Engine) -> Path | None:
        """Where files lie, for the owner; nobody else is to know anything of the machine."""
        return engine.root if self.caller.is_owner and engine.root != engine.home else None

    def check(self, scope: str) -> None:
        """Raises DeniedError when the caller's token is not good for something."""
        if not self.caller.may(scope):
            raise DeniedError(
                f"the token does not allow to {scope}", hint=f"findling token create NAME --owner --scope {scope}"
            )

    @property
    def may_remember(self) -> bool:
        """Whether something can be remembered through this desk."""
        return bool(self.settings["mcp.write"]) and self.caller.may("write")

    @property
    def may_index(self) -> bool:
        """Whether files can be taken in: what is told about that is for the owner alone."""
        return self.may_remember and self.caller.is_owner


def local_desk(
    opened: Callable[[], AbstractContextManager[Engine]],
    caller: Caller,
    settings: Settings,
    *,
    timeout_s: float = 0.0,
    count: Callable[[SearchAnswer, float], None] = lambda answer, seconds: None,
) -> Desk:
    """A desk for whoever could open the workspace by themselves: it answers as the command line does.

    A search is to take in first what has changed on disk, and the model reads on afterwards.
    """

    def search(request: SearchRequest, notes: Sequence[Degradation] = ()) -> SearchAnswer:
        started = time.perf_counter()
        asked = replace(request, principals=caller.principals, timeout_s=timeout_s)
        with opened() as engine:
            answer = engine.search(asked, refresh=False, notes=notes)
            tend(engine, settings, answer)
        count(answer, time.perf_counter() - started)
        return answer

    return Desk(caller, settings, opened, search, looks_first=settings["search.refresh"] == "auto")


def hosted_desk(host: Host, caller: Caller, workspace: str = "") -> Desk:
    """A desk for a caller of a server, which keeps its indexes up to date by itself."""

    def search(request: SearchRequest, notes: Sequence[Degradation] = ()) -> SearchAnswer:
        return host.search(caller, request, workspace)

    return Desk(caller, host.settings, lambda: host.opened(caller, workspace), search)
