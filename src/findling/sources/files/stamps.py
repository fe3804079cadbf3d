"""What tells a changed file from an unchanged one at the cost of one look at it."""

from __future__ import annotations

import os

__all__ = ["changed_ns", "changed_ns_at", "inode_of"]

_LARGEST = (1 << 63) - 1
"""Some network file systems number files with 64 bits; a store keeps 63 of them."""


def changed_ns(status: os.stat_result) -> int:
    """When a path changed last in any way. Programs set the time of its content back, never that of its status."""
    return max(status.st_mtime_ns, status.st_ctime_ns)


def inode_of(status: os.stat_result) -> int:
    """The number of the file itself, which another one in its place does not have; 0 where there is none."""
    return status.st_ino & _LARGEST


def changed_ns_at(path: str) -> int:
    """When what lies at a path changed last; 0 when it is not there."""
    try:
        return changed_ns(os.stat(path))  # noqa: PTH116 - a Path costs more than the call
    except OSError:
        return 0
