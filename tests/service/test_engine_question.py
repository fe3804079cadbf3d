"""Questions are understood, and answers can be explained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.plans import Plan
from findling.domain.queries import Filters, SearchRequest
from findling.domain.resources import Resource
from findling.domain.results import SCHEMA_VERSION, SearchAnswer
from findling.service.engine.engine import Engine, open_engine
from findling.service.settings.settings import Settings

DECISIONS = {
    "auth": ("Sessions expire", "Auth by session cookie, with a token for machines.", {}),
    "jwt": ("Tokens instead of sessions", "Auth tokens replace cookies for every client.", {}),
    "login": ("Sign-in page", "The sign-in form asks for a password and nothing else.", {"system": "web"}),
    "throttle": ("Quota", "A quota and a throttle protect authentication from floods.", {"system": "auth,web"}),
    "limit": ("Limits", "The rate limit of auth is ten requests a minute.", {"system": "auth"}),
    "women": ("여성", "이 여자는 30대이다.", {}),
    "men": ("남성", "이 여자는 남자와 산다.", {}),
    "fifty": ("50대", "그 여자는 50대의 여자이다.", {}),
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    root = tmp_path / "root"
    root.mkdir()
    with open_engine(root, settings=_settings(tmp_path)) as opened:
        items = [
            (
                Resource(rid=f"d:{name}", type="decision", title=title, fields=fields, updated_at=1_700_000_000.0 + i),
                text,
            )
            for i, (name, (title, text, fields)) in enumerate(DECISIONS.items())
        ]
        opened.add(items)
        yield opened


def _settings(tmp_path: Path, **changes: object) -> Settings:
    own = {"store.home": str(tmp_path / "home"), "semantic.refine": "never", "search.mode": "keyword"}
    return Settings().override({**own, **changes}, "test")


def _rids(answer: SearchAnswer) -> set[str]:
    return {hit.rid.removeprefix("d:") for hit in answer}


def _ask(engine: Engine, query: str, **options: Any) -> SearchAnswer:
    return engine.search(query, refresh=False, limit=50, **options)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('auth -"session cookie"', {"jwt", "limit"}),
        ("auth OR password", {"auth", "jwt", "login", "limit"}),
        ("여자 -남자 -50대", {"women"}),
        ("여자", {"women", "men", "fifty"}),
        ("auth rate OR cookie", {"auth", "jwt", "limit"}),
        ("sign-in -password", set()),
        ("(auth OR quota) -cookies", {"limit", "throttle"}),
        ('(auth OR quota) -"cookies"', {"auth", "limit", "throttle"}),
        ("thrott*", {"throttle"}),
        ("pasword~", {"login"}),
        ("rate NEAR/3 auth", {"limit"}),
        ("ten NEAR/1 rate", set()),
        ("title:tokens", {"jwt"}),
        ("auth system:auth", {"limit"}),
        ("system:web", {"login", "throttle"}),
        ("-auth", {"login", "throttle", "women", "men", "fifty"}),
        ("!!!", set()),
    ],
)
def test_the_language_is_understood(engine: Engine, query: str, found: set[str]) -> None:
    answer = _ask(engine, query)
    assert _rids(answer) == found, answer.understood_as


def test_the_reading_of_a_query_is_told(engine: Engine) -> None:
    plain = _ask(engine, "auth cookie")
    assert (plain.reading, plain.understood_as) == ("ranked", "auth OR cookie")
    assert len(plain) > len(_ask(engine, "auth cookie", profile="strict"))
    boolean = _ask(engine, "auth AND cookie")
    assert (boolean.reading, boolean.understood_as) == ("boolean", "auth AND cookie")
    assert "AND" in boolean.plan["because"]
    latest = _ask(engine, "system:web")
    assert (latest.reading, latest.strategy) == ("browse", "browse")
    assert [hit.rid for hit in latest] == ["d:throttle", "d:login"]


def test_a_negated_clause_does_not_flatten_scores(engine: Engine) -> None:
    plain = {hit.id: hit.score for hit in _ask(engine, "auth OR tokens")}
    without = {hit.id: hit.score for hit in _ask(engine, "(auth OR tokens) -requests")}
    assert len(set(without.values())) > 1
    assert without == {id_: score for id_, score in plain.items() if id_ in without}


def test_the_glossary_widens_a_query_and_every_alias_stands_in_the_receipt(engine: Engine) -> None:
    engine.glossary.add("auth", ["authentication", "sign-in"])
    engine.glossary.add("rate limit", ["throttle", "quota"])
    answer = _ask(engine, "auth rate limit", profile="strict")
    assert answer.understood_as == '(auth | authentication | sign-in) AND ("rate limit" | throttle | quota)'
    assert _rids(answer) == {"throttle", "limit"}
    (hit,) = [hit for hit in answer if hit.rid == "d:throttle"]
    fired = {(alias.group, alias.typed, alias.alias) for alias in hit.receipt.aliases}
    assert fired == {
        ("auth", "auth", "authentication"),
        ("rate limit", '"rate limit"', "throttle"),
        ("rate limit", '"rate limit"', "quota"),
    }
    assert not hit.receipt.missing
    assert {fired["group"] for fired in answer.plan["glossary"]} == {"auth", "rate limit"}
    ranked = _ask(engine, "auth rate limit", plan=Plan(mode="keyword", weak=True))
    assert _rids(ranked) >= {"throttle", "limit", "auth", "jwt"}
    off = _ask(engine, "auth rate limit", plan=Plan(mode="keyword", glossary=False))
    assert "throttle" not in _rids(off)


def test_the_glossary_leaves_phrases_and_exclusions_alone(engine: Engine) -> None:
    engine.glossary.add("auth", ["authentication", "sign-in"])
    assert _rids(_ask(engine, '"auth"')) == {"auth", "jwt", "limit"}
    assert "throttle" in _rids(_ask(engine, "quota -auth"))
    engine.glossary.protect("auth")
    assert "throttle" not in _rids(_ask(engine, "auth"))


def test_a_superseded_decision_ranks_below_its_successor_and_says_so(engine: Engine) -> None:
    old = Resource(rid="d:old", type="decision", title="Deploy by hand")
    new = Resource(rid="d:new", type="decision", title="Pipelines", fields={"supersedes": "d:old"})
    newest = Resource(rid="d:newest", type="decision", title="Later", fields={"supersedes": "d:new"})
    engine.add([(old, "Deploy deploy deploy by hand"), (new, "Deploy by a pipeline of many many words and steps")])
    engine.add([(newest, "We still deploy, though in an entirely different way that takes more words than before")])
    answer = _ask(engine, "deploy")
    assert [hit.rid for hit in answer] == ["d:newest", "d:new", "d:old"]
    first, _, last = answer.hits
    assert last.receipt.superseded_by == ("d:new", "d:newest")
    assert first.receipt.supersedes == ("d:new", "d:old")
    assert last.receipt.steps[-1].name == "superseded" and "d:newest" in last.receipt.steps[-1].reason
    assert [hit.rid for hit in _ask(engine, "deploy", profile="decisions")] == ["d:newest"]
    assert len(_ask(engine, "deploy in:history", profile="decisions")) == 3
    assert {hit.rid for hit in _ask(engine, "deploy is:superseded")} == {"d:old", "d:new"}
    assert {hit.rid for hit in _ask(engine, "deploy is:head")} == {"d:newest"}


def test_a_misspelled_word_is_put_right_and_the_answer_says_so(engine: Engine) -> None:
    answer = _ask(engine, "pasword form")
    assert answer.hits[0].rid == "d:login"
    (meant,) = answer.did_you_mean
    assert (meant.term, meant.suggestion, meant.applied) == ("pasword", "password", True)
    assert "pasword" in answer.unknown_terms
    assert any(match.term == "password" for match in answer.hits[0].receipt.matches)
    assert "pasword" not in answer.hits[0].receipt.missing
    assert not _ask(engine, "password form").did_you_mean


def test_punctuation_does_not_hide_a_misspelled_word(engine: Engine) -> None:
    answer = _ask(engine, "where is the pasword, please?")
    assert [meant.query for meant in answer.did_you_mean] == ["where is the password, please?"]
    assert answer.hits[0].rid == "d:login"


def test_strict_suggests_and_does_not_search_for_what_was_not_asked(engine: Engine) -> None:
    answer = _ask(engine, "pasword", profile="strict")
    assert not answer.hits
    (meant,) = answer.did_you_mean
    assert (meant.suggestion, meant.applied, meant.query) == ("password", False, "password")


def test_an_empty_answer_says_why(engine: Engine) -> None:
    assert "no letter" in _ask(engine, "???").notes[0]
    (note,) = _ask(engine, "auth", filters=Filters(type=("chat",))).notes
    assert "3 passages match without the filters" in note
    why, relaxed = _ask(engine, "ten AND floods").notes
    assert "no passage has all" in why
    assert "nothing has ten AND floods" in relaxed


def test_a_plan_can_be_carried_out_again(engine: Engine) -> None:
    from findling.pipelines.retrieve.plan_files import read_filters, read_plan

    plan = Plan(mode="keyword", words="all", weights={"title": 3.0}, phrase_boost=1.5)
    filters = Filters(type=("decision",))
    answer = _ask(engine, "auth tokens", plan=plan, filters=filters)
    planned = json.loads(json.dumps(answer.plan))
    again = SearchRequest(
        query=planned["query"],
        limit=planned["limit"],
        plan=read_plan(planned["plan"]),
        filters=read_filters(planned["filters"]),
    )
    assert again.plan == replace(plan, rerank_depth=0), "nothing asked for a judge"
    assert engine.search(again, refresh=False).hits == answer.hits


def test_weights_of_fields_are_those_of_the_plan(engine: Engine) -> None:
    engine.add([(Resource(rid="d:title", type="decision", title="zebra"), "striped animal of the plains of Africa")])
    engine.add([(Resource(rid="d:body", type="decision", title="horse"), "a zebra is one, zebra")])
    heavy = _ask(engine, "zebra", plan=Plan(mode="keyword", weights={"title": 30.0}))
    light = _ask(engine, "zebra", plan=Plan(mode="keyword", weights={"title": 0.0}))
    assert heavy.hits[0].rid == "d:title"
    assert [hit.rid for hit in light] == ["d:body"]


def test_explain_says_what_keeps_a_document_out(engine: Engine) -> None:
    told = engine.explain("auth", "d:login", refresh=False)
    assert not told.found and told.rank == 0
    assert told.reasons == ("it does not have auth",)
    told = engine.explain("auth type:chat", "d:auth", refresh=False)
    assert ("type:chat", False) in told.filters
    assert "type:chat" in told.reasons[0]
    told = engine.explain("auth OR tokens", "d:limit", refresh=False, limit=1)
    assert not told.found and told.rank > 1 and f"it is hit {told.rank}" in told.reasons[0]
    told = engine.explain("auth -cookie", "d:auth", refresh=False)
    assert any("excludes" in reason for reason in told.reasons)
    told = engine.explain("auth", "d:jwt", refresh=False)
    assert told.found and told.hit is not None and told.hit.receipt.keyword_rank == told.rank
    with pytest.raises(NotFoundError, match="no-such-thing"):
        engine.explain("auth", "no-such-thing", refresh=False)
    with pytest.raises(NotFoundError, match="there is no d:jwt in the index"):
        engine.explain("auth", "d:jwt", refresh=False, principals=("user:nobody",))


def test_unknown_profiles_and_knobs_are_errors(engine: Engine) -> None:
    with pytest.raises(InvalidValueError, match="strikt"):
        _ask(engine, "auth", profile="strikt")
    with pytest.raises(InvalidValueError, match="subtitle"):
        _ask(engine, "auth", plan=Plan(weights={"subtitle": 2.0}))


@pytest.mark.parametrize("query", ["auth token", '"nobody wrote this" auth', "authh tokenn", "auth OR -zebra"])
def test_a_dict_of_an_answer_is_what_dataclasses_make_of_it(engine: Engine, query: str) -> None:
    answer = _ask(engine, query, explain=True, group="thread", facets=("type",))
    for made in (answer, engine.explain(query, "d:jwt")):
        # As text, in which a list is no tuple, and the order of keys shows.
        assert repr(made.to_dict()) == repr({"schema": SCHEMA_VERSION, **asdict(made)})
    assert json.loads(json.dumps(answer.to_dict()))["query"] == query
