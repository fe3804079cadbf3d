"""Compaction: a smaller workspace with the same answers, while others search it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from findling.domain.errors import DiskFullError, LockedError, NotIndexedError, ReadOnlyError
from findling.pipelines.indexing.fanout import catch_up
from findling.service.index.access_log import AccessLog
from findling.service.index.embeddings import WorkspaceVectors
from findling.service.index.index_files import OpenedWorkspace
from findling.service.index.lazy_legs import made_legs
from findling.service.index.model_choice import instant_embedder
from findling.service.settings.settings import Settings
from findling.service.workspace.backends import require
from findling.service.workspace.workspace import backend_at
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S, WriterQueue
from findling.stores.local import maintenance
from findling.stores.local.maintenance import measure_parts
from findling.stores.local.snapshot_files import sweep_if_idle

if TYPE_CHECKING:
    from findling.pipelines.retrieve.vector_retrieval import Space

_ATTENTION_S = 0.02
"""Pause between two looks whether somebody waits for the write lock."""


def is_worthwhile(folder: Path, settings: Settings) -> bool:
    """Whether a good part of a workspace is unused; some 2 ms. Raises CorruptError for a store that cannot be read."""
    if not settings.get("compact.auto", True) or not backend_at(folder).capabilities.compact:
        return False
    return maintenance.is_worthwhile(folder, settings["keyword.unit"])


@dataclass(frozen=True, kw_only=True)
class CompactReport:
    """The bytes of every part before and after a compaction, and what it dropped, removed or rewrote."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    vectors_dropped: int = 0
    log_entries_dropped: int = 0
    models_dropped: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def freed_bytes(self) -> int:
        """Bytes that the workspace is smaller by."""
        return sum(self.before.values()) - sum(self.after.values())


def compact(
    files: OpenedWorkspace,
    vectors: WorkspaceVectors,
    settings: Settings,
    *,
    full: bool = False,
    drops_models: bool = True,
    patience_s: float = LOCK_PATIENCE_S,
) -> CompactReport:
    """Drop unused data and rewrite the parts that are largely unused, or with `full` every part.

    Accesses of recalls are counted in. `drops_models` drops the vectors of former models once the chosen one has read
    everything. Raises LockedError, ReadOnlyError, or DiskFullError; the steps before it stay done, and nothing is lost.
    """
    started = time.monotonic()
    files.let_go_if_replaced()
    if not files.exists:
        raise NotIndexedError(f"{files.folder} holds no index yet", hint="findling index PATH")
    require(files.backend, "compact")
    before = measure_parts(files.folder)
    sweep_if_idle(files.folder)
    # Outside the lock, which it takes for each leg that has to catch up.
    spaces = vectors.level_all().spaces
    with files.queue.upkeep(patience_s), files.writing(patience_s):
        files.sound_leg()
        vectors.writable()
        for leg in made_legs(files):
            leg.level()
        dropped = _drop_unused(files, vectors, settings, spaces, drops_models=drops_models)
        store, place = files.store, (files.folder, files.store.get_meta("store_id") or "", files.unit)
        files.leg.close()
        rewritten = tuple(maintenance.rewrite_parts(*place, full=full, fill=partial(catch_up, store)))
    # The open files are those of the state before.
    vectors.close()
    files.close()
    after, seconds = measure_parts(files.folder), time.monotonic() - started
    return CompactReport(before=before, after=after, rewritten=rewritten, seconds=seconds, **dropped)


def _drop_unused(
    files: OpenedWorkspace,
    vectors: WorkspaceVectors,
    settings: Settings,
    spaces: Iterable[Space],
    *,
    drops_models: bool,
) -> dict[str, Any]:
    """Drop what no search needs any more; fields of the report tell of it. The caller holds the write lock."""
    store, folder = files.store, files.folder
    store_id = store.get_meta("store_id") or ""
    chosen = vectors.readers.whole(store)
    # An earlier model may serve until the chosen one has read as much.
    former = sorted(store.models().keys() - chosen) if drops_models and chosen else []
    for model in former:
        store.drop_vectors(model)
    dropped = store.drop_vectors()
    serving = store.models().keys() | {space.embedder.fingerprint for space in spaces}
    if settings["semantic.instant"]:
        serving |= {instant_embedder().fingerprint}
    removed = files.limited_legs().drop_stale(store)
    removed += maintenance.remove_stale(folder, store_id=store_id, unit=files.unit, models=frozenset(serving))
    forgotten = maintenance.trim_changes(folder, store_id)
    AccessLog(folder).fold(store, set(store.rids()).__contains__)
    forgotten += sum([maintenance.drop_wishes(folder, model) for model in sorted(chosen) or ("",)])
    return {
        "vectors_dropped": dropped,
        "log_entries_dropped": forgotten,
        "models_dropped": tuple(former),
        "removed": tuple(removed),
    }


@contextmanager
def ending_when_wanted(queue: WriterQueue) -> Iterator[None]:
    """Have this process end in the block once another one waits for the write lock, as a search does.

    What it was about to replace stays as it is, as after a kill; a later search starts it again.
    """
    done = threading.Event()

    def attend() -> None:
        while not done.wait(_ATTENTION_S):
            if queue.is_wanted():
                os._exit(1)

    attention = threading.Thread(target=attend, daemon=True)
    attention.start()
    try:
        yield
    finally:
        done.set()
        attention.join()


def compact_if_worthwhile(files: OpenedWorkspace, settings: Settings) -> bool:
    """Check the files of legs, and compact when that is worthwhile and nobody else is writing; whether it did.

    The vectors of former models stay: some were paid for, and nobody has asked to drop them.
    """
    maintenance.check_legs(files.folder)
    if not is_worthwhile(files.folder, settings):
        return False
    try:
        compact(files, WorkspaceVectors(files, settings), settings, drops_models=False, patience_s=0.0)
    except (DiskFullError, LockedError, ReadOnlyError):
        return False  # it was only an offer
    return True
