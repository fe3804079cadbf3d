"""The contract of a truth store about changes, rights and accesses, as tests."""

from __future__ import annotations

import pytest

from findling.domain.errors import InvalidValueError, LockedError
from findling.domain.permissions import Relation, Right
from findling.domain.ports import Change, TruthStore
from findling.domain.records import Access
from findling.domain.resources import Fingerprint
from findling.testing.samples import (
    AWKWARD,
    EMPTY,
    FULL,
    HISTORY,
    PLAIN,
    LegModel,
    StoreSuite,
    cid_of,
    cids_of,
    held_by,
    line_document,
    with_metadata,
)

__all__ = ["ChangeLogSuite", "RecordSuite"]


class ChangeLogSuite(StoreSuite):
    """The promises of `changes` and of its numbers."""

    def test_changes_tell_what_the_write_told(self, store: TruthStore) -> None:
        store.write([PLAIN, FULL, EMPTY])
        since = store.seq()
        told = store.write([line_document(PLAIN.resource.rid, ["one", "new"]), AWKWARD], [FULL.resource.rid, "e"])
        assert len(told) == 4
        assert list(store.changes(since)) == told

    def test_changes_come_oldest_first_and_once_per_resource(self, store: TruthStore) -> None:
        store.write([PLAIN, FULL])
        latest = line_document(PLAIN.resource.rid, ["latest"])
        store.write([line_document(PLAIN.resource.rid, ["later"])])
        store.write([latest])
        changes = list(store.changes(0))
        assert [(change.seq, change.rid) for change in changes] == [(2, FULL.resource.rid), (4, PLAIN.resource.rid)]
        assert changes[1].document == latest
        assert list(store.changes(store.seq())) == []

    def test_a_leg_that_starts_from_nothing_is_told_nothing_to_drop(self, store: TruthStore) -> None:
        store.write([PLAIN, FULL])
        store.write([line_document(PLAIN.resource.rid, ["other"])], [FULL.resource.rid])
        (change,) = store.changes(0)
        assert change.dropped == ()
        assert change.rid == PLAIN.resource.rid

    def test_a_deleted_resource_without_chunks_is_told_too(self, store: TruthStore) -> None:
        store.write([EMPTY, PLAIN])
        store.write([], [EMPTY.resource.rid])
        assert list(store.changes(2)) == [Change(3, EMPTY.resource.rid, (), frozenset(), None)]

    def test_a_chunk_that_went_and_came_back_is_dropped_before_it_is_added(self, store: TruthStore) -> None:
        store.write([PLAIN])
        store.write([], [PLAIN.resource.rid])
        renamed = with_metadata(PLAIN, title="Back")
        store.write([renamed])
        (change,) = store.changes(1)
        cids = sorted(cids_of(PLAIN))
        assert change == Change(3, PLAIN.resource.rid, tuple(cids), frozenset(cids), renamed, change.number)

    def test_a_leg_catches_up_from_any_number(self, store: TruthStore) -> None:
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

    def test_many_changes_stream_in_order(self, store: TruthStore) -> None:
        store.write(line_document(f"r{number:03}", [f"line {number}", "same"]) for number in range(100))
        store.write([], [f"r{number:03}" for number in range(0, 100, 3)])
        seqs = [change.seq for change in store.changes(10)]
        assert seqs == sorted(set(seqs))
        leg = LegModel()
        leg.catch_up(store)
        assert leg.held == held_by(store)

    def test_a_write_while_changes_are_read_is_noticed(self, store: TruthStore) -> None:
        store.write(line_document(f"r{number}", ["x"]) for number in range(100))
        changes = store.changes(0)
        next(changes)
        store.write([PLAIN])
        with pytest.raises(LockedError):
            list(changes)


MEMBER = Relation("user:ann", "member", "group:eng")
VIEWER = Relation("group:eng", "viewer", "note:é \n")
DENIED = Relation("everyone", "denied", "path:docs/pay")


