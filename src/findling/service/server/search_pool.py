"""Search processes behind one front: each answers one question at a time, and is replaced when it goes too far.

The front keeps rights, limits, cached answers and writing to itself. Legs are mapped files, which processes share.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from findling.domain.budgets import current_budget
from findling.domain.errors import BusyError, OverdueError, WorkerError
from findling.pipelines.indexing.child_processes import EXIT_OUT_OF_MEMORY, child_command, read_frame, write_frame
from findling.pipelines.indexing.workers import available_cores
from findling.service.index.index import Index
from findling.service.server.search_process import Call, Outcome

if TYPE_CHECKING:
    from findling.domain.results import Degradation
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.service.index.model_choice import ModelTable
    from findling.service.settings.settings import Settings
    from findling.service.workspace.workspace import Workspace

__all__ = ["PooledIndex", "SearchPool", "process_count"]

_log = logging.getLogger("findling.daemon")

_Answer = TypeVar("_Answer")
_Given = ParamSpec("_Given")

_MOST_KNOWN = 16
"""Workspaces that a new process loads before it takes a question."""

_START_S = 120.0
"""Seconds that a new process may take to load what is known: a large model on a busy machine takes ten."""

_ATTEMPTS = 2
"""Processes that one question may lose to what it cannot help, such as a system that is short of memory."""


def process_count(settings: Settings) -> int:
    """Processes that answer questions of a server; none where there would be one, which the server can be itself."""
    count: int = settings["index.workers"] or available_cores()
    return count if count > 1 and os.name == "posix" else 0


class PooledIndex(Index):
    """An index whose verbs run in search processes; writing and levelling stay here."""

    def __init__(self, workspace: Workspace, settings: Settings, models: ModelTable, pool: SearchPool) -> None:
        super().__init__(workspace, settings, models)
        self._pool = pool
        self._place = pickle.dumps((workspace, settings), protocol=5)
        self._loaded: dict[str, bool] = {}

    def read(
        self,
        principals: tuple[str, ...] | None,
        notes: list[Degradation],
        verb: Callable[Concatenate[Retrievers, _Given], _Answer],
        *args: _Given.args,
        **options: _Given.kwargs,
    ) -> _Answer:
        """The answer of a verb to what principals may see, as `Index.read` gives it.

        Where no process can be started, this one answers. Raises OverdueError for an answer that took more than it may,
        WorkerError when processes end over it.
        """
        budget = current_budget()
        for is_last in (False, False, True):
            self.reader(principals)  # whose legs are made here, by the one writer
            self.vectors.level_all()
            before_s = budget.cpu_s
            call = Call(self._place, verb, principals, notes, args, options, budget, accepts_late=is_last)
            try:
                outcome = self._pool.ask(call)
            except _NoProcessError as error:
                _log.error("%s; this process answers instead", error.message)
                return super().read(principals, notes, verb, *args, **options)
            if outcome.budget is not None:
                budget.draw_level(outcome.budget, before_s)
            if not outcome.is_late:
                break
            behind = self.files.level_leg()  # something was written since the caller has looked
            if behind is not None and principals is None:
                notes += [behind] if behind not in notes else []
        answer: _Answer = self._result(outcome)
        return answer

    def _result(self, outcome: Outcome) -> Any:
        self._loaded.update(outcome.loaded)
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    def above(self, place: Workspace, settings: Settings) -> Index:
        """The index of a workspace above, whose verbs run in search processes, too."""
        with self._opening:
            if place.folder not in self._above:
                self._above[place.folder] = PooledIndex(place, settings, self._table(), self._pool)
            return self._above[place.folder]

    def warm_up(self, notes: list[Degradation]) -> dict[str, float]:
        """Load the legs and the model in a process; how many seconds each took. Raises NotIndexedError."""
        self.require()
        behind = self.files.level_leg()
        notes += [behind] if behind is not None else []
        try:
            times: dict[str, float] = self._result(self._pool.ask(Call(self._place)))
        except _NoProcessError as error:
            _log.error("%s; try: %s", error.message, error.hint)
            return super().warm_up(notes)
        return times

    def loaded(self) -> dict[str, bool]:
        """The parts in memory, here or in a search process."""
        return {name: is_here or self._loaded.get(name, False) for name, is_here in super().loaded().items()}

    def unload(self) -> bool:
        """Release vectors and models; the pool ends idle processes by itself."""
        was_loaded = super().unload() or any(self._loaded.values())
        self._loaded.clear()
        return was_loaded


class _NoProcessError(WorkerError):
    """No search process can be started."""


class SearchPool:
    """At most `most` processes; when all that run are busy, one more is started. Any thread may ask.

    A call may take `memory` bytes more than its process has, by default half of the machine's.
    """

    def __init__(self, most: int, *, memory: int = 0) -> None:
        self._most = most
        self._memory = memory or _half_of_memory()
        self._changed = threading.Condition()
        self._free: list[_SearchProcess] = []
        self._all: set[_SearchProcess] = set()
        self._is_starting = False
        self._failure: _NoProcessError | None = None
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._is_closed = False

    def ask(self, call: Call) -> Outcome:
        """Have a process answer; the longest time is that of the budget of the call.

        Raises OverdueError when it takes more time, computing or memory than it may, WorkerError when processes cannot
        be started or end over it, BusyError when the pool is closed.
        """
        longest_s = call.budget.longest_s if call.budget is not None else _START_S
        problem = ""
        for _ in range(_ATTEMPTS):
            process = self._take()
            try:
                outcome = process.exchange(call, longest_s)
            except BaseException:
                self._drop(process)
                raise
            if outcome is not None:
                self._give_back(process, call.place)
                break
            problem = self._drop(process)
        else:
            raise WorkerError(f"a search process ended over this: {problem}", hint="ask for less; findling doctor")
        if outcome.fault:
            raise RuntimeError(f"a search process failed:\n{outcome.fault}")
        return outcome

    def rest(self, idle_s: float) -> None:
        """End the processes that nobody has asked for so long."""
        with self._changed:
            idle = [one for one in self._free if time.monotonic() - one.used_at >= idle_s]
            self._free = [one for one in self._free if one not in idle]
        for process in idle:
            self._drop(process)

    def close(self) -> None:
        """End all processes; questions under way fail. Closing twice is fine."""
        with self._changed:
            self._is_closed = True
            self._free.clear()
            processes = list(self._all)
            self._changed.notify_all()
        for process in processes:
            self._drop(process)

    def _take(self) -> _SearchProcess:
        with self._changed:
            while not self._free:
                if self._is_closed:
                    raise BusyError("findling is shutting down", hint="try again when it runs again")
                if self._failure is not None and not self._all and not self._is_starting:
                    failure, self._failure = self._failure, None
                    raise failure
                self._begin_start()
                self._changed.wait()
            process = self._free.pop()
            if not self._free:  # one more than is busy: nobody has to wait for its start
                self._begin_start()
            return process

    def _begin_start(self) -> None:
        """Start one more process, if there may be one more. The caller holds the lock."""
        if len(self._all) < self._most and not self._is_starting:
            self._is_starting = True
            threading.Thread(target=self._start, name="findling-start", daemon=True).start()

    def _give_back(self, process: _SearchProcess, place: bytes) -> None:
        process.used_at = time.monotonic()
        with self._changed:
            self._known[place] = None
            self._known.move_to_end(place)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
            is_dismissed = self._is_closed
            if not is_dismissed:
                self._free.append(process)
                self._changed.notify()
        if is_dismissed:
            self._drop(process)

    def _drop(self, process: _SearchProcess) -> str:
        """End a process; how it has ended by itself, if it has."""
        with self._changed:
            self._all.discard(process)
            self._changed.notify_all()
        return process.end()

    def _start(self) -> None:
        """Start a process that has loaded what is known; while it loads, those that run answer."""
        process: _SearchProcess | None = None
        failure: _NoProcessError | None = None
        try:
            process = _SearchProcess(self._memory)
            with self._changed:
                known = list(self._known)
            for place in known:
                if process.exchange(Call(place), _START_S) is None:
                    raise OSError(process.end())
        except Exception as error:  # whatever it is, those who wait have to be told
            if process is not None:
                process.end()
            process, hint = None, "check the memory and the number of processes this user may have (ulimit -a)"
            failure = _NoProcessError(f"no search process can be started: {error}", hint=hint)
        with self._changed:
            self._is_starting = False
            self._failure = failure
            if process is not None and not self._is_closed:
                self._all.add(process)
                self._free.append(process)
                process = None
            self._changed.notify_all()
        if process is not None:  # the pool was closed meanwhile
            process.end()


class _SearchProcess:
    """One process at the other end of a socket; a pipe whose other end is open here keeps it alive."""

    def __init__(self, memory: int) -> None:
        ours, theirs = socket.socketpair()
        life, self._life = os.pipe()
        try:
            self._process = subprocess.Popen(
                child_command("findling.service.server.search_process", life, memory),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                pass_fds=(life,),
                # There is a process for every core already.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        except BaseException:
            ours.close()
            os.close(self._life)
            raise
        finally:
            theirs.close()
            os.close(life)
        self._line, self._inbox, self._outbox = ours, ours.makefile("rb"), ours.makefile("wb")
        self.used_at = time.monotonic()
        self._ending = threading.Lock()

    def exchange(self, call: Call, longest_s: float) -> Outcome | None:
        """The outcome of a call; `None` when the process has died over it for no fault of the call.

        Raises OverdueError for a call that took more than it may.
        """
        self._line.settimeout(longest_s or None)
        try:
            write_frame(self._outbox, call)
            frame = read_frame(self._inbox)
        except TimeoutError as error:
            raise _overdue(f"there was no answer within {longest_s:g} s") from error
        except (OSError, ValueError):  # it is gone, or was ended by another thread
            frame = None
        if frame is not None:
            outcome: Outcome = pickle.loads(frame)
            return outcome
        status = self._status()
        if status == -signal.SIGPROF:
            raise _overdue("the answer took more computing than it may")
        if status == EXIT_OUT_OF_MEMORY:
            raise _overdue("the answer took more memory than it may")
        return None

    def end(self) -> str:
        """End the process; how it has ended by itself, if it has. Any thread may call it, and twice is fine."""
        with self._ending:
            if self._life >= 0:
                os.close(self._life)
                self._life = -1
            self._process.kill()
            status = self._status()
            for stream in (self._inbox, self._outbox, self._line):
                with suppress(OSError):
                    stream.close()
        return f"signal {-status}" if status < 0 else f"status {status}"

    def _status(self) -> int:
        return self._process.wait()


def _overdue(what: str) -> OverdueError:
    return OverdueError(what, hint="ask for less, or allow more time")


def _half_of_memory() -> int:
    with suppress(AttributeError, OSError, ValueError):  # not every system tells
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 4 << 30
