"""Random histories: a store must do what MemoryStore does, and legs must come out right from any number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from findling.domain.errors import InvalidValueError
from findling.domain.ports import Change, TruthStore
from findling.domain.records import GlossaryTerm
from findling.domain.resources import Document, Fingerprint
from findling.testing.samples import LegModel, held_by, line_document
from tests.counts import tries
from tests.memory_store import MemoryStore

__all__ = ["StoreHistory", "history_settings"]

RIDS = ("a", "b", "c", "ä/d")

LINES = ("", "1", "2", "3", "vier ☘", "\0")

fingerprints = st.builds(Fingerprint, st.integers(0, 3), st.integers(0, 3), st.binary(max_size=1), st.integers(0, 3))

metadata = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["", "T"]),
        "type": st.sampled_from(["file", "chat"]),
        "visibility": st.sampled_from([None, (), ("x",)]),
        "updated_at": st.sampled_from([None, 1.5, 2.0]),
        "fields": st.dictionaries(st.sampled_from("kl"), st.text(max_size=2), max_size=2)
        | st.fixed_dictionaries({"supersedes": st.sampled_from((*RIDS, "gone", "nul\0", "\ud800", ""))}),
        "tags": st.lists(st.text(max_size=2), max_size=2).map(tuple),
    },
)


def _document(rid: str, lines: list[str], mark: Fingerprint | None, values: dict[str, Any]) -> Document:
    return line_document(rid, lines, fingerprint=mark, path=f"{rid}.txt", **values)


documents = st.builds(
    _document,
    st.sampled_from(RIDS),
    st.lists(st.sampled_from(LINES), max_size=5),
    st.none() | fingerprints,
    metadata,
)


PLACES = st.tuples(st.sampled_from(("", "g", "ä")), st.sampled_from(("k", "nul\0", "\U0001f33b")))

glossary_terms = st.builds(
    lambda place, *rest: GlossaryTerm(*place, *rest),
    PLACES,
    st.text(max_size=2),
    st.sampled_from(("alias", "pending")),
    st.just("mined"),
    st.just(""),
    st.none() | st.floats(0, 9),
)

MODELS = ("m", "n")

DIGESTS = [chunk.digest for chunk in line_document("any", list(LINES)).chunks]


def _unnumbered(changes: Iterable[Change]) -> list[Change]:
    """The stores number resources as they like."""
    return [change._replace(number=bool(change.number)) for change in changes]


def _owners(store: TruthStore, model: str) -> list[tuple[int, str, bytes]]:
    """The rows of a model in order, with the name of each resource in place of its number."""
    rids = {change.number: change.rid for change in store.changes(0)}
    return [(row.cid, rids[row.number], row.vector) for row in store.vector_rows(model, 0)]


class StoreHistory(RuleBasedStateMachine):
    """A store beside MemoryStore, both of which go through the same."""

    @abstractmethod
    def make_place(self) -> None:
        """Make a new, empty place for a store."""

    @abstractmethod
    def open_store(self) -> TruthStore:
        """Open the store of the place."""

    @abstractmethod
    def trim_log(self, absorbed: int) -> None:
        """Forget the changes that were absorbed."""

    @abstractmethod
    def drop_place(self) -> None:
        """Remove the place."""

    @initialize()
    def open(self) -> None:
        self.make_place()
        self.model = MemoryStore()
        self.store = self.open_store()
        self.legs = [LegModel()]

    @rule(documents=st.lists(documents, max_size=4), deleted=st.lists(st.sampled_from(RIDS), max_size=2))
    def write(self, documents: list[Document], deleted: list[str]) -> None:
        told = self.store.write(iter(documents), deleted)
        assert _unnumbered(told) == _unnumbered(self.model.write(documents, deleted))
        for leg in self.legs[::2]:
            if leg.seq == self.store.seq() - len(told):
                leg.apply(told)
                leg.seq = self.store.seq()
                assert leg.held == held_by(self.store)

    @rule(good=documents, bad=documents)
    def write_in_vain(self, good: Document, bad: Document) -> None:
        bad = bad._replace(text="", chunks=(*bad.chunks, *line_document("z", ["too long for the text"]).chunks))
        for store in (self.store, self.model):
            with pytest.raises(InvalidValueError):
                store.write([good, bad])

    @rule(touched=st.dictionaries(st.sampled_from([f"{rid}.txt" for rid in RIDS]), fingerprints, max_size=2))
    def touch(self, touched: dict[str, Fingerprint]) -> None:
        self.store.touch(touched)
        self.model.touch(touched)

    @rule(behind=st.integers(0, 5))
    def compact(self, behind: int) -> None:
        absorbed = max(0, self.model.seq() - behind)
        self.trim_log(absorbed)
        self.model.compact(absorbed)

    @rule(model=st.sampled_from(MODELS), digests=st.sets(st.sampled_from(DIGESTS), max_size=3))
    def put_vectors(self, model: str, digests: set[bytes]) -> None:
        for store in (self.store, self.model):
            store.put_vectors(model, {digest: digest[:2] for digest in sorted(digests)})

    @rule(model=st.sampled_from((*MODELS, None)))
    def drop_vectors(self, model: str | None) -> None:
        assert self.store.drop_vectors(model) == self.model.drop_vectors(model)

    @rule(data=st.data())
    def want(self, data: st.DataObject) -> None:
        known = sorted(self.store.chunk_ids()) or [1]
        cids = data.draw(st.lists(st.sampled_from(known), max_size=3))
        for store in (self.store, self.model):
            store.want(cids)
        for model in MODELS:
            kept = self.store.vectors(model, DIGESTS)
            wanted = [stored.chunk.digest for stored in self.store.chunks(cids).values()]
            digests = dict.fromkeys(digest for digest in wanted if digest not in kept)
            found = [stored.chunk.digest for stored in self.store.unembedded(model, 99)]
            assert found[: len(digests)] == list(digests)

    @rule(terms=st.lists(glossary_terms, max_size=4), dropped=st.lists(PLACES, max_size=4))
    def write_glossary(self, terms: list[GlossaryTerm], dropped: list[tuple[str, str]]) -> None:
        for store in (self.store, self.model):
            store.write_glossary(iter(terms), iter(dropped))

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = self.open_store()

    @rule()
    def new_leg(self) -> None:
        self.legs.append(LegModel())

    @rule(data=st.data())
    def leg_catches_up(self, data: st.DataObject) -> None:
        leg = data.draw(st.sampled_from(self.legs))
        leg.catch_up(self.store)
        assert leg.held == held_by(self.store)

    @invariant()
    def both_hold_the_same(self) -> None:
        assert self.store.seq() == self.model.seq()
        assert self.store.log_floor() == self.model.log_floor()
        assert self.store.counts() == self.model.counts()
        assert self.store.fingerprints() == self.model.fingerprints()
        assert list(self.store.rids()) == list(self.model.rids())
        for rid in RIDS:
            assert self.store.document(rid) == self.model.document(rid)
        for since in (0, *range(max(1, self.model.log_floor()), self.model.seq() + 1)):
            assert _unnumbered(self.store.changes(since)) == _unnumbered(self.model.changes(since))

    @invariant()
    def both_understand_the_same(self) -> None:
        assert self.store.glossary() == self.model.glossary()
        assert self.store.glossary_version() == self.model.glossary_version()
        superseded = self.store.superseded()
        assert superseded == self.model.superseded()
        assert self.store.successors([*RIDS, "gone", "nul\0", "nul"]) == self.model.successors(superseded)

    @invariant()
    def both_hold_the_same_vectors(self) -> None:
        assert self.store.models() == self.model.models()
        for model in MODELS:
            assert self.store.coverage(model) == self.model.coverage(model)
            assert self.store.vectors(model, DIGESTS) == self.model.vectors(model, DIGESTS)
            assert _owners(self.store, model) == _owners(self.model, model)
            lacking = self.store.unembedded(model, 99)
            assert [stored.chunk.digest for stored in self.store.unembedded(model, 2)] == [
                stored.chunk.digest for stored in lacking[:2]
            ]
            assert {stored.chunk.digest for stored in lacking} == {
                stored.chunk.digest for stored in self.model.unembedded(model, 99)
            }

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for leg in self.legs:
                leg.catch_up(self.store)
                assert leg.held == held_by(self.store)
            assert self.store.integrity() == []
            self.store.close()
            self.drop_place()


def history_settings(full: int, short: int) -> settings:
    """Settings for so many histories in a long run and in any other."""
    return settings(
        max_examples=tries(full, short=short),
        stateful_step_count=25,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
