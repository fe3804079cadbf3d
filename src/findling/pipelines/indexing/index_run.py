"""Indexing: prepare and write the files that a survey found to differ, and nothing else.

Worker processes prepare files where that is safer or faster; one writer takes their results in order. Each batch is
durable by itself, so that a stopped run continues where it was.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.reports import IndexProgress, IndexReport, Progress
from findling.domain.resources import Document, Fingerprint
from findling.pipelines.indexing.fanout import Legs
from findling.pipelines.indexing.freshness import UNKNOWN, IndexOptions, count_failed, count_reasons, remember
from findling.pipelines.indexing.prepare import Job, Prepared, Task, file_rid, prepare
from findling.pipelines.indexing.reading_order import LARGEST_FIRST, Patience, needs_process, touched_first
from findling.pipelines.indexing.survey import Survey
from findling.sources.documents.table import FORMATS
from findling.sources.extracted import PARTIAL
from findling.sources.files.file_types import file_type

_FIRST_BATCH_BYTES = 500_000
"""Text in the first batch of a run; each batch is four times as large as the one before, up to the largest."""

_TURN_S = 0.7
"""The longest turn that a batch should take: a note of another host waits for it, and is to be kept within 3 s."""

_FIRST_COMMIT_S, _COMMIT_BYTES = 5.0, 64_000_000
"""A long run commits the legs for searches meanwhile: after so many seconds, then after three times as many, and so on,
or after so much text."""

_RECENT = 500
"""Chunks of a later run that the model reads before all others: somebody has just written them."""

_LOOK_FOR_CIRCLES = 200_000
"""New objects between two looks of the garbage collector: some 2,000 files of code."""

_SMALL_BYTES = 4_000_000  # plain text up to this much is prepared at once, in the time that starting workers would take
_TASK_BYTES, _TASK_FILES = 512_000, 200  # the most that one worker is given at a time


class Admission(Protocol):
    """The limits of a workspace."""

    def refusal(self, document: Document) -> str:
        """The reason to refuse a document, or nothing."""

    def free(self, rids: Iterable[str]) -> None:
        """Count resources as gone: the run deletes them at its end."""

    def measure(self) -> None:
        """Measure the workspace after a batch."""


class Update:
    """One run that brings the index up to what a survey found: its counts and the batch being gathered.

    The legs are in step, and the caller holds the write lock. With `patience`, the run stops when that is over and
    stays open: it commits, and claims nothing about the tree.
    """

    def __init__(
        self,
        store: TruthStore,
        legs: Legs,
        root: Path,
        found: Survey,
        options: IndexOptions,
        on_progress: Progress | None,
        allowance: Admission,
        patience: Patience | None = None,
    ) -> None:
        self._store, self._legs, self._root, self._found, self._options = store, legs, root, found, options
        self._on_progress, self._allowance, self._patience = on_progress, allowance, patience
        self._started = time.monotonic()
        self._deleted = [file_rid(path) for path in found.vanished]
        allowance.free(self._deleted)
        self._skipped = list(found.skipped)
        self._same: dict[str, Fingerprint] = {}
        self._recent: list[int] = []
        self._total_bytes = sum(file.size for file in found.changed)
        self._done = self._failed = self._added = self._updated = self._partial = self._chunks = self._bytes = 0
        self._written, self._uncommitted, self._commit_at_s = 0, 0, _FIRST_COMMIT_S

    def run(self) -> IndexReport:
        """Carry it out. Raises WorkerError when a document needs a process of its own and none can be started."""
        # From here on stored documents are made as today, or marked, so that a stopped run continues where it was.
        self._store.touch({path: known for path, known in self._found.known.items() if known == UNKNOWN})
        for key in ("made_by", "formats"):
            self._store.set_meta(key, self._options.circumstances[key])
        self._legs.by_turns = True
        with _seldom_collected():
            for batch in self._batches():
                self._tell("write", "")
                self._write(batch)
                self._written = self._bytes
                self._tell("index", "")
        if self._patience is None:
            self._finish()
        else:
            self._legs.commit()
        self._tell("done", "")
        return IndexReport(
            added=self._added,
            updated=self._updated,
            unchanged=self._found.unchanged + len(self._same),
            removed=len(self._deleted),
            failed=count_failed(self._skipped),
            partial=self._partial,
            chunks=self._chunks,
            bytes_read=self._bytes,
            seconds=time.monotonic() - self._started,
            skipped=count_reasons(self._skipped),
        )

    def _batches(self) -> Iterator[list[Document]]:
        batch: list[Document] = []
        size, enough = 0, min(_FIRST_BATCH_BYTES, self._options.batch_bytes)
        beginning = 0 if self._patience is None else LARGEST_FIRST
        job = Job(str(self._root), self._options, self._legs.analyses, self._legs.embeds, beginning)
        is_over = self._patience.is_over if self._patience is not None else lambda: False
        for prepared in _prepare(job, self._tasks(), is_over):
            self._done += 1
            self._bytes += prepared.bytes_read
            if (document := self._admitted(prepared)) is not None:
                batch.append(document)
                size += len(document.text)
            self._tell("index", prepared.path)
            if size >= enough:
                yield batch
                batch, size = [], 0
                enough = min(
                    4 * enough, self._options.batch_bytes, round(enough * _TURN_S / (self._legs.turn_s or 0.01))
                )
        if batch:
            yield batch

    def _tasks(self) -> list[Task]:
        known = self._found.known
        ordered = self._found.changed if self._patience is not None else touched_first(self._found.changed)
        most = sys.maxsize if self._patience is None else LARGEST_FIRST
        return [
            Task(path, min(size, most), changed_ns, known[path].digest if path in known else b"")
            for path, size, changed_ns, _ in ordered
        ]

    def _admitted(self, prepared: Prepared) -> Document | None:
        """The document to write, counted; a file without one is noted: it is the same, or it cannot be indexed."""
        path, _, document, unchanged, refusal = prepared
        if document is not None and (why := self._allowance.refusal(document)):
            mark = document.fingerprint or UNKNOWN
            refusal = SkippedPath(path, "quota", why, mark.size, mark.changed_ns)
        if unchanged is not None:
            self._same[path] = unchanged
        if refusal is not None:
            self._failed += refusal.reason != "quota"
            self._skipped.append(refusal)
            # An unreadable file keeps its document for now; one that is no text any more does not.
            if path in self._found.known and refusal.reason != "unreadable":
                self._deleted.append(file_rid(path))
            return None
        if document is not None:
            is_known = path in self._found.known
            self._updated += is_known
            self._added += not is_known
            self._partial += not document.resource.fields.keys().isdisjoint(PARTIAL)
            self._chunks += len(document.chunks)
            if self._found.known and len(self._recent) <= _RECENT:
                self._recent += [chunk.cid for chunk in document.chunks]
        return document

    def _write(self, batch: Iterable[Document], deleted: Iterable[str] = ()) -> None:
        changes = self._legs.write(batch, deleted)
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
        if len(self._recent) <= _RECENT:
            self._store.want(self._recent)
        self._tell("commit", "")
        # The legs first: a workspace that says it is indexed can be searched.
        self._legs.commit()
        self._legs.take_turn()
        remember(self._store, self._found.folders, self._skipped, self._options)
        self._store.set_meta("indexed_at", repr(time.time()))

    def _tell(self, stage: str, path: str) -> None:
        if self._on_progress is not None:
            # Writing takes as long as reading: a file counts half when it is read.
            dealt_with = self._bytes if stage == "done" else (self._bytes + self._written) // 2
            counts = self._done, len(self._found.changed), self._chunks, self._failed, dealt_with, self._total_bytes
            self._on_progress(IndexProgress(stage, *counts, time.monotonic() - self._started, path))


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Have the garbage collector look seldom: batches are many tuples without circles, and a look passes over all."""
    before = gc.get_threshold()
    gc.set_threshold(_LOOK_FOR_CIRCLES, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _prepare(job: Job, tasks: list[Task], is_over: Callable[[], bool]) -> Iterator[Prepared]:
    """The outcome of every file until time is over: prepared by workers, or here when there is little.

    Of little, files that need a worker come last, and one worker begins at once.
    """
    plan, workers = job.options.plan, job.options.workers
    is_little = workers == 1 or sum(task.size for task in tasks) <= _SMALL_BYTES
    here = [task for task in tasks if is_little and not needs_process(plan, task.path, task.size)]
    apart = tasks if not here else [task for task in tasks if needs_process(plan, task.path, task.size)]
    if not apart:
        yield from _prepare_here(job, here, is_over)
        return
    from findling.pipelines.indexing.workers import available_cores, preparing

    # The writer and its threads keep a core busy with plain text; documents take ten times as long to read as to write.
    documents = sum(task.size for task in apart if _is_document(task))
    spare = 0 if 10 * documents > sum(task.size for task in apart) else 1
    crew = 1 if is_little else workers or max(1, available_cores() - spare)
    with preparing(job, list(_batched(apart)), crew) as results:
        yield from _prepare_here(job, here, is_over)
        for outcomes in results:
            if is_over():
                return
            yield from outcomes


def _prepare_here(job: Job, tasks: list[Task], is_over: Callable[[], bool]) -> Iterator[Prepared]:
    for task in tasks:
        if is_over():
            return
        yield prepare(job, task)


def _batched(tasks: list[Task]) -> Iterator[list[Task]]:
    """The tasks in batches; an untrusted one is a batch of its own, so that the blame falls on it."""
    batch: list[Task] = []
    size = 0
    for task in tasks:
        alone = _is_document(task)
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


def _is_document(task: Task) -> bool:
    """Whether a file has a parser that others have written, for content that anybody may have written."""
    lang = file_type(task.path.rpartition("/")[2]).lang
    return lang in FORMATS and FORMATS[lang].untrusted
