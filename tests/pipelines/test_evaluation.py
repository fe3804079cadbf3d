"""From rankings to figures, and from two runs to a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.pipelines.evaluation.evaluation import (
    EvaluatedCollection,
    EvaluatedRun,
    collection_document,
    evaluate_query,
    means,
    means_by_category,
    pair_runs,
    read_saved_runs,
)
from findling.pipelines.evaluation.evaluation_collections import JudgedQuery


def run_of(label: str, rankings: dict[str, list[str]]) -> EvaluatedRun:
    """Each query wants the document `good` most and `fair` next; its category is its first letter."""
    queries = [
        evaluate_query(JudgedQuery(qid, f"text of {qid}", qid[0], {"good": 2, "fair": 1}), ranking, gain="linear")
        for qid, ranking in rankings.items()
    ]
    return EvaluatedRun(label=label, profile="", speed="", settings={}, cpu_ms_per_query=1.0, queries=tuple(queries))


def collection_of(*runs: EvaluatedRun, name: str = "small") -> EvaluatedCollection:
    return EvaluatedCollection(name=name, folder="somewhere", documents=3, chunks=4, runs=runs)


BEST, MISSED = ["good", "fair"], ["bad"]


def test_a_query_has_its_measures_and_the_ranks_of_what_is_relevant() -> None:
    judged = JudgedQuery("q", "text", "", {"good": 2, "fair": 1, "bad": 0})
    query = evaluate_query(judged, ["bad", "bad", "fair"], gain="linear")
    assert query.ranks == {"good": None, "fair": 2}
    assert query.measures["MRR@10"] == 0.5
    assert query.measures["R@10"] == 0.5


def test_means_over_all_and_by_category() -> None:
    run = run_of("only", {"a1": BEST, "a2": MISSED, "b1": BEST})
    assert means(run.queries)["NDCG@10"] == pytest.approx(2 / 3)
    by_category = means_by_category(run.queries)
    assert {name: (count, values["R@10"]) for name, (count, values) in by_category.items()} == {
        "a": (2, 0.5),
        "b": (1, 1.0),
    }
    uncategorised = evaluate_query(JudgedQuery("q", "text", "", {"good": 1}), BEST, gain="linear")
    assert means_by_category([uncategorised]) == {}


def test_runs_are_held_against_the_first_and_against_those_saved_under_their_name(tmp_path: Path) -> None:
    before = collection_of(
        run_of("first", {"a1": MISSED, "a2": MISSED, "b1": BEST}), run_of("second", {"a1": BEST, "a2": BEST})
    )
    saved_file = tmp_path / "run.json"
    saved_file.write_text(json.dumps({"plan": {"gain": "linear"}, "collections": [collection_document(before)]}))
    saved = read_saved_runs(saved_file, gain="linear")
    now = collection_of(
        run_of("first", {"a1": BEST, "a2": BEST, "b1": BEST}), run_of("third", {"a1": MISSED, "a2": BEST, "b1": BEST})
    )
    pairs = [
        pair.to_dict() for pair in pair_runs([now, collection_of(run_of("first", {"x": BEST}), name="other")], saved)
    ]
    assert [(pair["collection"], pair["run"], pair["baseline"]) for pair in pairs] == [
        ("small", "third", "first"),
        ("small", "first", "saved first"),
    ]
    assert pairs[0]["losses"] == 1 and pairs[0]["ties"] == 2 and pairs[0]["difference"] == pytest.approx(-1 / 3)
    assert pairs[1]["wins"] == 2 and pairs[1]["queries"] == 3 and pairs[1]["p"] == 0.5


def test_only_the_queries_that_both_have_are_compared() -> None:
    now = collection_of(run_of("any", {"a1": BEST, "a2": BEST, "b1": BEST}))
    pairs = pair_runs([now], {"small": {"the only one": {"a2": 0.25, "gone": 1.0}}})
    assert [(pair.baseline, dict(pair.ours), dict(pair.theirs)) for pair in pairs] == [
        ("saved the only one", {"a2": 1.0}, {"a2": 0.25})
    ]
    assert pair_runs([now], {"small": {"the only one": {"gone": 1.0}}}) == []


def test_a_saved_evaluation_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(PathNotFoundError, match=r"run\.json cannot be read"):
        read_saved_runs(path, gain="linear")
    for content in ("nonsense", "[]", "{}", '{"plan": {"gain": "linear"}, "collections": [{"name": "x"}]}'):
        path.write_text(content)
        with pytest.raises(InvalidValueError, match=r"run\.json is no saved evaluation"):
            read_saved_runs(path, gain="linear")
    path.write_text('{"plan": {"gain": "exponential"}, "collections": []}')
    with pytest.raises(InvalidValueError, match="was measured with exponential gain, not linear"):
        read_saved_runs(path, gain="linear")


def test_the_document_of_a_collection_has_every_query() -> None:
    document = collection_document(collection_of(run_of("only", {"a1": BEST, "b1": MISSED})))
    json.dumps(document)
    (run,) = document["runs"]
    assert next(iter(run)) == "label"
    assert run["measures"]["NDCG@10"] == 0.5
    assert run["interval"]["NDCG@10"] == (0.0, 1.0)
    assert run["categories"]["a"]["queries"] == 1
    assert [query["qid"] for query in run["queries"]] == ["a1", "b1"]
    assert run["queries"][1]["ranks"] == {"good": None, "fair": None}
