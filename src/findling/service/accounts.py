"""The account behind `findling status`."""

from __future__ import annotations

import stat
from collections import Counter
from pathlib import Path

from findling.domain.reports import Status
from findling.service.opened import OpenedWorkspace
from findling.service.vectors import WorkspaceVectors
from findling.text.analysis import FINGERPRINT

__all__ = ["workspace_status"]


def workspace_status(files: OpenedWorkspace, vectors: WorkspaceVectors, root: Path) -> Status:
    """What a workspace holds, and how far its legs have come."""
    store = files.store
    counts = store.counts()
    indexed_at = store.get_meta("indexed_at")
    return Status(
        root=root,
        home=files.folder,
        resources=counts["resources"],
        chunks=counts["chunks"],
        characters=counts["characters"],
        size_bytes=sum(map(_size, files.folder.rglob("*"))),
        seq=store.seq(),
        keyword_seq=files.leg.seq(),
        indexed_at=float(indexed_at) if indexed_at else None,
        skipped=dict(Counter(entry.reason for entry in store.skipped())),
        format=store.format,
        analyzer=FINGERPRINT,
        meaning=vectors.account(),
    )


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except FileNotFoundError:  # another process is writing
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
