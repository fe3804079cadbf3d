"""Typed text is completed with indexed words and titles, and corrected when nobody wrote it."""

from __future__ import annotations

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.resources import Resource
from findling.pipelines.indexing.document_build import text_documents
from findling.pipelines.lookup.suggest import Completion, suggest
from findling.pipelines.retrieve.legs import Retrievers
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

ITEMS = [
    ("n:1", "Connection pools", "A connection waits for the connector in the pool"),
    ("n:2", "Connection errors", "The connection was lost and the connoisseur left"),
    ("n:3", "Café life", "Nobody has a connection at the café, only the cafeteria"),
    ("n:4", "", "getUserName and parse_url, C++ and 数据库"),
]


@pytest.fixture
def legs() -> Retrievers:
    store, leg = MemoryStore(), MemoryLeg()
    items = [(Resource(rid=rid, type="note", title=title), text) for rid, title, text in ITEMS]
    for batch in text_documents(items, ChunkPlan()):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    return Retrievers(store, leg)


def texts(legs: Retrievers, typed: str, kind: str, limit: int = 10) -> list[str]:
    return [one.text for one in suggest(legs, typed, limit) if one.kind == kind]


def test_the_last_word_is_completed_by_frequency(legs: Retrievers) -> None:
    assert suggest(legs, "a lost conn", 10)[:3] == (
        Completion(text="a lost connection", kind="word", count=3),
        Completion(text="a lost connector", kind="word", count=1),
        Completion(text="a lost connoisseur", kind="word", count=1),
    )
    assert texts(legs, "Conn", "word")[0] == "connection"


def test_a_word_that_is_complete_is_no_completion_of_itself(legs: Retrievers) -> None:
    assert texts(legs, "connection", "word") == []
    assert texts(legs, "pool", "word") == ["pools"]


def test_titles_with_all_the_words_follow(legs: Retrievers) -> None:
    assert [one for one in suggest(legs, "connection po") if one.kind == "title"] == [
        Completion(text="Connection pools", kind="title", rid="n:1")
    ]
    assert sorted(texts(legs, "conn", "title")) == ["Connection errors", "Connection pools"]
    assert sorted(texts(legs, "connection ", "title")) == ["Connection errors", "Connection pools"]
    assert texts(legs, "connection cafe", "title") == []


def test_accents_and_other_scripts_are_no_obstacle(legs: Retrievers) -> None:
    assert texts(legs, "caf", "word") == ["cafe", "cafeteria"]
    assert texts(legs, "the café", "title") == []
    assert texts(legs, "café", "title") == ["Café life"]
    assert texts(legs, "cafe\u0301", "word") == ["cafeteria"]


def test_what_nobody_wrote_is_put_right(legs: Retrievers) -> None:
    assert texts(legs, "conection po", "spelling") == ["connection po"]
    assert texts(legs, "conection po", "word") == ["connection pool", "connection pools"]
    assert texts(legs, "conection po", "title") == ["Connection pools"]
    assert texts(legs, "lost conecttion", "spelling") == ["lost connection"]
    assert texts(legs, "lost connection", "spelling") == []
    assert suggest(legs, "zzzzqqq") == ()


def test_a_few_are_shared_between_words_and_titles(legs: Retrievers) -> None:
    assert [one.kind for one in suggest(legs, "conn", 4)] == ["word", "word", "title", "title"]
    assert [one.kind for one in suggest(legs, "conn", 1)] == ["word"]
    assert suggest(legs, "conn", 0) == ()


@pytest.mark.parametrize("typed", ["", "  ", "-", '"'])
def test_without_a_word_there_is_nothing_to_complete(legs: Retrievers, typed: str) -> None:
    with pytest.raises(InvalidValueError, match="no word"):
        suggest(legs, typed)
    with pytest.raises(InvalidValueError, match="limit -1"):
        suggest(legs, "conn", -1)


@pytest.mark.parametrize("typed", ["getUserN", "parse_u", "C+", "数", '"lost conn', "title:conn", "a AND (b", "x~"])
def test_whatever_is_typed_is_answered(legs: Retrievers, typed: str) -> None:
    assert all(one.text for one in suggest(legs, typed))
