"""Random histories: SqliteStore must do what MemoryStore does, and legs must come out right from any number."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from findling.domain.errors import InvalidValueError
from findling.domain.resources import Document, Fingerprint
from findling.stores.conformance_samples import LegModel, held_by, line_document
from findling.stores.memory import MemoryStore
from findling.stores.sqlite import SqliteStore

RIDS = ("a", "b", "c", "ä/d")

fingerprints = st.builds(Fingerprint, st.integers(0, 3), st.integers(0, 3), st.binary(max_size=1))

metadata = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["", "T"]),
        "type": st.sampled_from(["file", "chat"]),
        "visibility": st.sampled_from([None, (), ("x",)]),
        "updated_at": st.sampled_from([None, 1.5, 2.0]),
        "fields": st.dictionaries(st.sampled_from("kl"), st.text(max_size=2), max_size=2),
        "tags": st.lists(st.text(max_size=2), max_size=2).map(tuple),
    },
)


def _document(rid: str, lines: list[str], mark: Fingerprint | None, values: dict[str, Any]) -> Document:
    return line_document(rid, lines, fingerprint=mark, path=f"{rid}.txt", **values)


documents = st.builds(
    _document,
    st.sampled_from(RIDS),
    st.lists(st.sampled_from(["", "1", "2", "3", "vier ☘", "\0"]), max_size=5),
    st.none() | fingerprints,
    metadata,
)


class StoreHistory(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="findling-"))
        self.model = MemoryStore()
        self.store = SqliteStore.open(self.folder / "truth.db")
        self.legs = [LegModel()]

    @rule(documents=st.lists(documents, max_size=4), deleted=st.lists(st.sampled_from(RIDS), max_size=2))
    def write(self, documents: list[Document], deleted: list[str]) -> None:
        told = self.store.write(iter(documents), deleted)
        assert told == self.model.write(documents, deleted)
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
        self.store.compact(absorbed)
        self.model.compact(absorbed)

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = SqliteStore.open(self.folder / "truth.db")

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
            assert list(self.store.changes(since)) == list(self.model.changes(since))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            for leg in self.legs:
                leg.catch_up(self.store)
                assert leg.held == held_by(self.store)
            assert self.store.integrity() == []
            self.store.close()
            shutil.rmtree(self.folder)


TestStoreHistory = StoreHistory.TestCase
TestStoreHistory.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
