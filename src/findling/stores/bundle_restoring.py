"""From a bundle into a truth store, in batches of one transaction each; doing it again makes no difference."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from findling.domain.errors import CorruptError
from findling.domain.memories import Access
from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.resources import Document, Resource
from findling.stores.bundle import Bundle
from findling.stores.jsonl_files import Record
from findling.stores.jsonl_records import to_document, to_term

__all__ = ["restore_all", "restore_documents", "restore_records", "restore_survey", "restore_vectors"]

_DOCUMENTS = 200
"""Documents of one transaction."""

_ROWS = 1024
"""Vectors and small rows of one transaction."""

_STUB = {"stub": "its text follows"}
"""Fields of a resource that holds the place of another one."""

_T = TypeVar("_T")


def restore_all(bundle: Bundle, store: TruthStore) -> None:
    """Make an empty store what the exported one was. Raises CorruptError for a bundle that cannot be read."""
    restore_documents(bundle, store)
    restore_vectors(bundle, store)
    store.write_glossary(bundle.read("glossary.jsonl", to_term))
    restore_records(bundle, store)
    restore_survey(bundle, store)


def restore_documents(
    bundle: Bundle,
    store: TruthStore,
    *,
    in_order: bool = True,
    admit: Callable[[list[Document]], object] = lambda documents: None,
) -> int:
    """Upsert every resource with its text and chunks; returns how many differ from what was there.

    With `in_order`, resources that are new here get numbers in the order they had, also where they have changed since
    in another one. `admit` is shown each batch before it is written, and may raise.
    """
    order = _order(bundle) if in_order else []
    if order:
        known = set(store.rids())
        for rids in _batches([rid for rid in order if rid not in known], _ROWS):
            store.write([Document(Resource(rid=rid, type="stub", fields=_STUB), "", ()) for rid in rids])
    changed = 0
    for documents in _batches(bundle.read("resources.jsonl", to_document), _DOCUMENTS):
        admit(documents)
        changed += len(store.write(documents))
    return changed


def restore_vectors(bundle: Bundle, store: TruthStore) -> None:
    """Keep the vectors of every model for the passages they were made from; what is there stays."""
    rows = bundle.read("vectors.jsonl", _to_vector)
    for model, of_model in groupby(rows, attrgetter("model")):
        for batch in _batches(of_model, _ROWS):
            store.put_vectors(model, {row.digest: row.vector for row in batch})


def restore_records(bundle: Bundle, store: TruthStore) -> None:
    """Put relations in, and count accesses of what has none yet: they add up, and must not be counted twice."""
    store.write_relations(bundle.read("relations.jsonl", _to_relation))
    for batch in _batches(bundle.read("accesses.jsonl", _to_access), _ROWS):
        known = store.accesses([rid for rid, _ in batch])
        store.add_accesses({rid: access for rid, access in batch if rid not in known})


def restore_survey(bundle: Bundle, store: TruthStore) -> None:
    """Keep what the latest indexing run has seen, so that nothing is read again that has not changed since."""
    meta = bundle.meta()
    try:
        kept = {str(key): str(value) for key, value in meta["kept"].items()}
        folders = {str(path): int(mtime_ns) for path, mtime_ns in meta["folders"].items()}
        skipped = [SkippedPath(*entry) for entry in meta["skipped"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _wrong_meta(bundle, str(error)) from error
    for key, value in kept.items():
        store.set_meta(key, value)
    store.set_folders(folders)
    store.set_skipped(skipped)


class _Row(NamedTuple):
    model: str
    digest: bytes
    vector: bytes


def _to_vector(record: Mapping[str, Any]) -> _Row:
    import numpy as np

    # The store keeps half of the bits, and it was from there that they came: nothing is lost.
    full = np.frombuffer(base64.b64decode(record["vector"], validate=True), "<f4")
    if not len(full) or len(full) != record["dim"]:
        raise ValueError(f"the vector has {len(full)} numbers, not {record['dim']}")
    with np.errstate(over="ignore"):
        half = full.astype("<f2")
    if not np.isfinite(half).all():
        raise ValueError("the vector holds a value that is no number")
    return _Row(_text(record["model"]), bytes.fromhex(record["digest"]), half.tobytes())


def _to_relation(record: Record) -> Relation:
    return Relation(_text(record["subject"]), _text(record["relation"]), _text(record["object"]))


def _to_access(record: Record) -> tuple[str, Access]:
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


def _batches(values: Iterable[_T], size: int) -> Iterator[list[_T]]:
    batch: list[_T] = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _wrong_meta(bundle: Bundle, why: str) -> CorruptError:
    return CorruptError(f"meta.json in the bundle {bundle.path} is damaged: {why}", hint="export it again")
