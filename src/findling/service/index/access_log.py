"""The log of accesses: recalling appends a line, and the next writer of the workspace counts the lines in.

Appending takes no lock and waits for nobody. A log is only ever appended to, and how far it was counted in stands
beside the counts, in the same transaction: no line is lost or counted twice, whoever is killed at whatever moment.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.records import Access

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore

_PREFIX, _SUFFIX = "accesses-", ".log"
_LINE = re.compile(rb"^([0-9]+\.[0-9]+)\t([^\t\n]+)\t\.$", re.MULTILINE)

_FULL_BYTES = 1 << 20
"""Bytes to which a log grows, some 16,000 lines, before the next one is begun."""

_AT_REST_S = 3600.0
"""Seconds without a write after which a log is deleted: a writer may have opened it before the next one was begun."""


class AccessLog:
    """The logs in the folder of one workspace. `clock` gives seconds since the epoch."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def append(self, rids: Iterable[str]) -> bool:
        """Note that resources are accessed now; False when that cannot be written, which is no error.

        All lines go in one call, without a lock. They reach the disk when the system writes them.
        """
        now = self._clock()
        # A line break comes first as well, so that a line that was cut off does not spoil the next one, and a point
        # last, by which a line that was cut off is told from a whole one.
        lines = b"".join(b"\n%.3f\t%s\t.\n" % (now, rid.encode()) for rid in rids)
        if not lines:
            return True
        try:
            file = os.open(self._current(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            try:
                return os.write(file, lines) == len(lines)
            finally:
                os.close(file)
        except OSError:  # read-only, full, or just deleted: an answer is worth more than its count
            return False

    def counts(self, store: TruthStore, rids: Iterable[str]) -> dict[str, Access]:
        """Numbers and last times of accesses: the counts of the store and those of the logs."""
        wanted = list(rids)
        if not wanted:
            return {}
        logs = self._logs()
        # Asked for in one question, so that a fold in between can neither hide lines nor show them twice.
        stored = store.accesses([*map(_mark, logs), *wanted])
        pending = _summed(_unread(logs, stored), wanted)
        found = {rid: _both(stored.get(rid), pending.get(rid)) for rid in wanted}
        return {rid: access for rid, access in found.items() if access is not None}

    def fold(self, store: TruthStore, exists: Callable[[str], bool]) -> None:
        """Count in what the logs say of resources that exist. The caller holds the workspace's lock."""
        logs = self._logs()
        unread = _unread(logs, store.accesses(map(_mark, logs)))
        counts = _summed(unread)
        marks = {_mark(log.path): Access(len(log.tail), 0.0) for log in unread if log.tail}
        store.add_accesses({rid: access for rid, access in counts.items() if exists(rid)} | marks)
        self._tidy(unread)

    def _current(self) -> Path:
        logs = self._logs()
        return logs[-1] if logs else self._new()

    def _new(self) -> Path:
        """A log whose name no log ever had: what was counted of an old one must not be taken for a part of it."""
        return self._folder / f"{_PREFIX}{time.time_ns():016x}-{os.getpid():x}{_SUFFIX}"

    def _logs(self) -> list[Path]:
        """All logs, the one that is written to last."""
        return sorted(self._folder.glob(f"{_PREFIX}*{_SUFFIX}"))

    def _tidy(self, logs: list[_Unread]) -> None:
        """Begin a new log when the last one is full, and delete old ones that nobody writes to any more."""
        if not logs:
            return
        try:
            if logs[-1].size >= _FULL_BYTES:
                self._new().touch(mode=0o600)
                logs = [*logs, logs[-1]]
            for log in logs[:-1]:
                status = log.path.stat()
                if status.st_size == log.size and time.time() - status.st_mtime > _AT_REST_S:
                    log.path.unlink()
        except OSError:  # it stays a little longer
            return


class _Unread(NamedTuple):
    """A log, its size, and those of its lines that are whole and were not counted."""

    path: Path
    size: int
    tail: bytes

    @classmethod
    def of(cls, path: Path, counted: int) -> _Unread:
        try:
            with path.open("rb") as file:
                file.seek(counted)
                tail = file.read()
        except FileNotFoundError:  # deleted since it was listed, after all of it had been counted
            return cls(path, counted, b"")
        return cls(path, counted + len(tail), tail[: tail.rfind(b"\n") + 1])


def _unread(logs: Iterable[Path], stored: Mapping[str, Access]) -> list[_Unread]:
    return [_Unread.of(log, stored.get(_mark(log), Access(0, 0.0)).count) for log in logs]


def _mark(log: Path) -> str:
    """The name under which a store counts the bytes of a log that were counted in; no resource has such an id."""
    return f"log:{log.name}"


def _summed(logs: Iterable[_Unread], rids: Iterable[str] | None = None) -> dict[str, Access]:
    """The accesses of some resources in the logs, or of all; a line that was cut off is skipped."""
    wanted = None if rids is None else {rid.encode() for rid in rids}
    counts: dict[bytes, tuple[int, float]] = {}
    # A recall reads all lines that nobody has counted: 20,000 take 3 ms so, and 50 ms when each is taken apart.
    for at, rid in chain.from_iterable(_LINE.findall(log.tail) for log in logs):
        if wanted is None or rid in wanted:
            count, last_at = counts.get(rid, (0, 0.0))
            counts[rid] = count + 1, max(last_at, float(at))
    return {rid.decode(errors="replace"): Access(*access) for rid, access in counts.items()}


def _both(one: Access | None, other: Access | None) -> Access | None:
    if one is None or other is None:
        return one or other
    return Access(one.count + other.count, max(one.last_at, other.last_at))
