"""Sending batches a few at a time, in order, and never waiting longer than agreed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

__all__ = ["OverdueError", "send_batches", "split"]

Batch = TypeVar("Batch")
Result = TypeVar("Result")

# A worker that keeps its own deadline is given this much longer before it is given up.
_GRACE_S = 0.5


class OverdueError(Exception):
    """A worker has not come back within the time it had."""


def send_batches(
    batches: Sequence[Batch],
    send: Callable[[Batch, threading.Event], Result],
    *,
    max_concurrent: int,
    patience_s: float,
) -> list[Result]:
    """What `send` makes of each batch, in order; the first error ends it all and is raised.

    `send` must finish within `patience_s`, and should when its event is set. The workers are daemons and the wait is
    bounded here too, because looking up a host's name cannot be interrupted: it may take 30 s without a network.
    Raises OverdueError.
    """
    stop = threading.Event()
    lock = threading.Lock()
    waiting = iter(enumerate(batches))
    outcomes: SimpleQueue[tuple[int, Result | None, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while not stop.is_set():
            with lock:
                number, batch = next(waiting, (-1, None))
            if batch is None:
                return
            try:
                outcomes.put((number, send(batch, stop), None))
            except BaseException as error:  # raised again where the caller waits
                outcomes.put((number, None, error))
                return

    results: dict[int, Result] = {}
    try:
        for _ in range(min(max_concurrent, len(batches))):
            threading.Thread(target=work, name="findling-provider", daemon=True).start()
        while len(results) < len(batches):
            try:
                number, result, error = outcomes.get(timeout=patience_s + _GRACE_S)
            except Empty:
                raise OverdueError from None
            if error is not None:
                raise error
            results[number] = result  # type: ignore[assignment]  # `None` only beside an error
    finally:
        stop.set()
    return [results[number] for number in range(len(batches))]


def split(texts: Sequence[str], size: int) -> list[list[str]]:
    """The texts in lists of at most `size`."""
    return [list(texts[start : start + size]) for start in range(0, len(texts), size)]
