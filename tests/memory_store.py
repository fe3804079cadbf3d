"""The truth store in plain dictionaries, small enough to be read as the definition of a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, LockedError
from findling.domain.permissions import Relation, Right
from findling.domain.ports import Change, SkippedPath, VectorRow
from findling.domain.queries import Filters
from findling.domain.records import Access, GlossaryTerm
from findling.domain.resources import ALL, Chunk, Document, Fingerprint, Resource, Share, StoredChunk, StoredText
from findling.stores.filtering import passes
from findling.stores.validation import (
    MOST_WISHES,
    check_accesses,
    check_document,
    check_glossary,
    check_relations,
    predecessor,
    vector_width,
)

__all__ = ["MemoryStore"]


@dataclass
class _MemoryState:
    """Everything that one write changes. A resource has the number of the change that brought it."""

    seq: int = 0
    documents: dict[str, Document] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    changed_at: dict[str, int] = field(default_factory=dict)
    rid_of: dict[int, str] = field(default_factory=dict)
    added_at: dict[int, int] = field(default_factory=dict)
    dropped_at: dict[int, tuple[str, int]] = field(default_factory=dict)
    deleted_at: dict[str, int] = field(default_factory=dict)
    wanted: list[int] = field(default_factory=list)

    def copy(self) -> _MemoryState:
        return replace(self, **{name: copy(value) for name, value in vars(self).items()})


class _Vector(NamedTuple):
    mark: int
    vector: bytes


class MemoryStore:
    """Implements `TruthStore`, which says what each method does; keeps nothing when the process ends."""

    format = 0

    def __init__(self) -> None:
        self._state = _MemoryState()
        self._log_floor = 0
        self._skipped: list[SkippedPath] = []
        self._folders: dict[str, int] = {}
        self._meta: dict[str, str] = {}
        self._vectors: dict[str, dict[bytes, _Vector]] = {}
        self._mark = 0
        self._glossary: dict[tuple[str, str], GlossaryTerm] = {}
        self._glossary_version = 0
        self._relations: set[Relation] = set()
        self._relations_version = 0
        self._accesses: dict[str, Access] = {}

    def seq(self) -> int:
        return self._state.seq

    def log_floor(self) -> int:
        return self._log_floor

    def write(self, documents: Iterable[Document], deleted_rids: Iterable[str] = ()) -> list[Change]:
        # A copy changes, and becomes the state when all went well.
        state = self._state.copy()
        changes = self._write_to(state, documents, list(deleted_rids))
        self._state = state
        return changes

    def _write_to(self, state: _MemoryState, documents: Iterable[Document], doomed: Sequence[str]) -> list[Change]:
        changes = [_put(state, document) for document in documents]
        changes += [_delete(state, rid) for rid in doomed]
        self._accesses = {rid: access for rid, access in self._accesses.items() if rid not in doomed}
        return [change for change in changes if change is not None]

    def changes(self, since: int) -> Iterator[Change]:
        if 0 < since < self._log_floor:
            raise InvalidValueError(f"the change log starts at {self._log_floor}", hint="start from 0")
        return self._changes(since, self._state)

    def chunks(self, cids: Sequence[int]) -> dict[int, StoredChunk]:
        state = self._state
        documents = {cid: state.documents[state.rid_of[cid]] for cid in cids if cid in state.rid_of}
        held = [(one, next(chunk for chunk in one.chunks if chunk.cid == cid)) for cid, one in documents.items()]
        return {chunk.cid: StoredChunk(chunk, one.resource, one.text[chunk.start : chunk.end]) for one, chunk in held}

    def resources_of(self, cids: Sequence[int]) -> dict[int, Resource]:
        return {cid: found.resource for cid, found in self.chunks(cids).items()}

    def document(self, rid: str) -> Document | None:
        return self._state.documents.get(rid)

    def rids(self, type: str | None = None) -> Iterator[str]:  # noqa: A002 - the word of the port
        documents = self._state.documents
        return iter(sorted(rid for rid in documents if type is None or documents[rid].resource.type == type))

    def resources(self) -> Iterator[Resource]:
        return iter([self._state.documents[rid].resource for rid in sorted(self._state.documents)])

    def documents(self, numbers: Iterable[int]) -> Iterator[tuple[int, Document]]:
        rid_of = {number: rid for rid, number in self._state.numbers.items()}
        return iter([(n, self._state.documents[rid_of[n]]) for n in sorted(set(numbers)) if n in rid_of])

    def texts(self, numbers: Iterable[int]) -> Iterator[StoredText]:
        for number in numbers:
            for _, (resource, text, _chunks, mark, *_) in self.documents([number]):
                known = resource.rid, resource.path, resource.visibility, b"" if mark is None else mark.digest
                yield StoredText(number, *known, text)

    def chunk_spans(self, numbers: Collection[int]) -> list[tuple[int, int, int, int]]:
        held = [(number, one) for number, document in self.documents(numbers) for one in document.chunks]
        return sorted(((number, one.cid, one.start, one.end) for number, one in held), key=lambda span: span[2])

    def rights(self, since: int = 0, *, among: Collection[int] | None = None) -> list[Right]:
        state = self._state
        known = ((number, state.changed_at[rid], rid) for rid, number in state.numbers.items())
        rows = sorted(row for row in known if row[1] > since and (among is None or row[0] in among))
        resources = {rid: document.resource for rid, document in state.documents.items()}
        return [Right(n, seq, rid, resources[rid].path, resources[rid].visibility) for n, seq, rid in rows]

    def right_to(self, rid: str) -> Right | None:
        return next((right for right in self.rights() if right.rid == rid), None)

    def fingerprints(self) -> dict[str, Fingerprint]:
        return {
            document.resource.path: document.fingerprint
            for document in self._state.documents.values()
            if document.resource.path and document.fingerprint is not None
        }

    def touch(self, fingerprints: Mapping[str, Fingerprint]) -> None:
        for rid, document in self._state.documents.items():
            if document.resource.path in fingerprints:
                self._state.documents[rid] = document._replace(fingerprint=fingerprints[document.resource.path])

    def stamps(self) -> list[tuple[str, int, int, int]]:
        return [(path, known.size, known.changed_ns, known.inode) for path, known in self.fingerprints().items()]

    def set_folders(self, folders: Mapping[str, int]) -> None:
        self._folders = dict(folders)

    def folders(self) -> list[tuple[str, int]]:
        return list(self._folders.items())

    def set_skipped(self, skipped: Iterable[SkippedPath]) -> None:
        self._skipped = sorted(skipped, key=lambda entry: entry.path)

    def skipped(self) -> list[SkippedPath]:
        return list(self._skipped)

    def refusals(self) -> dict[str, SkippedPath]:
        return {entry.path: entry for entry in self._skipped if entry.size or entry.changed_ns}

    def matching(self, filters: Filters) -> list[int]:
        state = self._state
        return [state.numbers[rid] for rid, document in state.documents.items() if passes(document.resource, filters)]

    def put_vectors(self, model: str, vectors: Mapping[bytes, bytes], *, patience_s: float | None = None) -> None:
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
        kept = self._vectors.get(model, {})
        return {digest: kept[digest].vector for digest in digests if digest in kept}

    def vector_rows(self, model: str, since: int) -> Iterator[VectorRow]:
        kept = self._vectors.get(model, {})
        rows = [
            VectorRow(kept[chunk.digest].mark, chunk.cid, self._state.numbers[rid], kept[chunk.digest].vector)
            for rid, chunk in self._chunks()
            if chunk.digest in kept and kept[chunk.digest].mark > since
        ]
        return iter(sorted(rows))

    def unembedded(self, model: str, limit: int, *, skip: Container[bytes] = (), of: Share = ALL) -> list[StoredChunk]:
        kept = self._vectors.get(model, {})
        first: dict[bytes, StoredChunk] = {}
        for stored in self.chunks([*self._state.wanted, *(chunk.cid for _, chunk in self._chunks())]).values():
            digest = stored.chunk.digest
            if digest not in kept and digest not in skip and self._state.numbers[stored.resource.rid] in of:
                first.setdefault(digest, stored)
        return list(islice(first.values(), limit))

    def want(self, cids: Iterable[int], *, patience_s: float | None = None) -> None:
        self._state.wanted = list(self.chunks([*cids, *self._state.wanted]))[:MOST_WISHES]

    def coverage(self, model: str, of: Share = ALL) -> tuple[int, int]:
        kept = self._vectors.get(model, {})
        own = [chunk.digest in kept for rid, chunk in self._chunks() if self._state.numbers[rid] in of]
        return sum(own), len(own)

    def coverages(self) -> dict[str, int]:
        return {model: self.coverage(model)[0] for model in self.models()}

    def models(self) -> dict[str, int]:
        return {model: len(kept) for model, kept in sorted(self._vectors.items())}

    def drop_vectors(self, model: str | None = None) -> int:
        if model is not None:
            return len(self._vectors.pop(model, {}))
        used = {chunk.digest for _, chunk in self._chunks()}
        before = sum(map(len, self._vectors.values()))
        for name, kept in list(self._vectors.items()):
            self._vectors[name] = {digest: vector for digest, vector in kept.items() if digest in used}
            if not self._vectors[name]:
                del self._vectors[name]
        return before - sum(map(len, self._vectors.values()))

    def successors(self, rids: Iterable[str], among: Container[int] | None = None) -> dict[str, str]:
        latest = {old: rid for number, rid, old in self._predecessors() if among is None or number in among}
        return {rid: latest[rid] for rid in rids if rid in latest}

    def superseded(self, among: Container[int] | None = None) -> list[str]:
        return sorted({old for number, _, old in self._predecessors() if among is None or number in among})

    def glossary(self) -> list[GlossaryTerm]:
        return [self._glossary[place] for place in sorted(self._glossary)]

    def glossary_version(self) -> int:
        return self._glossary_version

    def write_glossary(self, terms: Iterable[GlossaryTerm], dropped: Iterable[tuple[str, str]] = ()) -> None:
        kept, gone = list(terms), set(dropped)
        check_glossary(kept, gone)
        left = {place: term for place, term in self._glossary.items() if place not in gone}
        self._glossary = left | {(term.group, term.key): term for term in kept}
        self._glossary_version += 1

    def relations(self) -> list[Relation]:
        return sorted(self._relations)

    def relations_version(self) -> int:
        return self._relations_version

    def write_relations(self, added: Iterable[Relation], dropped: Iterable[Relation] = ()) -> None:
        kept = list(added)
        check_relations(kept)
        self._relations = (self._relations - set(dropped)) | set(kept)
        self._relations_version += 1

    def accesses(self, rids: Iterable[str]) -> dict[str, Access]:
        return {rid: self._accesses[rid] for rid in rids if rid in self._accesses}

    def add_accesses(self, accesses: Mapping[str, Access]) -> None:
        check_accesses(accesses)
        for rid, access in accesses.items():
            known = self._accesses.get(rid, Access(0, access.last_at))
            self._accesses[rid] = Access(known.count + access.count, max(known.last_at, access.last_at))

    def pinned(self) -> MemoryStore:
        return self

    def get_meta(self, key: str) -> str | None:
        return self._meta.get(key)

    def set_meta(self, key: str, value: str) -> None:
        self._meta[key] = value

    def counts(self) -> dict[str, int]:
        return {
            "resources": len(self._state.documents),
            "chunks": len(self._state.rid_of),
            "characters": sum(len(document.text) for document in self._state.documents.values()),
            "skipped": len(self._skipped),
        }

    def chunk_ids(self) -> set[int]:
        return set(self._state.rid_of)

    def made_counts(self) -> dict[str, int]:
        types = [one.resource.type for one in self._state.documents.values() if one.resource.type != "file"]
        return dict(Counter(types + ["relation"] * len(self._relations) + ["term"] * len(self._glossary)))

    def has_items(self) -> bool:
        return not all(document.resource.path for document in self._state.documents.values())

    def damaged_vectors(self) -> int:
        return 0

    def integrity(self) -> list[str]:
        return []

    def compact(self, absorbed: int) -> None:
        state = self._state
        floor = min(absorbed, state.seq)
        state.dropped_at = {cid: (rid, seq) for cid, (rid, seq) in state.dropped_at.items() if seq > floor}
        state.deleted_at = {rid: seq for rid, seq in state.deleted_at.items() if seq > floor}
        self._log_floor = max(self._log_floor, floor)

    def close(self) -> None:
        pass

    def _predecessors(self) -> Iterator[tuple[int, str, str]]:
        state = self._state
        for rid in sorted(state.changed_at, key=state.changed_at.__getitem__):
            replaced = predecessor(state.documents[rid].resource)
            if replaced is not None:
                yield state.numbers[rid], rid, replaced

    def _chunks(self) -> Iterator[tuple[str, Chunk]]:
        for rid, _ in sorted(self._state.numbers.items(), key=lambda item: item[1]):
            for chunk in self._state.documents[rid].chunks:
                yield rid, chunk

    def _changes(self, since: int, state: _MemoryState) -> Iterator[Change]:
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

    def _check_unwritten(self, state: _MemoryState) -> None:
        if self._state.seq != state.seq:
            raise LockedError("the store was written while its changes were being read")


def _put(state: _MemoryState, document: Document) -> Change | None:
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
    # Legs index the metadata of the resource with every chunk, so a change of it adds all of them again.
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


def _delete(state: _MemoryState, rid: str) -> Change | None:
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


def _forget_chunks(state: _MemoryState, rid: str, cids: set[int]) -> None:
    for cid in cids:
        del state.rid_of[cid], state.added_at[cid]
        state.dropped_at[cid] = (rid, state.seq)


def _forget_wishes(state: _MemoryState) -> None:
    state.wanted = [cid for cid in state.wanted if cid in state.rid_of]


def _indexed(chunk: Chunk) -> tuple[object, ...]:
    return chunk.digest, chunk.heading  # the other fields are only its position
