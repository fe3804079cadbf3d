"""From a bundle into a truth store, in batches of one transaction each; doing it again makes no difference."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from findling.domain.errors import CorruptError
from findling.domain.permissions import Relation
from findling.domain.ports import SkippedPath, TruthStore
from findling.domain.records import Access
from findling.domain.resources import Document, Resource
from findling.stores.bundle.bundle import Bundle
from findling.stores.bundle.jsonl_records import Record, to_document, to_term

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

_T = TypeVar("_T")


class VectorLine(NamedTuple):
    """A vector of a bundle as stores keep it, with the digest of what it was made from."""

    model: str
    digest: bytes
    vector: bytes


class SeenBefore(NamedTuple):
    """What an indexing run has seen where a bundle comes from: circumstances, folders with times, what it left out."""

    kept: Mapping[str, str]
    folders: Mapping[str, int]
    skipped: Sequence[SkippedPath]


def restore_all(bundle: Bundle, store: TruthStore) -> None:
    """Make an empty store what the exported one was. Raises CorruptError for a bundle that cannot be read."""
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
    """Upsert every resource with its text and chunks; returns how many differ from what was there.

    Resources that are new here get numbers in the `order`, also where they have changed since in another one. `admit`
    is shown each batch before it is written, and may change it or raise.
    """
    if order:
        known = set(store.rids())
        for rids in _batches([rid for rid in order if rid not in known], _ROWS):
            stubs = [Resource(rid=rid, type="stub", visibility=(), fields=_STUB) for rid in rids]
            store.write([Document(stub, "", ()) for stub in stubs])
    changed = 0
    for documents in _batches(bundle.read("resources.jsonl", parse), _DOCUMENTS):
        changed += len(store.write(admit(documents)))
    return changed


def restore_vectors(bundle: Bundle, store: TruthStore, takes: Callable[[VectorLine], bool] = lambda row: True) -> None:
    """Keep the vectors of every model for the passages they were made from; what is there stays."""
    rows = filter(takes, bundle.read("vectors.jsonl", to_vector))
    for model, of_model in groupby(rows, attrgetter("model")):
        for batch in _batches(of_model, _ROWS):
            store.put_vectors(model, {row.digest: row.vector for row in batch})


def restore_records(
    bundle: Bundle,
    store: TruthStore,
    takes_relation: Callable[[Relation], bool] = lambda relation: True,
    takes_access: Callable[[str], bool] = lambda rid: True,
) -> None:
    """Put relations in, and count accesses of what has none yet: they add up, and must not be counted twice."""
    relations = list(filter(takes_relation, bundle.read("relations.jsonl", to_relation)))
    if relations:
        store.write_relations(relations)
    for batch in _batches(bundle.read("accesses.jsonl", to_access), _ROWS):
        known = store.accesses([rid for rid, _ in batch])
        store.add_accesses({rid: access for rid, access in batch if rid not in known and takes_access(rid)})


def restore_survey(store: TruthStore, seen: SeenBefore) -> None:
    """Keep what the latest indexing run has seen, so that nothing is read again that has not changed since."""
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

    # The store keeps half of the bits, and it was from there that they came: nothing is lost.
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
