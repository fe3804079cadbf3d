"""Surveying: the differences between the files on disk and their documents, found without reading any file."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.resources import Fingerprint
from findling.pipelines.indexing.freshness import TRIED_AGAIN, UNKNOWN, UNSURE_NS, IndexOptions
from findling.sources.documents.table import VERSIONS
from findling.sources.files.discovery import FoundFile, scan
from findling.sources.files.file_text import changed_ns_at
from findling.sources.files.file_types import file_type
from findling.sources.files.ignore_rules import IGNORE_FILES
from findling.stores.validation import NEVER

_HELD_BACK_BY_SIZE = ("empty", "too-large")
_BEYOND_LIMITS = ("crashed", "out-of-memory", "quota", "too-slow")


class Survey(NamedTuple):
    """The differences between a tree and its index; `folders` holds the times of change of paths that matter."""

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


def survey(store: TruthStore, root: Path, options: IndexOptions, parts: Sequence[str] = ("",)) -> Survey:
    """Compare the tree, or some paths of it, with the index by size and time of change.

    Reads no file and writes nothing. Everything counts as changed when documents are made in another way today.
    """
    known, refused = _marks(store, options)
    gone = set(known)
    changed: list[FoundFile] = []
    waiting: list[FoundFile] = []
    skipped: list[SkippedPath] = []
    folders: dict[str, int] = {}
    unchanged = 0
    settled_ns = time.time_ns() - UNSURE_NS
    for entry in chain.from_iterable(scan(str(root), options.rules, part, folders) for part in parts):
        if isinstance(entry, SkippedPath):
            skipped.append(entry)
            continue
        path, size, changed_at, inode = entry
        mark = known.get(path)
        if mark is not None:
            gone.discard(path)
            if (mark.size, mark.changed_ns) == (size, changed_at) and mark.inode in (0, inode):
                unchanged += 1
                continue
        elif (refusal := refused.get(path)) and _still_holds(refusal, entry, root):
            skipped.append(refusal)
            waiting += [entry] if refusal.reason == "quota" else []
            continue
        changed.append(entry)
    vanished = sorted(gone - _out_of_sight(gone, skipped))
    if waiting and (changed or vanished):
        # Refused for the quota before; now there may be room.
        changed += waiting
        skipped = [entry for entry in skipped if entry.reason != "quota"]
    for path in (*_files_that_tell(skipped), *_rule_files_above(root), *filter(None, parts)):
        folders[path] = changed_ns_at(f"{root}/{path}")
    sure = {path: changed_at if changed_at < settled_ns else NEVER for path, changed_at in folders.items()}
    return Survey(changed, vanished, unchanged, skipped, known, sure)


def _marks(store: TruthStore, options: IndexOptions) -> tuple[dict[str, Fingerprint], dict[str, SkippedPath]]:
    """The marks of indexed files, unknown where they would give another document today, and refusals that may hold."""
    known, refused = store.fingerprints(), store.refusals()
    if store.get_meta("made_by") != options.made_by:
        return dict.fromkeys(known, UNKNOWN), {}
    # Extractors that have changed give other text today.
    before = set((store.get_meta("formats") or "").split())
    outdated = {entry.partition(":")[0] for entry in set(VERSIONS.split()) - before}
    if outdated:
        known.update(dict.fromkeys([path for path in known if _lang(path) in outdated], UNKNOWN))
        refused = {path: refusal for path, refusal in refused.items() if _lang(path) not in outdated}
    if store.get_meta("limits") != options.limits:
        refused = {path: refusal for path, refusal in refused.items() if refusal.reason not in _BEYOND_LIMITS}
    return known, refused


def _still_holds(refusal: SkippedPath, found: FoundFile, root: Path) -> bool:
    """Whether a file that was refused would be refused again."""
    if (refusal.size, refusal.changed_ns) != (found.size, found.changed_ns):
        return False
    if refusal.reason == "unreadable":
        return not os.access(f"{root}/{found.path}", os.R_OK)
    return refusal.reason not in TRIED_AGAIN


def _lang(path: str) -> str:
    return file_type(path.rpartition("/")[2]).lang


def _files_that_tell(skipped: list[SkippedPath]) -> list[str]:
    """Files whose content counts although they are left out: it may become text, or holds rules for others."""
    return [
        entry.path
        for entry in skipped
        if entry.reason in _HELD_BACK_BY_SIZE or entry.path.rpartition("/")[2] in IGNORE_FILES
    ]


def _rule_files_above(root: Path) -> list[str]:
    """The ignore files above the tree that hold for it, whether or not they exist."""
    files: list[str] = []
    for depth, folder in enumerate((root, *root.parents)):
        up = "../" * depth
        files += [up + name for name in IGNORE_FILES if depth]
        if (folder / ".git").exists():
            return [*files, f"{up}.git/info/exclude"]
    return []  # no repository, and only the rules of a repository reach down


def _out_of_sight(paths: set[str], skipped: list[SkippedPath]) -> set[str]:
    """The paths that could not be read this time: an unmounted or locked folder deletes nothing."""
    unreadable = [entry.path for entry in skipped if entry.reason == "unreadable"]
    if "./" in unreadable:
        return paths
    prefixes = tuple(path for path in unreadable if path.endswith("/"))
    return {path for path in paths if path in unreadable or (prefixes and path.startswith(prefixes))}
