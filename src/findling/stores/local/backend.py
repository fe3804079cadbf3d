"""The local backend: the truth in SQLite, keyword legs in tantivy, vectors in files, all in one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from findling.domain.backends import EXACT, KEYWORD, VIEWS, BackendLock, Capabilities, StoreIdentity
from findling.domain.errors import DiskFullError, FindlingError, NotIndexedError, ReadOnlyError, StoreDamagedError
from findling.stores.local.legs import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE, folder_legs, forget_identity
from findling.stores.sqlite.connections import stamp_of
from findling.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from findling.domain.backends import LegStore
    from findling.domain.ports import TruthStore
    from findling.domain.reports import Check


class LocalLegs:
    """Legs and locks of `Backend` in a folder of this host; backends with a remote truth may inherit them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._legs = folder_legs(folder, self._prepare)
        self.legs: Mapping[str, LegStore[Any]] = self._legs

    def lock(self, name: str = "write") -> BackendLock:
        from findling.stores.lock import WriteLock

        return WriteLock(self.folder / f"{name}.lock")

    def listen(self) -> AbstractContextManager[Callable[[float], object]] | None:
        return None

    def drop_store(self) -> None:
        """Leave the truth to those who delete the folder."""

    def examine(self) -> Iterable[Check]:
        return ()

    def _prepare(self, folder: Path, owner: str) -> None:
        """Do nothing before a leg of this owner is opened: it is made here."""

    def offer_legs(self, store: TruthStore) -> None:
        """Leave nothing: nobody else derives legs from this truth."""

    def frozen(self, store: TruthStore) -> AbstractContextManager[TruthStore] | None:
        return None

    def settle(self, store: TruthStore) -> None:
        from findling.stores.keyword.segment_files import note_parts

        for folder in (*self._legs[KEYWORD].folders(), *self._legs[EXACT].folders()):
            note_parts(folder)
        if any((self.folder / "snapshots").glob(".*")):
            from findling.stores.local.snapshot_files import sweep_if_idle

            sweep_if_idle(self.folder)


class LocalBackend(LocalLegs):
    """Implements `Backend` in one folder. `snapshot_bytes` limits automatic snapshots."""

    capabilities = Capabilities(check=True, compact=True, snapshots=True, statistics="visible", vectors="ann")

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
        self._remove_drafts()
        if not (_store_bytes(self._files[0]) if anew else self.exists() and _store_bytes(self._files[0])):
            before()
            SqliteStore.open(self.folder / STORE_FILE).close()

    def _remove_drafts(self) -> None:
        """Delete drafts of killed processes; the lock is held. Callers' legs have a lock of their own."""
        places = [place for name, legs in self._legs.items() if name != VIEWS for place in legs.folders()]
        drafts = (place.glob(pattern) for place in places for pattern in ("*.new", ".tmp*"))
        for draft in chain(self.folder.glob(".*.new"), *drafts):
            with suppress(OSError):
                draft.unlink()

    def identify(self, store: TruthStore, *, accepts_older: bool = False) -> None:
        is_set_back = accepts_older and describe_loss(self.folder, store)
        if is_set_back or store.get_meta("store_id") is None:
            store.set_meta("store_id", os.urandom(8).hex())

    def forget_identity(self) -> None:
        forget_identity(self.folder)

    def put_store_aside(self) -> str | None:
        """Rename a damaged store, for recovery by hand; return its path, if there was one."""
        from findling.stores.filesystem import FileErrors

        path, aside = self.folder / STORE_FILE, self.folder / DAMAGED_FILE
        had_store = bool(_store_bytes(path))
        forget_identity(self.folder)
        with FileErrors(self.folder):
            # The log first: it must never pass for one of the new store.
            for suffix in ("-wal", "-shm", ""):
                with suppress(FileNotFoundError):
                    path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
        return str(aside) if had_store else None

    def version(self) -> Hashable:
        return tuple(map(stamp_of, self._files))

    def is_replaced(self) -> bool:
        try:
            found = self._files[0].stat()
        except (FileNotFoundError, NotADirectoryError):
            return bool(self._opened_file)
        except OSError:  # nobody may look, as in a folder that lost its rights: what is open serves on
            return False
        return self._opened_file != (found.st_dev, found.st_ino)

    def write_refusal(self) -> DiskFullError | None:
        return self._no_room

    def settle(self, store: TruthStore) -> None:
        super().settle(store)
        identity = note_identity(self.folder, store)
        if self.snapshot_bytes and any(identity.holds.values()):
            from findling.stores.local.snapshots import save_daily

            save_daily(self.folder, self.snapshot_bytes)

    def _file(self) -> tuple[int, ...]:
        return stamp_of(self._files[0])[:2]


