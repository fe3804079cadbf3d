"""The weight of a word by its count and the length of the passage, the same on disk and in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from findling.domain.ports import KeywordHits, KeywordLeg
from findling.domain.queries import Filters
from findling.domain.resources import Resource
from findling.pipelines.indexing.document_build import text_documents
from findling.pipelines.indexing.fanout import catch_up
from findling.stores.keyword.entries import PADDING, padding
from findling.stores.keyword.leg import TantivyLeg
from findling.stores.keyword.query_builder import counted
from findling.stores.keyword.term_weights import repeated
from findling.testing.samples import line_document
from findling.text.chunking.chunk_plan import ChunkPlan
from findling.text.query.parser import parse
from findling.text.query.query_mode import read
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

LINES = [
    "data of a store",
    "the store of a shop",
    "a shop that sells data and more data",
    "東京の塔と東京の橋",
    "京都の塔",
]


@pytest.fixture(params=["memory", "tantivy"])
def leg(request: pytest.FixtureRequest, tmp_path: Path) -> KeywordLeg:
    made: KeywordLeg = MemoryLeg() if request.param == "memory" else TantivyLeg.open(tmp_path / "leg", store_id="s")
    store = MemoryStore()
    store.write([line_document("a", LINES)])
    catch_up(store, made)
    return made


def found(leg: KeywordLeg, query: str) -> KeywordHits:
    return leg.search(read(parse(query)).node, Filters(), 10)


@pytest.mark.parametrize("query", ["data data", "data data.", "Data, DATA", "data\ndata", "(data) data"])
def test_a_word_counts_as_often_as_it_is_said_whatever_its_spelling(leg: KeywordLeg, query: str) -> None:
    once, twice = found(leg, "data"), found(leg, query)
    assert [cid for cid, _ in twice.hits] == [cid for cid, _ in once.hits]
    assert [score for _, score in twice.hits] == pytest.approx([repeated(2) * score for _, score in once.hits])
    assert twice.ceiling == pytest.approx(repeated(2) * once.ceiling)


def test_what_is_said_more_often_decides(leg: KeywordLeg) -> None:
    stores, shops = found(leg, "store shop store"), found(leg, "shop store shop")
    assert [cid for cid, _ in stores.hits] != [cid for cid, _ in shops.hits]


def test_a_word_of_an_unspaced_script_is_counted_within_a_sentence(leg: KeywordLeg) -> None:
    once, twice = found(leg, "東京の橋"), found(leg, "東京の橋と東京の塔")
    assert twice.ceiling > once.ceiling + 1


def test_a_run_of_a_script_that_nobody_wrote_is_one_unknown_word(leg: KeywordLeg) -> None:
    one, many = found(leg, "data 卡罗"), found(leg, "data 卡罗莱纳黑豹队的防守丢了多少分")
    assert many.ceiling == pytest.approx(one.ceiling)
    known = found(leg, "data 卡罗莱纳黑豹队的防守丢了多少東京")
    assert known.ceiling > 5 * one.ceiling, "pairs that are missing beside known ones are missed"


def test_repetitions_wear_off() -> None:
    worth = [repeated(times) for times in range(1, 50)]
    assert worth[0] == 1.0
    assert worth == sorted(worth)
    assert worth[-1] < 9


def test_compounds_and_their_parts_are_different_words() -> None:
    nodes = read(parse("data-driven data driven data")).node.nodes  # type: ignore[union-attr]
    assert [weight for _, weight in counted(nodes)] == [1.0, repeated(2), 1.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("We met (as always) at the harbour, and then he told me of the ship.", PADDING),
        ("はい、そうです。", 0),
        ("", 0),
        ("def add(self, other=None):\n    self.total = self.total + other.total()\n", 0),
        ('{"name": "x", "items": [1, 2, 3]}', 0),
    ],
)
def test_prose_counts_longer_than_it_is_and_code_does_not(text: str, words: int) -> None:
    assert padding(text) == words


@pytest.mark.parametrize("made", [MemoryLeg, None])
def test_a_few_words_more_say_little(tmp_path: Path, made: Callable[[], KeywordLeg] | None) -> None:
    leg = made() if made else TantivyLeg.open(tmp_path / "leg", store_id="s")
    store = MemoryStore()
    # Twice the words: with b = 0.75 and lengths as they are the shorter one would have 1.4 times the score.
    store.write([line_document("a", ["harbour at noon", "the harbour was full of old ships", *["other words"] * 6])])
    catch_up(store, leg)
    short, long = (score for _, score in found(leg, "harbour").hits)
    assert 1 < short / long < 1.15


def test_padding_is_no_word(tmp_path: Path) -> None:
    leg = TantivyLeg.open(tmp_path / "leg", store_id="s")
    store = MemoryStore()
    store.write([line_document("a", LINES[:3])])
    catch_up(store, leg)
    assert {word for word, _ in leg.vocabulary()} == {word for line in LINES[:3] for word in line.split()} | {"lines"}
    assert not leg.search(read(parse("¤")).node, Filters(), 10).hits


def test_what_has_a_title_alone_is_found_by_it() -> None:
    ((document,),) = text_documents([(Resource(rid="a", title="Two square-root approximations"), "")], ChunkPlan())
    assert [document.text[chunk.start : chunk.end] for chunk in document.chunks] == ["Two square-root approximations"]
