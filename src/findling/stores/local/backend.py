"""The local backend: the truth in SQLite, keyword legs in tantivy, vectors in files, all in one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.backends import Capabilities, StoreIdentity
from findling.domain.errors import CorruptError, DiskFullError, NotIndexedError, StoreDamagedError
from findling.stores.local.identity import (
    describe_loss,
    find_way_back,
    forget_identity,
    note_identity,
    open_store,
    put_store_aside,
    store_bytes,
)
from findling.stores.local.layout import STORE_FILE, VIEWS, keyword_folder, remove_drafts, vector_folder
from findling.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore
    from findling.stores.keyword.class_segments import ClassSegments
    from findling.stores.keyword.leg import TantivyLeg
    from findling.stores.lock import WriteLock
    from findling.stores.vectors.vector_matrix import VectorMatrix

__all__ = ["LocalBackend", "LocalLegs"]


class LocalLegs:
    """Legs and locks in a folder of this host. A backend whose truth lies elsewhere takes them over by inheritance."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lock(self, name: str = "write") -> WriteLock:
        """A lock between the processes of this host."""
        from findling.stores.lock import WriteLock

        return WriteLock(self.folder / f"{name}.lock")

    def keyword_leg(self, store_id: str, unit: str) -> TantivyLeg:
        """Open the keyword leg, empty when there is none of this store. Raises CorruptError."""
        from findling.stores.keyword.leg import TantivyLeg
        from findling.stores.keyword.segment_files import sampled_damage

        folder = keyword_folder(self.folder, unit)
        if damaged := sampled_damage(folder):
            what = f"{damaged} in the keyword leg {folder} is not what was written"
            raise CorruptError(what, hint="findling doctor --repair")
        return TantivyLeg.open(folder, store_id=store_id, unit=unit)

    def has_keyword_leg(self, unit: str) -> bool:
        """Whether there is a keyword leg, of whatever store or version."""
        return keyword_folder(self.folder, unit).exists()

    def discard_keyword_leg(self, unit: str) -> None:
        """Delete the keyword leg. The caller holds the write lock."""
        from findling.stores.keyword.leg import discard_leg

        discard_leg(keyword_folder(self.folder, unit))

    def limited_legs(self, store_id: str, unit: str) -> ClassSegments:
        """The keyword legs of callers with limited rights."""
        from findling.stores.keyword.class_segments import ClassSegments

        return ClassSegments(self.folder / VIEWS, store_id=store_id, unit=unit)

    def discard_limited_legs(self) -> None:
        """Delete the keyword legs of callers with limited rights."""
        from findling.stores.keyword.class_segments import discard_classes

        discard_classes(self.folder / VIEWS)

    def vector_table(self, store_id: str, model: str, dimensions: int) -> VectorMatrix:
        """Open the vectors of a model, empty when there are none of this store. Raises CorruptError."""
        from findling.stores.vectors.vector_files import GRAPH_FROM
        from findling.stores.vectors.vector_matrix import VectorMatrix

        folder, made_for = vector_folder(self.folder, model), f"{store_id}|{model}"
        return VectorMatrix.open(folder, made_for=made_for, dimensions=dimensions, graph_from=GRAPH_FROM)

    def discard_vectors(self, model: str | None = None) -> None:
        """Delete the table of a model, or of all. The caller holds the write lock."""
        from findling.stores.vectors.vector_matrix import discard_matrix

        for folder in self.folder.glob("vectors-*") if model is None else [vector_folder(self.folder, model)]:
            discard_matrix(folder)

    def damage(self) -> list[str]:
        """Files of keyword legs, those of callers among them, that are not what was written."""
        from findling.stores.keyword.class_files import SEGMENT
        from findling.stores.keyword.segment_files import damaged_parts

        folders = (*sorted(self.folder.glob("keyword*")), *sorted(self.folder.glob(f"{VIEWS}/*{SEGMENT}")))
        found = ((folder, damaged_parts(folder)) for folder in folders)
        return [f"{', '.join(wrong)} in {at}: not what was written; nothing is lost" for at, wrong in found if wrong]

    def settle(self, store: TruthStore) -> None:
        """Note the checksums of the keyword legs' files. The caller holds the write lock."""
        from findling.stores.keyword.segment_files import note_parts

        for folder in self.folder.glob("keyword*"):
            note_parts(folder)


