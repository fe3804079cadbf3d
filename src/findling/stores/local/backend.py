"""The local backend: the truth in SQLite, keyword legs in tantivy, vectors in files, all in one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.backends import BackendLock, Capabilities, StoreIdentity
from findling.domain.errors import DiskFullError, NotIndexedError, ReadOnlyError, StoreDamagedError
from findling.stores.local.identity import (
    EXACT,
    GRAPH,
    STORE_FILE,
    VIEWS,
    describe_loss,
    forget_identity,
    keyword_folder,
    note_identity,
    put_store_aside,
    remove_drafts,
    vector_folder,
)
from findling.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from findling.domain.backends import GraphLeg, LimitedLegs, VectorTable
    from findling.domain.ports import ExactLeg, KeywordLeg, TruthStore
    from findling.domain.reports import Check

__all__ = ["LocalBackend", "LocalLegs"]


class LocalLegs:
    """Legs and locks of `Backend` in a folder of this host; backends with a remote truth may inherit them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lock(self, name: str = "write") -> BackendLock:
        from findling.stores.lock import WriteLock

        return WriteLock(self.folder / f"{name}.lock")

    def keyword_leg(self, store_id: str, unit: str) -> KeywordLeg:
        from findling.stores.keyword.leg import TantivyLeg
        from findling.stores.keyword.segment_files import DamageGuard

        folder = keyword_folder(self.folder, unit)
        DamageGuard(folder).check()
        return TantivyLeg.open(folder, store_id=store_id, unit=unit)

    def has_keyword_leg(self, unit: str) -> bool:
        return keyword_folder(self.folder, unit).exists()

    def keyword_seq(self, store_id: str, unit: str) -> int:
        from findling.stores.keyword.segment_files import made_for, read_state

        try:
            state = read_state(keyword_folder(self.folder, unit))
        except ValueError:
            return 0  # opening it reports the damage
        return state.seq if state is not None and state.note.made_for == made_for(store_id, unit) else 0

    def discard_keyword_leg(self, unit: str) -> None:
        from findling.stores.filesystem import discard

        discard(keyword_folder(self.folder, unit))

    def limited_legs(self, store_id: str, unit: str) -> LimitedLegs:
        from findling.stores.keyword.class_segments import ClassSegments

        return ClassSegments(self.folder / VIEWS, store_id=store_id, unit=unit)

    def discard_limited_legs(self) -> None:
        from findling.stores.keyword.class_segments import discard_classes

        discard_classes(self.folder / VIEWS)

    def vector_table(self, store_id: str, model: str, dimensions: int) -> VectorTable:
        from findling.stores.vectors.vector_matrix import VectorMatrix

        folder, made_for = vector_folder(self.folder, model), f"{store_id}|{model}"
        return VectorMatrix.open(folder, made_for=made_for, dimensions=dimensions)

    def vector_state(self, store_id: str, model: str) -> Mapping[str, int]:
        from findling.stores.vectors.vector_files import read_header

        header = read_header(vector_folder(self.folder, model))
        return header.state if header is not None and header.made_for == f"{store_id}|{model}" else {}

    def discard_vectors(self, model: str | None = None) -> None:
        from findling.stores.filesystem import discard

        for folder in self.folder.glob("vectors-*") if model is None else [vector_folder(self.folder, model)]:
            discard(folder)

    def exact_leg(self, store_id: str) -> ExactLeg:
        from findling.stores.keyword.exact_leg import TrigramLeg
        from findling.stores.keyword.segment_files import DamageGuard

        folder = self.folder / EXACT
        DamageGuard(folder, "exact leg").check()
        return TrigramLeg.open(folder, store_id=store_id)

    def has_exact_leg(self) -> bool:
        return (self.folder / EXACT).exists()

    def discard_exact_leg(self) -> None:
        from findling.stores.filesystem import discard

        discard(self.folder / EXACT)

    def graph_leg(self, store_id: str) -> GraphLeg:
        from findling.stores.graph.graph_leg import EntityGraph

        return EntityGraph.open(self.folder / GRAPH, store_id=store_id)

    def has_graph_leg(self) -> bool:
        return (self.folder / GRAPH).exists()

    def discard_graph_leg(self) -> None:
        from findling.stores.filesystem import discard

        discard(self.folder / GRAPH)

    def listen(self) -> AbstractContextManager[Callable[[float], object]] | None:
        return None

    def drop_store(self) -> None:
        """Leave the truth to those who delete the folder."""

    def examine(self) -> Iterable[Check]:
        return ()

    def damage(self) -> list[str]:
        from findling.stores.keyword.class_files import SEGMENT
        from findling.stores.keyword.segment_files import damaged_parts

        folders = (
            *sorted(self.folder.glob("keyword*")),
            self.folder / EXACT,
            *sorted(self.folder.glob(f"{VIEWS}/*{SEGMENT}")),
        )
        found = [(folder, damaged_parts(folder)) for folder in folders]
        if self.has_graph_leg():
            from findling.stores.graph.graph_file import damaged_columns

            found.append((self.folder / GRAPH, damaged_columns(self.folder / GRAPH)))
        return [f"{', '.join(wrong)} in {at}: not what was written; nothing is lost" for at, wrong in found if wrong]

    def frozen(self, store: TruthStore) -> AbstractContextManager[TruthStore] | None:
        return None

    def settle(self, store: TruthStore) -> None:
        from findling.stores.keyword.segment_files import note_parts

        for folder in (*self.folder.glob("keyword*"), self.folder / EXACT):
            note_parts(folder)
        if any((self.folder / "snapshots").glob(".*")):
            from findling.stores.local.snapshot_files import sweep_if_idle

            sweep_if_idle(self.folder)


