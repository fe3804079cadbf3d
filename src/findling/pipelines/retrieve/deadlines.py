"""Work that must not keep an answer waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from findling.domain.budgets import current_budget, spending
from findling.domain.errors import OverdueError

__all__ = ["finished_by"]

_MOST_LATE = 16
"""Pieces of late work that may still run: a provider that hangs must not fill the memory."""

_T = TypeVar("_T")


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
