"""A line for work that blocks: an event loop waits for it while a few threads do it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from findling.domain.errors import BusyError, OverdueError

__all__ = ["WorkLine"]

_Result = TypeVar("_Result")

_THREADS_PER_CORE = 2
"""One computes while the other waits for the disk or for a lock."""


class WorkLine:
    """A fixed number of threads and a line in front of them that never grows longer than `most_waiting`.

    With `threads` 0 there are two for each core. It may be used from any thread and from several event loops.
    """

    def __init__(self, threads: int = 0, most_waiting: int = 256) -> None:
        self.threads = threads or _threads_for_all_cores()
        self.most_waiting = most_waiting
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="findling")
        self._lock = threading.Lock()
        self._waiting = 0
        self._running = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """How much work stands in the line."""
        return self._waiting

    @property
    def running(self) -> int:
        """How much work has a thread, also when nobody waits for it any more."""
        return self._running

    async def run(self, work: Callable[[], _Result], *, timeout_s: float | None = None) -> _Result:
        """What `work` returns or raises, done in a thread that sees the caller's context variables.

        Raises BusyError when the line is full or closed, and OverdueError when there is no result after `timeout_s`.
        Work that nobody waits for any more is dropped when it has not begun; otherwise it goes on, and its place stays
        taken until it ends.
        """
        future = self._submit(work)
        waiter = asyncio.wrap_future(future)
        try:
            await asyncio.wait((waiter,), timeout=timeout_s)
            if not waiter.done():
                raise OverdueError(
                    f"there was no answer within {timeout_s:g} s", hint="ask for less, or allow more time"
                )
            if waiter.cancelled():
                raise _closing()
            return waiter.result()
        finally:
            future.cancel()
            if not waiter.cancel() and not waiter.cancelled():
                waiter.exception()  # else asyncio complains of one that a cancelled caller has left behind

    def close(self) -> None:
        """Drop what has not begun and wait for what has; closing twice is fine."""
        self._is_closed = True
        self._pool.shutdown(cancel_futures=True)

    def _submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        context = copy_context()
        with self._lock:
            if self._is_closed:
                raise _closing()
            if self._waiting + self._running >= self.threads + self.most_waiting:
                raise BusyError(f"{self._waiting} others are waiting for an answer", hint="try again in a moment")
            self._waiting += 1
            try:
                future = self._pool.submit(self._do, work, context.run)
            except RuntimeError as error:  # closed meanwhile, or the interpreter is shutting down
                self._waiting -= 1
                raise _closing() from error
        future.add_done_callback(self._leave)
        return future

    def _do(self, work: Callable[[], _Result], run: Callable[[Callable[[], _Result]], _Result]) -> _Result:
        with self._lock:
            self._waiting -= 1
            self._running += 1
        try:
            return run(work)
        finally:
            with self._lock:
                self._running -= 1

    def _leave(self, future: Future[_Result]) -> None:
        if future.cancelled():  # only work that has not begun can be
            with self._lock:
                self._waiting -= 1


def _threads_for_all_cores() -> int:
    from findling.pipelines.workers import available_cores

    return _THREADS_PER_CORE * available_cores()


def _closing() -> BusyError:
    return BusyError("findling is shutting down", hint="try again when it runs again")
