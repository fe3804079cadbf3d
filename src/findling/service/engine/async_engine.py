"""The engine for programs with an event loop: the same answers, awaited; many searches share one warm index.

    async with findling.AsyncEngine.open("docs") as engine:
        answer = await engine.search("how is a stale index noticed")

The work is done in threads. Index, vectors, model and store, on which a search spends its time, let other threads run.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from findling.domain.errors import UsageError
from findling.domain.reports import IndexProgress, Progress
from findling.service.engine.engine import Engine, Viewer, open_engine
from findling.service.engine.executor import WorkLine

if TYPE_CHECKING:
    from findling.domain.queries import SearchRequest
    from findling.domain.reports import IndexReport, RelatedAnswer, Status
    from findling.domain.resources import Resource
    from findling.domain.results import Explanation, SearchAnswer
    from findling.pipelines.lookup.suggest import Completion
    from findling.service.index.documents import FetchedDocument
    from findling.service.settings.settings import Settings

_Result = TypeVar("_Result")


class _AsyncReads(ABC):
    """Reads of a client that a thread of a line does."""

    _line: WorkLine

    @property
    @abstractmethod
    def _client(self) -> Viewer:
        """The client that is asked."""

    async def search_in_stages(
        self, request: SearchRequest | str, **options: Any
    ) -> AsyncIterator[tuple[str, SearchAnswer]]:
        """A quick answer as `candidates`, and then the whole one as `reranked`; from the index as it is."""
        stages: Iterator[tuple[str, SearchAnswer]] = self._client.search_in_stages(request, **options)
        while (stage := await self._line.run(partial(next, stages, None))) is not None:
            yield stage

    async def fetch(self, name: str, *, context: int = 0) -> FetchedDocument:
        """A document, or a passage of it, as `Engine.fetch` gives it."""
        return await self._line.run(partial(self._client.fetch, name, context=context))

    async def similar(self, name: str, limit: int = 10) -> SearchAnswer:
        """The documents that are most like one, as `Engine.similar` finds them."""
        return await self._line.run(partial(self._client.similar, name, limit))

    async def related(self, of: str, to: str = "", *, limit: int = 10, hops: int = 4) -> RelatedAnswer:
        """The paths between two things, as `Engine.related` finds them."""
        return await self._line.run(partial(self._client.related, of, to, limit=limit, hops=hops))

    async def suggest(self, text: str, limit: int = 10) -> tuple[Completion, ...]:
        """Complete a text that is being typed, as `Engine.suggest` does."""
        return await self._line.run(partial(self._client.suggest, text, limit))

    async def ls(self, prefix: str = "") -> list[Resource]:
        """The resources in order of their ids, or those at and below a path."""
        return await self._line.run(lambda: list(self._client.ls(prefix)))


class AsyncEngine(_AsyncReads):
    """The async twin of `Engine`: use it as an async context manager, from one event loop.

    `threads` search at once, two for each core by default. Further searches wait for their turn; beyond `most_waiting`
    they raise BusyError. Changes of the index are made in a thread of its own, one after another. A task that is
    cancelled does not wait any longer; a search of it that has not begun is dropped. Once the engine is closed,
    everything raises UsageError.
    """

    def __init__(self, open_it: Callable[[], Engine], *, threads: int = 0, most_waiting: int = 256) -> None:
        self._open_it = open_it
        self._opened: Engine | None = None
        self._line = WorkLine(threads, most_waiting, closed=_closed)
        self._changing = WorkLine(1, most_waiting, closed=_closed)

    @classmethod
    def open(
        cls,
        path: str | Path | None = None,
        *,
        workspace: str | None = None,
        settings: Settings | None = None,
        threads: int = 0,
        most_waiting: int = 256,
    ) -> Self:
        """The workspace that `path` belongs to, as `findling.open` finds it; it is opened by `async with`."""
        open_it = partial(open_engine, path, workspace=workspace, settings=settings)
        return cls(open_it, threads=threads, most_waiting=most_waiting)

    async def __aenter__(self) -> Self:
        try:
            await self._changing.run(self._open)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for what is being done, drop what has not begun, and release files; closing twice is fine."""
        # Also for a task that is cancelled meanwhile: nobody else would do it.
        await asyncio.shield(asyncio.to_thread(self._close))

    # Searching

    async def search(
        self, request: SearchRequest | str, *, refresh: bool = True, on_progress: Progress | None = None, **options: Any
    ) -> SearchAnswer:
        """Answer a question, as `Engine.search` does. With `refresh` the index first absorbs changed files."""
        with _Reports(on_progress) as report:
            ask = partial(self._engine.search, request, refresh=refresh, on_progress=report, **options)
            return await self._line.run(ask)

    async def explain(
        self, request: SearchRequest | str, name: str, *, refresh: bool = True, **options: Any
    ) -> Explanation:
        """Why a document is in the answer to a question, or what keeps it out, as `Engine.explain` does."""
        return await self._line.run(partial(self._engine.explain, request, name, refresh=refresh, **options))

    async def status(self) -> Status:
        """The contents of the workspace. Raises NotIndexedError when there is none."""
        return await self._line.run(self._engine.status)

    def as_caller(self, *principals: str) -> AsyncViewer:
        """The workspace as these principals may see it. Raises InvalidValueError for what is no principal."""
        return AsyncViewer(self._engine.as_caller(*principals), self._line)

    # Changing

    async def index(self, *, on_progress: Progress | None = None, rebuild: bool = False) -> IndexReport:
        """Index what is new, changed or gone, as `Engine.index` does; searches continue meanwhile.

        `on_progress` is called in the event loop. When the task is cancelled, indexing stops at the next file; what was
        committed stays, and the next run continues from there.
        """
        with _Reports(on_progress, stops=True) as report:
            return await self._changing.run(partial(self._engine.index, on_progress=report, rebuild=rebuild))

    async def add(self, items: Iterable[tuple[Resource, str]]) -> int:
        """Upsert resources that are not files, each with its text; returns how many changed."""
        return await self._changing.run(partial(self._engine.add, items))

    async def run(self, work: Callable[[Engine], _Result]) -> _Result:
        """Run anything else with the engine, in the thread that changes the index: `run(lambda e: e.compact())`."""
        return await self._changing.run(partial(work, self._engine))

    # Inside

    @property
    def _engine(self) -> Engine:
        if self._opened is None:
            raise UsageError("the engine is not open", hint="async with findling.AsyncEngine.open(PATH) as engine")
        return self._opened

    @property
    def _client(self) -> Viewer:
        return Viewer(self._engine)

    def _open(self) -> None:
        # Kept here, and not by the task that waits: when that is cancelled, there still is something to close.
        if self._opened is None:
            self._opened = self._open_it()

    def _close(self) -> None:
        self._line.close()
        self._changing.close()
        if self._opened is not None:
            self._opened.close()


