"""Whoever brings an index up to date waits for the others in this process who do the same."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["Turns"]

_LONGEST_S = 10.0
"""How long one waits for another: longer, and a search takes the index as it is and says what may be missing.

Without a daemon a search would take that time, too: to take the changes in itself.
"""

_PAUSE_S = 0.01


class Turns:
    """One after the other for each root: a search that finds changes, and the daemon that takes them in.

    Else they would be in each other's way: what is being written cannot be brought up to date.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)

    @contextmanager
    def turn(self, root: Path) -> Iterator[None]:
        """Have one's turn at a root; after some time without it, too."""
        lock = self._lock(root)
        is_ours = lock.acquire(timeout=_LONGEST_S)
        try:
            yield
        finally:
            if is_ours:
                lock.release()

    async def await_turn(self, root: Path) -> Callable[[], None]:
        """The same without a thread that waits; returns what ends the turn, which may be called twice."""
        lock = self._lock(root)
        deadline = time.monotonic() + _LONGEST_S
        stack = ExitStack()
        while time.monotonic() < deadline:
            if lock.acquire(blocking=False):
                stack.callback(lock.release)
                break
            await asyncio.sleep(_PAUSE_S)
        return stack.close

    def _lock(self, root: Path) -> threading.Lock:
        with self._guard:
            return self._locks[root]
