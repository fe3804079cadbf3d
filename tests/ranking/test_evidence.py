"""One scale for words and meaning: what both are worth, where weaker matches begin, and what a ranking scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findling.ranking.evidence import (
    FOREIGN,
    cosine_of,
    falling,
    is_refuted,
    judge_weight,
    judged_order,
    least_evidence,
    least_words,
    meaning_evidence,
    words_evidence,
)

USUAL = (0.0, 0.06)
shares = st.floats(0, 1)


def test_half_of_the_words_and_seven_deviations_are_worth_the_same() -> None:
    assert words_evidence(5.0, 10.0) == meaning_evidence(7 * 0.06, USUAL) == pytest.approx(0.5)
    assert words_evidence(0.0, 10.0) == words_evidence(0.0, 0.0) == 0.0


def test_what_a_model_does_not_know_is_worth_nothing() -> None:
    assert meaning_evidence(0.9, USUAL, known=0.0) == 0.0
    assert meaning_evidence(0.42, USUAL, known=0.5) == pytest.approx(0.25)
    assert meaning_evidence(0.42, (0.3, 0.0)) == 0.0, "a model without a spread tells nothing"
    assert cosine_of(FOREIGN, USUAL, known=0.0) > 1


@given(st.floats(0.01, 0.99), st.floats(0.1, 100), st.floats(0.1, 1))
def test_each_kind_of_evidence_has_its_inverse(evidence: float, ceiling: float, known: float) -> None:
    assert words_evidence(least_words(evidence, ceiling), ceiling) == pytest.approx(evidence)
    cosine = cosine_of(evidence, USUAL, known)
    assert cosine == 2 or meaning_evidence(cosine, USUAL, known) == pytest.approx(evidence)


@given(shares)
def test_the_best_hit_is_never_below_a_knee_of_its_own(best: float) -> None:
    least = least_evidence(best)
    assert least <= max(best, least_evidence(0.0))
    assert least >= least_evidence(0.0) > 0


@given(st.lists(shares))
def test_scores_never_rise_and_never_exceed_their_evidence(evidence: list[float]) -> None:
    scores = list(falling(evidence))
    assert scores == sorted(scores, reverse=True)
    assert all(score <= own for score, own in zip(scores, evidence, strict=True))
    assert scores[:1] == evidence[:1]


def test_the_order_of_a_judge_weighs_two_places() -> None:
    assert judged_order([0.9, 0.5, 0.1], 0.4) == [0, 1, 2]
    assert judged_order([0.0, 0.1, 0.2, 0.9], 0.0) == [0, 1, 2, 3]
    assert judged_order([0.0, 0.1, 0.2, 0.9], 1.0) == [3, 2, 1, 0]
    assert judged_order([0.0, 0.9, 0.8, 0.7, 0.6], 0.4) == [1, 0, 2, 3, 4], (
        "the first loses to the second it is last behind"
    )
    assert judged_order([], 0.4) == []


def test_a_judge_refutes_hints_and_not_evidence() -> None:
    assert is_refuted([0.00001, 0.00002], [0.3, 0.2])
    assert not is_refuted([0.00001, 0.5], [0.3, 0.2])
    assert not is_refuted([0.00001, 0.00002], [0.6, 0.2])
    assert not is_refuted([], [])


@pytest.mark.parametrize(("shape", "is_judged"), [(("question", "latin"), True), (("identifier",), False), ((), False)])
def test_a_judge_weighs_in_prose_alone(shape: tuple[str, ...], is_judged: bool) -> None:
    assert (judge_weight(shape) > 0) is is_judged