class LocalBackend(LocalLegs):
    """Implements `Backend` in one folder. `snapshot_bytes` is how much automatic snapshots may take."""

    capabilities = Capabilities(check=True, compact=True, snapshots=True, statistics="visible", vectors="ann")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.url = folder.absolute().as_uri()
        self.snapshot_bytes = 0
        self._opened_file: tuple[int, ...] = ()
        self._no_room: DiskFullError | None = None

    def exists(self) -> bool:
        """Whether a truth store is there. Raises StoreDamagedError when there was one, and it is gone or empty."""
        size = store_bytes(self.folder)
        if not size and (loss := describe_loss(self.folder, None)):
            raise StoreDamagedError(loss, hint=find_way_back(self.folder))
        return size is not None

    def identity(self) -> StoreIdentity | None:
        """The id of the store and its latest change."""
        if not store_bytes(self.folder):
            return None
        with closing(self.open_store(readonly=True)) as store:
            store_id = store.get_meta("store_id")
            return StoreIdentity(store_id, store.seq()) if store_id else None

    def open_store(self, *, readonly: bool = False, accepts_older: bool = False) -> SqliteStore:
        """Open the truth; `readonly` opens it for a quick look, whatever was noted beside it."""
        if readonly:
            return SqliteStore.open(self.folder / STORE_FILE, readonly=True)
        if not self.exists():
            raise NotIndexedError(f"{self.folder} holds no index yet", hint="findling index PATH")
        self._opened_file = self._file()
        store, self._no_room = open_store(self.folder, accepts_older=accepts_older, auto_bytes=self.snapshot_bytes)
        return store

    def create_store(self, *, anew: bool = False, before: Callable[[], None] = lambda: None) -> None:
        """Create the truth store unless it is there. The caller holds the write lock."""
        remove_drafts(self.folder)
        if not (store_bytes(self.folder) if anew else self.exists() and store_bytes(self.folder)):
            before()
            SqliteStore.open(self.folder / STORE_FILE).close()

    def identify(self, store: TruthStore, *, accepts_older: bool = False) -> None:
        """Give a store an id, and another one when it knows less than it did."""
        is_set_back = accepts_older and describe_loss(self.folder, store)
        if is_set_back or store.get_meta("store_id") is None:
            store.set_meta("store_id", os.urandom(8).hex())

    def forget_identity(self) -> None:
        """Take the note of the identity away; the next write makes it again."""
        forget_identity(self.folder)

    def put_store_aside(self) -> str | None:
        """Keep a damaged store under another name, if there is one, and return its path."""
        aside = put_store_aside(self.folder)
        return None if aside is None else str(aside)

    def version(self) -> Hashable:
        """The inode, time and size of the store and of its log."""
        return tuple([_stamp(self.folder / (STORE_FILE + suffix)) for suffix in ("", "-wal")])

    def is_replaced(self) -> bool:
        """Whether another process has deleted or replaced the store since it was opened here."""
        return self._opened_file != self._file()

    def write_refusal(self) -> DiskFullError | None:
        """Why the opened store cannot be written, where it was opened to be read for lack of space."""
        return self._no_room

    def settle(self, store: TruthStore) -> None:
        """Note the identity of the store and the files of its legs; make the snapshot of the day."""
        super().settle(store)
        identity = note_identity(self.folder, store)
        if self.snapshot_bytes and any(identity.holds.values()):
            from findling.stores.local.auto_snapshots import save_daily

            save_daily(self.folder, self.snapshot_bytes)

    def _file(self) -> tuple[int, ...]:
        """The inode of the store, which tells it from another one at the same path."""
        return _stamp(self.folder / STORE_FILE)[:2]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
