"""From a truth store into a bundle: all of it, or as much as somebody may see."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from findling.domain.ports import TruthStore
from findling.stores.bundle.bundle_writer import Part, write_bundle
from findling.stores.bundle.jsonl_records import Record, document_record
from findling.stores.bundle.truth_records import MaySee, StoreRecords, VectorRecord, chunk_name
from findling.text.analysis.analysis import chunk_terms


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

    With `may_see` it holds what `StoreRecords` gives then. Raises as `write_bundle` does.
    """
    records, sizes = StoreRecords(store, may_see=may_see), list[int]()

    def parts() -> Iterator[Part]:
        yield "resources.jsonl", _resources(records, sizes)
        yield "bm25.jsonl", _terms(records)
        yield "vectors.jsonl", map(_vector_record, records.vectors() if vectors else ())
        yield "glossary.jsonl", (term._asdict() for term in (records.glossary() if glossary else ()))
        yield "relations.jsonl", (relation._asdict() for relation in records.relations())
        yield "accesses.jsonl", ({"rid": rid, **vars(access)} for rid, access in records.accesses())
        yield "meta.json", [_meta(records, facts)]

    def about() -> Record:
        return {
            "createdAt": datetime.fromtimestamp(int(facts.created_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "partial": not records.is_whole,
            "model": None if facts.model is None else dict(facts.model),
            "preprocessing": dict(facts.preprocessing),
            "counts": {"files": sum(rid.startswith("file:") for rid in records.rids), "characters": sum(sizes)},
        }

    return write_bundle(target, parts(), about, force=force)


def _resources(records: StoreRecords, sizes: list[int]) -> Iterator[Record]:
    for document in records.documents():
        sizes.append(len(document.text))
        yield document_record(document)


def _terms(records: StoreRecords) -> Iterator[Record]:
    for document in records.documents():
        resource = document.resource
        for chunk in document.chunks:
            yield {
                "id": chunk_name(resource, chunk.cid),
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


def _vector_record(row: VectorRecord) -> Record:
    import numpy as np

    vector = np.frombuffer(row.vector, "<f2").astype("<f4")
    return {
        "id": row.chunk,
        "digest": row.digest.hex(),
        "model": row.model,
        "dim": len(vector),
        "vector": base64.b64encode(vector.tobytes()).decode(),
    }


def _meta(records: StoreRecords, facts: Facts) -> Record:
    survey = records.survey()
    return {
        "root": facts.root if records.is_whole else "",
        "settings": dict(sorted(facts.settings.items())),
        "kept": survey.kept,
        "folders": survey.folders,
        "skipped": [list(entry) for entry in survey.skipped],
        "order": records.order() or None,
    }
