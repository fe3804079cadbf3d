"""Boosts lift a score by a bounded factor, say why, and never turn the ranking upside down."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nan, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.ranking.boosts import (
    FIELD_FACTORS,
    MOST,
    Boost,
    Boosted,
    author_affinity,
    boosted,
    exact_field,
    exact_phrase,
    field_match,
    recency,
    starts_field,
)
from findling.ranking.fusion import rrf
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(60, short=25))

factors = st.floats(1, 3)


def same(boost: Boost | None, name: str, factor: float, reason: str) -> bool:
    return boost is not None and boost == (name, boost.factor, reason) and boost.factor == pytest.approx(factor)


def every_boost() -> list[Boost]:
    """All boosts there are, each as strong as it gets by default."""
    query = ["rate", "limit"]
    boosts = [
        *(field_match(field, query, query) for field in FIELD_FACTORS),
        exact_phrase(query, query),
        recency(0.0),
        author_affinity("Ada", {"Ada": 1.0}),
    ]
    return [boost for boost in boosts if boost is not None]


def test_score_times_factors() -> None:
    title, fresh = Boost("title", 1.1, "the title has limit"), Boost("recency", 1.2, "changed today")
    lifted, other = boosted([(1, 0.5), (2, 0.45)], {2: [title, fresh]})
    assert (lifted.id, lifted.boosts) == (2, (title, fresh))
    assert (lifted.score, lifted.factor) == pytest.approx((0.594, 1.32))
    assert other == Boosted(1, 0.5, 1.0, ())


def test_the_product_is_limited_and_the_reasons_stay() -> None:
    own = every_boost()
    assert prod(boost.factor for boost in own) > MOST
    (only,) = boosted([(1, 0.02)], {1: own})
    assert (only.factor, only.boosts) == (MOST, tuple(own))
    assert only.score == pytest.approx(0.02 * MOST)


def test_rank_30_with_every_boost_never_beats_rank_1_of_both_legs() -> None:
    # Hit 30 is at place 30 in both legs, hit 40 in one of them only; hit 1 is first in both and has no boost.
    legs = {
        "keyword": [(item, 1.0) for item in range(1, 31)],
        "semantic": [(1, 1.0), *((item, 1.0) for item in range(102, 130)), (30, 1.0)],
        "other": [(item, 1.0) for item in range(201, 230)] + [(40, 1.0)],
    }
    fused = rrf(legs).ranking
    assert dict(fused)[1] == pytest.approx(2 / 61)
    assert dict(fused)[30] == pytest.approx(2 / 90)
    places = [one.id for one in boosted(fused, {30: every_boost(), 40: every_boost()})]
    assert places[0] == 1
    assert places.index(30) < places.index(2), "a boost that changes nothing would prove nothing"


@no_deadline
@given(rank=st.integers(30, 600), own=st.lists(factors, max_size=8))
def test_no_boosts_whatever_lift_rank_30_over_a_double_rank_1(rank: int, own: list[float]) -> None:
    boosts = {2: [Boost("any", factor, "") for factor in own]}
    assert boosted([(1, 2 / 61), (2, 2 / (60 + rank))], boosts)[0].id == 1


@no_deadline
@given(
    scores=st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1)), unique_by=lambda hit: hit[0]),
    own=st.dictionaries(st.integers(0, 20), st.lists(factors, max_size=4)),
)
def test_bounds_order_and_permutation(scores: list[tuple[int, float]], own: dict[int, list[float]]) -> None:
    boosts = {item: [Boost("any", factor, "") for factor in strengths] for item, strengths in own.items()}
    lifted = boosted(scores, boosts)
    place = {item: rank for rank, (item, _) in enumerate(scores)}
    assert all((-one.score, place[one.id]) < (-other.score, place[other.id]) for one, other in pairwise(lifted))
    assert all(1 <= one.factor <= MOST and one.score == dict(scores)[one.id] * one.factor for one in lifted)


@pytest.mark.parametrize(
    ("query", "words", "factor", "reason"),
    [
        (["rate", "limit"], ["limit", "the", "rate"], 1.15, "the title has all 2 terms"),
        (["rate", "limit"], ["limits", "rate"], 1.075, "the title has rate"),
        (["rate", "limit", "api"], ["api", "rate"], 1.1, "the title has rate, api"),
        (["rate", "rate"], ["rate"], 1.15, "the title has rate"),
    ],
)
def test_a_field_counts_by_the_share_of_the_query(
    query: list[str], words: list[str], factor: float, reason: str
) -> None:
    assert same(field_match("title", query, words), "title", factor, reason)


@pytest.mark.parametrize(("query", "words"), [([], ["rate"]), (["rate"], []), (["rate"], ["separate"])])
def test_a_field_without_a_term_of_the_query_is_no_reason(query: list[str], words: list[str]) -> None:
    assert field_match("title", query, words) is None


def test_an_unknown_field_needs_a_factor() -> None:
    with pytest.raises(ValueError, match="field summary has no factor; there are factors for title"):
        field_match("summary", ["rate"], ["rate"])
    assert field_match("summary", ["rate"], ["rate"], most=1.3) == Boost("summary", 1.3, "the summary has rate")


def test_a_phrase_is_whole_words_in_order() -> None:
    boost = exact_phrase(["rate", "limit"], ["a", "rate", "limit", "b"])
    assert boost == Boost("exact phrase", 1.15, 'the text has "rate limit" word for word')
    assert exact_phrase(["rate", "limit"], ["rate", "limit"]) == boost
    assert exact_phrase(["rate", "limit"], ["limit", "rate"]) is None
    assert exact_phrase(["rate", "limit"], ["rate", "limits"]) is None
    assert exact_phrase(["rate", "limit"], ["separate", "limit"]) is None
    assert exact_phrase(["rate"], ["rate"]) is None
    assert exact_phrase([], []) is None


def test_a_phrase_takes_the_factor_that_is_asked_for() -> None:
    boost = exact_phrase(["rate", "limit"], ["rate", "limit"], most=1.5)
    assert same(boost, "exact phrase", 1.5, 'the text has "rate limit" word for word')
    assert exact_phrase(["rate", "limit"], ["rate", "limit"], most=1.0) is None


def test_a_field_that_is_the_query() -> None:
    fields = {"title": ["the", "rate", "limit"], "file name": ["rate", "limit"]}
    boost = exact_field(["rate", "limit"], fields, factor=1.5)
    assert same(boost, "exact match", 1.5, 'the file name is "rate limit"')
    assert exact_field(["limit", "rate"], fields, factor=1.5) is None
    assert exact_field(["rate"], fields, factor=1.5) is None
    assert exact_field(["rate", "limit", "api"], fields, factor=1.5) is None
    assert exact_field([], {"title": []}, factor=1.5) is None
    assert exact_field(["rate", "limit"], fields, factor=1.0) is None
    assert exact_field(["new", "york"], {"title": ["new", "york", "new", "york"]}, factor=2.0) is not None


def test_a_field_that_begins_with_the_query() -> None:
    fields = {"title": ["rate", "limit"], "file name": ["rate", "limit", "api"]}
    boost = starts_field(["rate", "limit"], fields, factor=1.2)
    assert same(boost, "prefix match", 1.2, 'the file name begins with "rate limit"')
    assert starts_field(["rate", "limit", "api"], fields, factor=1.2) is None, "that is all of it"
    assert starts_field(["limit"], fields, factor=1.2) is None
    assert starts_field([], fields, factor=1.2) is None
    assert starts_field(["rate"], fields, factor=1.0) is None


@no_deadline
@given(query=st.lists(st.sampled_from("abc"), max_size=3), words=st.lists(st.sampled_from("abc"), max_size=4))
def test_a_field_is_the_query_or_begins_with_it_but_not_both(query: list[str], words: list[str]) -> None:
    exact = exact_field(query, {"title": words}, factor=1.5)
    starts = starts_field(query, {"title": words}, factor=1.5)
    assert exact is None or starts is None
    if query and len(set(query)) == len(query) and words[: len(query)] == query:
        assert exact or starts


def test_the_limit_can_be_raised_to_what_is_asked_for() -> None:
    boost = exact_field(["rate"], {"title": ["rate"]}, factor=3.0)
    assert boost is not None
    assert boosted([(1, 0.1)], {1: [boost]})[0].factor == MOST
    assert boosted([(1, 0.1)], {1: [boost]}, most=3.0)[0].factor == 3.0


def test_recency_halves_with_every_half_life() -> None:
    assert same(recency(0.0), "recency", 1.1, "changed today")
    assert recency(-3.0) == recency(0.0), "a clock that is ahead is no reason"
    assert same(recency(90.0), "recency", 1.05, "changed 90 days ago")
    assert same(recency(20.0, half_life_in_days=10, most=1.4), "recency", 1.1, "changed 20 days ago")
    assert recency(4000.0) is None
    assert recency(None) is None


@no_deadline
@given(ages=st.lists(st.floats(-10, 1e6), min_size=2))
def test_older_is_never_better(ages: list[float]) -> None:
    lifts = [boost.factor if (boost := recency(age)) else 1.0 for age in sorted(ages)]
    assert lifts == sorted(lifts, reverse=True)


def test_an_author_counts_by_affinity() -> None:
    affinities = {"Ada": 0.5, "Bob": 0.0}
    assert same(author_affinity("Ada", affinities), "author", 1.05, "written by Ada (affinity 0.50)")
    assert author_affinity("Bob", affinities) is None
    assert author_affinity("Eve", affinities) is None
    assert author_affinity("", {"": 1.0}) is None


@pytest.mark.parametrize("score", [nan, inf, -0.1])
def test_scores_that_make_no_sense_are_refused(score: float) -> None:
    with pytest.raises(ValueError, match="score is"):
        boosted([(1, score)], {})


@pytest.mark.parametrize("factor", [nan, inf, 0.0, -2.0, 0.9])
def test_factors_that_make_no_sense_are_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="boost any"):
        boosted([(1, 0.5)], {1: [Boost("any", factor, "")]})
    with pytest.raises(ValueError, match="limit of boosts"):
        boosted([(1, 0.5)], {}, most=factor)
    with pytest.raises(ValueError, match="boost exact phrase"):
        exact_phrase(["a", "b"], ["a", "b"], most=factor)
    with pytest.raises(ValueError, match="boost exact match"):
        exact_field(["a"], {"title": ["a"]}, factor=factor)
    with pytest.raises(ValueError, match="boost prefix match"):
        starts_field(["a"], {"title": ["a", "b"]}, factor=factor)


def test_ages_and_affinities_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="age is"):
        recency(inf)
    with pytest.raises(ValueError, match="half-life is"):
        recency(1.0, half_life_in_days=0.0)
    with pytest.raises(ValueError, match="affinity of Ada"):
        author_affinity("Ada", {"Ada": nan})
