"""The truth store in plain dictionaries: small enough to be read as the definition of what a store does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, LockedError
from findling.domain.permissions import Right
from findling.domain.ports import Change, SkippedPath, VectorRow
from findling.domain.queries import Filters
from findling.domain.resources import Chunk, Document, Fingerprint, Resource, StoredChunk
from findling.stores.filtering import passes
from findling.stores.validation import (
    MOST_WISHES,
    check_document,
    predecessor,
    vector_width,
)
from findling.testing.reference.memory_records import MemoryRecords

__all__ = ["MemoryStore"]


@dataclass
class _State:
    """Everything that one write changes. `added_at` and `dropped_at` hold, for each chunk, the latest such change.

    A resource has the number of the change that brought it.
    """

    seq: int = 0
    documents: dict[str, Document] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    changed_at: dict[str, int] = field(default_factory=dict)
    rid_of: dict[int, str] = field(default_factory=dict)
    added_at: dict[int, int] = field(default_factory=dict)
    dropped_at: dict[int, tuple[str, int]] = field(default_factory=dict)
    deleted_at: dict[str, int] = field(default_factory=dict)
    wanted: list[int] = field(default_factory=list)

    def copy(self) -> _State:
        return replace(self, **{name: copy(value) for name, value in vars(self).items()})


class _Vector(NamedTuple):
    mark: int
    vector: bytes


class MemoryStore(MemoryRecords):
    """Implements `TruthStore`; keeps nothing when the process ends."""

    def __init__(self) -> None:
        super().__init__()
        self._state = _State()
        self._log_floor = 0
        self._skipped: list[SkippedPath] = []
        self._folders: dict[str, int] = {}
        self._meta: dict[str, str] = {}
        self._vectors: dict[str, dict[bytes, _Vector]] = {}
        self._mark = 0

    def seq(self) -> int:
        """The number of the latest change; 0 for an empty store."""
        return self._state.seq

    def log_floor(self) -> int:
        """A leg that has absorbed less than this cannot catch up from `changes` and starts from nothing."""
        return self._log_floor

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        """Upsert the documents, then delete the resources: on a copy, which becomes the store when all went well."""
        state = self._state.copy()
        doomed = list(deleted_rids)
        changes = [_put(state, document) for document in documents]
        changes += [_delete(state, rid) for rid in doomed]
        self._state = state
        self._accesses = {rid: access for rid, access in self._accesses.items() if rid not in doomed}
        return [change for change in changes if change is not None]

    def changes(self, since: int) -> Iterator[Change]:
        """What a leg that has absorbed `since` still has to apply. A leg that starts from 0 holds nothing to drop."""
        if 0 < since < self._log_floor:
            raise InvalidValueError(f"the change log starts at {self._log_floor}", hint="start from 0")
        return self._changes(since, self._state)

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        """The chunks that exist among `cids`, in their order."""
        found = {}
        for cid in cids:
            if cid in self._state.rid_of:
                document = self._state.documents[self._state.rid_of[cid]]
                (chunk,) = (chunk for chunk in document.chunks if chunk.cid == cid)
                found[cid] = StoredChunk(chunk, document.resource, document.text[chunk.start : chunk.end])
        return found

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        """The resources of those chunks that exist among `cids`."""
        state = self._state
        return {cid: state.documents[state.rid_of[cid]].resource for cid in cids if cid in state.rid_of}

    def document(self, rid: str) -> Document | None:
        """One resource with its text and chunks."""
        return self._state.documents.get(rid)

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        """All resource ids in order, or those of one type."""
        documents = self._state.documents
        return iter(sorted(rid for rid in documents if type is None or documents[rid].resource.type == type))

    def resources(self) -> Iterator[Resource]:
        """All resources in the order of their ids, as they are at the time of the call."""
        return iter([self._state.documents[rid].resource for rid in sorted(self._state.documents)])

    def documents(self, numbers: Iterable[int]) -> Iterator[tuple[int, Document]]:
        """The documents of those resources that exist among `numbers`, in order of their numbers."""
        rid_of = {number: rid for rid, number in self._state.numbers.items()}
        return iter([(n, self._state.documents[rid_of[n]]) for n in sorted(set(numbers)) if n in rid_of])

    def rights(self, since: int = 0) -> list[Right]:
        """What decides who may see each resource that was changed after `since`, in order of their numbers."""
        state = self._state
        known = ((number, state.changed_at[rid], rid) for rid, number in state.numbers.items())
        rows = sorted(row for row in known if row[1] > since)
        resources = {rid: document.resource for rid, document in state.documents.items()}
        return [Right(n, seq, rid, resources[rid].path, resources[rid].visibility) for n, seq, rid in rows]

    def right_to(self, rid: str) -> Right | None:
        """The same for one resource."""
        return next((right for right in self.rights() if right.rid == rid), None)

    def fingerprints(self) -> dict[str, Fingerprint]:
        """Path → fingerprint of every resource that has a path and a fingerprint."""
        return {
            document.resource.path: document.fingerprint
            for document in self._state.documents.values()
            if document.resource.path and document.fingerprint is not None
        }

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        """Record new fingerprints for resources (by path) whose content has not changed."""
        for rid, document in self._state.documents.items():
            if document.resource.path in fingerprints:
                self._state.documents[rid] = document._replace(fingerprint=fingerprints[document.resource.path])

    def stamps(self) -> list[tuple[str, int, int, int]]:
        """Path, size, time of change and inode of the same resources."""
        return [(path, known.size, known.changed_ns, known.inode) for path, known in self.fingerprints().items()]

    def set_folders(self, folders: Mapping[str, int]) -> None:
        """Replace the list of folders that were walked."""
        self._folders = dict(folders)

    def folders(self) -> list[tuple[str, int]]:
        """The folders that were walked in the latest run."""
        return list(self._folders.items())

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        """Replace the list of paths that were left out."""
        self._skipped = sorted(skipped, key=lambda entry: entry.path)

    def skipped(self) -> list[SkippedPath]:
        """The paths that were left out of the latest run, ordered by path."""
        return list(self._skipped)

    def refusals(self) -> dict[str, SkippedPath]:
        """Path → entry of the files that were opened and refused."""
        return {entry.path: entry for entry in self._skipped if entry.size or entry.changed_ns}

    def matching(self, filters: Filters) -> list[int]:
        """The numbers of all resources that pass the filters."""
        state = self._state
        return [state.numbers[rid] for rid, document in state.documents.items() if passes(document.resource, filters)]

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
        """Keep vectors by the digest of the chunks they were made from; what is there stays. Nobody has to wait."""
        if not vectors:
            return
        kept = self._vectors.get(model, {})
        vector_width(model, [*vectors.values(), *(stored.vector for stored in islice(kept.values(), 1))])
        for digest, vector in vectors.items():
            if digest not in kept:
                self._mark += 1
                kept[digest] = _Vector(self._mark, vector)
        self._vectors[model] = kept
        wanted = self.chunks(self._state.wanted)
        self._state.wanted = [cid for cid, stored in wanted.items() if stored.chunk.digest not in vectors]

    def vectors(self, model: str, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """The vectors that exist among `digests`."""
        kept = self._vectors.get(model, {})
        return {digest: kept[digest].vector for digest in digests if digest in kept}

    def vector_rows(self, model: str, since: int) -> Iterator[VectorRow]:
        """The vectors put in after mark `since`, in order, one row for each chunk that has the digest now."""
        kept = self._vectors.get(model, {})
        rows = [
            VectorRow(kept[chunk.digest].mark, chunk.cid, self._state.numbers[rid], kept[chunk.digest].vector)
            for rid, chunk in self._chunks()
            if chunk.digest in kept and kept[chunk.digest].mark > since
        ]
        return iter(sorted(rows))

    def unembedded(self, model: str, limit: int, *, skip: Container[bytes] = ()) -> list[StoredChunk]:
        """Up to `limit` chunks without a vector whose digest is not in `skip`, one for each digest."""
        kept = self._vectors.get(model, {})
        first: dict[bytes, StoredChunk] = {}
        for stored in self.chunks([*self._state.wanted, *(chunk.cid for _, chunk in self._chunks())]).values():
            digest = stored.chunk.digest
            if digest not in kept and digest not in skip:
                first.setdefault(digest, stored)
        return list(islice(first.values(), limit))

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        """Note that a search would have liked vectors for these chunks, the first of them most of all."""
        self._state.wanted = list(self.chunks([*cids, *self._state.wanted]))[:MOST_WISHES]

    def coverage(self, model: str) -> tuple[int, int]:
        """How many chunks have a vector, and how many there are."""
        kept = self._vectors.get(model, {})
        return sum(chunk.digest in kept for _, chunk in self._chunks()), len(self._state.rid_of)

    def models(self) -> dict[str, int]:
        """Model → how many vectors are kept of it."""
        return {model: len(kept) for model, kept in sorted(self._vectors.items())}

    def drop_vectors(self, model: str | None = None) -> int:
        """Forget the vectors of one model, or with `None` those that no chunk has use for; tells how many."""
        if model is not None:
            return len(self._vectors.pop(model, {}))
        used = {chunk.digest for _, chunk in self._chunks()}
        before = sum(map(len, self._vectors.values()))
        for name, kept in list(self._vectors.items()):
            self._vectors[name] = {digest: vector for digest, vector in kept.items() if digest in used}
            if not self._vectors[name]:
                del self._vectors[name]
        return before - sum(map(len, self._vectors.values()))

    def get_meta(self, key: str) -> str | None:
        """A small named value, kept with the data."""
        return self._meta.get(key)

    def set_meta(self, key: str, value: str) -> None:
        """Set a small named value."""
        self._meta[key] = value

    def counts(self) -> dict[str, int]:
        """`resources`, `chunks`, `characters`, `skipped`."""
        return {
            "resources": len(self._state.documents),
            "chunks": len(self._state.rid_of),
            "characters": sum(len(document.text) for document in self._state.documents.values()),
            "skipped": len(self._skipped),
        }

    def chunk_ids(self) -> set[int]:
        """The ids of all chunks."""
        return set(self._state.rid_of)

    def made_counts(self) -> dict[str, int]:
        """Type → how many resources that are no files; relations and terms of the glossary, where there are any."""
        types = [one.resource.type for one in self._state.documents.values() if one.resource.type != "file"]
        return dict(Counter(types + ["relation"] * len(self._relations) + ["term"] * len(self._glossary)))

    def has_items(self) -> bool:
        """Whether any resource has no path."""
        return not all(document.resource.path for document in self._state.documents.values())

    def damaged_vectors(self) -> int:
        """None: memory keeps them as they are."""
        return 0

    def integrity(self) -> list[str]:
        """None, for the same reason."""
        return []

    format = 0

    def compact(self, absorbed: int) -> None:
        """Forget the part of the change log that every leg has absorbed."""
        state = self._state
        floor = min(absorbed, state.seq)
        state.dropped_at = {cid: (rid, seq) for cid, (rid, seq) in state.dropped_at.items() if seq > floor}
        state.deleted_at = {rid: seq for rid, seq in state.deleted_at.items() if seq > floor}
        self._log_floor = max(self._log_floor, floor)

    def close(self) -> None:
        """Nothing to release."""

    def _predecessors(self) -> Iterator[tuple[int, str, str]]:
        """Number and id of each resource that supersedes another one, and the id of that one, oldest change first."""
        state = self._state
        for rid in sorted(state.changed_at, key=state.changed_at.__getitem__):
            replaced = predecessor(state.documents[rid].resource)
            if replaced is not None:
                yield state.numbers[rid], rid, replaced

    def _chunks(self) -> Iterator[tuple[str, Chunk]]:
        """Every chunk with the id of its resource, in the order of numbers and text."""
        for rid, _ in sorted(self._state.numbers.items(), key=lambda item: item[1]):
            for chunk in self._state.documents[rid].chunks:
                yield rid, chunk

    def _changes(self, since: int, state: _State) -> Iterator[Change]:
        events = state.changed_at if since == 0 else state.changed_at | state.deleted_at
        for rid, seq in sorted(events.items(), key=lambda event: event[1]):
            if seq <= since:
                continue
            self._check_unwritten(state)
            drops = [cid for cid, (owner, at) in state.dropped_at.items() if owner == rid and at > since]
            dropped = () if since == 0 else tuple(sorted(drops))
            document = state.documents.get(rid)
            chunks = document.chunks if document else ()
            added = frozenset(chunk.cid for chunk in chunks if state.added_at[chunk.cid] > since)
            yield Change(seq, rid, dropped, added, document, state.numbers.get(rid, 0))
        self._check_unwritten(state)

    def _check_unwritten(self, state: _State) -> None:
        if self._state.seq != state.seq:
            raise LockedError("the store was written while its changes were being read")


def _put(state: _State, document: Document) -> Change | None:
    check_document(document)
    rid = document.resource.rid
    stored = state.documents.get(rid)
    if stored is not None and stored[:3] == document[:3]:
        state.documents[rid] = document  # the fingerprint may differ, which is no change
        return None
    old = {chunk.cid: chunk for chunk in stored.chunks} if stored else {}
    new = {chunk.cid: chunk for chunk in document.chunks}
    if any(state.rid_of.get(cid, rid) != rid for cid in new):
        raise InvalidValueError(f"another resource has a chunk with the same id as one of {rid!r}")
    # Legs index the metadata of the resource with every chunk, so when it changes they need all of them anew.
    described_anew = stored is not None and stored.resource != document.resource
    dropped = {cid for cid in old if described_anew or cid not in new or _indexed(old[cid]) != _indexed(new[cid])}
    added = {cid for cid in new if cid not in old or cid in dropped}
    state.seq += 1
    _forget_chunks(state, rid, dropped)
    state.rid_of |= dict.fromkeys(new, rid)
    state.added_at |= dict.fromkeys(added, state.seq)
    state.documents[rid] = document
    state.changed_at[rid] = state.seq
    state.deleted_at.pop(rid, None)
    number = state.numbers.setdefault(rid, state.seq)
    _forget_wishes(state)
    return Change(state.seq, rid, tuple(sorted(dropped)), frozenset(added), document, number)


def _delete(state: _State, rid: str) -> Change | None:
    stored = state.documents.pop(rid, None)
    if stored is None:
        return None
    dropped = {chunk.cid for chunk in stored.chunks}
    state.seq += 1
    _forget_chunks(state, rid, dropped)
    del state.changed_at[rid], state.numbers[rid]
    state.deleted_at[rid] = state.seq
    _forget_wishes(state)
    return Change(state.seq, rid, tuple(sorted(dropped)), frozenset(), None)


def _forget_chunks(state: _State, rid: str, cids: set[int]) -> None:
    for cid in cids:
        del state.rid_of[cid], state.added_at[cid]
        state.dropped_at[cid] = (rid, state.seq)


def _forget_wishes(state: _State) -> None:
    state.wanted = [cid for cid in state.wanted if cid in state.rid_of]


def _indexed(chunk: Chunk) -> tuple[object, ...]:
    """What legs know of a chunk; the rest only says where it stands."""
    return chunk.digest, chunk.heading