def _way_back(folder: Path) -> str:
    """The command for a damaged store: restore the latest snapshot, or rebuild."""
    if not (folder / "snapshots").is_dir():
        return "findling index --rebuild"
    from findling.stores.local.snapshot_files import way_back

    return way_back(folder)


def _store_bytes(store: Path) -> int | None:
    """The size of the store; None when it is missing."""
    found = stamp_of(store)
    return found[-1] if found else None


_SIGNS = ("manifest.json", "snapshots", "keyword/meta.json", "keyword-page/meta.json")
"""Files that lie beside a store alone: each is a sign that there was one."""


class Identity(NamedTuple):
    """A note about a store: its id, the number of its latest change, and its counts of what is no file."""

    store_id: str
    seq: int
    holds: Mapping[str, int]


def read_identity(folder: Path) -> Identity | None:
    """The note; None when it is missing or unreadable, until the next write."""
    with suppress(OSError, ValueError):
        text, _, noted = (folder / IDENTITY_FILE).read_bytes().rpartition(b"sum\t")
        if int(noted) == crc32(text):
            (_, store_id), (_, seq), *holds = (line.split("\t") for line in text.decode().splitlines())
            return Identity(store_id, int(seq), {kind: int(count) for kind, count in holds})
    return None


def note_identity(folder: Path, store: TruthStore) -> Identity:
    """Note the identity of a store, and return it. The caller holds the write lock.

    The note is not synced: an older one after a power cut does no harm.
    """
    from findling.stores.filesystem import write_whole

    found = Identity(store.get_meta("store_id") or "", store.seq(), store.made_counts())
    if found == read_identity(folder):
        return found
    # Plain lines, since every search reads them: the modules of JSON would take it 4 ms to load.
    rows = (("store", found.store_id), ("seq", found.seq), *sorted(found.holds.items()))
    text = "".join(f"{name}\t{value}\n" for name, value in rows).encode()
    # On a full disk the old note stays, which knows less.
    with suppress(FindlingError, OSError):
        write_whole(folder / IDENTITY_FILE, text + b"sum\t%d\n" % crc32(text), durable=False)
    return found


def describe_loss(folder: Path, store: TruthStore | None, *, accepts_older: bool = False) -> str:
    """The loss of the store against its note, in one sentence; empty without one.

    `store` is None when the file is gone or empty. With `accepts_older`, a store of this workspace may know less.
    """
    path = folder / STORE_FILE
    if store is None:
        if not any((folder / sign).exists() for sign in (IDENTITY_FILE, *_SIGNS)):
            return ""
        # Made meanwhile by another process: its signs came after it.
        if path.exists() and path.stat().st_size:
            return ""
        return f"{path} is {'empty' if path.exists() else 'gone'}, and with it {_held(read_identity(folder))}"
    while (noted := read_identity(folder)) is not None:
        own = store.get_meta("store_id") or ""
        if own == noted.store_id and (accepts_older or store.seq() >= noted.seq):
            return ""
        # A restore deletes the note, then replaces the store.
        if noted == read_identity(folder):
            if own != noted.store_id:
                if _is_known_to_legs(folder, own):
                    return ""  # the note is that of another workspace; the next write corrects it
                what = f"{path} is not the store of this workspace, says {IDENTITY_FILE} beside it"
                return f"{what}; that one is gone, and with it {_held(noted)}"
            lost = noted.seq - store.seq()
            return f"{path} is an older one: its latest changes are missing: {lost:,}; there was {_held(noted)}"
    return ""


def identity_problem(folder: Path) -> str:
    """The problem of a damaged note; empty without one."""
    is_there = (folder / IDENTITY_FILE).exists()
    return f"{folder / IDENTITY_FILE} is damaged; nothing is lost" if is_there and read_identity(folder) is None else ""


def _is_known_to_legs(folder: Path, store_id: str) -> bool:
    """Whether the vectors beside a store were made from it."""
    with suppress(OSError):
        return any(f'"{store_id}|'.encode() in header.read_bytes() for header in folder.glob("vectors-*/header.json"))
    return False


def _held(noted: Identity | None) -> str:
    if noted is None:
        return "all that was in it and is no file"
    kinds = ", ".join(f"{count:,} of type {kind}" for kind, count in sorted(noted.holds.items()) if count)
    return f"what no file holds: {kinds}" if kinds else "nothing that the files do not hold"
