"""Answers, questions and settings are the same after a journey as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import findling
from findling.domain.errors import InvalidValueError
from findling.domain.plans import Plan
from findling.domain.queries import Field, Filters, Range, SearchRequest
from findling.domain.results import (
    AliasMatch,
    Degradation,
    Hit,
    Line,
    Passage,
    Receipt,
    ScorePart,
    SearchAnswer,
    Step,
    Suggestion,
    TermMatch,
)
from findling.service.client.daemon import read_answer, read_request, request_document
from findling.service.settings.portable_settings import read_settings, settings_document
from findling.service.settings.settings import Settings, load_settings


def whole_answer() -> SearchAnswer:
    """An answer with something in every field."""
    line = Line(number=3, text="ünïcode \ud83d", spans=((0, 3), (4, 5)), place="p. 1")
    receipt = Receipt(
        keyword_rank=1,
        keyword_score=0.1 + 0.2,
        fused_score=1 / 3,
        final_score=1e-9,
        parts=(ScorePart(leg="keyword", rank=1, raw=2.0, normalised=0.5, weight=1.0, value=0.5),),
        steps=(Step(name="recency", factor=1.5, reason="new"),),
        matches=(TermMatch(term="a", field="body", forms=("a", "as"), count=2, spans=((1, 2),)),),
        aliases=(AliasMatch(group="g", typed="t", alias="a", count=1),),
        missing=("b",),
        supersedes=("x",),
        superseded_by=("y", "z"),
    )
    passage = Passage(id="p", rid="r", line_start=1, line_end=2, place="", score=0.5, lines=(line,))
    hit = Hit(
        id="1",
        rid="file:a",
        path="a\udcff",
        type="file",
        title="",
        heading=("A", "B"),
        line_start=1,
        line_end=2,
        score=0.75,
        lines=(line,),
        receipt=receipt,
        at=1.5,
        passages=(passage,),
        around=(line,),
    )
    return SearchAnswer(
        query="q",
        understood_as="q",
        hits=(hit,),
        total=7,
        strategy="hybrid",
        degraded=(Degradation(what="w", fix="f"),),
        notes=("n",),
        unknown_terms=("u",),
        did_you_mean=(Suggestion(term="t", suggestion="s", query="q", applied=True),),
        related=(hit,),
        relaxed=(hit,),
        scope={"types": ("decision",), "from": "project file x"},
        timings_ms={"search": 1.25},
        meaning={"coverage": 0.5, "sent_to": []},
        plan={"plan": {"types": []}},
        facets={"ext": {".py": 3}},
        next_cursor="c",
        served_by="somebody",
    )


def test_an_answer_is_the_same_after_a_journey() -> None:
    answer = whole_answer()
    assert read_answer(json.loads(json.dumps(answer.to_dict()))) == answer


def test_a_real_answer_is_the_same_after_a_journey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FINDLING_HOME", str(tmp_path / "home"))
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.md").write_text("# Tokens\n\nA session token is made.\n\n## Tests\n\nAnother token.\n")
    with findling.open(root) as engine:
        answer = engine.search("session tokn", facets=("ext",), explain=True, plan=Plan(group="resource"))
        assert answer.hits
        again = read_answer(json.loads(json.dumps(answer.to_dict())))
    # Inside of a plan lists and tuples mean the same.
    assert replace(again, plan={}) == replace(answer, plan={})
    assert json.dumps(again.plan) == json.dumps(answer.plan)


@pytest.mark.parametrize(
    "damage", [{"schema": 1}, {"hits": [{}]}, {"hits": None}, {"scope": []}, {"surprise": 1}, {"degraded": [1]}]
)
def test_what_is_no_answer_is_refused(damage: dict[str, object]) -> None:
    document = json.loads(json.dumps(whole_answer().to_dict()))
    with pytest.raises(InvalidValueError):
        read_answer({**document, **damage})


@pytest.mark.parametrize(
    "request_",
    [
        SearchRequest(query="plain"),
        SearchRequest(query="q", limit=3, offset=2, facets=("ext", "type"), principals=("user:ann",), explain=True),
        SearchRequest(query="q", principals=(), in_context=False, within="docs", quick=True, timeout_s=1.5),
        SearchRequest(
            query="q",
            filters=Filters(ext=(".py",), after=1.5, where=Field("tag", ("x y", "z"))),
            plan=Plan(mode="keyword", types=("decision",), weights={"title": 3.0}, alpha=0.25),
            exclude_pattern="^#",
            changes={"min_score": 0.1},
            context=2,
            cursor="abc",
            profile="code",
        ),
        SearchRequest(query="q", filters=Filters(where=Range(after=86400.0))),
    ],
)
def test_a_question_is_the_same_after_a_journey(request_: SearchRequest) -> None:
    assert read_request(json.loads(json.dumps(request_document(request_)))) == request_


@pytest.mark.parametrize("document", [{}, {"query": "q", "surprise": 1}, {"query": "q", "plan": {"mode": "magic"}}])
def test_what_is_no_question_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        read_request(document)


def test_settings_are_the_same_after_a_journey(tmp_path: Path) -> None:
    (tmp_path / ".findling.toml").write_text(
        '[search]\nlimit = 3\n[index]\nexclude = ["*.tmp"]\n[context]\ntypes = ["decision"]\n'
        '[profiles.mine]\nmode = "keyword"\nlimit = 4\n[profiles.yours]\nbase = "mine"\nwords = "all"\n'
        '[types.recipe]\nhalf_life_days = 5\nfields = { steps = { place = "body", many = true }, dish = "title" }\n'
    )
    settings = load_settings(tmp_path, environ={"FINDLING_SEARCH_ALPHA": "0.25"})
    settings = settings.override({"search.weak": True}, "flag --set").override({"context.types": ()}, "default")
    again = read_settings(json.loads(json.dumps(settings_document(settings))))
    assert dict(again) == dict(settings)
    assert [again.origin(name) for name in settings] == [settings.origin(name) for name in settings]
    assert again.profiles == settings.profiles
    assert [again.profile_origin(name) for name in again.profiles] == [
        "project file " + str(tmp_path / ".findling.toml")
    ] * 2
    assert {name: asdict(one) for name, one in again.types.items()} == {
        name: asdict(one) for name, one in settings.types.items()
    }
    assert again.types == settings.types


def test_defaults_travel_as_nothing() -> None:
    document = settings_document(Settings())
    assert document == {"values": {}, "profiles": [], "types": []}
    assert dict(read_settings(document)) == dict(Settings())


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"values": {"search.limit": 3}, "profiles": [], "types": []},
        {"values": {"search.magic": [1, "flag"]}, "profiles": [], "types": []},
        {"values": {"search.limit": ["x", "flag"]}, "profiles": [], "types": []},
        {"values": {}, "profiles": [], "types": [{"name": "x", "fields": 3}]},
        {"values": {}, "profiles": [], "types": [{"fields": {}}]},
    ],
)
def test_what_are_no_settings_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(findling.FindlingError):
        read_settings(document)
