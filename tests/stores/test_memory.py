from __future__ import annotations

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.ports import TruthStore
from findling.testing.samples import PLAIN, line_document
from findling.testing.truth_store import TruthStoreSuite
from tests.memory_store import MemoryStore


class TestMemoryStore(TruthStoreSuite):
    def make_store(self) -> TruthStore:
        return MemoryStore()


def test_a_leg_below_the_log_floor_is_told_to_start_anew() -> None:
    store = MemoryStore()
    store.write([PLAIN, line_document("a", ["x"])])
    store.write([], ["a"])
    store.compact(store.seq())
    assert store.log_floor() == 3
    with pytest.raises(InvalidValueError):
        store.changes(2)
    assert [change.rid for change in store.changes(0)] == [PLAIN.resource.rid]
    assert list(store.changes(3)) == []
