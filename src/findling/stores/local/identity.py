"""Opening the truth of a workspace, and its identity beside it: which store it is, how far it has come, what it holds.

Whoever has written the store notes it. An open that finds less than was noted is an error: a store that was emptied,
deleted, set back or exchanged must never pass for a new one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from findling.domain.errors import DiskFullError, StoreDamagedError
from findling.domain.ports import TruthStore
from findling.stores.local.layout import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE
from findling.stores.sqlite.store import SqliteStore

__all__ = [
    "NO_WAY_BACK",
    "Identity",
    "describe_loss",
    "find_way_back",
    "forget_identity",
    "identity_problem",
    "note_identity",
    "open_store",
    "put_store_aside",
    "read_identity",
    "store_bytes",
]

NO_WAY_BACK = "findling index --rebuild"
"""What is left to do when a store is damaged and no snapshot was made."""

_SIGNS = ("manifest.json", "snapshots", "keyword/meta.json", "keyword-page/meta.json")
"""What lies beside a store alone: where one of them is, there was a store."""


class Identity(NamedTuple):
    """What was noted of a store: its id, the number of its latest change, and how much of each kind is no file."""

    store_id: str
    seq: int
    holds: Mapping[str, int]


def open_store(folder: Path, *, accepts_older: bool, auto_bytes: int) -> tuple[SqliteStore, DiskFullError | None]:
    """The store, read-only where it cannot be written, and what a full disk says about writing it.

    Raises StoreDamagedError for one that is damaged or not what it was.
    """
    path, way_back = folder / STORE_FILE, partial(find_way_back, folder)
    readonly = not (os.access(path, os.W_OK) and os.access(folder, os.W_OK))
    before = partial(_save_before_migration, folder, auto_bytes)
    no_room: DiskFullError | None = None
    try:
        store = SqliteStore.open(path, readonly=readonly, way_back=way_back, before_migration=before)
    except DiskFullError as error:
        # What tells about its log takes 32 kB; without a log it can be read all the same.
        no_room = error
        store = SqliteStore.open(path, readonly=True, way_back=way_back)
    if loss := describe_loss(folder, store, accepts_older=accepts_older):
        store.close()
        raise StoreDamagedError(loss, hint=way_back())
    return store, no_room


def store_bytes(folder: Path) -> int | None:
    """The size of the file; None when it is not there."""
    try:
        return (folder / STORE_FILE).stat().st_size
    except OSError:
        return None


def find_way_back(folder: Path) -> str:
    """What to run when the store is damaged: the latest snapshot is the first choice."""
    if not (folder / "snapshots").is_dir():
        return NO_WAY_BACK
    from findling.stores.local.snapshot_files import way_back

    return way_back(folder)


def read_identity(folder: Path) -> Identity | None:
    """What was noted; None when nothing was, or the note cannot be read: it is made anew with the next write."""
    with suppress(OSError, ValueError):
        text, _, noted = (folder / IDENTITY_FILE).read_bytes().rpartition(b"sum\t")
        if int(noted) == crc32(text):
            (_, store_id), (_, seq), *holds = (line.split("\t") for line in text.decode().splitlines())
            return Identity(store_id, int(seq), {kind: int(count) for kind, count in holds})
    return None


def note_identity(folder: Path, store: TruthStore) -> Identity:
    """Note what the store has come to, and return it. The caller holds the write lock.

    It is not brought to the disk at once, unlike the truth: what a power cut leaves of it knows less, which is no harm.
    """
    found = Identity(store.get_meta("store_id") or "", store.seq(), store.made_counts())
    if found == read_identity(folder):
        return found
    draft = folder / f".{IDENTITY_FILE}.new"
    # Plain lines, since every search reads them: the modules of JSON would take it 4 ms to load.
    rows = (("store", found.store_id), ("seq", found.seq), *sorted(found.holds.items()))
    text = "".join(f"{name}\t{value}\n" for name, value in rows).encode()
    # A full disk: what is there knows less, see above.
    with suppress(OSError):
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text + b"sum\t%d\n" % crc32(text))
        draft.replace(folder / IDENTITY_FILE)
    return found


def forget_identity(folder: Path) -> None:
    """Take the note away, before another store takes the place of the one it is about."""
    with suppress(OSError):
        (folder / IDENTITY_FILE).unlink(missing_ok=True)


def put_store_aside(folder: Path) -> Path | None:
    """Keep a damaged store under another name: some of what is in it alone may be had back. Where it is, if any."""
    from findling.stores.filesystem import FileErrors

    path, aside = folder / STORE_FILE, folder / DAMAGED_FILE
    had_store = path.exists() and path.stat().st_size > 0
    forget_identity(folder)
    with FileErrors(folder):
        # The log first: it must never be taken for one of the new store.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside if had_store else None


def describe_loss(folder: Path, store: TruthStore | None, *, accepts_older: bool = False) -> str:
    """What is missing of the store that was here, in one sentence; nothing when all that was noted is there.

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
        # A restore takes the note away, then puts another store in place.
        if noted == read_identity(folder):
            if own != noted.store_id:
                if _is_known_to_legs(folder, own):
                    return ""  # it is the note that is of another workspace; the next write makes it anew
                what = f"{path} is not the store of this workspace, says {IDENTITY_FILE} beside it"
                return f"{what}; that one is gone, and with it {_held(noted)}"
            lost = noted.seq - store.seq()
            return f"{path} is an older one: the latest {lost:,} changes are not in it; there was {_held(noted)}"
    return ""


def identity_problem(folder: Path) -> str:
    """Why the note cannot be used, if it is there and damaged."""
    is_there = (folder / IDENTITY_FILE).exists()
    return f"{folder / IDENTITY_FILE} is damaged; nothing is lost" if is_there and read_identity(folder) is None else ""


def _save_before_migration(folder: Path, auto_bytes: int) -> None:
    from findling.stores.local.auto_snapshots import save_before_migration

    save_before_migration(folder, auto_bytes)


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
