"""The keyword leg in PostgreSQL keeps the contract, ranks as tantivy does, and shows nobody what is hidden."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from findling.domain.errors import ReplacedError
from findling.domain.plans import FIELDS
from findling.domain.ports import KeywordLeg, TruthStore
from findling.domain.queries import All, Any, Field, Filters, Fuzzy, Phrase, Term, Word
from findling.domain.sight import Audiences, Population, Rights, Sight
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.posting_segments import SegmentHead
from findling.stores.postgres.keyword import keyword_leg, keyword_merge, posting_blocks, server_postings
from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg, discard_keyword_leg
from findling.stores.postgres.keyword.keyword_tables import UNITS, Known, StoredSegment, read_segments
from findling.stores.postgres.keyword.limited_legs import ServerLimitedLegs
from findling.stores.postgres.keyword.posting_blocks import BlockDirectory
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.server.parts_cache import PartsCache
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.keyword_leg import EVERYTHING, KeywordLegSuite, catch_up
from findling.testing.reference.memory_store import MemoryStore
from findling.testing.samples import line_document, with_metadata
from tests.counts import tries
from tests.postgres_servers import PostgresServer
from tests.processes import run_and_kill
from tests.stores.postgres_legs import opened_workspace, ordinary_place
from tests.stores.test_postings_scoring import is_alike, random_corpus, random_filters, random_question

TREES = tries(300, short=60)
KILLS = tries(20, short=3)
MANY = 10_000


@pytest.fixture
def connections(postgres: PostgresServer) -> Iterator[PostgresConnections]:
    with opened_workspace(ordinary_place(postgres)) as opened:
        yield opened


@pytest.fixture(params=[0, 50], ids=["by blocks", "whole vocabularies"])
def _small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments and blocks of few entries, which are joined all the time."""
    monkeypatch.setattr(server_postings, "_WORTH_ALL", request.param)
    monkeypatch.setattr(keyword_leg, "_MOST_ENTRIES", 7)
    monkeypatch.setattr(keyword_merge, "_AT_ONCE", 3)
    monkeypatch.setattr(posting_blocks, "_MOST_BYTES", 60)


def open_leg(connections: PostgresConnections, unit: str = "chunk") -> PostgresKeywordLeg:
    return PostgresKeywordLeg(connections, store_id="test", unit=unit)


class TestPostgresKeywordLeg(KeywordLegSuite):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer) -> Iterator[None]:
        self.server = postgres
        self.opened: list[PostgresConnections] = []
        yield
        for one in self.opened:
            one.close()

    def make_store(self) -> TruthStore:
        return MemoryStore()

    def make_leg(self) -> KeywordLeg:
        with opened_workspace(ordinary_place(self.server)) as made:
            self.opened.append(PostgresConnections(made.place))
        return open_leg(self.opened[-1])


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("unit", ["chunk", "page"])
def test_postings_in_the_server_score_as_tantivy_does(
    connections: PostgresConnections, tmp_path: Path, unit: str
) -> None:
    random = Random(3)
    store, leg = MemoryStore(), open_leg(connections, unit)
    local = TantivyLeg.open(tmp_path / "keyword", store_id="test", unit=unit)
    for document in random_corpus(random):
        store.write([document])
        if random.random() < 0.2:
            catch_up(store, leg)
    for one in (leg, local):
        catch_up(store, one)
    for _ in range(TREES):
        node, filters = random_question(random), random_filters(random)
        answer, expected = leg.search(node, filters, MANY), local.search(node, filters, MANY)
        assert is_alike(answer, expected), (node, filters)
        found = leg.definers(["getUserName"], node, filters, MANY)
        wanted = dict(local.definers(["getUserName"], node, filters, MANY))
        assert dict(found) == pytest.approx(wanted, rel=1e-5, abs=1e-9), node
    assert dict(leg.vocabulary()) == dict(local.vocabulary())
    local.close()


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("unit", ["chunk", "page"])
def test_a_leg_of_many_commits_answers_as_one_that_was_made_at_once(
    postgres: PostgresServer, connections: PostgresConnections, unit: str
) -> None:
    random = Random(5)
    store, leg = MemoryStore(), open_leg(connections, unit)
    documents = {document.resource.rid: document for document in random_corpus(random)}
    for _ in range(30):
        changed = random.sample(sorted(documents), random.randint(0, 6))
        written = [with_metadata(documents[rid], title=random.choice(["Pool", "Max"])) for rid in changed]
        store.write(written, random.sample(sorted(documents), random.randint(0, 3)))
        catch_up(store, leg)
    with opened_workspace(ordinary_place(postgres)) as other:
        fresh = open_leg(other, unit)
        fresh.apply(store.changes(0))
        fresh.commit(store.seq())
        again = open_leg(connections, unit)
        assert again.cids() == fresh.cids() == leg.cids()
        assert again.cids()
        for _ in range(TREES):
            node, filters = random_question(random), random_filters(random)
            expected = fresh.search(node, filters, 20)
            assert leg.search(node, filters, 20) == again.search(node, filters, 20) == expected, (node, filters)
        assert sorted(leg.vocabulary()) == sorted(fresh.vocabulary())
        dead = "SELECT count(*) > 0 FROM findling.keyword_segments WHERE ws = %s AND dead <> ''"
        ((had_dead,),) = connections.rows(dead, (connections.ws,))
        dropped = ServerLimitedLegs(connections, store_id="test", unit=unit).drop_stale(store)
        assert bool(dropped) == had_dead
        assert connections.rows(dead, (connections.ws,)) == [(False,)]
        assert again.search(EVERYTHING, Filters(), MANY) == fresh.search(EVERYTHING, Filters(), MANY)


