"""The lock between the writers of a workspace, released with its process."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from findling.domain.errors import LockedError, PathNotFoundError, ReadOnlyError

if TYPE_CHECKING:
    from findling.domain.backends import BackendLock

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.02
"""A write holds the lock for some 5 ms: a longer pause lets others pass."""


@runtime_checkable
class HostLock(Protocol):
    """A lock between hosts; implements `BackendLock`. A holder that writes in batches lends it to others in between."""

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, or take it back, waiting up to `timeout_s` seconds; return whether it was taken."""

    def lend(self) -> None:
        """Leave the lock to other hosts until it is acquired again; other processes of this one stay excluded."""

    def held_by(self) -> str:
        """The host and the process that hold the lock, and for how long, for messages; empty when nobody does."""


class WriteLock:
    """An exclusive lock on a file, held from `acquire` to `release`.

    The kernel releases it with the process, however that ends. Two instances exclude each other in one process, too.
    `with` waits for `timeout_s` and raises LockedError when another still holds the lock.
    """

    def __init__(self, path: Path | str, *, timeout_s: float = 30.0) -> None:
        self._path = Path(path)
        self._timeout_s = timeout_s
        self._file: int | None = None

    @property
    def held(self) -> bool:
        """Whether this instance holds the lock."""
        return self._file is not None

    def acquire(self, timeout_s: float) -> bool:
        """Take the lock, waiting up to `timeout_s` seconds; return whether it was taken.

        Raises LockedError when this instance holds it already, and ReadOnlyError when the file cannot be created.
        """
        if self._file is not None:
            raise LockedError(f"{self._path} is already held here", hint="release it first")
        deadline = time.monotonic() + timeout_s
        pause = _FIRST_PAUSE_S
        while not self._try():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            time.sleep(min(pause, remaining))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        return True

    def release(self) -> None:
        """Release the lock; fine when it is not held."""
        file, self._file = self._file, None
        _held.discard(self)
        if file is not None:
            _unlock(file)
            os.close(file)

    def holder(self) -> int | None:
        """The process that took the lock last, for messages; it may have released it since."""
        try:
            return int(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def forget_holder(self) -> None:
        """Have `holder` name nobody: this process took the lock, and could not use it."""
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, 0)

    def __enter__(self) -> Self:
        if not self.acquire(self._timeout_s):
            holder = self.holder()
            raise LockedError(
                f"{self._path.parent} is being written by " + (f"process {holder}" if holder else "another process"),
                hint="try again when it has finished",
            )
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def _try(self) -> bool:
        # Opened for every try: a file that was deleted meanwhile may still be locked, but guards nothing.
        file = self._open()
        locked = False
        try:
            locked = _try_lock(file) and self._is_at_path(file)
        finally:
            if not locked:
                os.close(file)
        if not locked:
            return False
        self._file = file
        _held.add(self)
        _write_pid(file)
        return True

    def _is_at_path(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise ReadOnlyError(f"{self._path} cannot be written", hint="check who owns its folder") from error
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                raise PathNotFoundError(f"the folder of {self._path} is not there", hint="create it first") from error
            raise


@contextmanager
def taken(lock: BackendLock, timeout_s: float) -> Iterator[bool]:
    """Take a lock, waiting up to `timeout_s` seconds, for a block, which learns whether it was taken."""
    is_ours = lock.acquire(timeout_s)
    try:
        yield is_ours
    finally:
        lock.release()


_held: set[WriteLock] = set()


def is_held(path: Path) -> bool:
    """Whether this process holds the lock of a file."""
    return any(lock._path == path for lock in list(_held))


def _leave_to_parent() -> None:
    # A forked child shares the parent's lock and would keep it alive after the parent's death.
    for lock in _held:
        if lock._file is not None:
            os.close(lock._file)
            lock._file = None
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _write_pid(file: int) -> None:
    # Only messages need it, so a full disk must not keep anyone from the lock with which space can be made.
    with suppress(OSError):
        os.ftruncate(file, 0)
        os.write(file, b"%d" % os.getpid())


if sys.platform == "win32":
    import msvcrt

    # Locked bytes cannot be read on Windows: lock one that lies far behind the pid.
    _LOCKED_BYTE = 1 << 30

    def _try_lock(file: int) -> bool:
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        finally:
            os.lseek(file, 0, os.SEEK_SET)
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