class AsyncViewer(_AsyncReads):
    """The async twin of `Viewer`: answers as if nothing else were there than what some principals may see."""

    def __init__(self, client: Viewer, line: WorkLine) -> None:
        self._limited = client
        self._line = line

    @property
    def principals(self) -> tuple[str, ...] | None:
        """Those whose rights hold; `None` for the owner."""
        return self._limited.principals

    async def search(self, request: SearchRequest | str, **options: Any) -> SearchAnswer:
        """Answer a question from the index as it is; options are the fields of SearchRequest."""
        return await self._line.run(partial(self._limited.search, request, **options))

    async def explain(self, request: SearchRequest | str, name: str, **options: Any) -> Explanation:
        """Why a document is in the answer to a question, or what keeps it out."""
        return await self._line.run(partial(self._limited.explain, request, name, **options))

    async def status(self) -> dict[str, Any]:
        """The contents of the workspace: everything for its owner, for others how much of it they may see."""
        return await self._line.run(self._limited.status)

    @property
    def _client(self) -> Viewer:
        return self._limited


def _closed() -> UsageError:
    return UsageError("the engine is closed", hint="async with findling.AsyncEngine.open(PATH) as engine")


class _Reports:
    """Hands progress from a thread to the event loop; once nobody waits any more, it may stop the thread's work."""

    def __init__(self, on_progress: Progress | None, *, stops: bool = False) -> None:
        self._on_progress = on_progress
        self._stops = stops
        self._is_wanted = True
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Progress | None:
        return self._report if self._on_progress is not None or self._stops else None

    def __exit__(self, *error: object) -> None:
        self._is_wanted = False

    def _report(self, progress: IndexProgress) -> None:
        if self._is_wanted and self._on_progress is not None:
            self._loop.call_soon_threadsafe(self._on_progress, progress)
        elif not self._is_wanted and self._stops:
            raise asyncio.CancelledError
