"""The contract of a graph leg as tests: subclass `GraphLegSuite`, say how to make a store and a leg.

    class TestMyLeg(GraphLegSuite):
        def make_store(self) -> TruthStore:
            return MyStore(...)

        def make_leg(self) -> GraphLeg:
            return MyLeg(...)

It needs pytest and numpy, and no other library.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping

from findling.domain.backends import GraphLeg, GraphRows, Neighbourhood
from findling.domain.ports import TruthStore
from findling.domain.queries import Filters
from findling.domain.resources import Document, Resource
from findling.testing.keyword_leg import catch_up
from findling.testing.samples import StoreSuite, line_document
from findling.text.mining.chunk_names import hash_of

__all__ = ["GraphLegSuite"]

_TEXTS = {
    "Jump for Glory": "It is a film by Raoul Walsh, with Valerie Hobson.",
    "Raoul Walsh": "He was married to Miriam Cooper.",
    "Miriam Cooper": "An actress of silent films, who was born in Baltimore.",
    "Valerie Hobson": "She was in Bride of Frankenstein.",
    "empty": "nothing of that kind",
}


def _document(title: str, text: str) -> Document:
    document = line_document(f"note:{title}", [text])
    chunks = tuple(chunk._replace(heading=()) for chunk in document.chunks)
    return document._replace(resource=Resource(rid=f"note:{title}", type="note", title=title), chunks=chunks)


class GraphLegSuite(StoreSuite):
    """A leg follows its store, and says the same whatever its history."""

    @abstractmethod
    def make_leg(self) -> GraphLeg:
        """Open the leg of the latest store, as it was left by the one before."""

    def test_a_name_leads_from_chunk_to_chunk(self) -> None:
        store, leg = self._filled()
        near = leg.around(["jump for glory"], [])
        # One step leads to Raoul Walsh and Valerie Hobson, another one from him to her.
        assert _titles(store, near) == {"Jump for Glory", "Raoul Walsh", "Valerie Hobson", "Miriam Cooper"}
        by_chunk = leg.around([], [cid for cid, title in _titles_by_chunk(store) if title == "Miriam Cooper"])
        assert _titles(store, by_chunk) == {"Miriam Cooper", "Raoul Walsh", "Jump for Glory"}
        assert near.total == len(leg) == 5

    def test_links_count_all_chunks_that_name_a_thing(self) -> None:
        store, leg = self._filled()
        near = leg.around(["raoul walsh"], [])
        named = {title: set[int]() for title in _titles(store, near)}
        documents = dict(_titles_by_chunk(store))
        for row, thing in zip(near.rows.tolist(), near.things.tolist(), strict=True):
            named[documents[int(near.cids[row])]].add(thing)
        (walsh,) = named["Jump for Glory"] & named["Raoul Walsh"]
        assert near.spreads[walsh] == 2
        levels = {
            documents[int(near.cids[row])]: int(level)
            for row, thing, level in zip(near.rows, near.things, near.levels, strict=True)
            if thing == walsh
        }
        assert levels["Raoul Walsh"] == 3 > levels["Jump for Glory"]

    def test_only_things_of_two_chunks_are_held(self) -> None:
        _, leg = self._filled()
        assert leg.holds(["miriam cooper"])
        assert leg.holds(["nobody", "raoul walsh"])
        assert not leg.holds(["bride of frankenstein", "nobody"])
        assert not leg.holds([])

    def test_a_thing_of_one_chunk_leads_to_it(self) -> None:
        store, leg = self._filled()
        near = leg.around(["bride of frankenstein"], [])
        assert "Valerie Hobson" in _titles(store, near)
        assert 1 in near.spreads

    def test_chunks_have_all_things_that_they_name(self) -> None:
        store, leg = self._filled()
        near = leg.named(["valerie hobson"], [])
        assert _titles(store, near) == {"Jump for Glory", "Valerie Hobson"}
        assert hash_of("bride of frankenstein") in near.hashes
        spreads = dict(zip(near.hashes.tolist(), near.spreads.tolist(), strict=True))
        assert (spreads[hash_of("raoul walsh")], spreads[hash_of("bride of frankenstein")]) == (2, 1)
        own = leg.named([], near.cids.tolist())
        assert all(getattr(own, name).tolist() == getattr(near, name).tolist() for name in ("cids", "hashes", "levels"))
        assert len(leg.named(["nobody"], [1, 2, 3]).cids) == 0

    def test_the_whole_has_every_chunk_and_every_link(self) -> None:
        store, leg = self._filled()
        near = leg.whole(100)
        assert _titles(store, near) == set(_TEXTS)
        assert set(near.hashes.tolist()) == {hash_of(key) for key in ("raoul walsh", "miriam cooper", "valerie hobson")}
        assert (near.spreads.tolist(), len(near.rows), near.total) == ([2, 2, 2], 6, 5)
        part = leg.whole(2)
        assert part.cids.tolist() == near.cids.tolist()[:2]
        assert (len(leg.whole(0).cids), leg.whole(0).total) == (0, 5)

    def test_nothing_is_around_what_is_not_there(self) -> None:
        _, leg = self._filled()
        near = leg.around(["nobody"], [1, 2, 3])
        assert (len(near.cids), len(near.rows), near.total) == (0, 0, 5)

    def test_a_sight_is_the_leg_of_a_store_with_nothing_else(self) -> None:
        store, leg = self._filled()
        for seed in range(20):
            chance = random.Random(seed)
            titles = chance.sample(sorted(_TEXTS), chance.randint(0, len(_TEXTS)))
            numbers = _numbers(store, titles)
            other = self.make_store_beside()
            other.write([_document(title, _TEXTS[title]) for title in titles])
            alone = self.make_leg_beside()
            catch_up(other, alone)
            # Some of them as they are now, whatever the leg has absorbed of them.
            lacking = set(chance.sample(sorted(numbers), len(numbers) // 2))
            for seen in (leg.within(numbers), leg.within(set(numbers) - lacking, store.documents(lacking))):
                assert len(seen) == len(alone)
                for keys in (["raoul walsh"], ["miriam cooper", "valerie hobson"], ["jump for glory"]):
                    assert seen.holds(keys) == alone.holds(keys)
                    assert _told(seen, keys) == _told(alone, keys)

    def test_changes_and_deletions_are_followed_and_history_leaves_no_trace(self) -> None:
        for seed in range(10):
            chance = random.Random(seed)
            store, leg = self.make_store_beside(), self.make_leg_beside()
            for _ in range(12):
                title = chance.choice(sorted(_TEXTS))
                text = chance.choice(sorted(_TEXTS.values()))
                store.write([_document(title, text)], [f"note:{chance.choice(sorted(_TEXTS))}"])
                if chance.random() < 0.6:
                    catch_up(store, leg)
            catch_up(store, leg)
            assert leg.seq() == store.seq()
            assert leg.cids() <= store.chunk_ids()
            fresh = self.make_leg()
            fresh.clear()
            fresh.apply(store.changes(0))
            fresh.commit(store.seq())
            assert leg.cids() == fresh.cids()
            for title in _TEXTS:
                assert _told(leg, [title.lower()]) == _told(fresh, [title.lower()])
            fresh.close()

    def test_a_commit_is_kept_and_what_was_not_committed_is_forgotten(self) -> None:
        store, leg = self._filled()
        reached = leg.seq()
        leg.apply(store.write([_document("Late", "Raoul Walsh again")]))
        leg.close()
        leg = self.make_leg()
        assert (leg.seq(), len(leg)) == (reached, 5)
        catch_up(store, leg)
        assert len(leg) == 6
        leg.clear()
        assert leg.seq() == 0
        catch_up(store, leg)
        assert (leg.seq(), len(leg)) == (store.seq(), 6)

    def test_a_reader_keeps_its_state_while_another_one_writes(self) -> None:
        store, leg = self._filled()
        reader = self.make_leg()
        before = _told(reader, ["raoul walsh"])
        store.write([], ["note:Raoul Walsh"])
        catch_up(store, leg)
        assert _told(reader, ["raoul walsh"]) == before
        assert not reader.is_current()
        assert leg.is_current()
        assert _told(leg, ["raoul walsh"]) != before

    def make_store_beside(self) -> TruthStore:
        """A store with nothing in it, beside the first one."""
        return self.make_store()

    @abstractmethod
    def make_leg_beside(self) -> GraphLeg:
        """An empty leg of the latest store, beside all others."""

    def _filled(self) -> tuple[TruthStore, GraphLeg]:
        store = self.make_store()
        store.write([_document(title, text) for title, text in _TEXTS.items()])
        leg = self.make_leg()
        catch_up(store, leg)
        return store, leg


def _titles_by_chunk(store: TruthStore) -> Iterable[tuple[int, str]]:
    for _, document in store.documents(sorted(store.matching(Filters()))):
        for chunk in document.chunks:
            yield chunk.cid, document.resource.title


def _titles(store: TruthStore, near: Neighbourhood) -> set[str]:
    known = dict(_titles_by_chunk(store))
    return {known[int(cid)] for cid in near.cids}


def _numbers(store: TruthStore, titles: Collection[str]) -> set[int]:
    documents = store.documents(sorted(store.matching(Filters())))
    return {number for number, document in documents if document.resource.title in titles}


def _told(rows: GraphRows, keys: Iterable[str]) -> Mapping[str, object]:
    """All that a graph says of some things; numbers of resources are those of their stores."""
    near = rows.around(keys, [])
    return {
        name: value.tolist() if hasattr(value, "tolist") else value
        for name, value in near._asdict().items()
        if name != "numbers"
    }
