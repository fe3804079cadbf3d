"""From one truth store into another, through their port; a copy that was stopped continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TypeVar

from findling.domain.ports import TruthStore
from findling.domain.resources import Document, Resource

__all__ = ["CopyProgress", "copy_truth", "finish_copy"]

_Row = TypeVar("_Row")

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
        target.write((), list(target.rids()))  # the source has changed since
    target.set_meta(_COPYING, state)
    _copy_documents(source, target, on_progress)
    for model in source.models():
        _copy_vectors(source, target, model)
    kept = {(term.group, term.key) for term in source.glossary()}
    others = [(term.group, term.key) for term in target.glossary() if (term.group, term.key) not in kept]
    target.write_glossary(source.glossary(), others)
    target.write_relations(source.relations(), set(target.relations()) - set(source.relations()))
    _copy_accesses(source, target)
    target.set_folders(dict(source.folders()))
    target.set_skipped(source.skipped())
    for key in keys:
        if (value := source.get_meta(key)) is not None:
            target.set_meta(key, value)
    return True


def finish_copy(source: TruthStore, target: TruthStore, *, is_used: bool) -> None:
    """Note that a copy is complete, and with `is_used` that it is a store of its own from now on."""
    target.set_meta(_COPYING, "" if is_used else _DONE + _state(source))


def _state(source: TruthStore) -> str:
    numbers = source.seq(), source.relations_version(), source.glossary_version()
    return " ".join((source.get_meta("store_id") or "", *map(str, numbers)))


def _copy_documents(source: TruthStore, target: TruthStore, on_progress: CopyProgress | None) -> None:
    """Copy the documents in the order of their changes, with numbers in the order of theirs."""
    rights = source.rights()
    if not all(a.seq < b.seq for a, b in pairwise(rights)):
        known = set(target.rids())
        stubs = (Resource(rid=one.rid, type="stub", visibility=(), fields=_STUB) for one in rights)
        for batch in _batched((Document(stub, "", ()) for stub in stubs if stub.rid not in known), _ROWS):
            target.write(batch)
    done = 0
    documents = (change.document for change in source.changes(0) if change.document is not None)
    for documents_of_one in _batched(documents, _DOCUMENTS):
        target.write(documents_of_one)
        done += len(documents_of_one)
        if on_progress is not None:
            on_progress((done, len(rights)))


def _copy_vectors(source: TruthStore, target: TruthStore, model: str) -> None:
    for rows in _batched(source.vector_rows(model, 0), _ROWS):
        stored = source.chunks([row.cid for row in rows])
        target.put_vectors(model, {stored[row.cid].chunk.digest: row.vector for row in rows if row.cid in stored})


def _copy_accesses(source: TruthStore, target: TruthStore) -> None:
    """Copy the accesses of resources that have none yet: accesses add up."""
    for rids in _batched(source.rids(), _ROWS):
        known = target.accesses(rids)
        target.add_accesses({rid: access for rid, access in source.accesses(rids).items() if rid not in known})


def _batched(rows: Iterable[_Row], size: int) -> Iterator[list[_Row]]:
    waiting = iter(rows)
    while batch := list(islice(waiting, size)):
        yield batch
