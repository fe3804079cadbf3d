"""What one request works with: who asks, under which settings, and the workspace that answers."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from findling.domain.callers import Caller
from findling.domain.errors import DeniedError
from findling.domain.progress import Progress
from findling.domain.queries import SearchRequest
from findling.domain.results import SearchAnswer
from findling.service.background import give_space_back, read_on, reap
from findling.service.engine import Engine
from findling.service.hosting import Host
from findling.service.settings import Settings
from findling.service.viewer import Viewer

__all__ = ["Desk", "Searching", "hosted_desk", "local_desk"]


_ONE_AT_A_TIME: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
"""For each workspace: a search that takes in changes would take another one's lock for that of another process."""


class Searching(Protocol):
    """Answers a question; a first search may have to index and tells how far it is."""

    def __call__(self, request: SearchRequest, on_progress: Progress | None = None) -> SearchAnswer: ...


class Desk(NamedTuple):
    """Who asks, the settings that hold for them, the workspace, and how a question is answered there."""

    caller: Caller
    settings: Settings
    opened: Callable[[], AbstractContextManager[Engine]]
    search: Searching

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
                f"the token does not allow to {scope}", hint=f"findling token create NAME --scope {scope}"
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
    turn: Callable[[Path], AbstractContextManager[None]] = lambda root: nullcontext(),
    count: Callable[[SearchAnswer, float], None] = lambda answer, seconds: None,
) -> Desk:
    """A desk for whoever could open the workspace by themselves: it answers as the command line does.

    A search first takes in what has changed on disk, once it has its `turn` below that root, and the model reads on
    afterwards.
    """

    def search(request: SearchRequest, on_progress: Progress | None = None) -> SearchAnswer:
        started = time.perf_counter()
        asked = replace(request, principals=caller.principals, timeout_s=timeout_s)
        with opened() as engine:
            # A home folder or a whole disk is not indexed because somebody's program asks something.
            if _is_vast(engine.root) and not engine.is_indexed():
                answer = engine.search(asked, refresh=False)
            else:
                with _ONE_AT_A_TIME[engine.home], turn(engine.root):
                    answer = engine.search(asked, on_progress=on_progress)
            _tend(engine, settings, answer)
        count(answer, time.perf_counter() - started)
        return answer

    return Desk(caller, settings, opened, search)


def hosted_desk(host: Host, caller: Caller, workspace: str = "") -> Desk:
    """A desk for a caller of a server, which keeps its indexes up to date by itself."""

    def search(request: SearchRequest, on_progress: Progress | None = None) -> SearchAnswer:
        return host.search(caller, request, workspace)

    return Desk(caller, host.settings, lambda: host.opened(caller, workspace), search)


def _tend(engine: Engine, settings: Settings, answer: SearchAnswer) -> None:
    """Have done in the background what is worthwhile after a search."""
    reap()
    if answer.meaning.get("coverage", 1) < 1 and not answer.meaning["sent_to"]:
        read_on(engine, settings)
    give_space_back(engine, settings)


def _is_vast(root: Path) -> bool:
    """Whether a folder is a home folder, holds one, or is a whole disk."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        return root == root.parent
    return root == root.parent or root == home or root in home.parents
