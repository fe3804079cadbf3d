"""The measures are those of trec_eval: against figures recorded from it, and against itself where it is installed."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from findling.domain.errors import InvalidValueError
from findling.ranking.metrics import (
    MEASURES,
    average_precision,
    mean,
    measure,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    success,
    unique,
)

TREC_NAMES = {
    "NDCG@5": "ndcg_cut_5",
    "NDCG@10": "ndcg_cut_10",
    "R@5": "recall_5",
    "R@10": "recall_10",
    "R@100": "recall_100",
    "P@5": "P_5",
    "MAP@10": "map_cut_10",
    "Success@1": "success_1",
}
"""trec_eval knows no cut for the reciprocal rank, so that one is asked of runs that are cut themselves."""


def random_case(seed: int) -> tuple[list[str], dict[str, int]]:
    """A ranking of up to 120 of 160 documents and up to 30 judgements from -1 to 3, most of them for the first 20."""
    chance = random.Random(seed)
    documents = [f"d{number}" for number in chance.sample(range(1000), 160)]
    likely = documents[:20] + chance.sample(documents, 20)
    grades = {rid: chance.choice((-1, 0, 1, 1, 2, 3)) for rid in chance.sample(likely, chance.randint(1, 30))}
    ranking = documents[: chance.randint(0, 120)]
    return ranking, grades


# Figures of pytrec_eval (pytrec-eval-terrier 0.5) for `random_case(seed)`, in the order of MEASURES.
RECORDED: dict[int, tuple[float, ...]] = {
    1: (0.2960164, 0.2774863, 1.0000000, 0.2000000, 0.3000000, 0.6000000, 0.4000000, 0.2333333, 1.0000000),
    2: (0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000, 0.0000000),
    3: (0.0785926, 0.0723760, 0.5000000, 0.1428571, 0.1428571, 0.4285714, 0.2000000, 0.0714286, 0.0000000),
    5: (0.5000000, 0.5000000, 0.3333333, 1.0000000, 1.0000000, 1.0000000, 0.2000000, 0.3333333, 0.0000000),
    8: (0.2183697, 0.3561457, 1.0000000, 0.2000000, 0.4000000, 1.0000000, 0.2000000, 0.2500000, 1.0000000),
    13: (0.1245664, 0.1065069, 1.0000000, 0.1250000, 0.1250000, 0.6250000, 0.2000000, 0.1250000, 1.0000000),
    21: (0.1933031, 0.2916413, 0.2500000, 0.1428571, 0.3571429, 0.7142857, 0.4000000, 0.1445011, 0.0000000),
    34: (0.2139863, 0.2568906, 0.5000000, 0.0666667, 0.2000000, 0.4000000, 0.2000000, 0.0755556, 0.0000000),
    55: (0.4130547, 0.3292503, 1.0000000, 0.2500000, 0.2500000, 0.2500000, 0.4000000, 0.2500000, 1.0000000),
    89: (0.0661555, 0.1358230, 0.2500000, 0.1111111, 0.2222222, 0.5555556, 0.2000000, 0.0555556, 0.0000000),
}


@pytest.mark.parametrize("seed", RECORDED)
def test_measures_are_those_recorded_from_trec_eval(seed: int) -> None:
    assert tuple(measure(*random_case(seed)).values()) == pytest.approx(RECORDED[seed], abs=1e-6)


@pytest.mark.parametrize("seed", range(200))
def test_measures_are_those_of_trec_eval(seed: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ranking, grades = random_case(seed)
    assert measure(ranking, grades) == pytest.approx(from_trec_eval(pytrec_eval, ranking, grades), abs=1e-9)


def from_trec_eval(pytrec_eval: Any, ranking: list[str], grades: dict[str, int]) -> dict[str, float]:
    def ask(run: list[str], names: set[str]) -> dict[str, float]:
        scores = {"q": {rid: float(len(run) - place) for place, rid in enumerate(run)}}
        return dict(pytrec_eval.RelevanceEvaluator({"q": grades}, names).evaluate(scores)["q"])

    values = ask(ranking, {"ndcg_cut", "recall", "P", "map_cut", "success"})
    found = {name: values[trec] for name, trec in TREC_NAMES.items()}
    return {**found, "MRR@10": ask(ranking[:10], {"recip_rank"})["recip_rank"]}


def test_every_measure_by_hand() -> None:
    ranking, grades = ["a", "x", "b", "c"], {"a": 1, "b": 2, "d": 1, "x": 0}
    assert ndcg(ranking, grades, 3) == pytest.approx((1 + 2 / 2) / (2 + 1 / math.log2(3) + 1 / 2))
    assert reciprocal_rank(ranking[1:], grades, 10) == 1 / 2
    assert reciprocal_rank(ranking[1:], grades, 1) == 0
    assert recall(ranking, grades, 10) == pytest.approx(2 / 3)
    assert precision(ranking, grades, 5) == 2 / 5
    assert average_precision(ranking, grades, 10) == pytest.approx((1 + 2 / 3) / 3)
    assert success(ranking, grades, 1) == 1
    assert success(ranking[1:], grades, 1) == 0


def test_exponential_gain_makes_more_of_the_best_grade() -> None:
    grades = {"good": 1, "best": 2}
    swapped = ["good", "best"]
    assert ndcg(swapped, grades, 10, "exponential") == pytest.approx((1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3)))
    assert ndcg(swapped, grades, 10, "exponential") < ndcg(swapped, grades, 10, "linear")
    with pytest.raises(InvalidValueError, match="no gain is called quadratic"):
        ndcg(swapped, grades, 10, "quadratic")


def test_an_id_counts_once_at_its_best_rank_and_the_others_move_up() -> None:
    assert unique(["a", "b", "a", "c", "b"]) == ["a", "b", "c"]
    grades = {"a": 1, "c": 1}
    assert measure(["a", "a", "a", "a", "a", "c"], grades) == measure(["a", "c"], grades)
    assert precision(["a", "a"], grades, 2) == 0.5


def test_without_relevant_documents_or_hits_everything_is_zero() -> None:
    nothing = dict.fromkeys(MEASURES, 0.0)
    assert measure(["a"], {"a": 0, "b": -1}) == nothing
    assert measure([], {"a": 1}) == nothing
    assert mean([]) == 0
