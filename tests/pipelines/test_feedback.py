"""Feedback adds what the best texts have in common, only where it may help, and never walks away from the question."""

from __future__ import annotations

from math import inf, log, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findling.pipelines.retrieve.feedback_step import Drift, Feedback, drift, expansion
from tests.counts import tries

no_deadline = settings(deadline=None, max_examples=tries(60, short=25))

TEXTS = [
    "rate limit throttle the bucket 429".split(),
    "throttle throttle the request 429 x".split(),
    "the bucket of sand x".split(),
]
SCORES = [3.0, 2.0, 1.0]
FREQUENCIES = {"throttle": 4, "bucket": 20, "the": 90, "request": 1, "429": 3, "x": 2}
LONG = "how to limit the rate of requests".split()


def test_by_hand() -> None:
    feedback = expansion(["rate", "limit"], TEXTS, SCORES, FREQUENCIES, 100)
    assert feedback.reason == "short query: 2 of at most 4 terms"
    # throttle is once in one text and twice in another, in 4 of 100 documents; bucket once in two; the once in three.
    throttle = log(1 + 96.5 / 4.5) * (1 + 1 + log(2))
    bucket = log(1 + 80.5 / 20.5) * 2
    the = log(1 + 10.5 / 90.5) * 3
    assert [one.term for one in feedback.terms] == ["throttle", "bucket", "the"]
    assert [one.weight for one in feedback.terms] == pytest.approx([0.3, 0.3 * bucket / throttle, 0.3 * the / throttle])
    assert feedback.terms[0].reason == "in 2 of the best 3 texts, in 4 of 100 in all"


def test_no_term_of_the_query_no_number_no_single_letter_and_none_of_one_text_only() -> None:
    terms = {one.term for one in expansion(["throttle"], TEXTS, SCORES, FREQUENCIES, 100).terms}
    assert terms == {"bucket", "the"}


def test_a_term_without_statistics_is_as_rare_as_we_see_it() -> None:
    reasons = {one.term: one.reason for one in expansion(["rate"], TEXTS, SCORES, {}, 100).terms}
    assert reasons["throttle"] == "in 2 of the best 3 texts, in 2 of 100 in all"
    assert reasons["the"] == "in 3 of the best 3 texts, in 3 of 100 in all"


def test_only_the_best_texts_and_the_best_terms_count() -> None:
    assert [one.term for one in expansion(["rate"], TEXTS, SCORES, FREQUENCIES, 100, depth=2).terms] == [
        "throttle",
        "the",
    ]
    assert [one.term for one in expansion(["rate"], TEXTS, SCORES, FREQUENCIES, 100, most_terms=1).terms] == [
        "throttle"
    ]


def test_a_long_query_with_clear_scores_is_left_alone() -> None:
    feedback = expansion(LONG, TEXTS, SCORES, FREQUENCIES, 100)
    assert feedback == Feedback((), "not needed: 7 terms, and scores that tell the texts apart")


def test_a_long_query_with_flat_scores_is_helped() -> None:
    # Deviation of 100, 101 and 102 is √(2/3) = 0.816, which is 0.008 of the mean.
    feedback = expansion(LONG, TEXTS, [102.0, 101.0, 100.0], FREQUENCIES, 100)
    assert feedback.reason == "flat scores: deviation 0.008 of the mean"
    assert [one.term for one in feedback.terms] == ["throttle", "bucket"]
    assert not expansion(LONG, TEXTS, [110.0, 100.0, 90.0], FREQUENCIES, 100).terms


def test_flat_is_relative_so_the_scale_does_not_matter() -> None:
    small = expansion(LONG, TEXTS, [0.0102, 0.0101, 0.0100], FREQUENCIES, 100)
    assert small == expansion(LONG, TEXTS, [102.0, 101.0, 100.0], FREQUENCIES, 100)
    assert not expansion(LONG, TEXTS, [0.03, 0.02, 0.01], FREQUENCIES, 100).terms


