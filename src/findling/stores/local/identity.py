"""The files of a workspace in a folder, and the identity of its truth store: id, latest change, and what is no file.

Every write notes the identity. A store that knows less than its note is an error: an emptied, deleted, older or
exchanged store must never pass for a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from findling.domain.errors import FindlingError
from findling.domain.ports import TruthStore

__all__ = [
    "DAMAGED_FILE",
    "EXACT",
    "GRAPH",
    "IDENTITY_FILE",
    "STORE_FILE",
    "VIEWS",
    "Identity",
    "describe_loss",
    "forget_identity",
    "identity_problem",
    "keyword_folder",
    "note_identity",
    "put_store_aside",
    "read_identity",
    "remove_drafts",
    "vector_folder",
]


STORE_FILE = "index.sqlite"
"""The truth of a workspace; a folder that holds it is a workspace."""

IDENTITY_FILE = "truth.txt"
"""The identity of the truth, noted beside it, so that a lost one is missed."""

DAMAGED_FILE = f"{STORE_FILE}.damaged"
"""A damaged store that another one has replaced."""

EXACT = "exact"
"""The folder of a workspace that holds the exact leg."""

GRAPH = "graph"
"""The folder of a workspace that holds the graph leg."""

VIEWS = "views"
"""The folder of a workspace that holds the keyword legs of callers."""


def keyword_folder(folder: Path, unit: str) -> Path:
    """The folder of the keyword leg; each unit has its own, so that a switch rebuilds nothing."""
    return folder / ("keyword" if unit == "chunk" else f"keyword-{unit}")


def vector_folder(folder: Path, model: str) -> Path:
    """The folder of a model's vectors; its header names the model."""
    from hashlib import blake2b  # 3 ms of OpenSSL that a search by words has no use for

    return folder / f"vectors-{blake2b(model.encode(), digest_size=6).hexdigest()}"


def remove_drafts(folder: Path) -> None:
    """Delete drafts of killed processes from a workspace. The caller holds its write lock."""
    for pattern in (".*.new", "keyword*/.tmp*", "keyword*/.*.new", "exact/.*.new", "graph/.*.new", "vectors-*/*.new"):
        for draft in folder.glob(pattern):
            with suppress(OSError):
                draft.unlink()


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


def forget_identity(folder: Path) -> None:
    """Delete the note, before another store replaces its own."""
    with suppress(OSError):
        (folder / IDENTITY_FILE).unlink(missing_ok=True)


def put_store_aside(folder: Path) -> Path | None:
    """Rename a damaged store, for recovery by hand; return its path, if there was one."""
    from findling.stores.filesystem import FileErrors

    path, aside = folder / STORE_FILE, folder / DAMAGED_FILE
    had_store = path.exists() and path.stat().st_size > 0
    forget_identity(folder)
    with FileErrors(folder):
        # The log first: it must never pass for one of the new store.
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside if had_store else None


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
