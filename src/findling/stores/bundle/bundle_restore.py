"""Restore a bundle into a truth store, in batches of one transaction each; a second time changes nothing."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from findling.domain.errors import CorruptError
from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.records import Access
from findling.domain.resources import Document, Resource
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.jsonl_records import Record, to_document, to_term
from findling.stores.validation import batched

__all__ = [
    "SeenBefore",
    "VectorLine",
    "restore_all",
    "restore_documents",
    "restore_records",
    "restore_survey",
    "restore_vectors",
    "to_access",
    "to_relation",
    "to_vector",
]

_DOCUMENTS = 200
"""Documents of one transaction."""

_ROWS = 1024
"""Vectors and small rows of one transaction."""

_STUB = {"stub": "its text follows"}
"""Fields of a resource that holds the place of another one."""


class VectorLine(NamedTuple):
    """A vector of a bundle as stores keep it, with the digest of what it was made from."""

    model: str
    digest: bytes
    vector: bytes


class SeenBefore(NamedTuple):
    """The survey of the exporting workspace: circumstances, folders with times, skipped paths."""

    kept: Mapping[str, str]
    folders: Mapping[str, int]
    skipped: Sequence[SkippedPath]


def restore_all(bundle: Bundle, store: TruthStore) -> None:
    """Fill an empty store from a bundle. Raises CorruptError for a bundle that cannot be read."""
    restore_documents(bundle, store, _order(bundle))
    restore_vectors(bundle, store)
    store.write_glossary(bundle.read("glossary.jsonl", to_term))
    restore_records(bundle, store)
    restore_survey(store, _survey(bundle))


def restore_documents(
    bundle: Bundle,
    store: TruthStore,
    order: Sequence[str] = (),
    *,
    parse: Callable[[Record], Document] = to_document,
    admit: Callable[[list[Document]], list[Document]] = lambda documents: documents,
) -> int:
    """Upsert every resource with its text and chunks; return how many changed.

    New resources get numbers in the given `order`. `admit` may change each batch before it is written, or raise.
    """
    if order:
        known = set(store.rids())
        for rids in batched([rid for rid in order if rid not in known], _ROWS):
            stubs = [Resource(rid=rid, type="stub", visibility=(), fields=_STUB) for rid in rids]
            store.write([Document(stub, "", ()) for stub in stubs])
    changed = 0
    for documents in batched(bundle.read("resources.jsonl", parse), _DOCUMENTS):
        changed += len(store.write(admit(documents)))
    return changed


def restore_vectors(bundle: Bundle, store: TruthStore, takes: Callable[[VectorLine], bool] = lambda row: True) -> None:
    """Put in the vectors of every model; those that are there stay."""
    rows = filter(takes, bundle.read("vectors.jsonl", to_vector))
    for model, of_model in groupby(rows, attrgetter("model")):
        for batch in batched(of_model, _ROWS):
            store.put_vectors(model, {row.digest: row.vector for row in batch})


def restore_records(
    bundle: Bundle,
    store: TruthStore,
    takes_relation: Callable[[Relation], bool] = lambda relation: True,
    takes_access: Callable[[str], bool] = lambda rid: True,
) -> None:
    """Put in relations, and accesses of resources that have none yet: accesses add up."""
    relations = list(filter(takes_relation, bundle.read("relations.jsonl", to_relation)))
    if relations:
        store.write_relations(relations)
    for batch in batched(bundle.read("accesses.jsonl", to_access), _ROWS):
        known = store.accesses([rid for rid, _ in batch])
        store.add_accesses({rid: access for rid, access in batch if rid not in known and takes_access(rid)})


def restore_survey(store: TruthStore, seen: SeenBefore) -> None:
    """Keep the survey of the latest indexing run, so that the next one reads changed files only."""
    for key, value in seen.kept.items():
        store.set_meta(key, value)
    store.set_folders(seen.folders)
    store.set_skipped(seen.skipped)


def _survey(bundle: Bundle) -> SeenBefore:
    meta = bundle.meta()
    try:
        kept = {str(key): str(value) for key, value in meta["kept"].items()}
        folders = {str(path): int(mtime_ns) for path, mtime_ns in meta["folders"].items()}
        return SeenBefore(kept, folders, [SkippedPath(*entry) for entry in meta["skipped"]])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _wrong_meta(bundle, str(error)) from error


def to_vector(record: Mapping[str, Any]) -> VectorLine:
    """The vector in a line. Raises KeyError, TypeError or ValueError for what is none."""
    import numpy as np

    # The exporting store kept 16 bits of each number, too: nothing is lost.
    full = np.frombuffer(base64.b64decode(record["vector"], validate=True), "<f4")
    if not len(full) or len(full) != record["dim"]:
        raise ValueError(f"the vector has {len(full)} numbers, not {record['dim']}")
    with np.errstate(over="ignore"):
        half = full.astype("<f2")
    if not np.isfinite(half).all():
        raise ValueError("the vector holds a value that is no number")
    return VectorLine(_text(record["model"]), bytes.fromhex(record["digest"]), half.tobytes())


def to_relation(record: Record) -> Relation:
    """The relation in a line. Raises KeyError or TypeError for what is none."""
    return Relation(_text(record["subject"]), _text(record["relation"]), _text(record["object"]))


def to_access(record: Record) -> tuple[str, Access]:
    """The access in a line, and of what. Raises KeyError, TypeError or ValueError for what is none."""
    return _text(record["rid"]), Access(int(record["count"]), float(record["last_at"]))


def _order(bundle: Bundle) -> list[str]:
    """The ids in the order of their numbers, where the lines are in another one; else nothing."""
    order = bundle.meta().get("order")
    if order is not None and not (isinstance(order, list) and all(isinstance(rid, str) for rid in order)):
        raise _wrong_meta(bundle, "its order is no list of ids")
    return order or []


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _wrong_meta(bundle: Bundle, why: str) -> CorruptError:
    return CorruptError(f"meta.json in the bundle {bundle.path} is damaged: {why}", hint="export it again")
