"""Freshness: a quick look that tells whether anything can have changed since the last survey."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.ports import SkippedPath, TruthStore
from findling.sources.user_rules import Rules

if TYPE_CHECKING:
    from findling.pipelines.surveying import Survey

__all__ = ["NEVER", "UNSURE_NS", "IndexOptions", "is_fresh", "mtime_ns_of", "remember"]

UNSURE_NS = 50_000_000
"""What changed this shortly before it was looked at may change again without its time changing."""

NEVER = -1
"""A time that nothing has: whatever carries it is looked at again."""

_DOCUMENTS = 1
"""Raised when reading, file types or chunking change: every file is then read again."""


class IndexOptions(NamedTuple):
    """How files become documents."""

    rules: Rules = Rules()
    chunk_size: int = 2400
    batch_bytes: int = 8 << 20

    @property
    def made_by(self) -> str:
        """What a document depends on besides its file."""
        return f"{_DOCUMENTS}|{self.chunk_size}"


def is_fresh(store: TruthStore, root: Path, options: IndexOptions) -> bool:
    """Whether certainly nothing has changed since the last survey: the question every search asks first.

    Every known file must have its size and time, and every folder its time, since a folder's time changes when a
    name in it comes or goes; so must files that were left out for what they hold. It costs less than half of a
    survey; False only means that a survey has to tell.
    """
    if store.get_meta("rules") != repr(options.rules) or store.get_meta("made_by") != options.made_by:
        return False
    base = f"{root}/"
    stat = os.stat
    if any(mtime_ns_of(base + path) != mtime_ns for path, mtime_ns in store.folders()):
        return False
    try:
        for path, size, mtime_ns in store.stamps():
            found = stat(base + path)
            if found.st_mtime_ns != mtime_ns or found.st_size != size:
                return False
    except OSError:
        return False
    return True


def remember(store: TruthStore, found: Survey, skipped: list[SkippedPath], options: IndexOptions) -> None:
    """Keep what `is_fresh` compares with, and the list of what was left out."""
    # A right that is given changes no time of change: what could not be read is tried again.
    refused = {entry.path: NEVER if entry.reason == "unreadable" else entry.mtime_ns for entry in skipped}
    store.set_skipped(skipped)
    store.set_folders({**found.folders, **{path: mtime_ns for path, mtime_ns in refused.items() if mtime_ns}})
    store.set_meta("rules", repr(options.rules))
    store.set_meta("made_by", options.made_by)


def mtime_ns_of(path: str) -> int:
    """When a path changed last; 0 when it is not there."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path costs more than the call
    except OSError:
        return 0
