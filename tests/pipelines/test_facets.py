"""Facets count resources, not chunks, and say so when they do not count all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import FACETS, Filters, SearchRequest
from findling.domain.resources import Resource
from findling.pipelines.answer.facets import MOST_VALUES, check_facets, count_facets
from findling.pipelines.answer.search import search
from findling.pipelines.indexing.document_build import text_documents
from findling.pipelines.retrieve.legs import Retrievers
from findling.text.chunking.chunk_plan import ChunkPlan
from tests.memory_leg import MemoryLeg
from tests.memory_store import MemoryStore

SPRING_2024, SPRING_2025 = 1_711_000_000.0, 1_743_000_000.0

ITEMS = [
    (
        Resource(rid="file:docs/a.md", path="docs/a.md", lang="markdown", updated_at=SPRING_2024),
        "## One\n\nfalcon\n\n## Two\n\nfalcon again",
    ),
    (Resource(rid="file:docs/sub/b.PY", path="docs/sub/b.PY", lang="python", updated_at=SPRING_2025), "falcon = 1"),
    (Resource(rid="file:.falconrc", path=".falconrc", author="Ann", updated_at=1e300), "falcon"),
    (
        Resource(
            rid="decision:1", type="decision", author="Ann", tags=("birds", "api"), fields={"system": "core, , edge"}
        ),
        "the falcon stays",
    ),
    (Resource(rid="memory:1", type="memory", tags=("birds",)), "nothing to see"),
]


@pytest.fixture
def legs() -> Retrievers:
    store, leg = MemoryStore(), MemoryLeg()
    for batch in text_documents(ITEMS, ChunkPlan(size=20)):
        leg.apply(store.write(batch))
    leg.commit(store.seq())
    return Retrievers(store, leg)


def asked(query: str, *facets: str, **given: object) -> SearchRequest:
    return replace(SearchRequest(query=query, facets=facets, limit=1, plan=Plan(mode="keyword")), **given)  # type: ignore[arg-type]


def test_every_property_is_counted_once_a_resource(legs: Retrievers) -> None:
    answer = search(legs, asked("falcon", *FACETS))
    assert answer.total == 5 and len(answer.hits) == 1
    assert answer.facets == {
        "type": {"file": 3, "decision": 1},
        "ext": {".md": 1, ".py": 1},
        "lang": {"markdown": 1, "python": 1},
        "language": {},
        "author": {"Ann": 2},
        "tag": {"api": 1, "birds": 1},
        "system": {"core": 1, "edge": 1},
        "path": {"docs": 2},
        "year": {"2024": 1, "2025": 1},
        "file": {"docs/a.md": 2, ".falconrc": 1, "decision:1": 1, "docs/sub/b.PY": 1},
        "entity": {},
    }
    assert answer.notes == ("facet entity is empty: this place of the index has no graph",)
    assert list(answer.facets["type"]) == ["file", "decision"]


def test_filters_limit_what_is_counted(legs: Retrievers) -> None:
    answer = search(legs, asked("falcon", "type", filters=Filters(author=("ann",))))
    assert answer.facets == {"type": {"decision": 1, "file": 1}}
    assert search(legs, asked("type:memory", "tag", "type")).facets == {"tag": {"birds": 1}, "type": {"memory": 1}}
    assert search(legs, asked("ostrich", "type")).facets == {"type": {}}


def test_folders_are_those_of_the_part_that_is_asked(legs: Retrievers) -> None:
    answer = search(legs, asked("falcon", "path", within="docs", filters=Filters(path=("docs",))))
    assert answer.facets == {"path": {"sub": 1}}


def test_without_being_asked_nothing_is_counted(legs: Retrievers) -> None:
    assert search(legs, asked("falcon")).facets == {}


def test_an_unknown_facet_is_refused_with_the_list(legs: Retrievers) -> None:
    with pytest.raises(InvalidValueError, match="no facet 'colour'") as refused:
        search(legs, asked("falcon", "type", "colour"))
    assert refused.value.hint == "one of type, ext, lang, language, author, tag, system, path, year, file, entity"
    check_facets(FACETS)


def test_a_count_of_some_matches_says_so(legs: Retrievers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("findling.pipelines.answer.facets.MOST_MATCHES", 2)
    answer = search(legs, asked("falcon", "type"))
    assert sum(answer.facets["type"].values()) == 2
    assert answer.notes == ("facets count the first 2 matches",)


def test_every_author_of_a_chat_is_counted() -> None:
    chats = [Resource(rid=f"chat:{n}", type="chat", author=author) for n, author in enumerate(("Ann, Bob", "Bob", ""))]
    book = Resource(rid="file:book", author="Lima, Ana")
    assert count_facets([*chats, book], ["author"]).counts == {"author": {"Bob": 2, "Ann": 1, "Lima, Ana": 1}}


def test_of_many_values_the_frequent_ones_are_told() -> None:
    many = [Resource(rid=f"n:{n}", tags=(f"tag {n // 2:04}",)) for n in range(2 * MOST_VALUES + 1)]
    counts, notes = count_facets(many, ["tag"])
    assert len(counts["tag"]) == MOST_VALUES and set(counts["tag"].values()) == {2}
    assert notes == ("facet tag tells the 100 most frequent of 101 values",)