@pytest.mark.usefixtures("_small")
def test_hidden_resources_change_no_byte_of_an_answer(
    postgres: PostgresServer, connections: PostgresConnections
) -> None:
    random = Random(11)
    lists = [("user:ann",), ("user:bob",), ("user:ann", "user:bob"), ("everyone",), None]
    documents = [with_metadata(document, visibility=random.choice(lists)) for document in random_corpus(random)]
    every, legs = MemoryStore(), ServerLimitedLegs(connections, store_id="test", unit="chunk")
    for document in documents:
        every.write([document])
    rights = Rights(["user:ann"], (), unset_is_public=False)
    sight = Sight(rights, Population.of(Audiences(()), every.rights()))
    leg = legs.for_sight(sight, every)
    numbers = {*sight.numbers}
    shown = [change.rid for change in every.changes(0) if change.number in numbers]
    visible = MemoryStore()
    visible.write([document for document in documents if document.resource.rid in shown])
    with opened_workspace(ordinary_place(postgres)) as other:
        twin = open_leg(other)
        catch_up(visible, twin)
        assert 0 < twin.size() < open_leg(connections).size()
        for _ in range(TREES):
            node, filters = random_question(random), random_filters(random)
            limit = random.choice([1, 5, MANY])
            assert leg.search(node, filters, limit) == twin.search(node, filters, limit), (node, filters)
            cids = random.sample(sorted(twin.cids()), 3)
            assert leg.scores(node, cids) == twin.scores(node, cids)
            assert leg.count(node, filters, 1.0, most=9) == twin.count(node, filters, 1.0, most=9)
        assert [*leg.vocabulary()] == [*twin.vocabulary()]
        assert leg.cids() == twin.cids()


def test_a_caller_sees_what_was_written_meanwhile(connections: PostgresConnections) -> None:
    store, legs = MemoryStore(), ServerLimitedLegs(connections, store_id="test", unit="chunk")
    for turn in range(3):
        store.write(
            [line_document(f"a{turn}", ["pool"]), line_document(f"b{turn}", ["pool"], visibility=("user:bob",))]
        )
        sight = Sight(Rights(["user:ann"], (), unset_is_public=True), Population.of(Audiences(()), store.rights()))
        assert legs.for_sight(sight, store).search(Word("pool"), Filters(), 9).total == turn + 1


def test_one_of_two_writers_lands(connections: PostgresConnections) -> None:
    store = MemoryStore()
    store.write([line_document("a", ["pool"])])
    one, other = open_leg(connections), open_leg(connections)
    for leg in (one, other):
        leg.apply(store.changes(0))
    one.commit(store.seq())
    store.write([line_document("b", ["pool"])])
    one.apply(store.changes(1))
    one.commit(store.seq())
    with pytest.raises(ReplacedError, match="another process"):
        other.commit(1)
    assert not other.is_current()
    assert one.is_current()
    assert open_leg(connections).search(Word("pool"), Filters(), 9).total == 2


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("sizes", "joined"),
    [
        ([7_115, 16_654, 15_133], [0, 1, 2]),
        ([38_902, 1_660, 10_019], []),
        ([60_000, 20_000, 12_000, 9_000], [1, 2, 3]),
        ([60_000, 900, 900, 900], []),
        ([30_000, 30_000, 30_000], []),
    ],
    ids=["two outweigh one", "one outweighs two", "what fits into one", "small ones", "more than fits"],
)
def test_large_segments_are_joined_when_the_smaller_ones_outweigh_the_largest(
    sizes: list[int], joined: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_merge, "_AT_ONCE", 8)
    entries = [np.zeros(size, np.int64) for size in sizes]
    heads = [SegmentHead(one, one, one, one, dict.fromkeys(FIELDS, one)) for one in entries]
    segments = [StoredSegment(number, head, BlockDirectory([]), None) for number, head in enumerate(heads)]
    assert [one.number for one in keyword_merge.to_join(segments)] == joined


