"""The moment between two writes of others, in which a leg absorbs what they wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import LockedError

if TYPE_CHECKING:
    from findling.service.opened import OpenedWorkspace

__all__ = ["between_writes"]

_ONE_S, _ALL_S = 0.1, 5.0
"""How long a search waits for one write, and for one after the other: a short one takes 5 ms."""


@contextmanager
def between_writes(files: OpenedWorkspace, patience_s: float) -> Iterator[None]:
    """Hold the lock as soon as one of many short writes leaves it; a long one is waited for with `patience_s` alone.

    Raises as `OpenedWorkspace.writing` does.
    """
    deadline = time.monotonic() + _ALL_S
    with ExitStack() as stack:
        while True:
            before = _taken_at(files.folder)
            try:
                stack.enter_context(files.writing(max(patience_s, _ONE_S)))
                break
            except LockedError:
                if _taken_at(files.folder) == before or time.monotonic() > deadline:
                    raise
        yield


def _taken_at(folder: Path) -> int:
    """When the lock was taken last: whoever does writes the number of its process into the file."""
    try:
        return (folder / "write.lock").stat().st_mtime_ns
    except OSError:
        return 0
