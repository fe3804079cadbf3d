"""The contract of a keyword leg as tests: subclass `KeywordLegSuite`, say how to make a store and a leg.

    class TestMyLeg(KeywordLegSuite):
        def make_store(self) -> TruthStore:
            return MyStore(...)

        def make_leg(self) -> KeywordLeg:
            return MyLeg(...)

It needs pytest and no other library.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from math import isclose

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.plans import FIELDS
from findling.domain.ports import KeywordLeg, LegIndex, TruthStore
from findling.domain.queries import (
    All,
    Any,
    Field,
    Filters,
    Fuzzy,
    Near,
    Node,
    Not,
    Phrase,
    Prefix,
    Range,
    Same,
    Term,
    Word,
)
from findling.domain.resources import Document
from findling.testing.samples import (
    FILTERS,
    HISTORY,
    LIBRARY,
    MATCHES,
    PROPERTIES,
    StoreSuite,
    cid_of,
    cids_of,
    line_document,
    stored_document,
    with_metadata,
)

__all__ = ["EVERYTHING", "MANY", "KeywordChangesSuite", "KeywordLegSuite", "catch_up"]


EVERYTHING = All(())
MANY = 1000


class KeywordChangesSuite(StoreSuite):
    """The promises of a leg about changes."""

    @abstractmethod
    def make_leg(self) -> KeywordLeg:
        """A new, empty leg that scores every chunk."""

    @pytest.fixture
    def leg(self) -> KeywordLeg:
        """The leg of one test."""
        return self.make_leg()

    def test_changes_are_seen_from_the_commit_on(self, store: TruthStore, leg: KeywordLeg) -> None:
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

    def test_a_leg_holds_what_the_store_holds_at_every_number(self, store: TruthStore, leg: KeywordLeg) -> None:
        for documents, deleted in HISTORY:
            store.write(documents, deleted)
            catch_up(store, leg)
            held = {chunk.cid for rid in store.rids() for chunk in stored_document(store, rid).chunks}
            assert {cid for cid, _ in leg.search(EVERYTHING, Filters(), MANY).hits} == held
            assert (leg.seq(), leg.size()) == (store.seq(), len(held))
            titled = [rid for rid in store.rids() if stored_document(store, rid).resource.title]
            expected = sum(len(stored_document(store, rid).chunks) for rid in titled)
            assert _total(leg, Term("T", "title")) == expected

    def test_a_resource_with_a_new_title_is_found_by_its_new_words(self, store: TruthStore, leg: KeywordLeg) -> None:
        document = line_document("a", ["text"], title="Old", tags=("red",))
        for title in ("Old", "New", "Old"):
            store.write([with_metadata(document, title=title)])
            catch_up(store, leg)
            assert (_total(leg, Term("old")), _total(leg, Term("new"))) == ((1, 0) if title == "Old" else (0, 1))
            assert leg.search(Term("text"), Filters(tag=("red",)), 9).total == 1

    def test_what_is_cleared_is_forgotten(self, store: TruthStore, leg: KeywordLeg) -> None:
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

    def test_what_was_not_committed_is_forgotten_when_it_closes(self, store: TruthStore, leg: KeywordLeg) -> None:
        store.write([line_document("a", ["first"])])
        catch_up(store, leg)
        store.write([line_document("b", ["second"])])
        leg.apply(store.changes(leg.seq()))
        leg.close()
        leg.close()
        assert (leg.seq(), leg.size()) == (1, 1)
        catch_up(store, leg)
        assert (leg.seq(), leg.size()) == (2, 2)


def catch_up(store: TruthStore, leg: LegIndex) -> None:
    """Let a leg absorb what the store has done since."""
    leg.apply(store.changes(leg.seq()))
    leg.commit(store.seq())


def _total(leg: KeywordLeg, node: Node) -> int:
    """The number of chunks that match."""
    return leg.search(node, Filters(), 1).total


class KeywordLegSuite(KeywordChangesSuite):
    """Every sentence of `KeywordLeg`, as a test. Each test gets a new, empty store and leg."""

    def holding(self, documents: Iterable[Document]) -> KeywordLeg:
        """A leg that has absorbed the documents."""
        store, leg = self.make_store(), self.make_leg()
        store.write(documents)
        catch_up(store, leg)
        return leg

    @pytest.fixture
    def library(self) -> KeywordLeg:
        """A leg that holds the library."""
        return self.holding(LIBRARY)

    # What matches

    def test_every_kind_of_node_matches_what_it_says(self, library: KeywordLeg) -> None:
        for node, rids in MATCHES:
            assert _found(library, node) == rids, node

    def test_nodes_are_joined(self, library: KeywordLeg) -> None:
        every = "".join(document.resource.rid for document in LIBRARY)
        pool, error, guide = Term("pool"), Term("error"), Term("guide")
        expected: list[tuple[Node, str]] = [
            (EVERYTHING, every),
            (Any(()), ""),
            (Same(()), ""),
            (Not(EVERYTHING), ""),
            (Not(Any(())), every),
            (All((pool, error)), ""),
            (All((Any((pool, error)), Term("connect"))), "ab"),
            (Any((pool, error)), "ab"),
            (Same((pool, error)), "ab"),
            (All((Term("connect"), Not(error))), "a"),
            (Not(Any((pool, error))), every.replace("a", "").replace("b", "")),
            (Not(Not(error)), "b"),
            (All((Not(pool), Not(Not(Term("connect"))))), "b"),
            (Any((pool, Not(Any((pool, error, guide))))), every.replace("b", "")),
            (Any((error, All((pool, Not(Term("free")))))), "b"),
            (All((pool, Term("!!!"))), ""),
            (All((pool, Not(Term("!!!")))), "a"),
        ]
        for node, rids in expected:
            assert _found(library, node) == rids, node

    def test_properties_of_resources_match(self, library: KeywordLeg) -> None:
        for node, rids in PROPERTIES:
            assert _found(library, node) == rids, node
            assert _found(library, EVERYTHING, Filters(where=node)) == rids, node
            pool = "a" if "a" in rids else ""
            assert _found(library, All((Term("pool"), node))) == pool, node
            assert _found(library, Term("pool"), Filters(where=node)) == pool, node

    def test_filters_mean_what_they_mean_to_the_store(self, store: TruthStore, leg: KeywordLeg) -> None:
        store.write(LIBRARY)
        catch_up(store, leg)
        numbers = {change.number: change.rid for change in store.changes(0)}
        for filters in FILTERS:
            rids = "".join(sorted(numbers[number] for number in store.matching(filters)))
            assert _found(leg, EVERYTHING, filters) == rids, filters
            assert leg.search(EVERYTHING, filters, 1).total == len(rids), filters

    # What comes back

    def test_an_empty_leg_finds_nothing(self, leg: KeywordLeg) -> None:
        for node in (EVERYTHING, Not(Term("x")), *(node for node, _ in MATCHES)):
            answer = leg.search(node, Filters(), 10)
            assert (answer.hits, answer.total) == ([], 0), node
            assert not any(answer.forms.values()), node
            assert not leg.scores(node, [1, 2]), node
        assert (leg.seq(), leg.size()) == (0, 0)
        assert list(leg.vocabulary()) == []
        assert leg.frequencies(["x"]) == {"x": 0}

    def test_a_limit_cuts_the_hits_and_not_the_total(self) -> None:
        leg = self.holding([line_document("a", [f"{'word ' * (number + 1)}{number}" for number in range(20)])])
        for node in (Word("word"), EVERYTHING):
            every = leg.search(node, Filters(), MANY).hits
            assert len(every) == 20
            for limit in (0, 1, 7, 20, 21):
                answer = leg.search(node, Filters(), limit)
                assert answer.total == 20
                assert answer.hits == every[:limit]

    def test_hits_come_best_first(self) -> None:
        often = [
            "word and other things",
            "word by word by word",
            "nothing of that kind",
            "a word that all those others drown",
        ]
        document = line_document("a", often)
        leg = self.holding([document])
        answer = leg.search(Word("word"), Filters(), 10)
        assert [cid for cid, _ in answer.hits] == [cid_of(document, often[at]) for at in (1, 0, 3)]
        scores = [score for _, score in answer.hits]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) > 0

    def test_what_asks_for_no_text_comes_newest_first(self) -> None:
        times = {"b": 20.0, "a": None, "e": 50.0, "c": 30.0, "d": -40.0}
        leg = self.holding(line_document(rid, [rid * 3], updated_at=at) for rid, at in times.items())
        rid_of = {cid_of(line_document(rid, [rid * 3]), rid * 3): rid for rid in times}
        expected: list[tuple[Node, str]] = [
            (EVERYTHING, "ecbda"),
            (Not(Word("ccc")), "ebda"),
            (All((Range(after=0), Not(Phrase("bbb")))), "ec"),
            (Any((Field("rid", ("b", "d")), Range(after=50))), "ebd"),
        ]
        for node, rids in expected:
            answer = leg.search(node, Filters(), 10)
            assert "".join(rid_of[cid] for cid, _ in answer.hits) == rids, node
            assert {score for _, score in answer.hits} == {0.0}, node
            assert leg.search(node, Filters(), 2).hits == answer.hits[:2], node
            assert (answer.ceiling, dict(answer.forms)) == (0.0, {}), node
        (latest,) = leg.search(EVERYTHING, Filters(before=45), 1).hits
        assert rid_of[latest[0]] == "c"

    # Scores

    def test_scores_are_those_of_a_search(self, library: KeywordLeg) -> None:
        every = [cid for cid, _ in library.search(EVERYTHING, Filters(), MANY).hits]
        for node, _ in MATCHES:
            for weights in (None, {"title": 7.0, "body": 0.5}):
                found = dict(library.search(node, Filters(), MANY, weights=weights).hits)
                assert _alike(library.scores(node, [12345, *every], weights=weights), found), node
        first = every[0]
        assert dict(library.scores(EVERYTHING, [first])) == {first: 0.0}
        assert not library.scores(EVERYTHING, [])

    def test_scores_are_joined(self) -> None:
        leg = self.holding([line_document("a", ["red", "red blue blue", "blue", "red green blue", "green"])])
        red, blue = (dict(leg.search(Word(word), Filters(), 9).hits) for word in ("red", "blue"))
        both = red.keys() & blue.keys()
        one_of = red.keys() | blue.keys()
        sums = {cid: red.get(cid, 0.0) + blue.get(cid, 0.0) for cid in one_of}
        best = {cid: max(red.get(cid, 0.0), blue.get(cid, 0.0)) for cid in one_of}
        pair = (Word("red"), Word("blue"))
        assert _alike(_scores(leg, All(pair)), {cid: sums[cid] for cid in both})
        assert _alike(_scores(leg, Any(pair)), sums)
        assert _alike(_scores(leg, Same(pair)), best)
        ceilings = [leg.search(node, Filters(), 9).ceiling for node in (*pair, All(pair), Any(pair), Same(pair))]
        assert isclose(ceilings[2], ceilings[0] + ceilings[1], rel_tol=1e-4)
        assert isclose(ceilings[3], ceilings[0] + ceilings[1], rel_tol=1e-4)
        assert isclose(ceilings[4], max(ceilings[:2]), rel_tol=1e-4)
        assert ceilings[4] >= max(red.values()) > 0

    def test_what_is_excluded_or_filtered_leaves_scores_as_they_are(self, library: KeywordLeg) -> None:
        plain = library.search(Word("connect"), Filters(), 9)
        for node, filters in (
            (All((Word("connect"), Not(Word("error")))), Filters()),
            (All((Not(Phrase("no such thing")), Word("connect"))), Filters()),
            (All((Word("connect"), Field("path", ("src",)))), Filters()),
            (All((Word("connect"), Range(after=0))), Filters()),
            (Word("connect"), Filters(path=("src",))),
            (Word("connect"), Filters(where=Not(Field("ext", ("md",))))),
        ):
            answer = library.search(node, filters, 9)
            assert answer.hits, node
            kept = {cid: score for cid, score in plain.hits if cid in dict(answer.hits)}
            assert _alike(dict(answer.hits), kept), node
            assert isclose(answer.ceiling, plain.ceiling, rel_tol=1e-4), node
            assert dict(answer.forms) == dict(plain.forms), node

    def test_weights_say_how_much_a_field_counts(self) -> None:
        documents = [
            line_document("body", ["word and more"], title="other title"),
            line_document("title", ["text and more"], title="word title"),
        ]
        body, title = (cids_of(document)[0] for document in documents)
        leg = self.holding(documents)
        for heavy, best in (("body", body), ("title", title)):
            (first, _), _ = leg.search(Word("word"), Filters(), 9, weights={heavy: 20.0}).hits
            assert first == best
        light, heavy_ = (leg.search(Word("word"), Filters(), 9, weights={"title": weight}) for weight in (1.0, 3.0))
        assert isclose(dict(heavy_.hits)[title], 3 * dict(light.hits)[title], rel_tol=1e-4)
        assert isclose(dict(heavy_.hits)[body], dict(light.hits)[body], rel_tol=1e-4)

    def test_a_field_without_weight_is_found_only_by_its_name(self, library: KeywordLeg) -> None:
        word, named = Word("pharos"), Term("pharos", "name")
        for weight in (0.0, 1.0):
            totals = [library.search(node, Filters(), 9, weights={"name": weight}).total for node in (word, named)]
            assert totals == [int(weight), 1]
        for node in (
            Word("pool"),
            Term("pool"),
            Term("max_value"),
            Phrase("connecting pool"),
            Prefix("poo"),
            Fuzzy("pol"),
        ):
            answer = library.search(node, Filters(), 9, weights=dict.fromkeys(FIELDS, 0.0))
            assert (answer.total, answer.ceiling) == (0, 0.0), node

    def test_a_field_that_does_not_exist_is_refused(self, library: KeywordLeg) -> None:
        with pytest.raises(InvalidValueError):
            library.search(Term("pool", "colour"), Filters(), 9)
        with pytest.raises(InvalidValueError):
            library.search(Field("colour", ("red",)), Filters(), 9)
        with pytest.raises(InvalidValueError):
            library.search(Term("pool"), Filters(), 9, weights={"colour": 1.0})

    # Names and words

    def test_definers_are_the_chunks_that_define_a_name(self, library: KeywordLeg) -> None:
        own = next(document.chunks[0].cid for document in LIBRARY if document.resource.rid == "c")
        score = dict(library.search(Word("user"), Filters(), 9).hits)[own]
        assert _alike(dict(library.definers(["get_user_name"], Word("user"), Filters(), 9)), {own: score})
        assert library.definers(["getUserName", "none"], Word("unheard"), Filters(), 9) == [(own, 0.0)]
        assert not library.definers(["user_id"], Word("user"), Filters(), 9)
        assert not library.definers(["getUserName"], Word("user"), Filters(lang=("go",)), 9)

    def test_forms_are_those_that_the_leg_holds(self, library: KeywordLeg) -> None:
        expected: list[tuple[Node, dict[str, set[str]]]] = [
            (Word("connects"), {"connects": {"connecting", "connection", "connected"}}),
            (Term("unheard"), {"unheard": set()}),
            (Any((Word("pool"), Not(Word("error")))), {"pool": {"pool"}}),
            (Phrase("connecting pool"), {"connecting": {"connecting"}, "pool": {"pool"}}),
            (Term("get_user"), {"get": {"get"}, "user": {"user"}}),
            (Prefix("conne"), {"conne*": {"connecting", "connection", "connected"}}),
            (Prefix("zzz"), {"zzz*": set()}),
            (Fuzzy("poll"), {"poll~": {"pool"}}),
            (Near("pools", "free"), {"pools": {"pool"}, "free": {"free"}}),
        ]
        for node, forms in expected:
            given = library.search(node, Filters(), 9).forms
            assert {term: set(them) for term, them in given.items()} == forms, node

    def test_the_vocabulary_tells_how_many_chunks_have_a_word(self) -> None:
        leg = self.holding([line_document("a", ["pool pool", "pools pool", "数据库", "other"])])
        assert dict(leg.vocabulary("pool")) == {"pool": 2, "pools": 1}
        assert dict(leg.vocabulary("数")) == {"数据": 1}
        assert dict(leg.vocabulary("none")) == {}
        assert (
            dict(leg.vocabulary()).items() >= {"pool": 2, "pools": 1, "数据": 1, "据库": 1, "库": 1, "other": 1}.items()
        )
        assert leg.frequencies(["pool", "pools", "none"]) == {"pool": 2, "pools": 1, "none": 0}


_RID_OF = {document.chunks[0].cid: document.resource.rid for document in LIBRARY}


def _found(leg: KeywordLeg, node: Node, filters: Filters | None = None) -> str:
    """The letters of the resources of the library that match, in order."""
    answer = leg.search(node, filters or Filters(), MANY)
    assert answer.total == len(answer.hits), node
    return "".join(sorted(_RID_OF[cid] for cid, _ in answer.hits))


def _scores(leg: KeywordLeg, node: Node) -> dict[int, float]:
    return dict(leg.search(node, Filters(), MANY).hits)


def _alike(some: Mapping[int, float], others: Mapping[int, float]) -> bool:
    """Whether the same chunks have the same scores, but for what 32 bits leave out."""
    return some.keys() == others.keys() and all(isclose(some[c], others[c], rel_tol=1e-4) for c in some)