def test_a_reader_answers_while_segments_are_joined(connections: PostgresConnections) -> None:
    store, writer = MemoryStore(), open_leg(connections)
    for number in range(3):
        store.write([line_document(f"a{number}", [f"pool number w{number}"])])
        catch_up(store, writer)
    reader = open_leg(connections)
    assert reader.size() == 3
    for number in range(3, 30):
        store.write([line_document(f"a{number}", [f"pool number w{number}"])])
        catch_up(store, writer)
        # It may see later entries, or not yet.
        assert 3 <= reader.search(Word("pool"), Filters(), 9).total <= number + 1
        assert reader.search(Term("w1"), Filters(), 9).total == 1
    assert open_leg(connections).search(Word("pool"), Filters(), 9).total == 30


class Forgetful(Known):
    """Heads of segments, of which another thread leaves nothing but the latest."""

    def __setitem__(self, number: int, head: tuple[SegmentHead, BlockDirectory]) -> None:
        self.clear()
        super().__setitem__(number, head)


def test_a_reader_keeps_the_heads_that_another_thread_forgets(connections: PostgresConnections) -> None:
    store, leg, known = MemoryStore(), open_leg(connections), Forgetful()
    for number in range(3):
        store.write([line_document(f"a{number}", ["pool"])])
        catch_up(store, leg)
        with connections.reading() as connection:
            segments = read_segments(connection, connections.ws, UNITS["chunk"], known)
        assert [len(one.head) for one in segments] == [1] * (number + 1)
        assert len(known) == 1


def test_awkward_strings_are_found(connections: PostgresConnections) -> None:
    long = "x" * 5_000
    tags = ("nul\0 tag", "half \ud800", long, "%", "日本")
    store, leg = MemoryStore(), open_leg(connections)
    store.write(
        [
            line_document("a", [f"{long} pool", "\x10 pool"], tags=tags, path=f"src/{long}/a.md"),
            line_document("b", ["other"]),
        ]
    )
    catch_up(store, leg)
    for tag in tags:
        assert leg.search(Word("pool"), Filters(tag=(tag,)), 9).total == 2, tag
    assert leg.search(Field("path", (f"src/{long}/",)), Filters(), 9).total == 2
    assert leg.search(Field("path", ("src/*/a.md",)), Filters(), 9).total == 2


def test_another_store_begins_anew(connections: PostgresConnections) -> None:
    store, leg = MemoryStore(), open_leg(connections)
    store.write([line_document("a", ["pool"])])
    catch_up(store, leg)
    other = PostgresKeywordLeg(connections, store_id="other")
    assert (other.seq(), other.size()) == (0, 0)
    other.apply(store.changes(0))
    other.commit(store.seq())
    assert (other.seq(), other.size()) == (1, 1)
    assert (open_leg(connections).seq(), open_leg(connections).size()) == (0, 0)
    discard_keyword_leg(connections, "chunk")
    assert PostgresKeywordLeg(connections, store_id="other").seq() == 0
    rows = "SELECT (SELECT count(*) FROM findling.keyword_blocks WHERE ws = %s)"
    assert connections.rows(rows, (connections.ws,)) == [(0,)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """The statements of single questions to the server."""
    asked = []
    rows = PostgresConnections.rows

    def noted(self: PostgresConnections, *values: object) -> list[tuple[object, ...]]:
        asked.append(values)
        return rows(self, *values)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresConnections, "rows", noted)
    return asked


def test_a_question_takes_two_round_trips_and_its_positions_no_third(
    connections: PostgresConnections, asked: list[tuple[object, ...]]
) -> None:
    store, leg = MemoryStore(), open_leg(connections)
    store.write(random_corpus(Random(2)))
    catch_up(store, leg)
    leg.size()
    asked.clear()
    leg.search(Any((Word("connection"), Word("get_user_name"), Word("node.js"), Phrase("user error"))), Filters(), 9)
    assert len(asked) == 2
    leg.search(All((Word("connected"), Fuzzy("pol"))), Filters(ext=("py",)), 9)
    assert len(asked) <= 5


