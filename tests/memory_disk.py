"""Folders of tests in memory: SQLite and tantivy take a third less CPU there than on a disk."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.processes import run_process

__all__ = ["memory_folder"]

_DISK = Path("/dev/shm")
_LEAST_FREE = 6 << 30
"""Bytes: a run of all tests leaves 1.2 GB in its folders, and an index under test may grow."""


def memory_folder() -> Path | None:
    """A new folder in memory; None where there is little of it, or where no program may run."""
    if not _DISK.is_dir() or min(shutil.disk_usage(_DISK).free, _available_memory()) < _LEAST_FREE:
        return None
    folder = Path(tempfile.mkdtemp(prefix="findling-", dir=_DISK))
    program = folder / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    try:
        run_process([program], check=True)
    except OSError:  # mounted with `noexec`, as containers do
        shutil.rmtree(folder)
        return None
    return folder


def _available_memory() -> int:
    """Bytes that processes can still take, by the kernel and by the limit of a container."""
    found = [int(line.split()[1]) << 10 for line in _lines("/proc/meminfo") if line.startswith("MemAvailable:")]
    limits = [int(line) for line in _lines("/sys/fs/cgroup/memory.max") if line.isdigit()]
    return min([*found, *limits], default=0)


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text("utf-8").splitlines()
    except OSError:
        return []
