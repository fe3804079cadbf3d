"""The part of a keyword leg's contract that is about changes: what it absorbs, when that is seen, what is forgotten."""

from __future__ import annotations

from abc import ABC, abstractmethod

from findling.domain.ports import KeywordLeg, TruthStore
from findling.domain.queries import All, Filters, Node, Term
from findling.stores.conformance_keyword_samples import LIBRARY
from findling.stores.conformance_samples import HISTORY, line_document, stored_document, with_metadata

__all__ = ["EVERYTHING", "MANY", "KeywordChangesSuite", "catch_up"]

EVERYTHING = All(())
MANY = 1000


class KeywordChangesSuite(ABC):
    """What a leg promises about the changes it is told of."""

    @abstractmethod
    def make_store(self) -> TruthStore:
        """A new, empty store."""

    @abstractmethod
    def make_leg(self) -> KeywordLeg:
        """A new, empty leg that scores every chunk."""

    def test_changes_are_seen_from_the_commit_on(self) -> None:
        store, leg = self.make_store(), self.make_leg()
        store.write([line_document("a", ["first"])])
        leg.apply(store.changes(0))
        assert (leg.seq(), leg.size(), _total(leg, Term("first"))) == (0, 0, 0)
        leg.commit(store.seq())
        store.write([line_document("b", ["first", "second"])], ["a"])
        leg.apply(store.changes(1))
        assert (leg.seq(), leg.size(), _total(leg, Term("second"))) == (1, 1, 0)
        assert _total(leg, Term("first")) == 1
        leg.commit(store.seq())
        assert (leg.seq(), leg.size()) == (3, 2)
        assert _total(leg, Term("first")) == 1
        assert _total(leg, Term("second")) == 1

    def test_a_leg_holds_what_the_store_holds_at_every_number(self) -> None:
        store, leg = self.make_store(), self.make_leg()
        for documents, deleted in HISTORY:
            store.write(documents, deleted)
            catch_up(store, leg)
            held = {chunk.cid for rid in store.rids() for chunk in stored_document(store, rid).chunks}
            assert {cid for cid, _ in leg.search(EVERYTHING, Filters(), MANY).hits} == held
            assert (leg.seq(), leg.size()) == (store.seq(), len(held))
            titled = [rid for rid in store.rids() if stored_document(store, rid).resource.title]
            expected = sum(len(stored_document(store, rid).chunks) for rid in titled)
            assert _total(leg, Term("T", "title")) == expected

    def test_a_resource_that_is_described_anew_is_found_by_its_new_words(self) -> None:
        store, leg = self.make_store(), self.make_leg()
        document = line_document("a", ["text"], title="Old", tags=("red",))
        for title in ("Old", "New", "Old"):
            store.write([with_metadata(document, title=title)])
            catch_up(store, leg)
            assert (_total(leg, Term("old")), _total(leg, Term("new"))) == ((1, 0) if title == "Old" else (0, 1))
            assert leg.search(Term("text"), Filters(tag=("red",)), 9).total == 1

    def test_what_is_cleared_is_forgotten(self) -> None:
        store, leg = self.make_store(), self.make_leg()
        store.write(LIBRARY)
        catch_up(store, leg)
        leg.clear()
        leg.commit(5)
        assert (leg.seq(), leg.size(), _total(leg, EVERYTHING)) == (5, 0, 0)
        leg.clear()
        leg.apply(store.changes(0))
        leg.commit(store.seq())
        assert (leg.seq(), leg.size()) == (store.seq(), len(LIBRARY))
        assert _total(leg, Term("pool")) == 1

    def test_what_was_not_committed_is_forgotten_when_it_closes(self) -> None:
        store, leg = self.make_store(), self.make_leg()
        store.write([line_document("a", ["first"])])
        catch_up(store, leg)
        store.write([line_document("b", ["second"])])
        leg.apply(store.changes(leg.seq()))
        leg.close()
        leg.close()
        assert (leg.seq(), leg.size()) == (1, 1)
        catch_up(store, leg)
        assert (leg.seq(), leg.size()) == (2, 2)


def catch_up(store: TruthStore, leg: KeywordLeg) -> None:
    """Let a leg absorb what the store has done since."""
    leg.apply(store.changes(leg.seq()))
    leg.commit(store.seq())


def _total(leg: KeywordLeg, node: Node) -> int:
    """How many chunks match."""
    return leg.search(node, Filters(), 1).total