class RecordSuite(StoreSuite):
    """Every sentence about rights, relations, accesses and numbers, as a test."""

    def test_relations_come_back_in_order(self, store: TruthStore) -> None:
        assert (store.relations(), store.relations_version()) == ([], 0)
        store.write_relations([VIEWER, MEMBER])
        store.write_relations([DENIED, MEMBER])
        assert store.relations() == sorted([MEMBER, VIEWER, DENIED])
        version = store.relations_version()
        store.write_relations((), [VIEWER, Relation("user:x", "member", "group:y")])
        assert store.relations() == sorted([MEMBER, DENIED])
        assert store.relations_version() > version
        assert store.seq() == 0, "a relation is no change of a resource"

    def test_a_relation_that_is_dropped_and_given_is_there(self, store: TruthStore) -> None:
        store.write_relations([MEMBER])
        store.write_relations([MEMBER], [MEMBER])
        assert store.relations() == [MEMBER]

    def test_relations_that_cannot_be_are_refused_together(self, store: TruthStore) -> None:
        for wrong in (
            Relation("ann", "member", "group:eng"),
            Relation("user:ann", "owner", "note:1"),
            Relation("user:ann", "member", "user:bob"),
            Relation("user:ann", "viewer", ""),
            Relation("user:ann", "viewer", "\ud800"),
        ):
            with pytest.raises(InvalidValueError):
                store.write_relations([MEMBER, wrong])
            assert (store.relations(), store.relations_version()) == ([], 0)

    def test_texts_come_in_the_order_of_their_numbers_as_given(self, store: TruthStore) -> None:
        mark = Fingerprint(3, 4, b"digest")
        store.write([line_document("b", ["x", "ü"], visibility=("user:ann",), path="docs/b.md", fingerprint=mark)])
        store.write([line_document("a", ["first"], visibility=())])
        second, first = (right.number for right in store.rights())
        texts = list(store.texts([first, 987_654, second]))
        assert [(one.number, one.rid, one.path, one.visibility, one.digest) for one in texts] == [
            (first, "a", "", (), b""),
            (second, "b", "docs/b.md", ("user:ann",), b"digest"),
        ]
        kept = [store.document(one.rid) for one in texts]
        assert [one.text for one in texts] == [document.text for document in kept if document is not None]
        assert list(store.texts([])) == []

    def test_the_spans_of_chunks_come_in_the_order_of_the_text(self, store: TruthStore) -> None:
        store.write([line_document("a", ["first", "ü second", "third"]), line_document("b", ["other"])])
        numbers = [right.number for right in store.rights()]
        found = store.chunk_spans([*numbers, 987_654])
        for number, document in store.documents(numbers):
            expected = [(chunk.cid, chunk.start, chunk.end) for chunk in document.chunks]
            assert [tuple(span) for of, *span in found if of == number] == expected
        assert {of for of, *_ in found} == set(numbers)
        assert store.chunk_spans([]) == []

    def test_rights_tell_of_every_resource_in_order_of_numbers(self, store: TruthStore) -> None:
        store.write([line_document("b", ["x"], visibility=("user:ann", "!user:bob"), path="docs/b.md")])
        store.write([line_document("a", ["x"], visibility=()), line_document("c", ["x"], visibility=None)])
        numbers = {right.rid: right.number for right in store.rights()}
        assert list(numbers.values()) == sorted(numbers.values())
        assert [(right.rid, right.path, right.visibility) for right in store.rights()] == [
            ("b", "docs/b.md", ("user:ann", "!user:bob")),
            ("a", "", ()),
            ("c", "", None),
        ]
        assert [right.rid for right in store.rights(among={numbers["c"], numbers["b"], 987_654})] == ["b", "c"]
        assert store.rights(among=()) == []
        before = {right.rid: right.seq for right in store.rights()}
        store.write([line_document("a", ["x"], visibility=("user:ann",))])
        after = {right.rid: right for right in store.rights()}
        assert isinstance(after["a"], Right)
        assert after["a"].number == numbers["a"]
        assert after["a"].seq > before["a"]
        assert after["b"].seq == before["b"]
        assert store.rights(max(before.values())) == [after["a"]]
        store.write((), ["b"])
        assert [right.rid for right in store.rights()] == ["a", "c"]

    def test_documents_by_number(self, store: TruthStore) -> None:
        store.write([line_document(rid, [rid]) for rid in ("b", "a", "c")])
        numbers = {right.rid: right.number for right in store.rights()}
        wanted = [numbers["c"], numbers["b"], 10**9]
        assert [(number, one.resource.rid) for number, one in store.documents(wanted)] == [
            (numbers["b"], "b"),
            (numbers["c"], "c"),
        ]

    def test_resources_of_chunks(self, store: TruthStore) -> None:
        document = line_document("a", ["one", "two"], visibility=("user:ann",))
        store.write([document])
        cids = [cid_of(document, "one"), cid_of(document, "two"), 12345]
        assert store.resources_of(cids) == dict.fromkeys(cids[:2], document.resource)

    def test_resources_of_chunks_as_they_are_now(self, store: TruthStore) -> None:
        first = line_document("a", ["one"], visibility=("user:ann",))
        later = line_document("a", ["one"], visibility=("user:bob",))
        cid = cid_of(first, "one")
        for document in (first, later, first):
            store.write([document])
            assert store.resources_of([cid]) == {cid: document.resource}
        store.write([], ["a"])
        assert store.resources_of([cid]) == {}

    def test_only_some_resources_count_as_successors(self, store: TruthStore) -> None:
        store.write([line_document("old", ["x"]), line_document("new", ["x"], fields={"supersedes": "old"})])
        store.write([line_document("newer", ["x"], fields={"supersedes": "old"})])
        number = {right.rid: right.number for right in store.rights()}
        assert store.successors(["old"]) == {"old": "newer"}
        assert store.successors(["old"], {number["new"]}) == {"old": "new"}
        assert store.successors(["old"], ()) == {}
        assert (store.superseded({number["newer"]}), store.superseded(())) == (["old"], [])

    def test_accesses_add_up(self, store: TruthStore) -> None:
        assert store.accesses(["memory:1"]) == {}
        store.add_accesses({"memory:1": Access(2, 50.0), "memory:2": Access(1, 10.0)})
        store.add_accesses({"memory:1": Access(3, 40.0)})
        assert store.accesses(["memory:1", "memory:3"]) == {"memory:1": Access(5, 50.0)}
        assert store.seq() == 0, "an access is no change of a resource"

    def test_accesses_go_with_their_resource(self, store: TruthStore) -> None:
        store.write([line_document("memory:1", ["x"])])
        store.add_accesses({"memory:1": Access(2, 50.0), "memory:2": Access(1, 10.0)})
        store.write((), ["memory:1"])
        assert store.accesses(["memory:1", "memory:2"]) == {"memory:2": Access(1, 10.0)}

    def test_accesses_that_cannot_be_are_refused(self, store: TruthStore) -> None:
        for wrong in ({"": Access(1, 1.0)}, {"memory:1": Access(-1, 1.0)}, {"memory:1": Access(1, float("nan"))}):
            with pytest.raises(InvalidValueError):
                store.add_accesses(wrong)
