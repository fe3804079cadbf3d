"""The terms of a store are read when they have changed, and not for every search."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from findling.domain.records import GlossaryTerm
from findling.pipelines.glossary.glossary import add
from findling.pipelines.glossary.glossary_expansion import lookup_of
from findling.stores.sqlite.store import SqliteStore
from tests.memory_store import MemoryStore


class CountingStore(MemoryStore):
    """Counts how often its terms are read."""

    reads = 0

    def glossary(self) -> list[GlossaryTerm]:
        self.reads += 1
        return super().glossary()


def decide(store: MemoryStore | SqliteStore, canonical: str, alias: str) -> None:
    store.write_glossary(*add(store.glossary(), canonical, [alias]))


def test_terms_are_read_once_for_many_searches() -> None:
    store = CountingStore()
    assert lookup_of(store).empty
    assert store.reads == 0, "a glossary that was never written need not be read"
    store.write_glossary(add([], "auth", ["login"]).put)
    lookups = {id(lookup_of(store)) for _ in range(3)}
    assert (len(lookups), store.reads) == (1, 1)
    assert list(lookup_of(store).groups("login")) == ["auth"]


def test_every_store_has_terms_of_its_own() -> None:
    one, other = MemoryStore(), MemoryStore()
    decide(one, "auth", "login")
    decide(other, "quota", "limit")
    assert list(lookup_of(one).groups("login")) == ["auth"]
    assert lookup_of(other).groups("login") == {}


def test_what_another_process_decides_is_seen(tmp_path: Path) -> None:
    with SqliteStore.open(tmp_path / "s.db") as ours, SqliteStore.open(tmp_path / "s.db") as theirs:
        assert lookup_of(ours).empty
        decide(theirs, "auth", "login")
        assert list(lookup_of(ours).groups("login")) == ["auth"]
        decide(theirs, "auth", "sign-in")
        assert [term.surface for term in lookup_of(ours).groups("login")["auth"]] == ["auth", "login", "sign-in"]
        theirs.write_glossary([], [(term.group, term.key) for term in theirs.glossary()])
        assert lookup_of(ours).empty


@pytest.mark.parametrize("make", [lambda path: MemoryStore(), SqliteStore.open], ids=["memory", "sqlite"])
def test_a_store_is_not_kept_alive(make: Callable[[Path], MemoryStore | SqliteStore], tmp_path: Path) -> None:
    store = make(tmp_path / "s.db")
    decide(store, "auth", "login")
    assert not lookup_of(store).empty
    store.close()
    alive = weakref.ref(store)
    del store
    gc.collect()
    assert alive() is None
