"""Both keyword legs keep the contract, each over a store of its own kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from findling.domain.ports import KeywordLeg, TruthStore
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.sqlite.store import SqliteStore
from findling.testing.keyword_leg import KeywordLegSuite
from findling.testing.reference.memory_store import MemoryStore
from tests.memory_leg import MemoryLeg


class TestMemoryLeg(KeywordLegSuite):
    def make_store(self) -> TruthStore:
        return MemoryStore()

    def make_leg(self) -> KeywordLeg:
        return MemoryLeg()


class TestTantivyLeg(KeywordLegSuite):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.opened: list[SqliteStore | TantivyLeg] = []
        yield
        for one in self.opened:
            one.close()

    def make_store(self) -> TruthStore:
        store = SqliteStore.open(self.folder / "truth.db")
        self.opened.append(store)
        return store

    def make_leg(self) -> KeywordLeg:
        leg = TantivyLeg.open(self.folder / "keyword", store_id="test")
        self.opened.append(leg)
        return leg
