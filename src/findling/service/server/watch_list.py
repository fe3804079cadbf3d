"""The watched roots: a list in the home of the workspaces, and a lock and a state for each root.

The list is written as a whole under a lock. The watcher of a root holds another lock, which ends with its process.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import CorruptError, FindlingError
from findling.domain.values import read_json
from findling.service.workspace.workspace import folder_name
from findling.stores.filesystem import FileErrors, make_private, write_whole
from findling.stores.lock import WriteLock, taken

if TYPE_CHECKING:
    from findling.domain.reports import IndexReport

_VERSION = 1

_STATES = ".watching"
"""The folder in the home that holds a lock and a state for every root."""

_PATIENCE_S = 30.0

_state_guard = threading.Lock()
"""Two threads of a watcher write the same state: one listens, one indexes."""


class WatchList:
    """The list of watched roots of one home. Another process may change it at any time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / ".watched.json"
        self._read: tuple[tuple[int, int, int], list[Path]] | None = None

    def roots(self) -> list[Path]:
        """The roots in their order; the file is read when it has changed. Raises CorruptError when it is damaged."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return []
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, self._parsed())
        return list(self._read[1])

    def add(self, root: Path) -> bool:
        """Add a root; returns whether it was new. Raises ReadOnlyError, LockedError."""
        return self._change(lambda roots: sorted({*roots, root}))

    def remove(self, root: Path) -> bool:
        """Remove a root and its state; returns whether it was there."""
        was_there = self._change(lambda roots: [each for each in roots if each != root])
        if was_there and watcher_of(self._home, root)[0] is None:
            _file(self._home, root, "json").unlink(missing_ok=True)
        return was_there

    def _change(self, change: Callable[[list[Path]], list[Path]]) -> bool:
        with FileErrors(self._home):
            make_private(self._home)
        with WriteLock(self._home / ".watched.lock", timeout_s=_PATIENCE_S):
            before = self._parsed() if self._file.exists() else []
            after = change(before)
            if after != before:
                document = {"version": _VERSION, "roots": [str(root) for root in after]}
                write_whole(self._file, json.dumps(document, indent=2).encode() + b"\n")
            return after != before

    def _parsed(self) -> list[Path]:
        try:
            document = read_json(self._file.read_bytes())
            if document["version"] != _VERSION:
                raise ValueError(document["version"])
            return [Path(root) for root in document["roots"]]
        except (ValueError, KeyError, TypeError) as error:
            hint = f"delete {self._file}, then findling watch add PATH"
            raise CorruptError(f"the list of watched folders in {self._file} cannot be read", hint=hint) from error


@dataclass(frozen=True, kw_only=True)
class WatchAccount:
    """One watched root: its watcher (no process: nobody), and the last changes that it indexed."""

    root: Path
    is_listed: bool
    is_missing: bool
    pid: int | None = None
    by: str = ""
    since: float | None = None
    polls: bool = False
    problem: str = ""
    taken_in_at: float | None = None
    taken_in: Mapping[str, int] | None = None


def watch_accounts(home: Path) -> list[WatchAccount]:
    """The roots of the list, and other watched ones. Raises CorruptError for a damaged list."""
    listed = WatchList(home).roots()
    states = sorted((home / _STATES).glob("*.json"))
    others = {Path(state["root"]) for state in map(_read_state, states) if "root" in state}
    accounts = [_account(home, root, is_listed=root in listed) for root in [*listed, *sorted(others - set(listed))]]
    return [account for account in accounts if account.is_listed or account.pid is not None]


def watch_lock(home: Path, root: Path) -> WriteLock:
    """The lock of the watcher of a root. Raises ReadOnlyError when the home cannot be written."""
    folder = home / _STATES
    with FileErrors(folder):
        make_private(folder)
    return WriteLock(_file(home, root, "lock"))


def watcher_of(home: Path, root: Path) -> tuple[int | None, str]:
    """The process that watches a root, and its name; None when nobody does."""
    file = _file(home, root, "lock")
    if not file.exists():
        return None, ""
    with taken(lock := WriteLock(file), 0.0) as is_free:
        if is_free:
            return None, ""
    return lock.holder(), str(_read_state(_file(home, root, "json")).get("by", ""))


def note_state(home: Path, root: Path, **changes: object) -> None:
    """Note the state of a watched root. Raises ReadOnlyError or DiskFullError."""
    file = _file(home, root, "json")
    with _state_guard:
        with FileErrors(file.parent):
            make_private(file.parent)
        before = _read_state(file)
        after = {**before, "root": str(root), **changes}
        if after != before:
            write_whole(file, json.dumps(after).encode())


def note_problem(home: Path, root: Path, problem: str) -> None:
    """Note the problem of a watched root; a home that cannot be written may be the problem."""
    with suppress(FindlingError, OSError):
        note_state(home, root, problem=problem)


def note_indexed(home: Path, root: Path, report: IndexReport) -> None:
    """Note that the changes of a root were indexed, if there were any, and that there is no problem."""
    taken_in = {"added": report.added, "updated": report.updated, "removed": report.removed}
    changes: dict[str, object] = {"taken_in_at": time.time(), "taken_in": taken_in} if report.changed else {}
    note_state(home, root, problem="", **changes)


def _account(home: Path, root: Path, *, is_listed: bool) -> WatchAccount:
    pid, by = watcher_of(home, root)
    state = _read_state(_file(home, root, "json"))
    kept: dict[str, Any] = {"taken_in_at": state.get("taken_in_at"), "taken_in": state.get("taken_in")}
    if pid is not None:
        kept |= {"since": state.get("since"), "polls": bool(state.get("polls"))}
        kept["problem"] = str(state.get("problem", ""))
    is_missing = not os.path.lexists(root)
    return WatchAccount(root=root, is_listed=is_listed, is_missing=is_missing, pid=pid, by=by, **kept)


def _read_state(file: Path) -> dict[str, Any]:
    """The noted state; empty where nothing readable is: it is only for display."""
    try:
        found = read_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _file(home: Path, root: Path, suffix: str) -> Path:
    return home / _STATES / f"{folder_name(root)}.{suffix}"
