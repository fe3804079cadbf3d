"""Work of many callers in one line, of whom none can take it all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from findling.domain.errors import BusyError, OverdueError
from findling.domain.permissions import Caller
from findling.faces.http.base.problems import TooManyError
from findling.service.engine.executor import WorkLine

_Result = TypeVar("_Result")


class Shares:
    """A line in which no caller but the owner has every thread, or every search process. It is for one event loop.

    Of one caller one thread less is at work than there are `processes`, or without any, threads. What comes behind
    waits outside of the line, and half as much as may wait in the line.
    """

    def __init__(self, line: WorkLine, processes: int = 0) -> None:
        self._line = line
        self._at_once = max(1, (processes or line.threads) - 1)
        self._most = self._at_once + line.most_waiting // 2
        self._queues: dict[str, _Queue] = {}
        self._left_behind: set[asyncio.Task[Any]] = set()

    async def run(
        self,
        caller: Caller,
        work: Callable[[], _Result],
        *,
        receive: Receive | None = None,
        timeout_s: float | None = None,
    ) -> _Result:
        """Run work for as long as the client that `receive` hears of, if given, waits for it.

        Raises ClientDisconnect when it has gone, BusyError when the work has not begun after `timeout_s`, OverdueError
        when it has taken `timeout_s` since, TooManyError when the caller waits for too much, and as `WorkLine.run`
        does. Work that has not begun by then never does; other work runs to its end, and keeps the place of the caller.
        """
        job = _Job(work)
        answering = asyncio.ensure_future(self._in_turn(caller, job))
        leaving = asyncio.ensure_future(_gone(receive) if receive else asyncio.Event().wait())
        beginning = asyncio.ensure_future(job.beginning.wait())
        try:
            for awaited in ((answering, leaving, beginning), (answering, leaving)):
                await asyncio.wait(awaited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    return answering.result()
                if leaving.done():
                    leaving.result()  # raises what is wrong with a body that nobody has asked for
                    raise ClientDisconnect
                if not job.has_begun:
                    raise BusyError(f"others were answered for {timeout_s:g} s", hint="try again in a moment")
            raise OverdueError(f"there was no answer within {timeout_s:g} s", hint="ask for less, or allow more time")
        finally:
            beginning.cancel()
            job.is_given_up = True
            if not job.has_begun:
                answering.cancel()
            leaving.cancel()
            self._leave(answering)
            self._leave(leaving)

    async def _in_turn(self, caller: Caller, job: _Job[_Result]) -> _Result:
        if caller.is_owner:
            return await self._line.run(job)
        queue = self._queues.setdefault(caller.name, _Queue(self._at_once))
        if queue.present >= self._most:
            raise TooManyError(f"{queue.present} of your questions are waiting", hint="wait for their answers")
        queue.present += 1
        try:
            async with queue.turns:
                return await self._line.run(job)
        finally:
            queue.present -= 1
            if not queue.present:
                del self._queues[caller.name]

    def _leave(self, task: asyncio.Task[Any]) -> None:
        """Let a task come to its end by itself."""
        self._left_behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left_behind.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio complains that nobody has looked


class _Queue:
    """The requests of one caller: their number, and whose turn it is."""

    def __init__(self, at_once: int) -> None:
        self.present = 0
        self.turns = asyncio.Semaphore(at_once)


class _Job(Generic[_Result]):
    """Work that knows whether it has begun, and does nothing when it was given up before.

    Each side first notes its state and then looks at the other's, so that no work runs unnoticed.
    """

    def __init__(self, work: Callable[[], _Result]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.beginning = asyncio.Event()
        self.has_begun = False
        self.is_given_up = False

    def __call__(self) -> _Result:
        self.has_begun = True
        if self.is_given_up:
            raise ClientDisconnect
        self._loop.call_soon_threadsafe(self.beginning.set)
        return self._work()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
