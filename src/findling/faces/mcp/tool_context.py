"""The parts that one request works with: the tool, the caller, the settings, and the client that answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from findling.domain.errors import (
    CallerError,
    DaemonError,
    DeniedError,
    FindlingError,
    NotFoundError,
    OverdueError,
    UsageError,
)
from findling.domain.permissions import Caller
from findling.domain.queries import SearchRequest
from findling.domain.reports import Progress
from findling.domain.results import Degradation, SearchAnswer
from findling.service.engine.client import LocalClient, Refreshed
from findling.service.settings.settings import Settings
from findling.service.workspace.scope import FOLDERS, PERSON
from findling.service.workspace.workspace import is_vast

_POLL_S = 0.1
"""Seconds between two looks at an index that another process writes."""

_FOR_EVERYBODY = (UsageError, CallerError, OverdueError)
"""Errors that say nothing of the machine, or of what else lies there."""


def for_caller(error: FindlingError, caller: Caller) -> FindlingError:
    """The error as a caller may know of it: only the owner learns what may name files of the owner."""
    if caller.is_owner or isinstance(error, _FOR_EVERYBODY):
        return error
    return DaemonError("the server cannot do that now", hint="ask whoever runs it")


@contextmanager
def naming(hint: str = "an id, a passage or a path that search gives") -> Iterator[None]:
    """Hint at the source of names when one is unknown, in the same words for a hidden one."""
    try:
        yield
    except NotFoundError as error:
        raise NotFoundError(error.message, hint=hint) from error


def told(error: FindlingError) -> str:
    """An error as one text, which is all that some clients show of it."""
    return f"{error.message}; try: {error.hint}" if error.hint else error.message


Connect = Callable[[], AbstractContextManager[LocalClient]]
"""Opens the workspace for as long as its client is used."""


class Desk(NamedTuple):
    """The caller, the settings that hold for it, and how its client is opened.

    With `looks_first`, a search first indexes what has changed on disk; `notes` say what kept it from that.
    """

    caller: Caller
    settings: Settings
    opens: Connect
    looks_first: bool = False
    notes: Sequence[Degradation] = ()

    @contextmanager
    def connect(self) -> Iterator[LocalClient]:
        """The workspace for as long as its client is used; personal memories are within reach unless a person says no.

        Memories of other folders are not: what an agent was told in one project is not for those in another.
        """
        with self.opens() as client:
            client.engine = client.engine.reaching(PERSON if self.settings["mcp.personal"] else FOLDERS)
            yield client

    def refresh(
        self, on_progress: Progress | None = None, question: str | None = None, *, patience_s: float = 0.0
    ) -> Sequence[Degradation]:
        """Bring the index up to the state of the disk, or as far as a question needs it; what stood in the way.

        The first index run of another process is waited for, at most so long. Raises as `Engine.refresh` does.
        """
        with self.connect() as client:
            until = time.monotonic() + patience_s
            while time.monotonic() < until and not client.engine.is_indexed() and client.engine.queue.writer():
                time.sleep(_POLL_S)
            # A home folder or a whole disk is not indexed because somebody's program asks something.
            if is_vast(client.engine.subject) and not client.engine.is_indexed():
                return ()
            told = self.told(on_progress)
            return client.engine.refresh(on_progress=told, principals=client.principals, question=question)

    def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer a question from the index as it is, and have done what follows.

        While the first run is open, words alone answer the owner: loading a model takes a third of the CPU time.
        """
        with self.reading() as client:
            is_cold = self.caller.is_owner and bool(self.notes) and bool(client.engine.share())
            asked = replace(request, quick=True) if is_cold else request
            answer = client.search(asked, refreshed=Refreshed(self.notes))
            client.finish()
            return answer

    @contextmanager
    def reading(self) -> Iterator[LocalClient]:
        """The workspace as the caller may see it. Raises DeniedError for one who may not read."""
        self.check("read")
        with self.connect() as client:
            yield client

    def told(self, on_progress: Progress | None) -> Progress | None:
        """The receiver of an indexing run's progress: only the owner may know what lies there, and how much."""
        return on_progress if self.caller.is_owner else None

    def root(self, client: LocalClient) -> Path | None:
        """The folder of the files, for the owner; nobody else is to know anything of the machine."""
        return client.root if self.caller.is_owner and client.root != client.home else None

    def check(self, scope: str) -> None:
        """Raises DeniedError when the caller's token is not good for something."""
        if not self.caller.may(scope):
            raise DeniedError(
                f"the token does not allow to {scope}", hint=f"findling token create NAME --as owner --scope {scope}"
            )

    @property
    def may_remember(self) -> bool:
        """Whether something can be remembered through this desk."""
        return bool(self.settings["mcp.write"]) and self.caller.may("write")

    @property
    def may_index(self) -> bool:
        """Whether files can be indexed: reports of that are for the owner alone."""
        return self.may_remember and self.caller.is_owner


def local_desk(connect: Connect, caller: Caller, settings: Settings) -> Desk:
    """A desk for a caller who could open the workspace without a server: it refreshes as the command line does."""
    return Desk(caller, settings, connect, looks_first=settings["search.refresh"] == "auto")


Work = Callable[[Desk, Any, Progress | None], dict[str, Any]]
"""The work of a tool; it may block."""


class Tool(NamedTuple):
    """One tool. `writes` says that it changes something, `is_offered` to whom it is shown.

    `check` raises FindlingError for what cannot be asked, before anything is done; with `wants_latest`, what has
    changed on disk is taken in then.
    """

    name: str
    description: str
    arguments: type[Any]
    result: type
    work: Work
    writes: bool = False
    wants_latest: bool = False
    check: Callable[[Desk, Any], object] = lambda desk, asked: None
    is_offered: Callable[[Desk], bool] = lambda desk: True


def tool(result: type, description: str = "", **facts: Any) -> Callable[[Work], Tool]:
    """Make a tool of a function: it has its name, its docstring and the arguments that it is annotated with."""

    def made(work: Work) -> Tool:
        told = description or " ".join((work.__doc__ or "").split())
        return Tool(work.__name__, told, get_type_hints(work)["asked"], result, work, **facts)

    return made
