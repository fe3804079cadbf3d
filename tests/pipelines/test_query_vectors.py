"""A query is read once by each model, as long as it is among the latest ones."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

from findling.domain.errors import ModelError
from findling.models.local.instant import InstantEmbedder
from findling.pipelines.retrieve.vector_retrieval import MOST_QUERIES, query_vector

if TYPE_CHECKING:
    from findling.domain.ports import Vectors


class _Counting(InstantEmbedder):
    """The real embedder, which notes what it reads."""

    def __init__(self) -> None:
        self.read: list[tuple[str, str]] = []
        self.fails = False

    def embed(self, texts: Sequence[str], kind: str = "passage") -> Vectors:
        if self.fails:
            raise ModelError("the model is gone")
        self.read += [(text, kind) for text in texts]
        return super().embed(texts, kind)


def test_a_query_is_read_once_and_has_the_vector_the_model_gives() -> None:
    embedder = _Counting()
    first, again = query_vector(embedder, "stale index"), query_vector(embedder, "stale index")
    assert embedder.read == [("stale index", "query")]
    expected = InstantEmbedder().embed(["stale index"], "query")[0]
    assert np.array_equal(first, expected)
    assert np.array_equal(again, expected)


def test_each_model_has_its_own() -> None:
    one, other = _Counting(), _Counting()
    query_vector(one, "stale index")
    query_vector(other, "stale index")
    assert one.read == other.read == [("stale index", "query")]


def test_what_was_asked_longest_ago_makes_room() -> None:
    embedder = _Counting()
    query_vector(embedder, "first")
    query_vector(embedder, "second")
    for number in range(MOST_QUERIES - 1):
        query_vector(embedder, f"number {number}")
        query_vector(embedder, "first")  # asked again, so it stays
    embedder.read.clear()
    query_vector(embedder, "first")
    query_vector(embedder, "second")
    assert embedder.read == [("second", "query")]


def test_nobody_can_change_what_others_have() -> None:
    vector = query_vector(_Counting(), "stale index")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1.0


def test_a_failure_is_not_kept() -> None:
    embedder = _Counting()
    embedder.fails = True
    with pytest.raises(ModelError):
        query_vector(embedder, "stale index")
    embedder.fails = False
    assert query_vector(embedder, "stale index").any()


def test_a_model_that_nobody_uses_any_more_goes_with_its_vectors() -> None:
    embedder = _Counting()
    query_vector(embedder, "stale index")
    gone = weakref.ref(embedder)
    del embedder
    gc.collect()
    assert gone() is None


def test_many_threads_get_the_same() -> None:
    embedder = _Counting()
    queries = [f"query {number % 7}" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda query: query_vector(embedder, query), queries))
    expected = {query: InstantEmbedder().embed([query], "query")[0] for query in set(queries)}
    assert all(np.array_equal(vector, expected[query]) for query, vector in zip(queries, vectors, strict=True))
    assert len(embedder.read) < 100
