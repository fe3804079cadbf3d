"""The part of the contract of a truth store that is about who may see what, and what was accessed when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

from findling.domain.errors import InvalidValueError
from findling.domain.permissions import Relation, Right
from findling.domain.ports import TruthStore
from findling.domain.records import Access
from findling.stores.conformance_samples import cid_of, expect, line_document

__all__ = ["RecordSuite"]

MEMBER = Relation("user:ann", "member", "group:eng")
VIEWER = Relation("group:eng", "viewer", "note:é \n")
DENIED = Relation("everyone", "denied", "path:docs/pay")


class RecordSuite(ABC):
    """Every sentence about rights, relations, accesses and numbers, as a test."""

    @abstractmethod
    def make_store(self) -> TruthStore:
        """A new, empty store."""

    def test_relations_come_back_in_order(self) -> None:
        store = self.make_store()
        assert (store.relations(), store.relations_version()) == ([], 0)
        store.write_relations([VIEWER, MEMBER])
        store.write_relations([DENIED, MEMBER])
        assert store.relations() == sorted([MEMBER, VIEWER, DENIED])
        version = store.relations_version()
        store.write_relations((), [VIEWER, Relation("user:x", "member", "group:y")])
        assert store.relations() == sorted([MEMBER, DENIED])
        assert store.relations_version() > version
        assert store.seq() == 0, "a relation is no change of a resource"

    def test_a_relation_that_is_dropped_and_given_is_there(self) -> None:
        store = self.make_store()
        store.write_relations([MEMBER])
        store.write_relations([MEMBER], [MEMBER])
        assert store.relations() == [MEMBER]

    def test_relations_that_cannot_be_are_refused_together(self) -> None:
        store = self.make_store()
        for wrong in (
            Relation("ann", "member", "group:eng"),
            Relation("user:ann", "owner", "note:1"),
            Relation("user:ann", "member", "user:bob"),
            Relation("user:ann", "viewer", ""),
            Relation("user:ann", "viewer", "\ud800"),
        ):
            expect(InvalidValueError, partial(store.write_relations, [MEMBER, wrong]))
            assert (store.relations(), store.relations_version()) == ([], 0)

    def test_rights_tell_of_every_resource_in_order_of_numbers(self) -> None:
        store = self.make_store()
        store.write([line_document("b", ["x"], visibility=("user:ann", "!user:bob"), path="docs/b.md")])
        store.write([line_document("a", ["x"], visibility=()), line_document("c", ["x"], visibility=None)])
        numbers = {right.rid: right.number for right in store.rights()}
        assert list(numbers.values()) == sorted(numbers.values())
        assert [(right.rid, right.path, right.visibility) for right in store.rights()] == [
            ("b", "docs/b.md", ("user:ann", "!user:bob")),
            ("a", "", ()),
            ("c", "", None),
        ]
        before = {right.rid: right.seq for right in store.rights()}
        store.write([line_document("a", ["x"], visibility=("user:ann",))])
        after = {right.rid: right for right in store.rights()}
        assert isinstance(after["a"], Right)
        assert after["a"].number == numbers["a"]
        assert after["a"].seq > before["a"]
        assert after["b"].seq == before["b"]
        store.write((), ["b"])
        assert [right.rid for right in store.rights()] == ["a", "c"]

    def test_documents_by_number(self) -> None:
        store = self.make_store()
        store.write([line_document(rid, [rid]) for rid in ("b", "a", "c")])
        numbers = {right.rid: right.number for right in store.rights()}
        wanted = [numbers["c"], numbers["b"], 10**9]
        assert [(number, one.resource.rid) for number, one in store.documents(wanted)] == [
            (numbers["b"], "b"),
            (numbers["c"], "c"),
        ]

    def test_resources_of_chunks(self) -> None:
        store = self.make_store()
        document = line_document("a", ["one", "two"], visibility=("user:ann",))
        store.write([document])
        cids = [cid_of(document, "one"), cid_of(document, "two"), 12345]
        assert store.resources_of(cids) == dict.fromkeys(cids[:2], document.resource)

    def test_only_some_resources_count_as_successors(self) -> None:
        store = self.make_store()
        store.write([line_document("old", ["x"]), line_document("new", ["x"], fields={"supersedes": "old"})])
        store.write([line_document("newer", ["x"], fields={"supersedes": "old"})])
        number = {right.rid: right.number for right in store.rights()}
        assert store.successors(["old"]) == {"old": "newer"}
        assert store.successors(["old"], {number["new"]}) == {"old": "new"}
        assert store.successors(["old"], ()) == {}
        assert (store.superseded({number["newer"]}), store.superseded(())) == (["old"], [])

    def test_accesses_add_up(self) -> None:
        store = self.make_store()
        assert store.accesses(["memory:1"]) == {}
        store.add_accesses({"memory:1": Access(2, 50.0), "memory:2": Access(1, 10.0)})
        store.add_accesses({"memory:1": Access(3, 40.0)})
        assert store.accesses(["memory:1", "memory:3"]) == {"memory:1": Access(5, 50.0)}
        assert store.seq() == 0, "an access is no change of a resource"

    def test_accesses_go_with_their_resource(self) -> None:
        store = self.make_store()
        store.write([line_document("memory:1", ["x"])])
        store.add_accesses({"memory:1": Access(2, 50.0), "memory:2": Access(1, 10.0)})
        store.write((), ["memory:1"])
        assert store.accesses(["memory:1", "memory:2"]) == {"memory:2": Access(1, 10.0)}

    def test_accesses_that_cannot_be_are_refused(self) -> None:
        store = self.make_store()
        for wrong in ({"": Access(1, 1.0)}, {"memory:1": Access(-1, 1.0)}, {"memory:1": Access(1, float("nan"))}):
            expect(InvalidValueError, partial(store.add_accesses, wrong))
