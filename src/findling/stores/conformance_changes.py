"""The part of a truth store's contract that legs rely on, as tests: what they are told of each change."""

from __future__ import annotations

from abc import ABC, abstractmethod

from findling.domain.errors import LockedError
from findling.domain.ports import Change, TruthStore
from findling.stores.conformance_samples import (
    AWKWARD,
    EMPTY,
    FULL,
    HISTORY,
    PLAIN,
    LegModel,
    cids_of,
    expect,
    held_by,
    line_document,
    with_metadata,
)

__all__ = ["ChangeLogSuite"]


class ChangeLogSuite(ABC):
    """What `changes` and the numbers in it promise."""

    @abstractmethod
    def make_store(self) -> TruthStore:
        """A new, empty store."""

    # What legs are told

    def test_changes_tell_what_the_write_told(self) -> None:
        store = self.make_store()
        store.write([PLAIN, FULL, EMPTY])
        since = store.seq()
        told = store.write([line_document(PLAIN.resource.rid, ["one", "new"]), AWKWARD], [FULL.resource.rid, "e"])
        assert len(told) == 4
        assert list(store.changes(since)) == told

    def test_changes_come_oldest_first_and_once_per_resource(self) -> None:
        store = self.make_store()
        store.write([PLAIN, FULL])
        latest = line_document(PLAIN.resource.rid, ["latest"])
        store.write([line_document(PLAIN.resource.rid, ["later"])])
        store.write([latest])
        changes = list(store.changes(0))
        assert [(change.seq, change.rid) for change in changes] == [(2, FULL.resource.rid), (4, PLAIN.resource.rid)]
        assert changes[1].document == latest
        assert list(store.changes(store.seq())) == []

    def test_a_leg_that_starts_from_nothing_is_told_nothing_to_drop(self) -> None:
        store = self.make_store()
        store.write([PLAIN, FULL])
        store.write([line_document(PLAIN.resource.rid, ["other"])], [FULL.resource.rid])
        (change,) = store.changes(0)
        assert change.dropped == ()
        assert change.rid == PLAIN.resource.rid

    def test_a_deleted_resource_without_chunks_is_told_too(self) -> None:
        store = self.make_store()
        store.write([EMPTY, PLAIN])
        store.write([], [EMPTY.resource.rid])
        assert list(store.changes(2)) == [Change(3, EMPTY.resource.rid, (), frozenset(), None)]

    def test_a_chunk_that_went_and_came_back_is_dropped_before_it_is_added(self) -> None:
        store = self.make_store()
        store.write([PLAIN])
        store.write([], [PLAIN.resource.rid])
        renamed = with_metadata(PLAIN, title="Back")
        store.write([renamed])
        (change,) = store.changes(1)
        cids = sorted(cids_of(PLAIN))
        assert change == Change(3, PLAIN.resource.rid, tuple(cids), frozenset(cids), renamed, change.number)

    def test_a_leg_catches_up_from_any_number(self) -> None:
        store = self.make_store()
        legs = [LegModel()]
        for documents, deleted in HISTORY:
            store.write(documents, deleted)
            follower = LegModel()
            follower.seq, follower.held = legs[-1].seq, dict(legs[-1].held)
            follower.catch_up(store)
            legs.append(follower)
            assert follower.held == held_by(store)
        for leg in legs:
            leg.catch_up(store)
            assert leg.held == held_by(store)
            assert leg.seq == store.seq()

    def test_many_changes_stream_in_order(self) -> None:
        store = self.make_store()
        store.write(line_document(f"r{number:03}", [f"line {number}", "same"]) for number in range(100))
        store.write([], [f"r{number:03}" for number in range(0, 100, 3)])
        seqs = [change.seq for change in store.changes(10)]
        assert seqs == sorted(set(seqs))
        leg = LegModel()
        leg.catch_up(store)
        assert leg.held == held_by(store)

    def test_a_write_while_changes_are_read_is_noticed(self) -> None:
        store = self.make_store()
        store.write(line_document(f"r{number}", ["x"]) for number in range(100))
        changes = store.changes(0)
        next(changes)
        store.write([PLAIN])
        expect(LockedError, lambda: list(changes))
