"""Bringing back what lies beside the truth and is no leg: the manifest, and the legs of callers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from findling.domain.backends import VIEWS
from findling.domain.errors import ManifestError
from findling.domain.reports import IndexReport
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.lazy_legs import made_legs
from findling.service.workspace.manifest import MANIFEST_FILE, read_manifest, write_manifest
from findling.stores.filesystem import write_whole

if TYPE_CHECKING:
    from findling.service.index.embeddings import WorkspaceVectors

MANIFEST_COPY = "manifest"
"""Name of the small value that holds the manifest as it was with the latest write."""


def keep_manifest(files: OpenedWorkspace) -> None:
    """Keep a copy of the manifest in the truth. The caller holds the write lock."""
    try:
        read_manifest(files.folder)
        text = (files.folder / MANIFEST_FILE).read_text()
    except (OSError, ManifestError):
        return
    if files.store.get_meta(MANIFEST_COPY) != text:
        files.store.set_meta(MANIFEST_COPY, text)


def repair(files: OpenedWorkspace, vectors: WorkspaceVectors) -> IndexReport:
    """Make everything anew that is made from the truth. Raises as `OpenedWorkspace.writing` does."""
    started = time.monotonic()
    with files.writing():
        mend_notes(files)
        files.rebuild_leg()
        vectors.rebuild()
        for leg in made_legs(files):
            leg.level(anew=True)
    files.offer_legs()
    counts = files.store.counts()
    seconds = time.monotonic() - started
    return IndexReport(unchanged=counts["resources"], chunks=counts["chunks"], seconds=seconds)


def mend_notes(files: OpenedWorkspace) -> None:
    """Restore a damaged manifest as of the latest write, not shared; let notes and views be rebuilt.

    The caller holds the write lock.
    """
    try:
        read_manifest(files.folder)
    except ManifestError:
        write_whole(files.folder / MANIFEST_FILE, (files.store.get_meta(MANIFEST_COPY) or "").encode())
        try:
            # It may have been shared no longer since the copy was made.
            write_manifest(files.folder, shared=False)
        except ManifestError:
            (files.folder / MANIFEST_FILE).unlink()
            write_manifest(files.folder, root=files.store.get_meta("root") or None)
    files.backend.forget_identity()
    files.backend.legs[VIEWS].discard()
