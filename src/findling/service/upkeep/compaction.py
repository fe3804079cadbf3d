"""Making a workspace smaller without changing what it answers, while others search it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import DiskFullError, LockedError, NotIndexedError, ReadOnlyError
from findling.pipelines.indexing.fanout import catch_up
from findling.service.index.access_log import AccessLog
from findling.service.index.embeddings import WorkspaceVectors, instant_embedder
from findling.service.index.index_files import OpenedWorkspace
from findling.service.settings.settings import Settings
from findling.service.workspace.backends import backend_at, require
from findling.service.workspace.writer_queue import LOCK_PATIENCE_S
from findling.stores.local import maintenance
from findling.stores.local.maintenance import measure_parts, remove_stale
from findling.stores.local.snapshot_files import sweep_if_idle

if TYPE_CHECKING:
    from findling.pipelines.retrieve.vector_retrieval import Meaning

__all__ = ["CompactReport", "compact", "compact_if_worthwhile", "is_worthwhile"]


def is_worthwhile(folder: Path, settings: Settings) -> bool:
    """Whether a good part of a workspace is unused; some 2 ms. Raises CorruptError for a store that cannot be read."""
    if not settings.get("compact.auto", True) or not backend_at(folder).capabilities.compact:
        return False
    return maintenance.is_worthwhile(folder, settings["keyword.unit"])


@dataclass(frozen=True, kw_only=True)
class CompactReport:
    """What compacting did: the bytes of every part before and after, and what was dropped, removed or rewritten."""

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
        """How much smaller the workspace is."""
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
    """Drop what nobody needs and rewrite the parts of which enough is unused, or with `full` every part.

    Accesses that recalls have noted are counted in. `drops_models` lets the vectors of former models go once the chosen
    one has read everything. Raises LockedError when another process keeps writing, ReadOnlyError, and DiskFullError
    when a rewrite finds no room; what had been done before then stays done, and nothing is lost.
    """
    started = time.monotonic()
    files.let_go_if_replaced()
    if not files.exists:
        raise NotIndexedError(f"{files.folder} holds no index yet", hint="findling index PATH")
    require(files.backend, "compact")
    before = measure_parts(files.folder)
    sweep_if_idle(files.folder)
    # Outside the lock, which it takes for each leg that has to catch up.
    meaning = vectors.meaning()
    run = _Run(files, vectors, settings, full)
    with files.writing(patience_s):
        files.sound_leg()
        vectors.writable()
        models = run.drop_models(meaning) if drops_models else ()
        dropped = files.store.drop_vectors()
        removed = files.limited_legs().drop_stale(files.store)
        removed += remove_stale(files.folder, store_id=run.store_id, unit=files.leg.unit, models=run.models(meaning))
        forgotten = maintenance.trim_changes(files.folder, run.store_id)
        AccessLog(files.folder).fold(files.store, set(files.store.rids()).__contains__)
        forgotten += maintenance.drop_wishes(files.folder, run.whole_model(meaning))
        rewritten = tuple(run.rewrite())
    # What is open is the state before; it was right, and is no longer needed.
    vectors.close()
    files.close()
    return CompactReport(
        before=before,
        after=measure_parts(files.folder),
        vectors_dropped=dropped,
        log_entries_dropped=forgotten,
        models_dropped=models,
        removed=tuple(removed),
        rewritten=rewritten,
        seconds=time.monotonic() - started,
    )


def compact_if_worthwhile(files: OpenedWorkspace, settings: Settings, vectors: WorkspaceVectors | None = None) -> bool:
    """Compact when that is worthwhile and nobody else is writing; tells whether it was done.

    The vectors of former models stay: some were paid for, and nobody has asked for them to go.
    """
    if not is_worthwhile(files.folder, settings):
        return False
    try:
        compact(files, vectors or WorkspaceVectors(files, settings), settings, drops_models=False, patience_s=0.0)
    except (DiskFullError, LockedError, ReadOnlyError):
        return False  # it was only an offer
    return True


class _Run:
    """One compaction. The caller holds the write lock."""

    def __init__(self, files: OpenedWorkspace, vectors: WorkspaceVectors, settings: Settings, full: bool) -> None:
        self._files = files
        self._vectors = vectors
        self._settings = settings
        self._full = full
        self.store_id = files.store.get_meta("store_id") or ""

    def models(self, meaning: Meaning) -> frozenset[str]:
        """The models whose vectors are searched, or may be."""
        serving = {space.embedder.fingerprint for space in meaning.spaces}
        instant = {instant_embedder().fingerprint} if self._settings["semantic.instant"] else set()
        return frozenset(self._files.store.models().keys() | serving | instant)

    def whole_model(self, meaning: Meaning) -> str:
        """The chosen model, if it has read everything; else nothing."""
        account = self._vectors.account()
        if not account["of"] or account["read"] < account["of"]:
            return ""
        serving = (space.embedder for space in meaning.spaces if space.leg.speed == "refined")
        return next((model.fingerprint for model in serving if model.name == account["model"]), "")

    def drop_models(self, meaning: Meaning) -> tuple[str, ...]:
        """Forget the vectors of models that no longer serve."""
        chosen = self.whole_model(meaning)
        if not chosen:
            return ()  # an earlier model may be serving until the chosen one has read as much
        former = sorted(self._files.store.models().keys() - {chosen})
        for model in former:
            self._files.store.drop_vectors(model)
        return tuple(former)

    def rewrite(self) -> Iterator[str]:
        """Rewrite what is worth it, and name it."""
        self._files.leg.close()
        return maintenance.rewrite_parts(
            self._files.folder,
            self.store_id,
            self._files.leg.unit,
            full=self._full,
            fill=partial(catch_up, self._files.store),
        )
