"""Freshness: a quick check whether anything can have changed since the last survey, and the report that nothing has."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.resources import Fingerprint
from findling.sources.documents.table import VERSIONS
from findling.sources.files.file_text import changed_ns, changed_ns_at, inode_of
from findling.sources.files.rule_patterns import Rules
from findling.stores.validation import NEVER
from findling.text.chunking.chunk_plan import PRESETS, ChunkPlan

if TYPE_CHECKING:
    from findling.domain.reports import IndexReport, Progress

Stamp = tuple[str, int, int, int]
"""Path, size, time of change and inode of a file, as a store keeps them."""

UNSURE_NS = 50_000_000
"""A file that changed this shortly before a look may change again within the same tick."""

UNKNOWN = Fingerprint(0, NEVER)
"""The fingerprint of a file that has to be read again."""

TRIED_AGAIN = frozenset({"killed", "missing-library"})
"""Reasons that may be gone although the file is the same: every run reads such files again."""

_DOCUMENTS = 5
"""Raised when file types or chunking change; every file is read again. Formats have versions of their own."""


class IndexOptions(NamedTuple):
    """The way from files to documents: which ones, how they are cut, and the cost of reading.

    `workers` is the number of processes that prepare files, 0 for as many as pay. `max_seconds`, `max_memory`
    and `max_text` hold for one document, `quota` for the workspace.
    """

    rules: Rules = Rules()
    plan: ChunkPlan = PRESETS["default"]
    max_text: int = 16 << 20
    batch_bytes: int = 8 << 20
    workers: int = 0
    max_seconds: float = 60.0
    max_memory: int = 1 << 30
    quota: tuple[int, ...] = ()

    @property
    def made_by(self) -> str:
        """The options that every document depends on."""
        return f"{_DOCUMENTS}|{'|'.join(map(str, self.plan))}|{self.max_text}"

    @property
    def limits(self) -> str:
        """The limits of a document as text."""
        return f"{self.max_seconds:g} s, {self.max_memory} bytes{self.quota if any(self.quota) else ''}"

    @property
    def circumstances(self) -> dict[str, str]:
        """Everything that an index depends on besides the files, as it is kept with the index."""
        return {"rules": repr(self.rules), "made_by": self.made_by, "formats": VERSIONS, "limits": self.limits}


def is_fresh(store: TruthStore, root: Path, options: IndexOptions, shared: list[Stamp] | None = None) -> bool:
    """Whether certainly nothing has changed since the last survey; every search asks this first.

    Every known file must have its size, time and inode, every folder and every refused file its time. The check costs
    less than half of a survey, and only a survey can tell after False. `shared` receives the files that have other
    names, too.
    """
    if not has_same_rules(store, options):
        return False
    base, stat = f"{root}/", os.stat
    if any(changed_ns_at(base + path) != changed for path, changed in store.folders()):
        return False
    try:
        for stamp in store.stamps():
            path, size, changed, inode = stamp
            found = stat(base + path)
            if changed_ns(found) != changed or found.st_size != size or inode not in (0, inode_of(found)):
                return False
            if shared is not None and found.st_nlink != 1:
                shared.append(stamp)
    except OSError:
        return False
    return True


looker: Callable[[TruthStore, Path, IndexOptions], bool] | None = None
"""The look of a process that has a watch from others: of a fork of the warm process."""


def first_look(store: TruthStore, root: Path, options: IndexOptions) -> bool:
    """Whether certainly nothing has changed, as `is_fresh` says it, for a process that looks for the first time."""
    return (looker or is_fresh)(store, root, options)


def has_same_rules(store: TruthStore, options: IndexOptions) -> bool:
    """Whether an index depends on the same options as today's."""
    return all(store.get_meta(key) == value for key, value in options.circumstances.items())


def remember(store: TruthStore, folders: Mapping[str, int], skipped: list[SkippedPath], options: IndexOptions) -> None:
    """Keep the values that `is_fresh` compares with, and the list of skipped paths."""
    # A new right changes no time of change, so unreadable files are tried again.
    refused = {entry.path: NEVER if entry.reason == "unreadable" else entry.changed_ns for entry in skipped}
    store.set_skipped(skipped)
    store.set_folders({**folders, **{path: changed for path, changed in refused.items() if changed}})
    for key, value in options.circumstances.items():
        store.set_meta(key, value)


def settle(store: TruthStore, unchanged: int, skipped: list[SkippedPath], on_progress: Progress | None) -> IndexReport:
    """Note that there is nothing to do. The legs are in step, and the caller holds the write lock."""
    from findling.domain.reports import IndexProgress, IndexReport  # no search needs them

    store.set_meta("indexed_at", repr(time.time()))
    if on_progress is not None:
        on_progress(IndexProgress("done"))
    return IndexReport(unchanged=unchanged, failed=count_failed(skipped), skipped=count_reasons(skipped))


def count_failed(skipped: list[SkippedPath]) -> int:
    """The files that were opened and could not be indexed."""
    return sum(1 for entry in skipped if entry.changed_ns and entry.reason != "quota")


def count_reasons(skipped: list[SkippedPath]) -> dict[str, int]:
    """The number of paths that each reason has kept out."""
    return dict(Counter(entry.reason for entry in skipped))
