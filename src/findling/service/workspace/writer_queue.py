"""The writers of one workspace: one at a time, first come, first served.

Threads of this process wait in a queue. Its head takes the file `write.lock`, which excludes other processes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

from findling.domain.errors import LockedError, NotFoundError, PathNotFoundError, ReadOnlyError
from findling.service.workspace.workspace import backend_at, place_of

if TYPE_CHECKING:
    from findling.domain.backends import BackendLock
    from findling.stores.lock import HostLock

LOCK_PATIENCE_S = 600.0
"""Longest wait of a command that must write for another writer; a first index of a large tree takes minutes."""

REFRESH_PATIENCE_S = 10.0
"""Longest wait of a search for another thread that indexes; then it answers from the index as it is."""

_SHORT_S = 0.5
"""Seconds after which a turn counts as an index run: a change of items, or a search that levels a leg, takes 0.05."""

_TOLD_S = 3.0
"""Seconds after which whoever waits for another process is told of it."""

_YIELD_S = 2.0
"""Longest wait of a search for housekeeping, which looks for those that wait every 0.02 s."""

_TASKS = {"upkeep": "compacting", "refine": "reading passages for meaning"}
"""Locks that a process holds beside the write lock, and its task then."""

_Result = TypeVar("_Result")


class _Ticket:
    """A place in the queue: `wake` reports its turn, `since` when that began; `thread` does the work."""

    def __init__(self, wake: Callable[[], object], thread: int | None = None) -> None:
        self.wake, self.thread = wake, thread
        self.since = time.monotonic()
        self.is_left = False


class WriterQueue:
    """The queue of one folder; a process has one for each, see `of`. A thread may take its turn again inside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._guard = threading.Lock()
        self._line: deque[_Ticket] = deque()
        self._is_locked = False
        self._impatient: set[int] = set()
        """Threads whose job has waited for a turn in vain."""
        self.has_written = False
        self.host_lock: HostLock | None = None
        """The lock, where a long run may lend it to other hosts between two batches."""
        self.tell: Callable[[str], object] = _tell_log

    @classmethod
    def of(cls, folder: Path) -> WriterQueue:
        """The one queue of a folder in this process."""
        with _opening:
            return _queues.setdefault(folder, cls(folder))

    @property
    def is_busy(self) -> bool:
        """Whether another thread has its turn."""
        head = self._head()
        return head is not None and head.thread != threading.get_ident()

    @property
    def short_s(self) -> float:
        """Seconds for which a reader should wait: until a short turn is over, and not for an index run."""
        head = self._head()
        return max(0.0, _SHORT_S - (time.monotonic() - head.since)) if head is not None else 0.0

    def writer(self) -> str:
        """Name the present writer, a thread or a process; empty for none."""
        if self.is_busy:
            return "another thread"
        from findling.stores.lock import taken

        try:
            with taken(self._file_lock(), 0.0) as is_free:
                if is_free:
                    return ""
        except PathNotFoundError:  # deleted meanwhile
            return ""
        return "another thread" if self.was_last() else "another process"

    def task(self) -> str:
        """Name the task of the present writer, for messages."""
        return next((task for name, task in _TASKS.items() if self._writer_holds(name)), "indexing")

    def is_wanted(self) -> bool:
        """Whether another process waits for the write lock, and housekeeping should end."""
        return _is_held(backend_at(self.folder).lock("waiting"))

    @contextmanager
    def upkeep(self, patience_s: float) -> Iterator[None]:
        """Be the one process that does housekeeping. Raises LockedError when another one does."""
        from findling.stores.lock import taken

        with taken(backend_at(self.folder).lock("upkeep"), patience_s) as is_ours:
            if not is_ours:
                raise LockedError(f"another process is compacting {self.folder}", hint="try again when it has finished")
            yield

    def take_written(self) -> bool:
        """Whether this process has held the lock since the last call."""
        written, self.has_written = self.has_written, False
        return written

    def was_last(self) -> bool:
        """Whether this process was the last one to take the lock."""
        return self._file_lock().holder() == os.getpid()

    @contextmanager
    def turn(self, patience_s: float) -> Iterator[bool]:
        """Wait in the queue; yields whether the turn came in time. Takes no lock."""
        head = self._head()
        if head is not None and head.thread == threading.get_ident():
            yield True
            return
        event = threading.Event()
        ticket = _Ticket(event.set, threading.get_ident())
        if not self._enter(ticket) and threading.get_ident() not in self._impatient:
            event.wait(patience_s)
        try:
            yield self._head() is ticket
        finally:
            self._leave(ticket)

    @asynccontextmanager
    async def awaited(
        self, patience_s: float | None = None
    ) -> AsyncIterator[Callable[[Callable[[], _Result]], _Result]]:
        """Wait for a turn in an event loop without blocking it; yields a runner of jobs, for any thread.

        When patience ends first, a job runs without a turn, and does not wait for one a second time.
        """
        import asyncio

        loop, event, has_waited = asyncio.get_running_loop(), asyncio.Event(), False
        ticket = _Ticket(lambda: loop.call_soon_threadsafe(event.set))

        def run(job: Callable[[], _Result]) -> _Result:
            with self._guard:
                ticket.thread = threading.get_ident()
                if has_waited:
                    self._impatient.add(ticket.thread)
            try:
                return job()
            finally:
                with self._guard:
                    ticket.thread = None
                    self._impatient.discard(threading.get_ident())
                if ticket.is_left:  # nobody waits for the job any more
                    self._leave(ticket)

        try:
            if not self._enter(ticket):
                try:
                    await asyncio.wait_for(event.wait(), patience_s)
                except TimeoutError:
                    if has_waited := self._head() is not ticket:
                        self._leave(ticket)
            yield run
        finally:
            with self._guard:
                ticket.is_left = True
                is_running = ticket.thread is not None
            if not is_running:
                self._leave(ticket)

    @contextmanager
    def locked(self, patience_s: float, *, must_exist: bool = False, name: str = "write") -> Iterator[BackendLock]:
        """Hold the write lock of the folder, which is created if need be, or that of its `legs` alone.

        Raises LockedError, ReadOnlyError, and with `must_exist` NotFoundError when the folder is gone.
        """
        with self.turn(patience_s) as is_ours:
            lock = backend_at(self.folder).lock(name)
            # Waiting for a lock of the own thread would never end.
            if not is_ours or self._is_locked or not self._acquire(lock, patience_s, must_exist=must_exist):
                raise LockedError(self._told(lock), hint="try again when it has finished")
            from findling.stores.lock import HostLock

            self._is_locked = self.has_written = True
            self.host_lock = lock if isinstance(lock, HostLock) else None
            try:
                yield lock
            finally:
                self._is_locked = False
                lock.release()

    def _acquire(self, lock: BackendLock, patience_s: float, *, must_exist: bool) -> bool:
        from findling.stores.filesystem import make_private

        while True:
            # Writes under the old name would be lost; so the folder is not created again either.
            if must_exist and not self.folder.exists():
                raise NotFoundError(f"{self.folder} was moved or dropped meanwhile", hint="findling workspaces list")
            try:
                make_private(self.folder, create=not must_exist)
                return self._wait(lock, patience_s)
            except PathNotFoundError:
                continue  # another process has just deleted the folder
            except PermissionError as error:
                raise ReadOnlyError(
                    f"{self.folder} cannot be written: {error.strerror}",
                    hint="check its permissions, or choose another place with FINDLING_HOME",
                ) from error

    def _wait(self, lock: BackendLock, patience_s: float) -> bool:
        """Take the write lock in time; housekeeping hears that somebody waits for it."""
        if lock.acquire(0.0):
            return True
        if not self._writer_holds("upkeep"):
            if patience_s <= _TOLD_S or lock.acquire(_TOLD_S):
                return patience_s > _TOLD_S or lock.acquire(patience_s)
            self.tell(f"waiting: {self._told(lock)}")
            return lock.acquire(patience_s - _TOLD_S)
        from findling.stores.lock import taken

        with taken(backend_at(self.folder).lock("waiting"), _SHORT_S):  # another one that waits is heard as well
            return lock.acquire(max(patience_s, _YIELD_S))

    def _told(self, lock: BackendLock) -> str:
        """Name the present writer, with its host and since when where the lock knows that."""
        from findling.service.workspace.backends import shown_url

        place = shown_url(place_of(self.folder)) or self.folder
        from findling.stores.lock import HostLock

        holder = lock.held_by() if isinstance(lock, HostLock) else ""
        return f"another process is writing {place}" + (f": {holder}" if holder else "")

    def _writer_holds(self, name: str) -> bool:
        """Whether the process that took the write lock last holds another lock, too."""
        lock, writer = backend_at(self.folder).lock(name), self._file_lock().holder()
        return writer is not None and lock.holder() == writer and _is_held(lock)

    def _file_lock(self) -> BackendLock:
        return backend_at(self.folder).lock()

    def _head(self) -> _Ticket | None:
        with self._guard:
            return self._line[0] if self._line else None

    def _enter(self, ticket: _Ticket) -> bool:
        with self._guard:
            self._line.append(ticket)
            return self._line[0] is ticket

    def _leave(self, ticket: _Ticket) -> None:
        with self._guard:
            if ticket in self._line:
                had_turn = self._line[0] is ticket
                self._line.remove(ticket)
                if had_turn and self._line:
                    self._line[0].since = time.monotonic()
                    self._line[0].wake()


def _tell_log(message: str) -> None:
    if (logging := sys.modules.get("logging")) is not None:  # nobody reads a log without one
        logging.getLogger("findling.indexing").warning("%s", message)


def _is_held(lock: BackendLock) -> bool:
    from findling.stores.lock import taken

    try:
        with taken(lock, 0.0) as is_free:
            return not is_free
    except (PathNotFoundError, ReadOnlyError):
        return False


_opening = threading.Lock()
_queues: WeakValueDictionary[Path, WriterQueue] = WeakValueDictionary()


def _reset() -> None:
    # The waiting threads live in the parent alone, and so does the lock.
    global _opening
    _opening = threading.Lock()
    for queue in list(_queues.values()):
        queue.__init__(queue.folder)  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
