"""A look at a tree that lasts: until the kernel reports a change, the next search need not look again.

A process keeps its own looks. A fork of the warm process leaves them to that, whose next forks have them, too.
"""

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
from findling.sources.files.still_folders import is_quiet, place_of_tree, watch_folders

_LEAST_FILES = 300
"""Files from which watching pays: a look at so many takes 2 ms."""

_MOST_SHARED = 1_000
"""Files with several names that are looked at each time: a change under another name is reported there alone."""

_LASTS_S = 60.0
"""Seconds after which a look is due in any case: the kernel does not report what is written through a memory map, nor
through another name outside the tree that the file got since the look."""

_MOST_KEPT = 4
"""Trees that the warm process watches: a user may have 128 queues of events for all programs."""


class LastingLook(NamedTuple):
    """The latest look at one tree, and the kernel's watch over it since.

    `queue` is the descriptor of the watch, `walked` the hash of its folders, which is the same in all forks of one
    process. `unreported` are the files that are looked at each time, with their times. After `until` the watch alone
    serves on, for the next look.
    """

    root: str
    state: list[object]
    place: list[object]
    walked: int
    unreported: list[list[Any]]
    until: float
    queue: int = -1

    def holds(self, store: TruthStore, root: Path) -> bool:
        """Whether the tree is certainly as it was at the look."""
        if time.monotonic() > self.until or self.state != _state(store, root):
            return False
        return is_quiet(self.queue) and self.place == place_of_tree(root) and _are_same(root, self.unreported)


class LastingLooks:
    """The looks of a process at its trees; `own` is the latest one of itself. May be used by several threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, LastingLook] = OrderedDict()
        self.own: LastingLook | None = None

    def is_fresh(self, store: TruthStore, root: Path, options: IndexOptions) -> bool:
        """Whether certainly nothing has changed since the last survey, as `freshness.is_fresh` says it."""
        with self._guard:
            kept = self._kept.get(str(root))
            if kept is not None and kept.holds(store, root) and has_same_rules(store, options):
                return True
            place = place_of_tree(root)
            # Files that links lead to lie in folders that nobody watches.
            is_told = place is not None and not options.rules.follow_symlinks
            if not is_told or sum(1 for _ in store.stamps()) < _LEAST_FILES:
                return is_fresh(store, root, options)
            state, (walked, outside) = _state(store, root), _walked(store)
            is_watched = kept and (kept.place, kept.walked) == (place, hash(walked)) and is_quiet(kept.queue)
            # Watched before it is looked at: a change in between is seen by both, and none by neither.
            queue = kept.queue if kept is not None and is_watched else watch_folders(root, walked)
            shared: list[Stamp] = []
            found = is_fresh(store, root, options, shared)
            if queue is not None and place is not None:
                unreported = [*map(list, outside), *[[path, changed] for path, _, changed, _ in shared]]
                until = time.monotonic() + _LASTS_S if found and len(shared) <= _MOST_SHARED else 0.0
                self.own = LastingLook(str(root), state, place, hash(walked), unreported, until, queue)
                self._keep(self.own)
            return found

    def holds(self, store: TruthStore, root: Path) -> bool:
        """Whether the tree is watched, and certainly as it was at the latest look at it."""
        with self._guard:
            kept = self._kept.get(str(root))
            return kept is not None and kept.holds(store, root)

    def keep(self, look: LastingLook) -> None:
        """Keep the look of a fork for the next ones, instead of an earlier one at the same tree."""
        with self._guard:
            self._keep(look)

    def tidy(self) -> None:
        """Forget looks at trees that have changed."""
        with self._guard:
            for look in list(self._kept.values()):
                if not is_quiet(look.queue):
                    self._drop(look.root)

    def close(self) -> None:
        """Stop watching; closing twice is fine."""
        with self._guard:
            for root in list(self._kept):
                self._drop(root)

    __del__ = close  # an index that nobody closes

    def _keep(self, look: LastingLook) -> None:
        before = self._kept.pop(look.root, None)
        if before is not None and before.queue != look.queue:
            os.close(before.queue)
        self._kept[look.root] = look
        while len(self._kept) > _MOST_KEPT:
            self._drop(next(iter(self._kept)))

    def _drop(self, root: str) -> None:
        os.close(self._kept.pop(root).queue)


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


def _state(store: TruthStore, root: Path) -> list[object]:
    """A value that differs as soon as somebody has written other files, or asked for other parts of the tree."""
    keys = ("store_id", "indexed_at", "parts")
    return [str(root), store.seq(), *[store.get_meta(key) for key in keys]]
