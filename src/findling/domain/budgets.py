"""The budget of one answer: everything that works for it draws on it, so that it ends, and says what was left out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any, Generic, TypeVar

from findling.domain.errors import OverdueError

MOST_CANDIDATES = 50_000
"""Passages that one answer looks at: 2 s of looking them up."""

_MOST_COMPARED = 500_000
"""Words of the vocabulary that spellings are compared with: 0.15 s. Twelve words in any spelling against 100,000."""

_MOST_READ = 1_000
"""Passages whose words are taken apart again to boost or to spread: 1 ms for each."""

_MOST_ROWS = 5_000
"""Rows of words that NEAR is made of: 0.2 ms for each, where its words are in every passage."""

_MATCHING_S = 0.4
_CHARACTERS_A_SECOND = 100_000_000
"""CPU seconds for all patterns of an answer, and characters of text that give them one more: a scan takes less."""

_MOST_LATE = 16
"""Pieces of late work that may still run: a provider that hangs must not fill the memory."""

_T = TypeVar("_T")


class StageClock:
    """Milliseconds of wall time per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = round((now - self._last) * 1000, 3)
        self._last = now


class WorkBudget:
    """Counts and times that shrink as work is done for one answer; any thread may draw on it.

    `cpu_s` is for the threads that ask how much is left, `timeout_s` for the clock on the wall; 0 is no limit. What
    was refused stands in `refused`, a sentence for each kind of work, in the order in which it came. A process of its
    own that does the work is ended after `longest_s`, which is 0 for no limit. A pickle of it is what is left of it.
    `matching_s` is left for patterns, of which those in `ended` took too long.
    """

    def __init__(
        self,
        *,
        cpu_s: float = 0.0,
        timeout_s: float = 0.0,
        candidates: int = MOST_CANDIDATES,
        read: int = _MOST_READ,
        compared: int = _MOST_COMPARED,
        rows: int = _MOST_ROWS,
        longest_s: float = 0.0,
    ) -> None:
        self.matching_s = _MATCHING_S
        self.ended: set[str] = set()
        self._scanned = 0
        self.candidates = candidates
        self.longest_s = longest_s
        self.left = {"read": read, "compared": compared, "rows": rows}
        self.refused: list[str] = []
        self._cpu_s = cpu_s or inf
        self._deadline = inf
        self._timeout_s = 0.0
        self._threads: dict[int, tuple[float, float]] = {}
        self._charged_s = 0.0
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self.end_within(timeout_s)

    def __getstate__(self) -> dict[str, Any]:
        taken_s = self.cpu_s
        return {**vars(self), "_charged_s": taken_s, "_threads": {}, "_made": {}, "_lock": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    @property
    def deadline(self) -> float | None:
        """The end of the time, on the clock of `time.perf_counter`; `None` without one."""
        return None if self._deadline == inf else self._deadline

    @property
    def cpu_s(self) -> float:
        """CPU seconds that the threads have taken that drew on it, each from its first time on."""
        now, me = time.thread_time(), threading.get_ident()
        with self._lock:
            first, _ = self._threads.get(me, (now, now))
            self._threads[me] = first, now
            return self._charged_s + sum(last - first for first, last in self._threads.values())

    def charge(self, cpu_s: float) -> None:
        """Count CPU seconds that a thread has taken which does not draw on the budget by itself."""
        with self._lock:
            self._charged_s += cpu_s

    @property
    def cpu_left_s(self) -> float:
        """CPU seconds that are left; infinite without a limit."""
        return max(self._cpu_s - self.cpu_s, 0.0)

    def draw_level(self, drawn: WorkBudget, before_s: float) -> None:
        """Follow a copy that another process has drawn on; it had `before_s` CPU seconds behind it at first."""
        self.charge(max(drawn.cpu_s - before_s, 0.0))
        self.left, self.refused = drawn.left, drawn.refused
        self.matching_s, self.ended, self._scanned = drawn.matching_s, drawn.ended, drawn._scanned

    def allow_scan(self, characters: int) -> None:
        """Give patterns the time for texts of so many characters, once: the next pattern looks at the same texts."""
        self.matching_s += max(characters - self._scanned, 0) / _CHARACTERS_A_SECOND
        self._scanned = max(characters, self._scanned)

    def end_within(self, timeout_s: float) -> None:
        """Let the time be over after so many seconds, if it is not earlier; 0 changes nothing."""
        if timeout_s and time.perf_counter() + timeout_s < self._deadline:
            self._deadline, self._timeout_s = time.perf_counter() + timeout_s, timeout_s

    def is_over(self, left_out: str = "") -> bool:
        """Whether the time is over, on the wall or of the processor; then `left_out` says what is not done for it."""
        is_late, is_dear = time.perf_counter() >= self._deadline, self.cpu_s >= self._cpu_s
        if (is_late or is_dear) and left_out:
            spent = f"{self._timeout_s:g} s" if is_late else f"{self._cpu_s:g} CPU seconds"
            self.refuse(f"the {spent} for an answer were over: {left_out}")
        return is_late or is_dear

    def allows_again(self, left_out: str) -> bool:
        """Whether all that was done so far may be done once more; else `left_out` says what is not done for it."""
        if self.cpu_s * 2 <= self._cpu_s:
            return True
        self.refuse(f"of the {self._cpu_s:g} CPU seconds for an answer too few were left: {left_out}")
        return False

    def take(self, kind: str, wanted: int, left_out: str) -> int:
        """As many of `wanted` as are left of a kind of work; `left_out` says what is not done for want of more."""
        with self._lock:
            granted = min(wanted, self.left[kind])
            self.left[kind] -= granted
        if granted < wanted:
            self.refuse(left_out)
        return granted

    def once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """The result of `make` at the first call with a key: an answer builds the same leaf several times."""
        made: _T | None = self._made.get(key)
        if made is None:  # a key may be a tree, whose hash takes longer than a look
            made = self._made[key] = make()
        return made

    def refuse(self, sentence: str) -> None:
        """Note once what was not done."""
        if sentence not in self.refused:
            self.refused.append(sentence)


def current_budget() -> WorkBudget:
    """The budget of the answer that is worked for; outside of any answer one that nobody else draws on."""
    return _current.budget or WorkBudget()


@contextmanager
def spending(budget: WorkBudget | None = None) -> Iterator[WorkBudget]:
    """Have everything inside draw on one budget: on that of the answer that is worked for already, if there is one."""
    outer = _current.budget
    drawn = outer or budget or WorkBudget()
    _current.budget = drawn
    try:
        drawn.is_over()  # from here on the thread's time counts
        yield drawn
    finally:
        _current.budget = outer


class _PerThread(threading.local):
    budget: WorkBudget | None = None


_current = _PerThread()


def finished_by(deadline: float, work: Callable[[], _T]) -> _T:
    """Do the work in a thread. Raises OverdueError when the deadline (of `time.perf_counter`) passes first.

    Late work continues until it next looks at its budget, and its result is dropped. While 16 pieces are late, none is
    begun.
    """
    remaining = deadline - time.perf_counter()
    if remaining <= 0 or len(_late) >= _MOST_LATE:
        raise OverdueError("there is no time left", hint="ask again")
    task = _Task(spending(current_budget())(work))
    threading.Thread(target=task.run, name="findling-in-time", daemon=True).start()
    return task.outcome(remaining)


class _Task(Generic[_T]):
    def __init__(self, work: Callable[[], _T]) -> None:
        self._work = work
        self._ended = threading.Event()
        self._given: list[_T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._given.append(self._work())
        except BaseException as error:  # passed on to whoever waits
            self._error = error
        self._ended.set()
        _late.discard(self)

    def outcome(self, patience_s: float) -> _T:
        if not self._ended.wait(patience_s):
            _late.add(self)
            if self._ended.is_set():
                _late.discard(self)  # it ended in between, and did not find itself among the late ones
            raise OverdueError("the work was not finished in time", hint="ask again")
        if self._error is not None:
            raise self._error
        return self._given[0]


_late: set[object] = set()
