"""Indexing: read, chunk and write what a survey found to differ, and nothing else.

Each batch is durable by itself, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from findling.domain.ports import KeywordLeg, Progress, ProgressEvent, SkippedPath, TruthStore
from findling.domain.reports import IndexReport
from findling.domain.resources import Document, Fingerprint, Resource
from findling.pipelines.catching_up import catch_up
from findling.pipelines.documents import make_document
from findling.pipelines.freshness import NEVER, UNSURE_NS, IndexOptions, remember
from findling.pipelines.surveying import Survey
from findling.sources.discovery import FoundFile
from findling.sources.file_types import file_type
from findling.sources.reading import UnreadableError, read_text

__all__ = ["file_rid", "update"]

_FIRST_COMMIT_BYTES, _COMMIT_BYTES = 4_000_000, 64_000_000
"""Text between two commits of the leg while a long run goes on: searches meanwhile see what is there so far. It grows
fourfold from the first to the largest."""

_HEADED = frozenset({"markdown", "rst", "asciidoc", "org"})
"""Languages whose first heading is the title of the whole."""


def file_rid(path: str) -> str:
    """The resource id of a file, given its path below the workspace's root."""
    return f"file:{path}"


def update(
    store: TruthStore,
    leg: KeywordLeg,
    root: Path,
    found: Survey,
    options: IndexOptions,
    on_progress: Progress | None = None,
) -> IndexReport:
    """Bring the index up to what the survey found. The caller holds the write lock."""
    catch_up(store, leg)
    return _Update(store, leg, root, found, options, on_progress).run()


class _Update:
    """One run of `update`: its counters and the batch being gathered."""

    def __init__(
        self,
        store: TruthStore,
        leg: KeywordLeg,
        root: Path,
        found: Survey,
        options: IndexOptions,
        on_progress: Progress | None,
    ) -> None:
        self._store, self._leg, self._root, self._found, self._options = store, leg, root, found, options
        self._on_progress = on_progress
        self._deleted = [file_rid(path) for path in found.vanished]
        self._skipped = list(found.skipped)
        self._same: dict[str, Fingerprint] = {}
        self._done = self._chunks = self._bytes = self._uncommitted = 0
        self._added = self._updated = 0
        self._commit_bytes = _FIRST_COMMIT_BYTES

    def run(self) -> IndexReport:
        started = time.monotonic()
        for batch in self._batches():
            self._write(batch)
        self._finish()
        self._tell("done", "")
        return IndexReport(
            added=self._added,
            updated=self._updated,
            unchanged=self._found.unchanged + len(self._same),
            removed=len(self._deleted),
            failed=sum(1 for entry in self._skipped if entry.mtime_ns),
            chunks=self._chunks,
            bytes_read=self._bytes,
            seconds=time.monotonic() - started,
            skipped=dict(Counter(entry.reason for entry in self._skipped)),
        )

    def _batches(self) -> Iterator[list[Document]]:
        batch: list[Document] = []
        size = 0
        for found in self._found.changed:
            document = self._read(found)
            self._done += 1
            self._tell("index", found.path)
            if document is not None:
                batch.append(document)
                size += len(document.text)
            if size >= self._options.batch_bytes:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _read(self, found: FoundFile) -> Document | None:
        """The document of a file; None when it cannot be read as text or has not really changed."""
        path = found.path
        known = self._found.known.get(path)
        try:
            file = read_text(f"{self._root}/{path}", self._options.rules.max_file_size)
        except UnreadableError as error:
            self._skipped.append(SkippedPath(path, error.reason, error.detail, found.size, found.mtime_ns))
            # What cannot be opened at the moment keeps what is known of it; what is no text any more does not.
            if known is not None and error.reason != "unreadable":
                self._deleted.append(file_rid(path))
            return None
        self._bytes += file.size
        # A file that has just been written may be written once more within one tick of the clock: -1 has it read again.
        mtime_ns = file.mtime_ns if abs(time.time_ns() - file.mtime_ns) > UNSURE_NS else NEVER
        fingerprint = Fingerprint(file.size, mtime_ns, file.digest)
        if known is not None and known.digest == file.digest:
            self._same[path] = fingerprint
            return None
        if known is None:
            self._added += 1
        else:
            self._updated += 1
        resource = Resource(
            rid=file_rid(path), path=path, lang=file_type(path.rpartition("/")[2]).lang, updated_at=file.mtime_ns / 1e9
        )
        document = make_document(resource, file.text, chunk_size=self._options.chunk_size, fingerprint=fingerprint)
        self._chunks += len(document.chunks)
        return _titled(document)

    def _write(self, batch: Iterable[Document], deleted: Iterable[str] = ()) -> None:
        changes = self._store.write(batch, deleted)
        self._leg.apply(changes)
        self._uncommitted += sum(len(change.document.text) for change in changes if change.document)
        if self._uncommitted >= self._commit_bytes:
            self._leg.commit(self._store.seq())
            self._uncommitted = 0
            self._commit_bytes = min(4 * self._commit_bytes, _COMMIT_BYTES)

    def _finish(self) -> None:
        # Deletions come last, so that a renamed file is never missing under both names.
        if self._deleted:
            self._write((), self._deleted)
        if self._same:
            self._store.touch(self._same)
        # The leg first: a workspace that says it is indexed can be searched.
        if self._leg.seq() != self._store.seq():
            self._leg.commit(self._store.seq())
        remember(self._store, self._found, self._skipped, self._options)
        self._store.set_meta("indexed_at", repr(time.time()))

    def _tell(self, stage: str, path: str) -> None:
        if self._on_progress is not None:
            total = len(self._found.changed)
            self._on_progress(ProgressEvent(stage, self._done, total, self._chunks, self._bytes, path))


def _titled(document: Document) -> Document:
    resource = document.resource
    if resource.lang not in _HEADED:
        return document
    title = next((chunk.heading[0] for chunk in document.chunks if chunk.heading), "")
    if not title:
        return document
    return document._replace(resource=replace(resource, title=title))
