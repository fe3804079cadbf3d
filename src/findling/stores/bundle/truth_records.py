"""The records of a truth as a stream: what a store or a bundle gives, and what a copy takes in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol

from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import Document, Resource
from findling.domain.strangers import BUNDLE_KEPT, BUNDLE_KEPT_OF_MODEL
from findling.stores.validation import NEVER, batched

MaySee = Callable[[Resource], bool]

_ROWS = 1024
"""Vectors and small rows that are read at once."""

_IN_USE = ("canonical", "alias", "protected")  # the terms that searches use; others may come from hidden texts


class VectorRecord(NamedTuple):
    """A vector as stores keep it, with the digest of what it was made from and the name of a chunk that has it."""

    model: str
    digest: bytes
    vector: bytes
    chunk: str


class SeenBefore(NamedTuple):
    """The latest indexing run of a truth: small values about its circumstances, folders with times, skipped paths."""

    kept: Mapping[str, str]
    folders: Mapping[str, int]
    skipped: Sequence[SkippedPath]


class TruthRecords(Protocol):
    """All content of a truth. Documents and vectors come in the order of their changes, in which legs absorb them."""

    def order(self) -> Sequence[str]:
        """The ids in the order of their numbers, where that of the documents is another one; else nothing."""

    def documents(self) -> Iterable[Document]:
        """The resources with texts and chunks."""

    def vectors(self) -> Iterable[VectorRecord]:
        """The vectors, those of one model after the other."""

    def glossary(self) -> Iterable[GlossaryTerm]:
        """The terms of the glossary."""

    def relations(self) -> Iterable[Relation]:
        """The rights and memberships."""

    def accesses(self) -> Iterable[tuple[str, Access]]:
        """The accesses by the ids of resources."""

    def survey(self) -> SeenBefore | None:
        """The latest indexing run, where it is known."""


class StoreRecords:
    """Implements `TruthRecords` for a store, to which nobody must write meanwhile. `keys` are the small values to give.

    With `may_see` it gives the resources for which that is true, and nothing about others: no relations, no lists of
    readers, no skipped paths, only glossary terms in use.
    """

    def __init__(self, store: TruthStore, keys: Iterable[str] = BUNDLE_KEPT, may_see: MaySee | None = None) -> None:
        self._store, self._keys = store, keys
        self.is_whole = may_see is None
        rights = store.rights()
        if may_see is not None:
            seen = {resource.rid for resource in store.resources() if may_see(resource)}
            rights = [right for right in rights if right.rid in seen]
        self._numbers = {right.number for right in rights}
        self.rids = [right.rid for right in rights]
        self._is_in_order = all(a.seq < b.seq for a, b in pairwise(rights))

    def order(self) -> Sequence[str]:
        return () if self._is_in_order else self.rids

    def documents(self) -> Iterator[Document]:
        for change in self._store.changes(0):
            document = change.document
            if document is not None and change.number in self._numbers:
                yield document if self.is_whole else _without_owner(document)

    def vectors(self) -> Iterator[VectorRecord]:
        """The vectors in the order of their marks, so that a copy gives marks in the same order.

        Marks tell of hidden texts that are equal: what somebody sees comes in the order of its ids.
        """
        for model in self._store.models():
            yield from self._in_order_of_marks(model) if self.is_whole else self._in_order_of_ids(model)

    def _in_order_of_marks(self, model: str) -> Iterator[VectorRecord]:
        for rows in batched(self._store.vector_rows(model, 0), _ROWS):
            stored = self._store.chunks([row.cid for row in rows])
            for found, row in ((stored[row.cid], row) for row in rows if row.cid in stored):
                yield VectorRecord(model, found.chunk.digest, row.vector, chunk_name(found.resource, row.cid))

    def _in_order_of_ids(self, model: str) -> Iterator[VectorRecord]:
        for rid in sorted(self.rids, key=lambda rid: f"{rid}:"):
            document = self._store.document(rid)
            chunks = sorted(document.chunks, key=attrgetter("cid")) if document is not None else []
            known = self._store.vectors(model, [chunk.digest for chunk in chunks])
            for chunk in chunks:
                if document is not None and chunk.digest in known:
                    name = chunk_name(document.resource, chunk.cid)
                    yield VectorRecord(model, chunk.digest, known[chunk.digest], name)

    def glossary(self) -> Iterator[GlossaryTerm]:
        for term in self._store.glossary():
            if self.is_whole:
                yield term
            elif term.status in _IN_USE:
                yield term._replace(source="", snippet="")

    def relations(self) -> list[Relation]:
        return self._store.relations() if self.is_whole else []

    def accesses(self) -> Iterator[tuple[str, Access]]:
        for rids in batched(sorted(self.rids), _ROWS):
            yield from sorted(self._store.accesses(rids).items())

    def survey(self) -> SeenBefore:
        if not self.is_whole:
            return SeenBefore({}, {}, [])
        keys = (*self._keys, *(BUNDLE_KEPT_OF_MODEL + model for model in self._store.models()))
        kept = {key: value for key in keys if (value := self._store.get_meta(key)) is not None}
        return SeenBefore(kept, dict(sorted(self._store.folders())), self._store.skipped())


def chunk_name(resource: Resource, cid: int) -> str:
    """The name of a chunk in a bundle."""
    return f"{resource.rid}:{cid:016x}"


def _without_owner(document: Document) -> Document:
    """The document without its list of readers, and without traces of the owner's disk: inode and time of change."""
    mark = document.fingerprint
    return document._replace(
        resource=replace(document.resource, visibility=None),
        fingerprint=None if mark is None else mark._replace(changed_ns=NEVER, inode=0),
    )
