"""Checks that every truth store passes in its own way of opening and trimming."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.ports import TruthStore
from findling.domain.records import GlossaryTerm
from findling.testing.samples import FULL, HISTORY, PLAIN, LegModel, held_by, vectors_of

__all__ = ["TERM", "check_everything", "check_trimming", "write_everything"]

TERM = GlossaryTerm("rate limit", "quota", "Quota", "alias", "person", decided_at=1.5)


def write_everything(store: TruthStore) -> None:
    """Write one thing of each kind into a new store."""
    store.write([PLAIN, FULL])
    store.write([], [PLAIN.resource.rid])
    store.set_meta("key", "value")
    store.put_vectors("m", vectors_of(FULL, b"12"))
    store.want([FULL.chunks[0].cid])
    store.write_glossary([TERM])


def check_everything(store: TruthStore) -> None:
    """Find all of `write_everything` again."""
    assert store.seq() == 3
    assert store.document(FULL.resource.rid) == FULL
    assert [change.document for change in store.changes(1)] == [FULL, None]
    assert (store.get_meta("key"), store.glossary()) == ("value", [TERM])
    assert store.vectors("m", [FULL.chunks[0].digest]) == {FULL.chunks[0].digest: b"12"}
    assert [stored.chunk for stored in store.unembedded("other", 1)] == [FULL.chunks[0]]
    assert store.integrity() == []


def check_trimming(store: TruthStore, trim: Callable[[int], object]) -> None:
    """Forget changes of a new store: legs come out right, whatever they had absorbed before."""
    legs = [LegModel()]
    for documents, deleted in HISTORY:
        store.write(documents, deleted)
        follower = LegModel()
        follower.catch_up(store)
        legs.append(follower)
    floor = store.seq() - 3
    trim(floor)
    assert store.log_floor() == floor
    with pytest.raises(InvalidValueError, match="does not reach back"):
        store.changes(floor - 1)
    for leg in legs:
        leg.catch_up(store)
        assert leg.held == held_by(store)
    trim(0)
    assert store.log_floor() == floor
    trim(10**9)
    assert store.log_floor() == store.seq()
    assert store.integrity() == []
