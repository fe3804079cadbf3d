"""The log of changes of any SQL store, as a leg follows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from findling.domain.errors import InvalidValueError, LockedError
from findling.domain.ports import Change
from findling.domain.resources import Document
from findling.stores.rows import Row

Documents = Mapping[int, tuple[Document, Sequence[int]]]
"""Documents by the number of their resource, each with the changes that added its chunks."""


def follow(
    name: str, log: str, since: int, span: tuple[int, int], read: Callable[[int], tuple[int, list[Change]]]
) -> Iterator[Change]:
    """The changes that a leg at `since` still has to apply. A leg that starts from 0 drops nothing.

    `span` are the latest change and the floor of the log; `read` gives the latest one and the next ones after another.
    Raises InvalidValueError when the log no longer reaches back to `since`, and LockedError when the store is written
    meanwhile: a leg must see one state of it.
    """
    latest, floor = span
    if 0 < since < floor:
        message = f"{log} starts at {floor} and does not reach back to {since}"
        raise InvalidValueError(message, hint="clear the leg and start from 0")
    return _follow(name, since, latest, read)


def _follow(name: str, position: int, latest: int, read: Callable[[int], tuple[int, list[Change]]]) -> Iterator[Change]:
    while True:
        # A transaction per batch: a slow leg must keep neither old rows nor the log.
        seq, batch = read(position)
        if seq != latest:
            message = f"{name} was written while its changes were being read"
            raise LockedError(message, hint="hold the write lock while a leg catches up")
        if not batch:
            return
        yield from batch
        position = batch[-1].seq


def to_change(row: Row, dropped: Iterable[int], documents: Documents, since: int) -> Change:
    """The change in a row of `seq, number, rid`, whose number is None for a deletion, for a leg at `since`."""
    seq, number, rid = row
    if number is None:
        return Change(seq, rid, tuple(dropped), frozenset(), None)
    document, added_at = documents[number]
    added = [chunk.cid for chunk, at in zip(document.chunks, added_at, strict=True) if at > since]
    return Change(seq, rid, tuple(dropped), frozenset(added), document, number)