@pytest.mark.parametrize(("scores", "helped"), [([0.0, 0.0, 0.0], True), ([1.0, 0.0, -1.0], False)])
def test_flat_scores_around_zero(scores: list[float], helped: bool) -> None:
    assert bool(expansion(LONG, TEXTS, scores, FREQUENCIES, 100).terms) is helped


def test_nothing_to_learn_from() -> None:
    assert expansion(["rate"], [], [], FREQUENCIES, 100).terms == ()
    assert expansion([], TEXTS, SCORES, FREQUENCIES, 100).terms == ()
    assert expansion(LONG, TEXTS[:1], SCORES[:1], FREQUENCIES, 100).terms == (), "one score is not flat"
    assert expansion(["rate"], [["a"], ["b"]], [2.0, 1.0], {}, 100) == Feedback(
        (), "short query: 1 of at most 4 terms, but the best 2 texts share no further term"
    )


@pytest.mark.parametrize("score", [nan, inf])
def test_scores_that_are_no_numbers_are_refused(score: float) -> None:
    with pytest.raises(ValueError, match="score is"):
        expansion(["rate"], TEXTS, [1.0, score, 0.0], FREQUENCIES, 100)


def test_statistics_of_another_unit_are_refused() -> None:
    with pytest.raises(ValueError, match="term 'the' is in 90 of 50 documents"):
        expansion(["rate"], TEXTS, SCORES, FREQUENCIES, 50)


def test_texts_and_scores_come_in_pairs() -> None:
    with pytest.raises(ValueError, match="3 texts come with 1 scores"):
        expansion(["rate"], TEXTS, [1.0], FREQUENCIES, 100)


@no_deadline
@given(
    texts=st.lists(st.lists(st.sampled_from("ab cd ef gh 12 z".split()), max_size=12), max_size=8),
    query=st.lists(st.sampled_from("ab cd other".split()), min_size=1, max_size=3),
    frequency=st.integers(0, 50),
)
def test_weights_fall_stay_below_the_query_and_ignore_the_order_of_words(
    texts: list[list[str]], query: list[str], frequency: int
) -> None:
    frequencies = dict.fromkeys({term for text in texts for term in text}, frequency)
    feedback = expansion(query, texts, [1.0] * len(texts), frequencies, 50)
    weights = [one.weight for one in feedback.terms]
    assert weights == sorted(weights, reverse=True)
    assert all(0 < weight <= 0.3 + 1e-12 for weight in weights)
    assert not {one.term for one in feedback.terms} & {*query, "12", "z"}
    backwards = [text[::-1] for text in texts]
    assert expansion(query[::-1], backwards, [1.0] * len(texts), frequencies, 50) == feedback


@pytest.mark.parametrize(
    ("old", "new", "accepted", "overlap"),
    [
        (range(10), range(6, 16), True, 0.4),
        (range(10), range(7, 17), False, 0.3),
        (range(10), [*range(20, 30), *range(10)], False, 0.0),
        ([1, 2], [2, 9, 8], True, 0.5),
        ([1, 2, 3], [3, 9, 8], False, 1 / 3),
        ([], [1, 2], True, 1.0),
        ([1], [], False, 0.0),
        ([], [], True, 1.0),
    ],
)
def test_drift(old: list[int], new: list[int], accepted: bool, overlap: float) -> None:
    verdict = drift(list(old), list(new))
    assert verdict.accepted is accepted
    assert verdict.overlap == pytest.approx(overlap)


def test_drift_says_why() -> None:
    assert drift([1, 2, 3, 4], [1, 9, 8, 7]) == Drift(
        False, 0.25, "25% of the first 4 hits remain: feedback dropped, less than 40%"
    )
    assert drift([1, 2], [2, 1]).reason == "100% of the first 2 hits remain: feedback kept"
    with pytest.raises(ValueError, match="least is"):
        drift([1], [1], least=nan)


@no_deadline
@given(old=st.lists(st.integers(0, 30), unique=True), new=st.permutations(range(20)))
def test_drift_looks_at_sets_not_at_order(old: list[int], new: list[int]) -> None:
    top = new[:10]
    assert drift(old, top) == drift(old, top[::-1])
    assert 0 <= drift(old, top).overlap <= 1
