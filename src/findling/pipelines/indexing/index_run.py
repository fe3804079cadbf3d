"""Indexing: prepare and write what a survey found to differ, and nothing else.

Files are prepared by worker processes where that is safer or faster; one writer takes their results in order. Each
batch is durable by itself, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.reports import IndexProgress, IndexReport, Progress
from findling.domain.resources import Document, Fingerprint
from findling.pipelines.indexing.fanout import Legs
from findling.pipelines.indexing.freshness import IndexOptions, remember
from findling.pipelines.indexing.prepare import Job, Prepared, Task, file_rid, prepare
from findling.pipelines.indexing.survey import UNKNOWN, Survey
from findling.sources.documents.extracted import PARTIAL
from findling.sources.documents.table import FORMATS
from findling.sources.files.file_types import file_type
from findling.text.chunking.chunker import parses

__all__ = ["Admission", "update"]

_FIRST_BATCH_BYTES = 500_000
"""Text in the first batch of a run; each batch is four times as large as the one before, up to the largest."""

_FIRST_COMMIT_S, _COMMIT_BYTES = 5.0, 64_000_000
"""When a long run commits to the leg, so that searches meanwhile see what is there so far: after so many seconds, then
after three times as many, and so on, or after so much text."""

_SMALL_BYTES = 4_000_000
"""Plain text up to this much is prepared at once, in the time that starting workers would take."""

_TASK_BYTES, _TASK_FILES = 512_000, 200
"""How much one worker is asked to do at a time."""


def update(
    store: TruthStore,
    legs: Legs,
    root: Path,
    found: Survey,
    options: IndexOptions,
    on_progress: Progress | None = None,
    allowance: Admission | None = None,
) -> IndexReport:
    """Bring the index up to what the survey found. The legs are in step, and the caller holds the write lock.

    Raises WorkerError when a document has to be read and no process can be started for it.
    """
    # From here on what is stored is made as it is made today, or marked: a run that is stopped goes on where it was.
    store.touch({path: known for path, known in found.known.items() if known == UNKNOWN})
    for key in ("made_by", "formats"):
        store.set_meta(key, options.circumstances[key])
    return _Update(store, legs, root, found, options, on_progress, allowance).run()


class Admission(Protocol):
    """What says whether a document may come in."""

    def refusal(self, document: Document) -> str:
        """Why it may not, or nothing."""

    def free(self, rids: Iterable[str]) -> None:
        """These resources will be deleted when the run ends."""

    def measure(self) -> None:
        """A batch has been written."""


class _Update:
    """One run of `update`: its counters and the batch being gathered."""

    def __init__(
        self,
        store: TruthStore,
        legs: Legs,
        root: Path,
        found: Survey,
        options: IndexOptions,
        on_progress: Progress | None,
        allowance: Admission | None,
    ) -> None:
        self._allowance = allowance
        self._store, self._legs, self._root, self._found, self._options = store, legs, root, found, options
        self._on_progress = on_progress
        self._started = time.monotonic()
        self._deleted = [file_rid(path) for path in found.vanished]
        if allowance is not None:
            allowance.free(self._deleted)
        self._skipped = list(found.skipped)
        self._same: dict[str, Fingerprint] = {}
        self._total_bytes = sum(file.size for file in found.changed)
        self._done = self._failed = self._chunks = self._bytes = self._uncommitted = 0
        self._added = self._updated = self._partial = 0
        self._commit_at_s = _FIRST_COMMIT_S

    def run(self) -> IndexReport:
        for batch in self._batches():
            self._write(batch)
        self._finish()
        self._tell("done", "")
        return IndexReport(
            added=self._added,
            updated=self._updated,
            unchanged=self._found.unchanged + len(self._same),
            removed=len(self._deleted),
            failed=sum(1 for entry in self._skipped if entry.changed_ns and entry.reason != "quota"),
            partial=self._partial,
            chunks=self._chunks,
            bytes_read=self._bytes,
            seconds=time.monotonic() - self._started,
            skipped=dict(Counter(entry.reason for entry in self._skipped)),
        )

    def _batches(self) -> Iterator[list[Document]]:
        batch: list[Document] = []
        size, enough = 0, min(_FIRST_BATCH_BYTES, self._options.batch_bytes)
        for prepared in _prepare(self._job(), self._tasks(), self._options):
            self._done += 1
            self._bytes += prepared.bytes_read
            if prepared.document is not None and (why := self._refusal(prepared.document)):
                self._set_aside(_refused(prepared, why))
            elif prepared.document is not None:
                self._count(prepared.document)
                batch.append(prepared.document)
                size += len(prepared.document.text)
            else:
                self._set_aside(prepared)
            self._tell("index", prepared.path)
            if size >= enough:
                yield batch
                batch, size = [], 0
                enough = min(4 * enough, self._options.batch_bytes)
        if batch:
            yield batch

    def _refusal(self, document: Document) -> str:
        return self._allowance.refusal(document) if self._allowance is not None else ""

    def _job(self) -> Job:
        rules, options = self._options.rules, self._options
        return Job(
            str(self._root),
            rules.max_file_size,
            rules.max_document_size,
            options.max_text,
            options.plan,
            analyse=self._legs.analyses,
            embed=self._legs.embeds,
        )

    def _tasks(self) -> list[Task]:
        known = self._found.known
        return [
            Task(path, size, changed_ns, known[path].digest if path in known else b"")
            for path, size, changed_ns, _ in self._found.changed
        ]

    def _count(self, document: Document) -> None:
        if document.resource.path in self._found.known:
            self._updated += 1
        else:
            self._added += 1
        self._partial += not document.resource.fields.keys().isdisjoint(PARTIAL)
        self._chunks += len(document.chunks)

    def _set_aside(self, prepared: Prepared) -> None:
        """Note a file that gives no new document: it has not really changed, or it cannot be read."""
        path, refusal = prepared.path, prepared.skipped
        if prepared.unchanged is not None:
            self._same[path] = prepared.unchanged
        if refusal is not None:
            self._failed += refusal.reason != "quota"
            self._skipped.append(refusal)
            # What cannot be opened at the moment keeps what is known of it; what is no text any more does not.
            if path in self._found.known and refusal.reason != "unreadable":
                self._deleted.append(file_rid(path))

    def _write(self, batch: Iterable[Document], deleted: Iterable[str] = ()) -> None:
        changes = self._legs.write(batch, deleted)
        if self._allowance is not None:
            self._allowance.measure()
        self._uncommitted += sum(len(change.document.text) for change in changes if change.document)
        if self._uncommitted >= _COMMIT_BYTES or time.monotonic() - self._started >= self._commit_at_s:
            self._legs.commit()
            self._uncommitted = 0
            self._commit_at_s = 3 * (time.monotonic() - self._started)

    def _finish(self) -> None:
        # Deletions come last, so that a renamed file is never missing under both names.
        if self._deleted:
            self._write((), self._deleted)
        if self._same:
            self._store.touch(self._same)
        # The legs first: a workspace that says it is indexed can be searched.
        self._legs.commit()
        remember(self._store, self._found.folders, self._skipped, self._options)
        self._store.set_meta("indexed_at", repr(time.time()))

    def _tell(self, stage: str, path: str) -> None:
        if self._on_progress is not None:
            self._on_progress(
                IndexProgress(
                    stage=stage,
                    done=self._done,
                    total=len(self._found.changed),
                    chunks=self._chunks,
                    failed=self._failed,
                    bytes_read=self._bytes,
                    bytes_total=self._total_bytes,
                    seconds=time.monotonic() - self._started,
                    path=path,
                )
            )


def _refused(prepared: Prepared, why: str) -> Prepared:
    """A file that would be more than the workspace may hold; tried again when there is more room."""
    assert prepared.document is not None
    fingerprint = prepared.document.fingerprint or UNKNOWN
    skipped = SkippedPath(prepared.path, "quota", why, fingerprint.size, fingerprint.changed_ns)
    return prepared._replace(document=None, skipped=skipped)


def _prepare(job: Job, tasks: list[Task], options: IndexOptions) -> Iterator[Prepared]:
    """What becomes of the files, in their order: at once here, or by workers."""
    langs = [file_type(task.path.rpartition("/")[2]).lang for task in tasks]
    untrusted = [lang in FORMATS and FORMATS[lang].untrusted for lang in langs]
    is_little = options.workers == 1 or sum(task.size for task in tasks) <= _SMALL_BYTES
    if is_little and not any(untrusted) and not any(parses(options.plan, lang) for lang in set(langs)):
        yield from (prepare(job, task) for task in tasks)
        return
    from findling.pipelines.indexing.worker_process import Order
    from findling.pipelines.indexing.workers import available_cores, prepare_in_workers

    order = Order(job, options.max_seconds, options.max_memory)
    batches = list(_batched(tasks, untrusted))
    with closing(prepare_in_workers(order, batches, options.workers or available_cores())) as results:
        for batch in results:
            yield from batch


def _batched(tasks: list[Task], untrusted: list[bool]) -> Iterator[list[Task]]:
    """The tasks in batches; one that may go wrong is a batch of its own, so that the blame falls on it."""
    batch: list[Task] = []
    size = 0
    for task, alone in zip(tasks, untrusted, strict=True):
        if batch and (alone or size + task.size > _TASK_BYTES or len(batch) == _TASK_FILES):
            yield batch
            batch, size = [], 0
        if alone:
            yield [task]
        else:
            batch.append(task)
            size += task.size
    if batch:
        yield batch
