"""A look at a tree that lasts: until the kernel reports a change, the next search need not look again."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.ports import TruthStore
from findling.pipelines.indexing.freshness import IndexOptions, Stamp, has_same_rules, is_fresh
from findling.sources.files.file_text import changed_ns_at
from findling.sources.files.still_folders import StillFolders, is_quiet, place_of_tree, watch_apart, watch_folders

_LEAST_FILES = 300
"""Files from which watching pays: a look at so many takes 2 ms."""

_MOST_SHARED = 1_000
"""Files with several names that are looked at each time: a change under another name is reported there alone."""

_LASTS_S = 60.0
"""Seconds after which a look is due in any case: the kernel does not report what is written through a memory map, nor
through another name outside the tree that the file got since the look."""


_MOST_KEPT = 4
"""Trees that the warm process watches: a user may have 128 queues of events for all programs."""


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
        return _are_same(root, [*self._outside, *[(path, changed) for path, _, changed, _ in self._shared]])

    def _watch(self, store: TruthStore, root: Path) -> None:
        """Watch the folders that the last survey has walked, and begin anew."""
        if (self._folders is None or self._folders.is_in_place) and sum(1 for _ in store.stamps()) < _LEAST_FILES:
            return
        walked, self._outside = _walked(store)
        if self._folders is None or walked != self._watched or not self._folders.is_in_place:
            if self._folders is not None:
                self._folders.close()
            self._folders, self._watched = watch_folders(root, walked), walked
        if self._folders is not None:
            self._folders.begin()


class RelayedLook(NamedTuple):
    """A look at a tree with the watch over it since, which one process leaves to others.

    `queue` is the descriptor of the watch, `walked` the hash of its folders, which is the same in all forks of one
    process. `unreported` are the files that are looked at each time, with their times.
    """

    root: str
    state: list[object]
    place: object
    walked: int
    unreported: list[list[Any]]
    until: float
    queue: int = -1

    def holds(self, store: TruthStore, root: Path, options: IndexOptions) -> bool:
        """Whether the tree is certainly as it was at the look."""
        if time.monotonic() > self.until or self.state != list(_state(store, root)):
            return False
        is_still = is_quiet(self.queue) and self.place == place_of_tree(root)
        return is_still and _are_same(root, self.unreported) and has_same_rules(store, options)


class LookRelay:
    """The looks of forks of one process. Each has those of earlier ones, and leaves its own, if it looked, as `own`."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, RelayedLook] = OrderedDict()
        self.own: RelayedLook | None = None

    def look(self, store: TruthStore, root: Path, options: IndexOptions) -> bool:
        """Whether certainly nothing has changed since the last survey, as `freshness.is_fresh` says it."""
        kept = self._kept.get(str(root))
        if kept is not None and kept.holds(store, root, options):
            return True
        if options.rules.follow_symlinks or sum(1 for _ in store.stamps()) < _LEAST_FILES:
            return is_fresh(store, root, options)
        state, place, (walked, outside) = _state(store, root), place_of_tree(root), _walked(store)
        is_watched = kept is not None and (kept.place, kept.walked) == (place, hash(walked)) and is_quiet(kept.queue)
        # Watched before it is looked at, as above.
        queue = kept.queue if kept is not None and is_watched else watch_apart(root, walked)
        shared: list[Stamp] = []
        found = is_fresh(store, root, options, shared)
        if queue is None:
            return found
        if found and isinstance(place, list) and len(shared) <= _MOST_SHARED:
            unreported = [*map(list, outside), *[[path, changed] for path, _, changed, _ in shared]]
            until = time.monotonic() + _LASTS_S
            self.own = RelayedLook(str(root), list(state), place, hash(walked), unreported, until, queue)
        elif not is_watched:
            os.close(queue)
        return found

    def keep(self, look: RelayedLook) -> None:
        """Keep the look of a fork for the next ones, instead of an earlier one at the same tree."""
        self._drop(look.root)
        self._kept[look.root] = look
        while len(self._kept) > _MOST_KEPT:
            self._drop(next(iter(self._kept)))

    def tidy(self) -> None:
        """Forget looks at trees that have changed."""
        for look in list(self._kept.values()):
            if not is_quiet(look.queue):
                self._drop(look.root)

    def _drop(self, root: str) -> None:
        if (look := self._kept.pop(root, None)) is not None:
            os.close(look.queue)


def _walked(store: TruthStore) -> tuple[frozenset[str], list[tuple[str, int]]]:
    """The folders that the last survey has walked, and other paths with their times, which lie in none of them."""
    noted = store.folders()
    walked = frozenset(path for path, _ in noted if not path or path.endswith("/"))
    return walked, [(path, changed) for path, changed in noted if not _is_in(path, walked)]


def _are_same(root: Path, files: Iterable[Sequence[Any]]) -> bool:
    base = f"{root}/"
    return all(changed_ns_at(base + path) == changed for path, changed in files)


def _is_in(path: str, walked: frozenset[str]) -> bool:
    """Whether a path is a watched folder, or lies in one."""
    return path in walked or f"{path.rpartition('/')[0]}/".removeprefix("/") in walked


def _state(store: TruthStore, root: Path) -> tuple[object, ...]:
    """A value that differs as soon as somebody has written other files, or asked for other parts of the tree."""
    keys = ("store_id", "indexed_at", "parts")
    return str(root), store.seq(), *[store.get_meta(key) for key in keys]
