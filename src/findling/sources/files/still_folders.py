"""Folders that the kernel watches for this process: it can say for nothing that none of them has changed.

Linux puts an event into the queue of a watcher before the call returns that made the change. So a look at the queue is
enough, without a thread that reads it: an empty queue proves that nothing has changed until now.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import threading
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any
from weakref import WeakSet

from findling.sources.files.watching import file_system

_IS_LINUX = sys.platform.startswith("linux")

# File systems whose changes all pass through this kernel; a disk that another machine writes is silent.
_TELLING = frozenset("bcachefs btrfs exfat ext2 ext3 ext4 f2fs jfs ntfs3 overlay reiserfs tmpfs vfat xfs zfs".split())

# IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_DELETE_SELF, IN_MOVE_SELF
_CHANGES = 0x002 | 0x004 | 0x008 | 0x040 | 0x080 | 0x100 | 0x200 | 0x400 | 0x800
_ONLY_FOLDERS = 0x0100_0000
_GONE = 0x8000  # IN_IGNORED: the kernel watches it no more
_EVENT = struct.Struct("iIII")
_QUEUE_BYTES = 1 << 16
_MOUNTS = Path("/proc/self/mountinfo")


class StillFolders:
    """Watched folders of one tree. `is_still` holds from `begin` on, as long as nothing in them changes."""

    def __init__(self, queue: _ChangeQueue, root: Path) -> None:
        self._queue, self._root = queue, root
        self._here = self._circumstances()
        self.is_touched = True

    @property
    def is_in_place(self) -> bool:
        """Whether the watched folders are those that the root leads to now."""
        return self._circumstances() == self._here

    def begin(self) -> None:
        """Forget earlier changes; call it before a look at the files, never after it."""
        self._queue.take_events()
        self.is_touched = False

    def is_still(self) -> bool:
        """Whether certainly nothing has changed since `begin`. Changes through a shared memory map do not count."""
        self._queue.take_events()
        return not self.is_touched and self.is_in_place

    def close(self) -> None:
        """Stop watching; closing twice is fine."""
        self.is_touched = True
        self._queue.release(self)

    def _circumstances(self) -> tuple[object, ...]:
        """The place of the tree, and the process: the queue is not a child's."""
        return os.getpid(), place_of_tree(self._root)


def place_of_tree(root: Path) -> object:
    """The folder that a root leads to, and what is mounted: neither is reported. Nothing equals that of no folder."""
    try:
        found = root.stat()
        return [found.st_dev, found.st_ino, blake2b(_mounts_around(root)).hexdigest()]
    except OSError:
        return object()


def _mounts_around(root: Path) -> bytes:
    """The mounts above and below a root. Others change nothing in it: containers come and go on a machine."""
    place = os.fsencode(os.path.realpath(root)).rstrip(b"/") + b"/"
    for byte in b"\\ \t\n":  # as the kernel writes them
        place = place.replace(bytes([byte]), b"\\%03o" % byte)
    return b"".join(line for line in _MOUNTS.read_bytes().splitlines(True) if _is_around(place, line))


def _is_around(place: bytes, line: bytes) -> bool:
    mounted = line.split(b" ", 5)[4].rstrip(b"/") + b"/"
    return place.startswith(mounted) or mounted.startswith(place)


def watch_folders(root: Path, folders: Iterable[str]) -> StillFolders | None:
    """Watch folders, given by their paths below a root; `None` where changes could pass unnoticed.

    That is so on other systems than Linux, on disks that other machines write, for folders on another disk than the
    root, and when the kernel watches no more folders for this user.
    """
    if not _IS_LINUX or file_system(root) not in _TELLING:
        return None
    still = None
    try:
        queue = _queue_of_process()
        still = StillFolders(queue, root)
        for path in _on_one_disk(root, folders):
            queue.watch(path, still)
    except OSError:
        if still is not None:
            still.close()
        return None
    return still


def watch_apart(root: Path, folders: Iterable[str]) -> int | None:
    """A queue for these folders alone, as a descriptor that other processes may hold; `None` as for `watch_folders`."""
    if not _IS_LINUX or file_system(root) not in _TELLING:
        return None
    number = None
    try:
        queue = _ChangeQueue()
        number = queue.number
        for path in _on_one_disk(root, folders):
            queue.add(path)
    except OSError:
        if number is not None:
            os.close(number)
        return None
    return number


def is_quiet(number: int) -> bool:
    """Whether nothing was ever reported to a queue of `watch_apart`. Nothing is taken out of it."""
    waiting = select.poll()
    waiting.register(number, select.POLLIN)
    return not waiting.poll(0)


def _on_one_disk(root: Path, folders: Iterable[str]) -> Iterator[str]:
    """The paths of folders. Raises OSError for one that is on another disk than the root."""
    device, stat = root.stat().st_dev, os.stat
    for folder in folders:
        path = f"{root}/{folder}"
        if stat(path).st_dev != device:
            raise OSError(f"{path} is on another disk than {root}")
        yield path


class _ChangeQueue:
    """The one queue of events of this process: a user may have 128 of them for all programs."""

    def __init__(self) -> None:
        import ctypes

        self._libc: Any = ctypes.CDLL(None, use_errno=True)
        self._guard = threading.Lock()
        self._watchers: dict[int, WeakSet[StillFolders]] = {}
        self.process = os.getpid()
        self.number: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.number < 0:
            raise OSError(ctypes.get_errno(), "no queue of events")

    def add(self, path: str) -> int:
        """Have changes in a folder reported; the number that they come with. Raises OSError when the kernel refuses."""
        number: int = self._libc.inotify_add_watch(self.number, os.fsencode(path), _CHANGES | _ONLY_FOLDERS)
        if number < 0:
            raise OSError(f"{path} cannot be watched")
        return number

    def watch(self, path: str, still: StillFolders) -> None:
        """Have changes in a folder reported to somebody. Raises OSError when the kernel refuses."""
        with self._guard:
            number = self.add(path)
            self._watchers.setdefault(number, WeakSet()).add(still)

    def release(self, still: StillFolders) -> None:
        """Report nothing to somebody any more."""
        with self._guard:
            for number, others in list(self._watchers.items()):
                others.discard(still)
                if not others:
                    self._libc.inotify_rm_watch(self.number, number)
                    del self._watchers[number]

    def take_events(self) -> None:
        """Take all events there are, and mark those whom they concern. In a forked child it does nothing."""
        if self.process != os.getpid():
            return
        with self._guard:
            while events := self._read():
                at = 0
                while at < len(events):
                    number, kind, _, length = _EVENT.unpack_from(events, at)
                    at += _EVENT.size + length
                    # A number of -1 says that the queue was full, and events are lost.
                    concerned = self._watchers.values() if number < 0 else [self._watchers.get(number, ())]
                    for one in concerned:
                        for still in one:
                            still.is_touched = True
                    if kind & _GONE:
                        self._watchers.pop(number, None)

    def _read(self) -> bytes:
        try:
            return os.read(self.number, _QUEUE_BYTES)
        except BlockingIOError:
            return b""


_opening = threading.Lock()
_queue: _ChangeQueue | None = None


def _queue_of_process() -> _ChangeQueue:
    global _queue
    with _opening:
        if _queue is None or _queue.process != os.getpid():  # events that a forked child reads are lost to its parent
            _queue = _ChangeQueue()
        return _queue
