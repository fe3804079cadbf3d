"""The account behind `findling status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from findling.domain.ports import SkippedPath
from findling.domain.reports import Status
from findling.domain.resources import Resource
from findling.pipelines.searching import Legs
from findling.service.opened import OpenedWorkspace
from findling.service.vectors import WorkspaceVectors
from findling.service.whole_files import file_size
from findling.text.analysis import FINGERPRINT

__all__ = ["failures", "visible_counts", "workspace_status"]


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
        size_bytes=sum(map(file_size, files.folder.rglob("*"))),
        seq=store.seq(),
        keyword_seq=files.leg.seq(),
        indexed_at=float(indexed_at) if indexed_at else None,
        skipped=dict(Counter(entry.reason for entry in store.skipped())),
        format=store.format,
        analyzer=FINGERPRINT,
        meaning=vectors.account(),
    )


def visible_counts(legs: Legs) -> dict[str, Any]:
    """How much there is for the eyes of whoever the legs are for."""
    return {"resources": sum(1 for _ in legs.store.resources()), "chunks": legs.keyword.size()}


def failures(skipped: Iterable[SkippedPath], resources: Iterable[Resource]) -> list[SkippedPath]:
    """Of all that was left out, the files that could not be read; and those that were read in part."""
    from findling.sources.extraction.extracted import PARTIAL

    failed = [entry for entry in skipped if entry.changed_ns and entry.reason != "quota"]
    for resource in resources:
        if notes := [resource.fields[name] for name in PARTIAL if name in resource.fields]:
            failed.append(SkippedPath(resource.path or resource.rid, "read-in-part", "; ".join(notes)))
    return sorted(failed)
