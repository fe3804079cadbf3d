"""Keyword legs keep the contract, each over a store of its own kind."""

from __future__ import annotations

from findling.domain.ports import KeywordLeg, TruthStore
from findling.stores.keyword.leg import TantivyLeg
from findling.testing.keyword_leg import KeywordLegSuite
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore
from tests.stores.leg_folders import LegsInFolder


class TestMemoryLeg(KeywordLegSuite):
    def make_store(self) -> TruthStore:
        return MemoryStore()

    def make_leg(self) -> KeywordLeg:
        return MemoryLeg()


class TestTantivyLeg(LegsInFolder, KeywordLegSuite):
    def make_leg(self) -> KeywordLeg:
        return self.kept(TantivyLeg.open(self.folder / "keyword", store_id="test"))
