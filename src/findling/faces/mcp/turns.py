"""Whatever writes an index waits for the others in this process that do, and keeps no thread busy with waiting."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync

__all__ = ["SEARCH_PATIENCE_S", "in_turn"]

_Result = TypeVar("_Result")

SEARCH_PATIENCE_S = 10.0
"""How long a search waits for its turn: longer, and it takes the index as it is and says what may be missing."""

_PAUSE_S = 0.01

_ONE_AT_A_TIME: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
"""For each workspace: whoever writes would take another one's lock for that of another process."""

_THREADS = anyio.CapacityLimiter(8)
"""Threads that write: an index run takes as long as it takes, and must not have a thread that answers questions."""


async def in_turn(home: Path, work: Callable[[], _Result], patience_s: float = math.inf) -> _Result:
    """What some work returns, done once nobody else here writes the workspace in a folder, or patience is at an end."""
    async with _turn(home, patience_s):
        return await run_sync(work, limiter=_THREADS)


@asynccontextmanager
async def _turn(home: Path, patience_s: float) -> AsyncIterator[None]:
    lock = _ONE_AT_A_TIME[home]
    deadline = time.monotonic() + patience_s
    while not (is_ours := lock.acquire(blocking=False)) and time.monotonic() < deadline:
        await anyio.sleep(_PAUSE_S)
    try:
        yield
    finally:
        if is_ours:
            lock.release()
