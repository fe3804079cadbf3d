"""Sample documents, a model of a leg, and the base of the suites that need a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest

from findling.domain.ports import Change, TruthStore
from findling.domain.resources import Chunk, Document, Fingerprint, Place, Resource

__all__ = [
    "AWKWARD",
    "EMPTY",
    "FULL",
    "HISTORY",
    "PLAIN",
    "LegModel",
    "StoreSuite",
    "cid_of",
    "cids_of",
    "held_by",
    "line_document",
    "stored_document",
    "vectors_of",
    "with_metadata",
]


class StoreSuite(ABC):
    """Tests that ask for a `store` get a new, empty one each."""

    @abstractmethod
    def make_store(self) -> TruthStore:
        """A new, empty store."""

    @pytest.fixture
    def store(self) -> TruthStore:
        """The store of one test."""
        return self.make_store()


def line_document(
    rid: str, lines: Sequence[str], *, fingerprint: Fingerprint | None = None, **metadata: Any
) -> Document:
    """A document with one chunk per line, its ids made as the contract of `Chunk` asks."""
    seen: dict[str, int] = {}
    chunks = []
    start = 0
    for ordinal, line in enumerate(lines):
        repeat = seen[line] = seen.get(line, -1) + 1
        cid = int.from_bytes(_digest(f"{rid}\0{line}\0{repeat}", 8), "big") >> 1
        end = start + len(line)
        chunks.append(Chunk(cid, _digest(line, 16), ordinal, start, end, ordinal + 1, ordinal + 1, ("Lines",)))
        start = end + 1
    return Document(Resource(rid=rid, **metadata), "\n".join(lines), tuple(chunks), fingerprint)


class LegModel:
    """A leg that does nothing but take notes: what it holds of every chunk, and the number it has absorbed."""

    def __init__(self) -> None:
        self.seq = 0
        self.held: dict[int, tuple[object, ...]] = {}

    def apply(self, changes: Iterable[Change]) -> None:
        """Drop, then add. A chunk must never be added on top of itself: a real leg would hold it twice."""
        for change in changes:
            for cid in change.dropped:
                self.held.pop(cid, None)
            noted = {} if change.document is None else _notes(change.document)
            assert change.added <= noted.keys(), "a change adds chunks that its document does not have"
            for cid in change.added:
                assert cid not in self.held, "a chunk was added twice"
                self.held[cid] = noted[cid]

    def catch_up(self, store: TruthStore) -> None:
        """Absorb what the store has done since, or everything when the log does not reach back far enough."""
        if self.seq < store.log_floor():
            self.seq, self.held = 0, {}
        self.apply(store.changes(self.seq))
        self.seq = store.seq()


def held_by(store: TruthStore) -> dict[int, tuple[object, ...]]:
    """The chunks of a leg that is up to date with the store."""
    notes: dict[int, tuple[object, ...]] = {}
    for rid in store.rids():
        notes |= _notes(stored_document(store, rid))
    return notes


def with_metadata(document: Document, **metadata: Any) -> Document:
    """The document with other metadata."""
    return document._replace(resource=replace(document.resource, **metadata))


def stored_document(store: TruthStore, rid: str) -> Document:
    """The document of a resource that the store must have."""
    document = store.document(rid)
    assert document is not None, f"{rid} is listed but cannot be loaded"
    return document


def vectors_of(document: Document, vector: bytes) -> dict[bytes, bytes]:
    """The same vector for every passage of the document, in the order of the text."""
    return {chunk.digest: vector for chunk in document.chunks}


def _notes(document: Document) -> dict[int, tuple[object, ...]]:
    return {
        chunk.cid: (document.resource, chunk.heading, document.text[chunk.start : chunk.end])
        for chunk in document.chunks
    }


def _digest(text: str, size: int) -> bytes:
    return blake2b(text.encode(), digest_size=size).digest()


PLAIN = line_document("p", ["one", "two", "two", "three"])
_FULL = line_document(
    "chat:7",
    ["Was ist entschieden?", "Nichts."],
    fingerprint=Fingerprint(28, 1_700_000_000_123_456_789, b"\x00\xff"),
    type="chat",
    title="Runde „Größe“",
    path="chats/7.md",
    author="Ana",
    lang="de",
    tags=("plan", 'mit "Zitat"', "日本"),
    visibility=("team:a", "user:ana"),
    created_at=1.25,
    updated_at=1_700_000_000.123456,
    fields={"status": "open", "ärger": "nein"},
)
_PLACES = (Place(0, "p. 1"), Place(4, "'Größe 2'!A7", 12), Place(21, "", 3))
FULL = _FULL._replace(
    chunks=(
        _FULL.chunks[0]._replace(places=_PLACES[:2]),
        _FULL.chunks[1]._replace(places=_PLACES[2:]),
    )
)
AWKWARD = line_document("awk\U0001f33b", ["crlf\r", "nul\0inside", "", "🌻 astral", "\ufeffbom", "\u2028"], title="\0")
EMPTY = line_document("e", [])

HISTORY: tuple[tuple[list[Document], list[str]], ...] = (
    ([line_document("a", ["1", "2", "3"]), line_document("b", ["1"])], []),
    ([line_document("a", ["2", "3", "4"])], []),
    ([line_document("a", ["2", "3", "4"], title="T")], []),
    ([line_document("c", ["1", "1", "1"])], ["b"]),
    ([line_document("a", ["1", "2", "3"], title="T")], []),
    ([line_document("b", ["1", "9"]), line_document("c", ["1"])], []),
    ([], ["a", "b", "c"]),
    ([line_document("a", ["1", "2", "3"])], []),
)


def cids_of(document: Document) -> list[int]:
    """The ids of all chunks."""
    return [chunk.cid for chunk in document.chunks]


def cid_of(document: Document, line: str) -> int:
    """The id of the chunk with this text."""
    (cid,) = (chunk.cid for chunk in document.chunks if document.text[chunk.start : chunk.end] == line)
    return cid
