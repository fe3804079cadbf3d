"""A search that is limited to types: the same however it is said, and as the types want it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from findling.domain.plans import Plan
from findling.domain.queries import Filters, SearchRequest
from findling.pipelines.content.resource_types import half_life_of, replaces_only, weights_of
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings, load_settings, plan_of
from findling.service.workspace.scope import prepared

OWN = """
[search]
mode = "keyword"
[semantic]
refine = "never"
[types.bulletin]
half_life_days = 0
immutable = true
weights = { title = 9.0 }
[profiles.all]
search.heads = false
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "root").mkdir()
    (tmp_path / "own.toml").write_text(OWN)
    environ = {"FINDLING_CONFIG": str(tmp_path / "own.toml"), "FINDLING_HOME": str(tmp_path / "home")}
    return load_settings(tmp_path / "root", environ=environ)


@pytest.fixture
def engine(settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    with open_engine(tmp_path / "root", settings=settings) as opened:
        opened.items.add(
            [
                {"type": "bulletin", "id": "b1", "title": "Okapi", "updated_at": "2020-01-01"},
                {"type": "bulletin", "id": "b2", "title": "Okapi again", "supersedes": "b1"},
                {"type": "decision", "id": "d1", "title": "Feed the okapi"},
                {"type": "decision", "id": "d2", "title": "Feed the okapi twice", "supersedes": "d1"},
            ]
        )
        yield opened


def plan(settings: Settings, query: str, profile: str = "", **filters: tuple[str, ...]) -> Plan:
    request = SearchRequest(query=query, profile=profile, filters=Filters(**filters))  # type: ignore[arg-type]
    found = prepared(request, settings, "", lambda name: plan_of(settings, name)).request.plan
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name", ["decision", "Decision", "bulletin", "task", "tool,directive", "decision,task", "gone"]
)
def test_a_type_in_the_query_is_as_good_as_a_filter(settings: Settings, name: str) -> None:
    asked = plan(settings, "okapi", type=tuple(name.split(",")))
    assert plan(settings, f"type:{name} okapi") == plan(settings, f"okapi TYPE:{name}") == asked
    assert asked.heads == (name.lower() in ("decision", "bulletin"))
    assert (asked.weights == {}) == (name in ("gone",)), "decision and task agree"


@pytest.mark.parametrize("query", ["okapi", "type:decision OR okapi", "-type:decision okapi", '"type:decision"'])
def test_a_query_that_is_not_limited_is_searched_as_any_other(settings: Settings, query: str) -> None:
    assert plan(settings, query) == replace(plan_of(settings), rerank_depth=0)


def test_what_was_superseded_is_left_out_by_a_type_in_the_query(engine: Engine) -> None:
    def rids(query: str, **options: Any) -> list[str]:
        return [hit.rid for hit in engine.search(query, refresh=False, **options)]

    assert rids("type:decision okapi") == rids("okapi", filters=Filters(type=("decision",))) == ["decision:d2"]
    assert rids("type:decision in:history okapi") == ["decision:d2", "decision:d1"]
    assert rids("type:decision okapi", plan=Plan(mode="keyword")) == ["decision:d2", "decision:d1"]
    assert rids("type:decision okapi", profile="all") == ["decision:d2", "decision:d1"]


def test_heads_that_the_user_set_stay(settings: Settings) -> None:
    assert plan(settings, "type:decision okapi").heads
    request = SearchRequest(query="type:decision okapi", changes={"heads": False})
    told = prepared(request, settings, "", lambda name: plan_of(settings, name)).request.plan
    assert told is not None and not told.heads


def test_types_of_the_context_yield_to_a_type_in_the_query(settings: Settings) -> None:
    changed = settings.override({"context.types": ["task"]}, "test")
    request = SearchRequest(query="type:decision okapi")
    assert prepared(request, changed, "", lambda name: plan_of(changed, name)).filters.type == ()


def test_a_type_of_the_settings_ages_as_they_say(engine: Engine) -> None:
    def aged(profile_plan: Plan) -> set[str]:
        answer = engine.search("okapi", refresh=False, plan=profile_plan)
        return {hit.rid for hit in answer for step in hit.receipt.steps if step.name == "recency"}

    boosted = replace(plan_of(engine._settings), boosts=True)
    assert boosted.half_lives == {"bulletin": 0.0}
    assert aged(boosted) == set(), "neither bulletins nor decisions age"
    assert aged(replace(boosted, half_lives={"bulletin": 1e6})) == {"bulletin:b1", "bulletin:b2"}
    assert aged(replace(boosted, half_lives={})) == {"bulletin:b2"}, (
        "six years are too long for a type that nobody knows"
    )


MODULE = """
from findling.domain.resources import ResourceType
GAZETTE = ResourceType(name="gazette", half_life_days=7.0, immutable=True, weights={"title": 4.0})
"""


def test_a_search_knows_the_types_of_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert weights_of(["gazette"]) == {}
    (tmp_path / "gazette_types.py").write_text(MODULE)
    info = tmp_path / "gazette-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gazette\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[findling.types]\ngazette = gazette_types:GAZETTE\nbroken = gazette_types:NOTHING\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (weights_of(["gazette"]), half_life_of("gazette"), replaces_only(["gazette"])) == ({"title": 4.0}, 7.0, True)
    assert (weights_of(["broken"]), half_life_of("broken"), replaces_only(["broken"])) == (
        {},
        half_life_of("gone"),
        False,
    )
