"""A line for work that blocks: an event loop waits for it while a few threads do it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from findling.domain.errors import BusyError, FindlingError
from findling.domain.values import counted

_Result = TypeVar("_Result")

_THREADS_PER_CORE = 2
"""One computes while the other waits for the disk or for a lock."""


class WorkLine:
    """A fixed number of threads and a line in front of them that never grows longer than `most_waiting`.

    With `threads` 0 there are two for each core. It may be used from any thread and from several event loops. `closed`
    makes what is raised once the line is closed, else a BusyError.
    """

    def __init__(
        self, threads: int = 0, most_waiting: int = 256, *, closed: Callable[[], FindlingError] | None = None
    ) -> None:
        self.threads = threads or _threads_for_all_cores()
        self.most_waiting = most_waiting
        self._closed = closed or _closing
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="findling")
        self._lock = threading.Lock()
        # A pool keeps what was cancelled until a thread comes to it. Here it goes at once, however long that takes.
        self._line: dict[Future[Any], Callable[[], Any]] = {}
        self._workers = 0
        self._running = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """The amount of work in the line."""
        return len(self._line)

    @property
    def running(self) -> int:
        """The amount of work that has a thread, also when nobody waits for it any more."""
        return self._running

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Return or raise what `work` does, in a thread that sees the caller's context variables.

        Raises BusyError when the line is full, and what `closed` makes when it is closed. Work that nobody waits for
        any more is dropped when it has not begun; otherwise it goes on, and its place stays taken until it ends.
        """
        future = self._submit(work)
        waiter = asyncio.wrap_future(future)
        try:
            await asyncio.wait((waiter,))
            if waiter.cancelled():
                raise self._closed()
            return waiter.result()
        finally:
            future.cancel()
            if not waiter.cancel() and not waiter.cancelled():
                waiter.exception()  # else asyncio complains of one that a cancelled caller has left behind

    def close(self) -> None:
        """Drop what has not begun and wait for what has; closing twice is fine."""
        with self._lock:
            self._is_closed = True
            dropped = list(self._line)
        for future in dropped:
            future.cancel()
        self._pool.shutdown()

    def _submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        future: Future[_Result] = Future()
        with self._lock:
            if self._is_closed:
                raise self._closed()
            if len(self._line) + self._running >= self.threads + self.most_waiting:
                raise BusyError(
                    f"{counted(len(self._line), 'other')} waiting for an answer already", hint="try again in a moment"
                )
            if self._workers < self.threads:
                try:
                    self._pool.submit(self._work)
                except RuntimeError as error:  # the interpreter is shutting down
                    raise self._closed() from error
                self._workers += 1
            self._line[future] = partial(copy_context().run, work)
        future.add_done_callback(self._leave)
        return future

    def _leave(self, future: Future[Any]) -> None:
        with self._lock:
            self._line.pop(future, None)

    def _work(self) -> None:
        """Do what stands in the line, until there is nothing left."""
        while (taken := self._take()) is not None:
            result, error = _outcome(taken[1])
            with self._lock:
                self._running -= 1
            if error is None:
                taken[0].set_result(result)
            else:
                taken[0].set_exception(error)
            del taken, result, error  # while the thread has nothing to do, it must not keep an answer

    def _take(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            while self._line:
                future = next(iter(self._line))
                work = self._line.pop(future)
                if future.set_running_or_notify_cancel():
                    self._running += 1
                    return future, work
            self._workers -= 1
            return None


def _outcome(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The result of work, or its exception: a thread that ended with it would leave its caller waiting."""
    try:
        return work(), None
    except StopIteration as error:
        # An event loop cannot hand it on, and waits for ever instead.
        return None, RuntimeError(f"the work raised {error!r}").with_traceback(error.__traceback__)
    except BaseException as error:
        return None, error


def _threads_for_all_cores() -> int:
    from findling.pipelines.indexing.workers import available_cores

    return _THREADS_PER_CORE * available_cores()


def _closing() -> BusyError:
    return BusyError("findling is shutting down", hint="try again when it runs again")