def test_a_process_that_goes_on_asking_fetches_the_vocabulary_and_then_postings_alone(
    connections: PostgresConnections, asked: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, leg = MemoryStore(), open_leg(connections)
    monkeypatch.setattr(posting_blocks, "_MOST_BYTES", 60)
    monkeypatch.setattr(server_postings, "_WORTH_ALL", 8)
    words = ("pool", "user", "node", "tree")
    for number in range(3):
        store.write([line_document(f"{number}", [f"{word}s {word}{number}" for word in words])])
        catch_up(store, leg)
    assert len(leg._view().segments) == 3
    asked.clear()
    questions = [Word(word) for word in (*words, "pool1", "user2", "nodes", "trees")]
    answers = [leg.search(question, Filters(), 9) for question in questions]
    whole = [statement for statement, *_ in asked if "ORDER BY segment, block" in str(statement)]
    assert len(whole) == 1, "one round trip for all segments"
    asked.clear()
    leg.search(Any((Word("pools"), Word("user1"), Word("gone"))), Filters(), 9)
    assert len(asked) <= 1
    monkeypatch.setattr(server_postings, "_WORTH_ALL", 0)
    monkeypatch.setattr(server_postings, "PARTS", PartsCache(1 << 20))
    again = open_leg(connections)
    assert [again.search(question, Filters(), 9) for question in questions] == answers
    assert all(answer.hits for answer in answers)


def test_a_question_that_no_cache_holds_ends(connections: PostgresConnections, monkeypatch: pytest.MonkeyPatch) -> None:
    store, leg = MemoryStore(), open_leg(connections)
    store.write(random_corpus(Random(2)))
    catch_up(store, leg)
    node = Any((Word("connection"), Word("get_user_name"), Phrase("user error")))
    expected = leg.search(node, Filters(), 9)
    assert expected.hits
    monkeypatch.setattr(server_postings, "PARTS", PartsCache(1))
    assert open_leg(connections).search(node, Filters(), 9) == expected


WRITER = """
import sys
from findling.stores.postgres.keyword import keyword_leg, keyword_merge
from findling.stores.postgres.keyword.keyword_leg import PostgresKeywordLeg
from findling.stores.postgres.server.connections import PostgresConnections
from findling.stores.postgres.truth.store import PostgresStore
from findling.testing.samples import line_document, with_metadata

keyword_leg._MOST_ENTRIES, keyword_merge._AT_ONCE = 9, 3
with PostgresStore.create(sys.argv[1]) as store:
    connections = PostgresConnections(sys.argv[1])
    leg = PostgresKeywordLeg(connections, store_id="test")
    while True:
        turn = store.seq()
        batch = [line_document(f"r{(turn * 7 + n) % 40}", [f"pool {turn} {n} {k}" for k in range(n)]) for n in range(6)]
        store.write(batch, [f"r{turn % 40}"])
        leg.apply(store.changes(leg.seq()))
        leg.commit(store.seq())
        sys.stdout.write(f"{leg.seq()}\\n")
        sys.stdout.flush()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_writer_leaves_a_leg_that_goes_on(postgres: PostgresServer) -> None:
    place, moments, reported = postgres.place(), Random(3), 0
    for _ in range(KILLS):
        lines = run_and_kill(WRITER, place, moments.uniform(0, 0.5))
        reported = max(reported, *map(int, lines))
        connections = PostgresConnections(place)
        with PostgresStore.open(place) as store:
            leg = PostgresKeywordLeg(connections, store_id="test")
            assert leg.seq() >= reported
            catch_up(store, leg)
            assert leg.cids() == store.chunk_ids()
            found = leg.search(Word("pool"), Filters(), MANY)
            assert {cid for cid, _ in found.hits} == store.chunk_ids()
        rows = connections.rows(
            "SELECT (SELECT count(*) FROM findling.keyword_segments WHERE ws = %s AND is_staged), (SELECT count(*) FROM"
            " findling.keyword_blocks b WHERE ws = %s AND NOT EXISTS (SELECT FROM findling.keyword_segments s"
            " WHERE s.ws = b.ws AND s.unit = b.unit AND s.segment = b.segment))",
            (connections.ws, connections.ws),
        )
        assert rows == [(0, 0)]
        connections.close()
