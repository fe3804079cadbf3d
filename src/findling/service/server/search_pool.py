"""Search processes behind one front: each answers one question at a time, and is replaced when it goes too far.

The front keeps rights, limits, cached answers and writing to itself. Legs are mapped files, which processes share.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from findling.domain.budgets import current_budget
from findling.domain.errors import BusyError, FindlingError, OverdueError, WorkerError
from findling.pipelines.indexing.child_processes import framed
from findling.pipelines.indexing.workers import available_cores
from findling.service.index.index import Index
from findling.service.server.search_process import Call, Outcome, SearchProcess

if TYPE_CHECKING:
    from findling.domain.results import Degradation
    from findling.pipelines.retrieve.legs import Retrievers
    from findling.service.index.model_choice import ModelTable
    from findling.service.settings.settings import Settings
    from findling.service.workspace.workspace import Workspace

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
        self._levelled: object = None

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
            self.at(principals)  # whose legs are made here, by the one writer
            self._level_vectors()
            before_s = budget.cpu_s
            call = Call(self._place, verb, principals, notes, args, options, budget, is_last, self._pool.encode)
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

    def _level_vectors(self) -> None:
        """Bring vectors in step with what was written since the last time."""
        state = self.files.store.seq(), self.files.backend.version()
        if state != self._levelled:
            # Without a model their header tells: to open them takes 0.2 s and 20 MB that only search processes need.
            if self._settings["semantic.model"] != "none" or not self.has_level_instants():
                self.vectors.level_all()
            self._levelled = state

    def _result(self, outcome: Outcome) -> Any:
        self._loaded.update(outcome.loaded)
        if outcome.error is not None:
            raise outcome.error
        return outcome.result

    def _made_beside(self, place: Workspace, settings: Settings) -> Index:
        return PooledIndex(place, settings, self._table(), self._pool)

    def warm_up(self, notes: list[Degradation]) -> dict[str, float]:
        """Load the legs and the model in a process; how many seconds each took. Raises NotIndexedError."""
        self.require()
        behind = self.files.level_leg()
        notes += [behind] if behind is not None else []
        self._level_vectors()
        try:
            times: dict[str, float] = self._result(self._pool.ask(self._pool.loading(self._place)))
        except _NoProcessError as error:
            _log.error("%s; try: %s", error.message, error.hint)
            return super().warm_up(notes)
        self._pool.spread(self._place)
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

    Calls are begun in the order in which they came. A call may take `memory` bytes more than its process has, by
    default half of the machine's. With `encode`, which turns hits into JSON, processes pack their answers.
    """

    def __init__(self, most: int, *, memory: int = 0, encode: Callable[[object], bytes] | None = None) -> None:
        self._most = most
        self.encode = encode
        self._memory = memory or _half_of_memory()
        self._guard = threading.Lock()
        self._waiting: deque[_Turn] = deque()
        self._free: list[SearchProcess] = []
        self._all: set[SearchProcess] = set()
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
        frame, problem = framed(call), ""
        for _ in range(_ATTEMPTS):
            process = self._begun(frame, starts_ahead=call.verb is not None)
            try:
                answer = process.receive(longest_s)
            except BaseException:
                self._drop(process)
                raise
            if answer is not None:
                # Before the answer is read: the process has the next call while this thread is busy with that.
                self._give_back(process, call.place)
                break
            problem = self._drop(process)
        else:
            raise WorkerError(f"a search process ended over this: {problem}", hint="ask for less; findling doctor")
        outcome: Outcome = pickle.loads(answer)
        if outcome.fault:
            raise RuntimeError(f"a search process failed:\n{outcome.fault}")
        return outcome

    def loading(self, place: bytes) -> Call:
        """The call that has a process load an index, and what answers are made with."""
        return Call(place, encode=self.encode)

    def spread(self, place: bytes) -> None:
        """Have all idle processes load an index, and a second one, if there may be one."""
        with self._guard:
            cold = [one for one in self._free if place not in one.loaded]
            self._free = [one for one in self._free if one not in cold]
            starts = not (self._is_starting or self._is_closed) and len(self._all) < min(self._most, 2)
            self._is_starting = self._is_starting or starts
        for process in cold:
            try:
                self._load(process, [place])
            except (OSError, OverdueError):
                self._drop(process)
            else:
                self._give_back(process, place)
        if starts:
            self._start()

    def rest(self, idle_s: float) -> None:
        """End the processes that nobody has asked for so long."""
        with self._guard:
            idle = [one for one in self._free if time.monotonic() - one.used_at >= idle_s]
            self._free = [one for one in self._free if one not in idle]
        for process in idle:
            self._drop(process)

    def close(self) -> None:
        """End all processes; questions under way fail. Closing twice is fine."""
        with self._changing():
            self._is_closed = True
            self._free.clear()
            processes = list(self._all)
        for process in processes:
            self._drop(process)

    def _begun(self, frame: bytes, *, starts_ahead: bool) -> SearchProcess:
        """The process that has a call, once it is the turn of the call. Raises the error that it has instead."""
        turn = _Turn(frame, starts_ahead, Future())
        with self._changing():
            self._waiting.append(turn)
        return turn.process.result()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the pool; then the calls that waited longest have the processes that are free."""
        with self._guard:
            yield
            decided = self._decided()
        for turn, outcome in decided:
            if isinstance(outcome, SearchProcess):
                outcome.send(turn.frame)  # whichever thread comes by, so that the process waits for no other one
                turn.process.set_result(outcome)
            else:
                turn.process.set_exception(outcome)

    def _decided(self) -> list[tuple[_Turn, SearchProcess | FindlingError]]:
        """The calls that wait no longer, with process or error; a process is started for others. The lock is held."""
        decided: list[tuple[_Turn, SearchProcess | FindlingError]] = []
        starts_ahead = False
        while self._waiting:
            if self._is_closed:
                outcome: SearchProcess | FindlingError = BusyError(
                    "findling is shutting down", hint="try again when it runs again"
                )
            elif self._free:
                outcome, starts_ahead = self._free.pop(), starts_ahead or self._waiting[0].starts_ahead
            elif self._failure is not None and not self._all and not self._is_starting:
                outcome, self._failure = self._failure, None
            else:
                self._begin_start()
                if self._failure is None or self._all or self._is_starting:
                    break
                continue  # a start that fails at once
            decided.append((self._waiting.popleft(), outcome))
        if starts_ahead and not self._free:  # one more than is busy: nobody has to wait for its start
            self._begin_start()
        return decided

    def _begin_start(self) -> None:
        """Start one more process, if there may be one more. The caller holds the lock."""
        if len(self._all) < self._most and not self._is_starting and not self._is_closed:
            try:
                threading.Thread(target=self._start, name="findling-start", daemon=True).start()
                self._is_starting = True
            except RuntimeError as error:  # the system gives no more threads
                self._failure = _no_process(error)

    def _give_back(self, process: SearchProcess, place: bytes) -> None:
        process.used_at = time.monotonic()
        process.loaded.add(place)
        with self._changing():
            self._known[place] = None
            self._known.move_to_end(place)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
            is_dismissed = self._is_closed
            if not is_dismissed:
                self._free.append(process)
        if is_dismissed:
            self._drop(process)

    def _drop(self, process: SearchProcess) -> str:
        """End a process; how it has ended by itself, if it has."""
        with self._changing():
            self._all.discard(process)
        return process.end()

    def _start(self) -> None:
        """Start a process that has loaded what is known; while it loads, those that run answer."""
        process: SearchProcess | None = None
        failure: _NoProcessError | None = None
        try:
            process = SearchProcess(self._memory)
            while news := self._joined(process):
                self._load(process, news)
        except Exception as error:  # whatever it is, those who wait have to be told
            failure = _no_process(error)
        with self._changing():
            self._is_starting = False
            self._failure = failure
            is_kept = process in self._all
        if process is not None and not is_kept:  # it failed, or the pool was closed meanwhile
            process.end()

    def _joined(self, process: SearchProcess) -> list[bytes]:
        """The known indexes that a new process has not loaded; without any it is one of the pool from now on."""
        with self._changing():
            news = [place for place in self._known if place not in process.loaded]
            if not news and not self._is_closed:
                self._all.add(process)
                self._free.append(process)
        return news

    def _load(self, process: SearchProcess, places: Sequence[bytes]) -> None:
        """Have a process load indexes that nobody else uses meanwhile. Raises OSError when it ends over them."""
        for place in places:
            process.send(framed(self.loading(place)))
            if process.receive(_START_S) is None:
                raise OSError(process.end())
            process.loaded.add(place)


class _Turn(NamedTuple):
    """A call that waits for its turn, and the process that has it then.

    With `starts_ahead`, one more process is started when it has the last that is free.
    """

    frame: bytes
    starts_ahead: bool
    process: Future[SearchProcess]


def _no_process(error: Exception) -> _NoProcessError:
    hint = "check the memory and the number of processes this user may have (ulimit -a)"
    return _NoProcessError(f"no search process can be started: {error}", hint=hint)


def _half_of_memory() -> int:
    with suppress(AttributeError, OSError, ValueError):  # not every system tells
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 4 << 30
