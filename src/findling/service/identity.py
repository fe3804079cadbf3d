"""The identity of the truth, kept beside it: which store lies here, how far it has come, and what is in it alone.

Whoever has written the store notes it. An open that finds less than was noted is an error: a store that was emptied,
deleted, set back or exchanged must never pass for a new one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from findling.service.workspace import DAMAGED_FILE, IDENTITY_FILE, STORE_FILE

if TYPE_CHECKING:
    from findling.stores.sqlite import SqliteStore

__all__ = [
    "Identity",
    "describe_loss",
    "forget_identity",
    "identity_problem",
    "note_identity",
    "put_store_aside",
    "read_identity",
]

_SIGNS = ("manifest.json", "snapshots", "keyword/meta.json", "keyword-page/meta.json")
"""What lies beside a store alone: where one of them is, there was a store."""


class Identity(NamedTuple):
    """What was noted of a store: its id, the number of its latest change, and how much of each kind is no file."""

    store_id: str
    seq: int
    holds: Mapping[str, int]


def read_identity(folder: Path) -> Identity | None:
    """What was noted; None when nothing was, or the note cannot be read: it is made anew with the next write."""
    with suppress(OSError, ValueError):
        text, _, noted = (folder / IDENTITY_FILE).read_bytes().rpartition(b"sum\t")
        if int(noted) == crc32(text):
            (_, store_id), (_, seq), *holds = (line.split("\t") for line in text.decode().splitlines())
            return Identity(store_id, int(seq), {kind: int(count) for kind, count in holds})
    return None


def note_identity(folder: Path, store: SqliteStore) -> Identity:
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
    from findling.stores.sqlite_files import StoreErrors

    path, aside = folder / STORE_FILE, folder / DAMAGED_FILE
    had_store = path.exists() and path.stat().st_size > 0
    forget_identity(folder)
    with StoreErrors(folder):
        # The log first: it must never be taken for one of the new store.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside if had_store else None


def describe_loss(folder: Path, store: SqliteStore | None, *, accepts_older: bool = False) -> str:
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
                return f"{path} is not the store of this workspace; that one is gone, and with it {_held(noted)}"
            lost = noted.seq - store.seq()
            return f"{path} is an older one: the latest {lost:,} changes are not in it; there was {_held(noted)}"
    return ""


def identity_problem(folder: Path) -> str:
    """Why the note cannot be used, if it is there and damaged."""
    is_there = (folder / IDENTITY_FILE).exists()
    return f"{folder / IDENTITY_FILE} is damaged; nothing is lost" if is_there and read_identity(folder) is None else ""


def _held(noted: Identity | None) -> str:
    if noted is None:
        return "all that was in it and is no file"
    kinds = ", ".join(f"{count:,} of type {kind}" for kind, count in sorted(noted.holds.items()) if count)
    return f"what no file holds: {kinds}" if kinds else "nothing that the files do not hold"
