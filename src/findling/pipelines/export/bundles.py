"""From a truth store into a bundle: all of it, or as much as somebody may see."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.ports import TruthStore
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Chunk, Document, Resource
from findling.domain.strangers import BUNDLE_KEPT, BUNDLE_KEPT_OF_MODEL
from findling.pipelines.indexing.freshness import NEVER
from findling.stores.bundle.bundle_writer import Part, write_bundle
from findling.stores.bundle.jsonl_records import Record, document_record
from findling.text.analysis.analysis import chunk_terms

__all__ = ["Facts", "export_store"]

_ROWS = 1024

_IN_USE = ("canonical", "alias", "protected")  # the terms that searches use; others may come from hidden texts

MaySee = Callable[[Resource], bool]


class Facts(NamedTuple):
    """Facts for the manifest and `meta.json` that the store does not hold; a bundle without a `root` hides it."""

    created_at: float
    model: Mapping[str, Any] | None
    preprocessing: Mapping[str, Any]
    settings: Mapping[str, Any]
    root: str = ""


def export_store(
    store: TruthStore,
    target: Path,
    facts: Facts,
    *,
    vectors: bool = True,
    glossary: bool = True,
    may_see: MaySee | None = None,
    force: bool = False,
) -> Record:
    """Write a bundle of everything in the store; returns its manifest. Nobody must write to the store meanwhile.

    With `may_see` it holds the resources for which that is true, and nothing about others: no relations, no lists of
    readers, no skipped paths, only glossary terms in use. Raises as `write_bundle` does.
    """
    export = _Export(store, may_see)

    def about() -> Record:
        return {
            "createdAt": datetime.fromtimestamp(int(facts.created_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "partial": may_see is not None,
            "model": None if facts.model is None else dict(facts.model),
            "preprocessing": dict(facts.preprocessing),
            "counts": {"files": sum(rid.startswith("file:") for rid in export.order), "characters": export.characters},
        }

    return write_bundle(target, export.parts(facts, vectors, glossary), about, force=force)


class _Export:
    """The records of a bundle, line by line."""

    def __init__(self, store: TruthStore, may_see: MaySee | None) -> None:
        self._store = store
        self._may_see = may_see
        rights = store.rights()
        if may_see is not None:
            seen = {resource.rid for resource in store.resources() if may_see(resource)}
            rights = [right for right in rights if right.rid in seen]
        self._numbers = {right.number for right in rights}
        self.characters = 0
        self.order = [right.rid for right in rights]
        self._is_in_order = all(a.seq < b.seq for a, b in pairwise(rights))

    def parts(self, facts: Facts, vectors: bool, glossary: bool) -> Iterator[Part]:
        """Every file with its lines."""
        yield "resources.jsonl", self._resources()
        yield "bm25.jsonl", self._terms()
        yield "vectors.jsonl", self._vectors() if vectors else ()
        yield "glossary.jsonl", (term._asdict() for term in (self._glossary() if glossary else ()))
        yield "relations.jsonl", (relation._asdict() for relation in ([] if self._may_see else self._store.relations()))
        yield "accesses.jsonl", self._accesses()
        yield "meta.json", [self._meta(facts)]

    def _resources(self) -> Iterator[Record]:
        for document in self._documents():
            self.characters += len(document.text)
            yield document_record(document)

    def _documents(self) -> Iterator[Document]:
        """The documents in the order of their changes, in which legs absorb them; readers do not see the other ones."""
        for change in self._store.changes(0):
            document = change.document
            if document is not None and change.number in self._numbers:
                yield document if self._may_see is None else _without_owner(document)

    def _terms(self) -> Iterator[Record]:
        for document in self._documents():
            resource = document.resource
            for chunk in document.chunks:
                yield {
                    "id": _chunk_id(resource, chunk),
                    "normText": chunk_terms(document.text, chunk).body,
                    "meta": {
                        "title": resource.title,
                        "lang": resource.lang,
                        "path": resource.path,
                        "heading": list(chunk.heading),
                        "type": resource.type,
                        "author": resource.author,
                        "tags": list(resource.tags),
                        "updated_at": resource.updated_at,
                    },
                }

    def _vectors(self) -> Iterator[Record]:
        """The vectors in the order of their marks, so that an import gives marks in the same order.

        Marks tell of hidden texts that are equal: what somebody sees comes in the order of its ids.
        """
        for model in self._store.models():
            if self._may_see is not None:
                yield from self._vectors_by_id(model)
                continue
            rows = iter(self._store.vector_rows(model, 0))
            while batch := list(islice(rows, _ROWS)):
                stored = self._store.chunks([row.cid for row in batch])
                for row in batch:
                    yield _vector_record(stored[row.cid].resource, stored[row.cid].chunk, model, row.vector)

    def _vectors_by_id(self, model: str) -> Iterator[Record]:
        for rid in sorted(self.order, key=lambda rid: f"{rid}:"):
            document = self._store.document(rid)
            chunks = sorted(document.chunks, key=lambda chunk: f"{chunk.cid:016x}") if document is not None else []
            known = self._store.vectors(model, [chunk.digest for chunk in chunks])
            for chunk in chunks:
                if document is not None and chunk.digest in known:
                    yield _vector_record(document.resource, chunk, model, known[chunk.digest])

    def _glossary(self) -> Iterator[GlossaryTerm]:
        for term in self._store.glossary():
            if self._may_see is None:
                yield term
            elif term.status in _IN_USE:
                yield term._replace(source="", snippet="")

    def _accesses(self) -> Iterator[Record]:
        rids = iter(sorted(self.order))
        while batch := list(islice(rids, _ROWS)):
            for rid, access in sorted(self._store.accesses(batch).items()):
                yield {"rid": rid, "count": access.count, "last_at": access.last_at}

    def _meta(self, facts: Facts) -> Record:
        is_whole = self._may_see is None
        keys = [*BUNDLE_KEPT, *(BUNDLE_KEPT_OF_MODEL + model for model in self._store.models())] if is_whole else []
        kept = {key: self._store.get_meta(key) for key in keys}
        return {
            "root": facts.root if is_whole else "",
            "settings": dict(sorted(facts.settings.items())),
            "kept": {key: value for key, value in kept.items() if value is not None},
            "folders": dict(sorted(self._store.folders())) if is_whole else {},
            "skipped": [list(entry) for entry in self._store.skipped()] if is_whole else [],
            "order": None if self._is_in_order else self.order,
        }


def _without_owner(document: Document) -> Document:
    """The document without its list of readers, and without traces of the owner's disk: inode and time of change."""
    mark = document.fingerprint
    return document._replace(
        resource=replace(document.resource, visibility=None),
        fingerprint=None if mark is None else mark._replace(changed_ns=NEVER, inode=0),
    )


def _vector_record(resource: Resource, chunk: Chunk, model: str, stored: bytes) -> Record:
    import numpy as np

    vector = np.frombuffer(stored, "<f2").astype("<f4")
    return {
        "id": _chunk_id(resource, chunk),
        "digest": chunk.digest.hex(),
        "model": model,
        "dim": len(vector),
        "vector": base64.b64encode(vector.tobytes()).decode(),
    }


def _chunk_id(resource: Resource, chunk: Chunk) -> str:
    return f"{resource.rid}:{chunk.cid:016x}"
