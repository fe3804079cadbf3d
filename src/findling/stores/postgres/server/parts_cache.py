"""Parts of legs that this process has fetched from servers: as many bytes as fit, the latest used first.

A part never changes: its key holds the checksum of its bytes, or a number that this process gives once. So a leg that
is opened again after a small change fetches that change alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

__all__ = ["PARTS", "PartsCache"]


class PartsCache:
    """Fetched parts by their keys; threads may share it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._parts: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        """The part, `None` without one."""
        with self._lock:
            if key not in self._parts:
                return None
            self._parts.move_to_end(key)
            return self._parts[key][0]

    def put(self, key: Hashable, part: Any, size: int) -> None:
        """Keep a part of so many bytes, and forget those that were not used for longest."""
        with self._lock:
            _, before = self._parts.pop(key, (None, 0))
            self._parts[key] = part, size
            self._bytes += size - before
            while self._bytes > self._most_bytes and len(self._parts) > 1:
                _, (_, gone) = self._parts.popitem(last=False)
                self._bytes -= gone


PARTS = PartsCache(512 << 20)
"""Those of this process: 512 MB hold the instant vectors of two million passages."""
