"""Plans and filters written down and read again."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from typing import Any as Anything

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.domain.errors import InvalidValueError
from findling.domain.plans import FIELDS, FUSIONS, KNOBS, MODES, TYPOS, WORDS, Plan
from findling.domain.queries import All, Any, Field, Filters, Node, Not, Phrase, Range, SearchRequest, Term
from findling.domain.values import plain
from findling.pipelines.retrieve.plan_files import filters_document, read_filters, read_plan
from findling.pipelines.retrieve.query_planner import check_request
from findling.service.settings.settings import PROFILES, Settings, plan_of
from findling.service.workspace.scope import prepared
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(150, short=50))

shares, factors, amounts = st.floats(0, 1), st.floats(1, 10), st.floats(0, 1e300)
plans = st.builds(
    Plan,
    profile=st.text(max_size=8),
    mode=st.sampled_from(MODES),
    words=st.sampled_from(WORDS),
    glossary=st.booleans(),
    typos=st.sampled_from(TYPOS),
    meaning_finds=st.booleans(),
    relax=st.booleans(),
    related=st.integers(0, 1000),
    route=st.booleans(),
    types=st.lists(st.text(max_size=8), max_size=3).map(tuple),
    heads=st.booleans(),
    weights=st.dictionaries(st.sampled_from(FIELDS), amounts),
    fusion=st.sampled_from(FUSIONS),
    alpha=st.none() | shares,
    rrf_k=amounts,
    overfetch=st.floats(1, 1e300),
    min_score=shares,
    feedback=st.booleans(),
    boosts=st.booleans(),
    exact_boost=factors,
    prefix_boost=factors,
    phrase_boost=factors,
    collapse=st.booleans(),
    diversity=shares,
    adaptive_k=st.booleans(),
    rerank_depth=st.integers(1, 10**6),
    budget_ms=amounts,
)


@no_deadline
@given(plan=plans)
def test_a_plan_comes_back_as_it_was(plan: Plan) -> None:
    document = plain(plan)
    assert list(document) == [field.name for field in fields(Plan)]
    assert read_plan(json.loads(json.dumps(document))) == plan


def test_the_document_is_a_copy() -> None:
    plan = Plan(types=("memory",), weights={"title": 3.0})
    document = plain(plan)
    document["weights"]["title"] = 5.0
    document["types"].append("mail")
    document["mode"] = "keyword"
    assert plan == Plan(types=("memory",), weights={"title": 3.0})


def test_what_is_not_there_has_its_default() -> None:
    assert read_plan({}) == Plan()
    assert read_plan({"mode": "keyword", "rrf_k": 20}) == Plan(mode="keyword", rrf_k=20.0)
    assert isinstance(read_plan({"rrf_k": 20}).rrf_k, float)


def test_plans_of_all_profiles_come_back() -> None:
    for name in PROFILES:
        plan = plan_of(Settings(), name)
        assert read_plan(json.loads(json.dumps(plain(plan)))) == plan


@pytest.mark.parametrize(
    ("document", "message", "hint"),
    [
        ({"mod": "keyword"}, "plan: nothing is called mod", "mode instead"),
        ({"zzzz": 1}, "plan: nothing is called zzzz", "there are: profile, mode"),
        ({"mode": "words"}, "plan: mode must be hybrid or keyword or semantic, not 'words'", "mode"),
        ({"mode": None}, "plan: mode must be hybrid or keyword or semantic, not null", "mode"),
        ({"boosts": 1}, "plan: boosts must be true or false, not 1", "boosts"),
        ({"related": 1.5}, "plan: related must be a whole number of at least 0 and at most 1000, not 1.5", "related"),
        ({"related": True}, "related must be a whole number", "related"),
        ({"rerank_depth": -1}, "rerank_depth must be a whole number of at least 0 or null, not -1", "rerank_depth"),
        ({"alpha": 1.1}, "alpha must be a number of at least 0 and at most 1 or null, not 1.1", "alpha"),
        ({"rrf_k": float("nan")}, "rrf_k must be a number of at least 0, not nan", "rrf_k"),
        ({"rrf_k": float("inf")}, "rrf_k must be a number of at least 0, not inf", "rrf_k"),
        ({"rrf_k": 10**400}, "rrf_k must be a number of at least 0", "rrf_k"),
        ({"exact_boost": 0.5}, "exact_boost must be a number of at least 1 and at most 10", "exact_boost"),
        ({"types": "memory"}, "types must be a list of texts, not 'memory'", "types"),
        ({"types": ["memory", 3]}, "types must be a list of texts", "types"),
        ({"weights": {"titel": 1}}, "weights must be numbers of at least 0 under any of body, title", "weights"),
        ({"weights": {"title": -1}}, "weights must be numbers of at least 0", "weights"),
        ({"weights": {"title": "3"}}, "weights must be numbers", "weights"),
        ({"weights": [1]}, "weights must be numbers", "weights"),
    ],
)
def test_what_does_not_fit_is_named(document: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_plan(document)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("document", [[], "mode", 3, None])
def test_a_plan_is_a_table(document: Anything) -> None:
    with pytest.raises(InvalidValueError, match="plan must be a table"):
        read_plan(document)
    with pytest.raises(InvalidValueError, match="filters must be a table"):
        read_filters(document)


def check_plan(plan: Plan) -> None:
    """Prepare a request that brings its plan."""
    prepared(SearchRequest(query="tea", plan=plan), Settings(), "", lambda _: Plan())


def test_weights_have_bounds() -> None:
    check_plan(Plan(weights={"title": 5000.0}))
    with pytest.raises(InvalidValueError, match="weights must be numbers of at least 0"):
        check_plan(Plan(weights={"title": -1.0}))


@pytest.mark.parametrize("name", [name for name, rule in KNOBS.items() if rule.kind in ("count", "number")])
def test_a_plan_has_the_same_bounds_in_a_file_and_in_a_request(name: str) -> None:
    rule = KNOBS[name]
    least = int(rule.minimum) if rule.kind == "count" else rule.minimum
    for value in (least, least - 1, min(rule.maximum, 10**7), rule.maximum + 1, float("nan")):
        values: dict[str, Anything] = {name: value}
        plan = Plan(**values)
        fits = rule.minimum <= value <= min(rule.maximum, 1e300)
        for check in (check_plan, lambda plan: read_plan(plain(plan))):
            if fits:
                check(plan)
            else:
                with pytest.raises(InvalidValueError, match=f"plan: {name} must be"):
                    check(plan)


@no_deadline
@given(plan=plans)
def test_a_plan_that_can_be_read_can_be_carried_out(plan: Plan) -> None:
    check_plan(plan)


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize("moment", [float("nan"), "2024"])
def test_a_time_that_is_no_number_is_refused(name: str, moment: Anything) -> None:
    limits: Anything = {name: moment}
    for filters in (Filters(**limits), Filters(where=Not(Range(**limits)))):
        with pytest.raises(InvalidValueError, match=f"{name} must be a number, not {moment!r}"):
            check_request(SearchRequest(query="tea", filters=filters), Plan())
    check_request(SearchRequest(query="tea", filters=Filters(after=0, before=float("inf"))), Plan())


@pytest.mark.parametrize("leaf", [Term("x"), Phrase("x y", "title")])
def test_a_filter_that_asks_for_text_is_refused(leaf: Node) -> None:
    for where in (leaf, Not(leaf), All((Field("ext", ("py",)), Any((leaf,))))):
        with pytest.raises(InvalidValueError, match=r"`.*x.*` asks for text"):
            check_request(SearchRequest(query="tea", filters=Filters(where=where)), Plan())
        with pytest.raises(InvalidValueError, match="where is about more than resources"):
            read_filters(filters_document(Filters(where=where)))


def test_a_filter_of_conditions_is_accepted_whatever_they_are() -> None:
    head = Field("is", ("head",))
    for where in (head, Not(head), All((Field("path", ("src",)), head)), Any((Range(after=5.5), head)), Any(())):
        check_request(SearchRequest(query="tea", filters=Filters(where=where)), Plan())
    assert read_filters({"where": "-is:head path:src"}).where == All((Not(head), Field("path", ("src",))))
    with pytest.raises(InvalidValueError, match="no property 'colour'"):
        check_request(SearchRequest(query="tea", filters=Filters(where=Field("colour", ("red",)))), Plan())


words = st.text("abcdefgh0123", min_size=1, max_size=6)
names = st.sampled_from(("path", "ext", "lang", "type", "tag", "system", "author"))
values = st.lists(words, min_size=1, max_size=2, unique=True).map(tuple)
days = st.integers(0, 9000).map(lambda day: datetime.fromordinal(722_000 + day).timestamp())
leaves: st.SearchStrategy[Node] = st.builds(Field, names, values) | st.builds(Range, days, st.none())
different = st.lists(leaves, min_size=2, max_size=3, unique_by=lambda leaf: getattr(leaf, "name", "range")).map(tuple)
trees: st.SearchStrategy[Node] = leaves | st.builds(Not, leaves) | st.builds(Any, different) | st.builds(All, different)
texts = st.lists(st.text(min_size=1, max_size=8), max_size=3).map(tuple)
limits = st.builds(
    Filters,
    ext=texts,
    not_ext=texts,
    path=texts,
    type=texts,
    lang=texts,
    tag=texts,
    author=texts,
    after=st.none() | st.floats(-1e12, 1e12),
    before=st.none() | st.floats(-1e12, 1e12),
    where=st.none() | trees,
)


@no_deadline
@given(filters=limits)
def test_filters_come_back_as_they_were(filters: Filters) -> None:
    assert read_filters(json.loads(json.dumps(filters_document(filters)))) == filters


def test_only_what_limits_is_written() -> None:
    assert filters_document(Filters()) == {}
    assert filters_document(Filters(after=0.0)) == {"after": 0.0}
    where = All((Field("ext", ("py", "md")), Not(Field("tag", ("old news",)))))
    assert filters_document(Filters(where=where)) == {"where": 'ext:py,md AND -tag:"old news"'}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"exts": ["py"]}, "filters: nothing is called exts"),
        ({"ext": "py"}, "filters: ext must be a list of texts, not 'py'"),
        ({"ext": None}, "filters: ext must be a list of texts, not null"),
        ({"after": "2024"}, "filters: after must be a number or null, not '2024'"),
        ({"where": ["ext:py"]}, "filters: where must be text or null"),
        ({"where": "ext:py rate limit"}, "filters: where is about more than resources: ext:py rate limit"),
        ({"where": "rate"}, "filters: where is about more than resources: rate"),
        ({"where": ""}, "filters: where is about more than resources"),
        ({"where": "type:mail AND type:chat"}, "filters: where is not clear: type:mail AND type:chat"),
    ],
)
def test_filters_that_do_not_fit_are_named(document: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_filters(document)
    assert message in caught.value.message
    assert caught.value.hint
