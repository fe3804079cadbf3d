"""Relaxing: where nothing meets a demand, the answer continues without it, apart, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import findling
from findling.domain.plans import Plan

TEXTS = {
    "pool.md": "# Pool\n\nThe connection pool waits for a free connection.\n",
    "cache.md": "# Cache\n\nThe cache keeps a pool of buffers beside redis.\n",
    "router.md": "# Router\n\nThe internet is not working when the router is off.\n",
}


def settings_in(place: Path) -> findling.Settings:
    own = {"store.home": str(place / "home"), "semantic.refine": "never", "semantic.query_budget_ms": 0.0}
    return findling.Settings().override(own, "test")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[findling.Engine]:
    root = tmp_path / "root"
    root.mkdir()
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    with findling.open(root, settings=settings_in(tmp_path)) as opened:
        opened.index()
        yield opened


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
@pytest.mark.parametrize("query", ['"pool connection"', '"pool connection" waits', "connection AND redis"])
def test_a_demand_that_nothing_fulfils_is_dropped_apart(engine: findling.Engine, query: str, mode: str) -> None:
    answer = engine.search(query, refresh=False, plan=Plan(mode=mode, weak=True))
    assert (answer.hits, answer.total) == ((), 0)
    assert {"pool.md", "cache.md"} <= {hit.path for hit in answer.relaxed}
    assert answer.relaxed[0].score > 0
    assert any(note.startswith("nothing has ") and "relaxed" in note for note in answer.notes)
    assert "rank" in answer.plan["relaxed"]["because"]
    assert answer.related == ()


@pytest.mark.parametrize("query", ['"pool connection"', "connection AND redis", "internet AND zebra"])
def test_strict_and_no_relax_stay_empty(engine: findling.Engine, query: str) -> None:
    for answer in (
        engine.search(query, refresh=False, profile="strict"),
        engine.search(query, refresh=False, plan=Plan(relax=False)),
        engine.search(query, refresh=False, plan=Plan(words="all")),
    ):
        assert answer.hits == answer.relaxed == ()
        assert "relaxed" not in answer.plan


def test_what_a_demand_finds_is_not_relaxed(engine: findling.Engine) -> None:
    answer = engine.search('"connection pool" redis', refresh=False)
    assert [hit.path for hit in answer] == ["pool.md"]
    assert answer.relaxed == ()


def test_exclusions_and_filters_are_never_dropped(engine: findling.Engine) -> None:
    answer = engine.search('"pool connection" -redis', refresh=False)
    assert {hit.path for hit in answer.relaxed} == {"pool.md"}
    answer = engine.search("connection AND redis path:cache", refresh=False)
    assert {hit.path for hit in answer.relaxed} == {"cache.md"}
    barred = engine.search('"pool connection"', refresh=False, exclude_pattern="buffers")
    assert {hit.path for hit in barred.relaxed} == {"pool.md"}


def test_an_exclusion_demands_nothing_of_the_other_words(engine: findling.Engine) -> None:
    for query in ("internet not working", "internet not working -docker", "internet not working NOT docker"):
        assert [hit.path for hit in engine.search(query, refresh=False, plan=Plan(mode="keyword"))] == ["router.md"]


def test_a_quote_in_capitals_or_in_a_sentence_finds(engine: findling.Engine) -> None:
    question = 'I AM INTERESTED IN THE CONNECTION OF A POOL AND IN "A ZEBRA"'
    for query in (question, question.capitalize(), "which pool is “waiting for zebras” in the cache, AND why?"):
        answer = engine.search(query, refresh=False, plan=Plan(mode="keyword", weak=True))
        assert {"pool.md", "cache.md"} <= {hit.path for hit in answer}
        assert answer.plan["because"]


def test_several_workspaces_relax_only_when_all_are_empty(engine: findling.Engine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with findling.open(other, settings=settings_in(tmp_path)) as elsewhere:
        found = elsewhere.search('"pool connection"', scope=str(engine.root))
        assert found.hits == ()
        assert {(hit.workspace, hit.path) for hit in found.relaxed} == {
            (str(engine.root), "pool.md"),
            (str(engine.root), "cache.md"),
        }
        assert elsewhere.search('"connection pool"', scope=str(engine.root)).relaxed == ()