class LocalBackend(LocalLegs):
    """Implements `Backend` in one folder. `snapshot_bytes` limits automatic snapshots."""

    capabilities = Capabilities(
        check=True, compact=True, snapshots=True, statistics="visible", vectors="ann", regex=True, graph=True
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.url = folder.absolute().as_uri()
        self.snapshot_bytes = 0
        # Every question looks at them five times, and to make a path takes longer than the look.
        self._files = folder / STORE_FILE, folder / f"{STORE_FILE}-wal"
        self._opened_file: tuple[int, ...] = ()
        self._no_room: DiskFullError | None = None

    def exists(self) -> bool:
        size = _store_bytes(self._files[0])
        if not size and (loss := describe_loss(self.folder, None)):
            raise StoreDamagedError(loss, hint=_way_back(self.folder))
        return size is not None

    def identity(self) -> StoreIdentity | None:
        if not _store_bytes(self._files[0]):
            return None
        with closing(self.open_store(readonly=True)) as store:
            store_id = store.get_meta("store_id")
            return StoreIdentity(store_id, store.seq()) if store_id else None

    def open_store(self, *, readonly: bool = False, accepts_older: bool = False) -> SqliteStore:
        if readonly:
            return SqliteStore.open(self.folder / STORE_FILE, readonly=True)
        if not self.exists():
            raise NotIndexedError(f"{self.folder} holds no index yet", hint="findling index PATH")
        self._opened_file = self._file()
        store = self._open_writable()
        if loss := describe_loss(self.folder, store, accepts_older=accepts_older):
            store.close()
            raise StoreDamagedError(loss, hint=_way_back(self.folder))
        return store

    def _open_writable(self) -> SqliteStore:
        """The store, read-only where it cannot be written."""
        path, way_back = self.folder / STORE_FILE, partial(_way_back, self.folder)
        readonly = not (os.access(path, os.W_OK) and os.access(self.folder, os.W_OK))
        self._no_room = None
        try:
            store = SqliteStore.open(path, readonly=readonly, way_back=way_back, before_migration=self._save)
            if readonly:
                store.refuse_writes(
                    ReadOnlyError(f"{path} cannot be written", hint="check the permissions of the workspace folder")
                )
            return store
        except DiskFullError as error:
            # The index of its log takes 32 kB; without a log the store can still be read.
            self._no_room = error
            store = SqliteStore.open(path, readonly=True, way_back=way_back)
            store.refuse_writes(error)
            return store

    def _save(self) -> None:
        from findling.stores.local.snapshots import save_before_migration

        save_before_migration(self.folder, self.snapshot_bytes)

    def create_store(self, *, anew: bool = False, before: Callable[[], None] = lambda: None) -> None:
        remove_drafts(self.folder)
        if not (_store_bytes(self._files[0]) if anew else self.exists() and _store_bytes(self._files[0])):
            before()
            SqliteStore.open(self.folder / STORE_FILE).close()

    def identify(self, store: TruthStore, *, accepts_older: bool = False) -> None:
        is_set_back = accepts_older and describe_loss(self.folder, store)
        if is_set_back or store.get_meta("store_id") is None:
            store.set_meta("store_id", os.urandom(8).hex())

    def forget_identity(self) -> None:
        forget_identity(self.folder)

    def put_store_aside(self) -> str | None:
        aside = put_store_aside(self.folder)
        return None if aside is None else str(aside)

    def version(self) -> Hashable:
        return tuple(map(_stamp, self._files))

    def is_replaced(self) -> bool:
        return self._opened_file != self._file()

    def write_refusal(self) -> DiskFullError | None:
        return self._no_room

    def settle(self, store: TruthStore) -> None:
        super().settle(store)
        identity = note_identity(self.folder, store)
        if self.snapshot_bytes and any(identity.holds.values()):
            from findling.stores.local.snapshots import save_daily

            save_daily(self.folder, self.snapshot_bytes)

    def _file(self) -> tuple[int, ...]:
        return _stamp(self._files[0])[:2]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _way_back(folder: Path) -> str:
    """The command for a damaged store: restore the latest snapshot, or rebuild."""
    if not (folder / "snapshots").is_dir():
        return "findling index --rebuild"
    from findling.stores.local.snapshot_files import way_back

    return way_back(folder)


def _store_bytes(store: Path) -> int | None:
    """The size of the store; None when it is missing."""
    try:
        return store.stat().st_size
    except OSError:
        return None
