"""Folders that the kernel watches: an empty queue says for nothing that none of them has changed.

Linux puts an event into the queue of a watcher before the call returns that made the change. So a look at the queue is
enough, without a thread that reads it: an empty queue proves that nothing has changed until now. Nothing is ever taken
out of a queue, so processes may share one, and a queue that has told of a change is done with.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from findling.sources.files.watching import file_system

_IS_LINUX = sys.platform.startswith("linux")

# File systems whose changes all pass through this kernel; a disk that another machine writes is silent.
_TELLING = frozenset("bcachefs btrfs exfat ext2 ext3 ext4 f2fs jfs ntfs3 overlay reiserfs tmpfs vfat xfs zfs".split())

# IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF
_CHANGES = 0x002 | 0x004 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200 | 0x400 | 0x800
_ONLY_FOLDERS = 0x0100_0000
_MOUNTS = Path("/proc/self/mountinfo")


def watch_folders(root: Path, folders: Iterable[str]) -> int | None:
    """A queue for folders, given by their paths below a root, as a descriptor; `None` where changes could pass unseen.

    That is so on other systems than Linux, on disks that other machines write, for folders on another disk than the
    root, and when the kernel watches no more folders for this user.
    """
    if not _IS_LINUX or file_system(root) not in _TELLING:
        return None
    import ctypes

    libc: Any = ctypes.CDLL(None, use_errno=True)
    queue: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if queue < 0:
        return None
    try:
        device, stat = root.stat().st_dev, os.stat
        for folder in folders:
            path = f"{root}/{folder}"
            if stat(path).st_dev != device:
                raise OSError(f"{path} is on another disk than {root}")
            if libc.inotify_add_watch(queue, os.fsencode(path), _CHANGES | _ONLY_FOLDERS) < 0:
                raise OSError(f"{path} cannot be watched")
    except OSError:
        os.close(queue)
        return None
    return queue


def is_quiet(queue: int) -> bool:
    """Whether nothing was ever reported to a queue. Changes through a shared memory map do not count."""
    waiting = select.poll()
    waiting.register(queue, select.POLLIN)
    return not waiting.poll(0)


def place_of_tree(root: Path) -> list[object] | None:
    """The folder that a root leads to, and what is mounted: neither is reported. `None` where there is no folder."""
    try:
        found = root.stat()
        return [found.st_dev, found.st_ino, blake2b(_mounts_around(root)).hexdigest()]
    except OSError:
        return None


def _mounts_around(root: Path) -> bytes:
    """The mounts above and below a root. Others change nothing in it: containers come and go on a machine."""
    place = os.fsencode(os.path.realpath(root)).rstrip(b"/") + b"/"
    for byte in b"\\ \t\n":  # as the kernel writes them
        place = place.replace(bytes([byte]), b"\\%03o" % byte)
    return b"".join(line for line in _MOUNTS.read_bytes().splitlines(True) if _is_around(place, line))


def _is_around(place: bytes, line: bytes) -> bool:
    mounted = line.split(b" ", 5)[4].rstrip(b"/") + b"/"
    return place.startswith(mounted) or mounted.startswith(place)
