"""A look at a tree that lasts: until the kernel reports a change, the next search need not look again."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from findling.domain.ports import TruthStore
from findling.pipelines.indexing.freshness import IndexOptions, Stamp, has_same_rules, is_fresh
from findling.sources.files.file_text import changed_ns_at
from findling.sources.files.still_folders import StillFolders, watch_folders

__all__ = ["LastingLook"]

_LEAST_FILES = 300
"""Files from which watching pays: a look at so many takes 2 ms."""

_MOST_SHARED = 1_000
"""Files with several names that are looked at each time: a change under another name is reported there alone."""

_LASTS_S = 60.0
"""Seconds after which a look is due in any case: the kernel does not report what is written through a memory map, nor
through another name outside the tree that the file got since the look."""


class LastingLook:
    """The latest look at one tree, and the kernel's watch over it since. May be used by several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._folders: StillFolders | None = None
        self._watched: frozenset[str] = frozenset()
        self._outside: list[tuple[str, int]] = []
        self._shared: list[Stamp] = []
        self._state: object = None
        self._until = 0.0

    def is_fresh(self, store: TruthStore, root: Path, options: IndexOptions) -> bool:
        """Whether certainly nothing has changed since the last survey, as `freshness.is_fresh` says it."""
        with self._guard:
            state = _state(store, root)
            if self._holds(state, root) and has_same_rules(store, options):
                return True
            self._state = None
            if options.rules.follow_symlinks:  # files that links lead to lie in folders that nobody watches
                return is_fresh(store, root, options)
            # Watched before it is looked at: a change in between is seen by both, and none by neither.
            self._watch(store, root)
            shared: list[Stamp] = []
            found = is_fresh(store, root, options, shared)
            if found and self._folders is not None and len(shared) <= _MOST_SHARED:
                self._state, self._shared, self._until = state, shared, time.monotonic() + _LASTS_S
            return found

    def holds(self, store: TruthStore, root: Path) -> bool:
        """Whether the tree is watched, and certainly as it was at the latest look at it."""
        with self._guard:
            return self._holds(_state(store, root), root)

    def close(self) -> None:
        """Stop watching; closing twice is fine."""
        with self._guard:
            if self._folders is not None:
                self._folders.close()
            self._folders = self._state = None

    def _holds(self, state: object, root: Path) -> bool:
        if self._state is None or self._state != state or self._folders is None or time.monotonic() > self._until:
            return False
        return self._folders.is_still() and self._is_same_outside(root)

    def _is_same_outside(self, root: Path) -> bool:
        """Whether the files are the same that may change without a report from a watched folder."""
        base = f"{root}/"
        if any(changed_ns_at(base + path) != changed for path, changed in self._outside):
            return False
        return all(changed_ns_at(base + path) == changed for path, _, changed, _ in self._shared)

    def _watch(self, store: TruthStore, root: Path) -> None:
        """Watch the folders that the last survey has walked, and begin anew."""
        if (self._folders is None or self._folders.is_in_place) and sum(1 for _ in store.stamps()) < _LEAST_FILES:
            return
        noted = store.folders()
        walked = frozenset(path for path, _ in noted if not path or path.endswith("/"))
        if self._folders is None or walked != self._watched or not self._folders.is_in_place:
            if self._folders is not None:
                self._folders.close()
            self._folders, self._watched = watch_folders(root, walked), walked
        self._outside = [(path, changed) for path, changed in noted if not _is_in(path, walked)]
        if self._folders is not None:
            self._folders.begin()


def _is_in(path: str, walked: frozenset[str]) -> bool:
    """Whether a path is a watched folder, or lies in one."""
    return path in walked or f"{path.rpartition('/')[0]}/".removeprefix("/") in walked


def _state(store: TruthStore, root: Path) -> tuple[object, ...]:
    """A value that differs as soon as somebody has written other files, or asked for other parts of the tree."""
    keys = ("store_id", "indexed_at", "parts")
    return str(root), store.seq(), *[store.get_meta(key) for key in keys]
