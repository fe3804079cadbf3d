"""One copy of a truth: records of a store or a bundle fill a store; a copy that was stopped continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter

from findling.domain.ports import TruthStore
from findling.domain.resources import Document, Resource
from findling.stores.bundle.truth_records import StoreRecords, TruthRecords
from findling.stores.validation import batched

CopyProgress = Callable[[tuple[int, int]], None]
"""A receiver of the number of documents that are copied, and of all."""

_DOCUMENTS = 200
"""Documents of one transaction."""

_ROWS = 1024
"""Vectors and small rows of one transaction."""

_COPYING = "copying"
"""Name of the small value of a target that is not complete: the state of the source that it is a copy of."""

_DONE = "done "
"""Before that state when the copy is complete and not used yet."""

_STUB = {"stub": "its text follows"}
"""Fields of a resource that holds the place of another one."""


def fill_store(
    records: TruthRecords,
    store: TruthStore,
    *,
    is_new: bool = True,
    admit: Callable[[list[Document]], list[Document]] = lambda documents: documents,
) -> int:
    """Put records into a store, in batches of one transaction each; a second time changes nothing.

    `admit` may change each batch of documents before it is written, or raise. Numbers keep their order in a store that
    `is_new`; another one keeps its glossary and its survey. Vectors that are there stay. Returns how many changed.
    """
    order = records.order() if is_new else ()
    known = set(store.rids()) if order else set()
    for rids in batched((rid for rid in order if rid not in known), _ROWS):
        store.write([Document(Resource(rid=rid, type="stub", visibility=(), fields=_STUB), "", ()) for rid in rids])
    changed = sum(len(store.write(admit(batch))) for batch in batched(records.documents(), _DOCUMENTS))
    for model, of_model in groupby(records.vectors(), attrgetter("model")):
        for rows in batched(of_model, _ROWS):
            store.put_vectors(model, {row.digest: row.vector for row in rows})
    if relations := list(records.relations()):
        store.write_relations(relations)
    for accesses in batched(records.accesses(), _ROWS):
        had = store.accesses([rid for rid, _ in accesses])  # they add up
        store.add_accesses({rid: access for rid, access in accesses if rid not in had})
    if is_new:
        store.write_glossary(records.glossary())
    if is_new and (survey := records.survey()) is not None:
        store.set_folders(survey.folders)
        store.set_skipped(survey.skipped)
        for key, value in survey.kept.items():
            store.set_meta(key, value)
    return changed


def copy_truth(
    source: TruthStore, target: TruthStore, keys: Sequence[str], on_progress: CopyProgress | None = None
) -> bool:
    """Copy all of a store into an empty one, or go on with a copy of the same state; `finish_copy` ends it.

    Numbers and changes keep their order, which decides between equals. `keys` are the small values to copy. Returns
    whether that was possible: not into a store with other content. Nobody must write to the source meanwhile.
    """
    state, begun = _state(source), target.get_meta(_COPYING) or ""
    is_empty = not target.made_counts() and not any(True for _ in target.rids())
    if begun in ("", _DONE + state):
        if begun or not is_empty:
            return bool(begun)
    elif begun != state:
        if begun.startswith(_DONE):
            return False
        # The source has changed since.
        target.write((), list(target.rids()))
        target.write_glossary((), [(term.group, term.key) for term in target.glossary()])
        target.write_relations((), target.relations())
    target.set_meta(_COPYING, state)
    records, copied = StoreRecords(source, keys), 0

    def admit(documents: list[Document]) -> list[Document]:
        nonlocal copied
        copied += len(documents)
        if on_progress is not None:
            on_progress((copied, len(records.rids)))
        return documents

    fill_store(records, target, admit=admit)
    return True


def finish_copy(source: TruthStore, target: TruthStore, *, is_used: bool) -> None:
    """Note that a copy is complete, and with `is_used` that it is a store of its own from now on."""
    target.set_meta(_COPYING, "" if is_used else _DONE + _state(source))


def _state(source: TruthStore) -> str:
    numbers = source.seq(), source.relations_version(), source.glossary_version()
    return " ".join((source.get_meta("store_id") or "", *map(str, numbers)))
