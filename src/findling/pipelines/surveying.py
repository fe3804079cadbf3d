"""Surveying: how the files on disk differ from what is indexed of them, found out without reading any."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.resources import Fingerprint
from findling.sources.discovery import FoundFile, scan
from findling.sources.user_rules import Rules

__all__ = ["Survey", "is_fresh", "remember", "survey"]


_UNSURE_NS = 50_000_000
"""A folder that changed this shortly before it was listed may change again without its time changing."""


class Survey(NamedTuple):
    """How a tree differs from what is indexed of it; `folders` holds the time of change of every folder walked."""

    changed: list[FoundFile]
    vanished: list[str]
    unchanged: int
    skipped: list[SkippedPath]
    known: dict[str, Fingerprint]
    folders: dict[str, int]

    @property
    def differs(self) -> bool:
        """Whether the index is stale."""
        return bool(self.changed or self.vanished)


def survey(store: TruthStore, root: Path, rules: Rules, only: str = "") -> Survey:
    """Compare the tree, or one path of it, with the index by size and time of change.

    Reads no file and writes nothing.
    """
    known = store.fingerprints()
    refused = store.refusals()
    gone = set(known)
    changed: list[FoundFile] = []
    skipped: list[SkippedPath] = []
    folders: dict[str, int] = {}
    unchanged = 0
    listed_ns = time.time_ns() - _UNSURE_NS
    for entry in scan(str(root), rules, only, folders):
        if isinstance(entry, SkippedPath):
            skipped.append(entry)
            continue
        path, size, mtime_ns = entry
        before = known.get(path)
        if before is not None:
            gone.discard(path)
            if before.size == size and before.mtime_ns == mtime_ns:
                unchanged += 1
                continue
        elif (refusal := refused.get(path)) and (refusal.size, refusal.mtime_ns) == (size, mtime_ns):
            skipped.append(refusal)
            continue
        changed.append(entry)
    vanished = sorted(gone - _out_of_sight(gone, skipped))
    sure = {path: mtime_ns if mtime_ns < listed_ns else -1 for path, mtime_ns in folders.items()}
    return Survey(changed, vanished, unchanged, skipped, known, sure)


def remember(store: TruthStore, found: Survey, skipped: list[SkippedPath], rules: Rules) -> None:
    """Keep what `is_fresh` compares with, and the list of what was left out."""
    store.set_skipped(skipped)
    store.set_folders(found.folders)
    store.set_meta("rules", repr(rules))


def is_fresh(store: TruthStore, root: Path, rules: Rules) -> bool:
    """Whether certainly nothing has changed since the last survey: the question every search asks first.

    Every known file must have its size and time, and every folder its time, since a folder's time changes when a
    name in it comes or goes. It costs less than half of a survey; False only means that a survey has to tell.
    """
    if store.get_meta("rules") != repr(rules):
        return False
    base = f"{root}/"
    stat = os.stat
    try:
        for path, mtime_ns in store.folders():
            if stat(base + path).st_mtime_ns != mtime_ns:
                return False
        for path, size, mtime_ns in store.stamps():
            found = stat(base + path)
            if found.st_mtime_ns != mtime_ns or found.st_size != size:
                return False
    except OSError:
        return False
    return True


def _out_of_sight(paths: set[str], skipped: list[SkippedPath]) -> set[str]:
    """Those of the paths that could not be looked at this time: an unmounted or locked folder deletes nothing."""
    unreadable = [entry.path for entry in skipped if entry.reason == "unreadable"]
    if "./" in unreadable:
        return paths
    prefixes = tuple(path for path in unreadable if path.endswith("/"))
    return {path for path in paths if path in unreadable or (prefixes and path.startswith(prefixes))}
