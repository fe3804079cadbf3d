"""A limit for the time that a regular expression takes: `(a+)+$` tries more ways than there are atoms.

Python's `re` can be interrupted by a signal in the main thread, and nowhere else. In other threads a process of its
own tries an expression with repetitions; meanwhile all other threads go on.
"""

from __future__ import annotations

import atexit
import os
import pickle
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import IO, Any, Self, TypeVar

from findling.domain.budgets import current_budget
from findling.domain.errors import OverdueError
from findling.domain.strangers import is_linear
from findling.pipelines.indexing.child_processes import (
    ChildProcess,
    limited_time,
    new_process,
    read_frame,
    take_streams,
    write_frame,
)

_T = TypeVar("_T")

_LOOK_S = 0.1
"""Computing between two looks at the clock."""


class MatchTime:
    """The time for expressions on texts: all of one answer draw on its budget, and one that ended stays so.

    Only computing counts, and the deadline of the budget. Expressions without repetitions are never interrupted.
    """

    def __init__(self, *expressions: str) -> None:
        self._expressions = frozenset(expressions)
        self._shown = " or ".join(map(repr, expressions))
        self._is_linear = all(map(is_linear, expressions))
        self._is_main = threading.current_thread() is threading.main_thread() and hasattr(signal, "ITIMER_VIRTUAL")
        self._is_matching = False
        self._budget = current_budget()
        self._started_s = time.thread_time()
        self._process: ChildProcess | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        if not self._is_linear and self._is_main:
            self._before = signal.signal(signal.SIGVTALRM, self._look)
            signal.setitimer(signal.ITIMER_VIRTUAL, _LOOK_S, _LOOK_S)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_linear and self._is_main:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            signal.signal(signal.SIGVTALRM, self._before or signal.SIG_DFL)
        if self._process is not None:
            _give_back(self._process)
        self._left_s()

    def run(self, work: Callable[..., _T], *args: Any) -> _T:
        """Do work with a text. Raises OverdueError when the time is over, or was over for the expression before.

        Work and its result travel to another process and back, so both can be pickled.
        """
        left_s = self._left_s()
        if left_s <= 0 or not self._expressions.isdisjoint(self._budget.ended):
            raise OverdueError("the time for patterns was over", hint="ask for fewer of them, or below a folder")
        if self._is_linear:
            return work(*args)
        if not self._is_main:
            return self._elsewhere(left_s, work, args)
        self._is_matching = True
        try:
            return work(*args)
        finally:
            self._is_matching = False

    def _left_s(self) -> float:
        """The time that is left, less what was computed since the last look."""
        now = time.thread_time()
        self._budget.matching_s -= now - self._started_s
        self._started_s = now
        deadline = self._budget.deadline
        left_s = self._budget.matching_s
        return left_s if deadline is None else min(left_s, deadline - time.perf_counter())

    def _look(self, *_: object) -> None:
        """End the work that is late; elsewhere an exception would come as a surprise."""
        if self._is_matching and self._left_s() <= 0:
            raise self._overdue()

    def _elsewhere(self, left_s: float, work: Callable[..., _T], args: tuple[Any, ...]) -> _T:
        process, self._process = self._process or _taken(), None
        try:
            answer = process.exchange((left_s, work, args))
        except BaseException:
            process.kill()  # half of a question is in its pipe
            raise
        result: Any
        taken_s, result, error = pickle.loads(answer) if answer is not None else (left_s, None, None)
        self._budget.matching_s -= taken_s
        self._budget.charge(taken_s)
        if answer is None:
            process.kill()
            raise self._overdue()
        self._process = process
        if error is not None:
            raise error
        done: _T = result
        return done

    def _overdue(self) -> OverdueError:
        self._budget.ended |= self._expressions
        return OverdueError(
            f"the pattern {self._shown} takes too long: it was ended",
            hint="write it without a repetition inside of a repetition, or search below a folder",
        )


class TimedPattern:
    """An expression that is tried on every passage, as long as there is time. Raises `re.error` for what is none."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = re.compile(pattern)

    def matches(self, text: str) -> bool:
        """Whether it matches somewhere; where time is over it does not, and the answer says so."""
        try:
            with MatchTime(self.pattern) as clock:
                return clock.run(_is_found, self._compiled, text)
        except OverdueError as error:
            current_budget().refuse(f"{error.message}; passages that it excludes may be there")
            return False


def _is_found(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None


_idle: list[ChildProcess] = []


def _taken() -> ChildProcess:
    """The idle process, or a new one: it does one piece of work after another, and ends over one that is too long."""
    while _idle:
        process = _idle.pop()
        if process.is_ours:
            return process
    atexit.register(_end_idle)
    return ChildProcess(new_process(__name__))


def _give_back(process: ChildProcess) -> None:
    if _idle:
        process.kill()
    else:
        _idle.append(process)


def _end_idle() -> None:
    while _idle:
        process = _idle.pop()
        if process.is_ours:
            process.kill()


def main() -> None:
    """Serve the parent at standard input and output until it is gone."""
    taken, given = take_streams()
    inbox, outbox = os.fdopen(taken, "rb"), os.fdopen(given, "wb")
    try:
        while (frame := read_frame(inbox)) is not None:
            _answer(outbox, *pickle.loads(frame))
    except BrokenPipeError:
        os._exit(0)


def _answer(outbox: IO[bytes], seconds: float, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    start, result, error = time.process_time(), None, None
    with limited_time(seconds):
        try:
            result = work(*args)
        except Exception as raised:  # its caller is elsewhere
            error = raised
    write_frame(outbox, (time.process_time() - start, result, error))
