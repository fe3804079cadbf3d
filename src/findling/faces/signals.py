"""Signals that end what stays: the watching of files, and the daemon."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def ended_by_signals(stop: Callable[[int, FrameType | None], None]) -> Iterator[dict[int, Any]]:
    """Have Ctrl-C and a polite kill call `stop`; the handlers of before come back in the end."""
    before = {int(number): signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
