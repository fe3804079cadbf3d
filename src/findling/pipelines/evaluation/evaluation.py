"""From rankings to figures: how good each way to search is, by query and by category."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, NamedTuple

from findling.pipelines.evaluation.evaluation_collections import JudgedQuery
from findling.ranking.metrics import MEASURES, interval, mean, measure, unique

__all__ = [
    "MAIN_MEASURE",
    "EvaluatedCollection",
    "EvaluatedQuery",
    "EvaluatedRun",
    "NoAnswer",
    "collection_document",
    "evaluate_query",
    "means",
    "means_by_category",
    "no_answer",
]

MAIN_MEASURE = "NDCG@10"
"""What runs are compared by."""


class NoAnswer(NamedTuple):
    """How well scores tell an answer from none.

    `reaching` is the share of questions without an answer whose best hit has at least `median`, the score that half of
    the right answers exceed; `empty` is the share of them that are answered with nothing.
    """

    questions: int
    median: float
    reaching: float
    empty: float


def no_answer(right: Sequence[float], best: Sequence[float]) -> NoAnswer:
    """Hold best scores of questions without an answer against those of right answers, 0 for one that was not found."""
    middle = median(right) if right else 0.0
    count = max(len(best), 1)
    return NoAnswer(
        len(best), middle, sum(score >= middle for score in best) / count, sum(score <= 0 for score in best) / count
    )


@dataclass(frozen=True, kw_only=True)
class EvaluatedQuery:
    """One query: its measures, and the rank at which each relevant id was found, `None` for one that was not."""

    qid: str
    text: str
    category: str
    measures: Mapping[str, float]
    ranks: Mapping[str, int | None]


@dataclass(frozen=True, kw_only=True)
class EvaluatedRun:
    """All queries of a collection under one profile. `settings` are those that differ from the defaults.

    `no_answer` is there for a collection with questions that nothing answers. `strategies` counts what the answers say
    they were made by, `degraded` what they say went wrong.
    """

    label: str
    profile: str
    speed: str
    settings: Mapping[str, Any]
    cpu_ms_per_query: float
    queries: tuple[EvaluatedQuery, ...]
    no_answer: NoAnswer | None = None
    strategies: Mapping[str, int] = field(default_factory=dict)
    degraded: Mapping[str, int] = field(default_factory=dict)

    def values(self, name: str = MAIN_MEASURE) -> dict[str, float]:
        """Query id → value of one measure."""
        return {query.qid: query.measures[name] for query in self.queries}


@dataclass(frozen=True, kw_only=True)
class EvaluatedCollection:
    """A collection and every run on it. `missing` counts relevant documents that the corpus does not hold."""

    name: str
    folder: str
    documents: int
    chunks: int
    unanswerable: int = 0
    missing: int = 0
    runs: tuple[EvaluatedRun, ...] = ()


def evaluate_query(query: JudgedQuery, ranking: Sequence[str], *, gain: str) -> EvaluatedQuery:
    """Hold what was found against the judgements."""
    places = {rid: rank for rank, rid in enumerate(unique(ranking), 1)}
    return EvaluatedQuery(
        qid=query.qid,
        text=query.text,
        category=query.category,
        measures=measure(ranking, query.grades, gain=gain),
        ranks={rid: places.get(rid) for rid, grade in query.grades.items() if grade > 0},
    )


def means(queries: Iterable[EvaluatedQuery]) -> dict[str, float]:
    """Every measure, averaged."""
    rows = [query.measures for query in queries]
    return {name: mean([row[name] for row in rows]) for name in MEASURES}


def means_by_category(queries: Iterable[EvaluatedQuery]) -> dict[str, tuple[int, dict[str, float]]]:
    """Category → how many queries it has and their means; nothing when no query has a category."""
    groups: dict[str, list[EvaluatedQuery]] = {}
    for query in queries:
        groups.setdefault(query.category, []).append(query)
    if set(groups) <= {""}:
        return {}
    return {name or "(none)": (len(group), means(group)) for name, group in sorted(groups.items())}


def collection_document(collection: EvaluatedCollection) -> dict[str, Any]:
    """A collection as JSON-ready values; each run has its means and categories before its queries."""
    document = asdict(collection)
    document["runs"] = [
        {
            "label": run.label,
            **_summary(run),
            **{name: value for name, value in values.items() if name not in ("label", "queries", "no_answer")},
            "no_answer": run.no_answer._asdict() if run.no_answer else None,
            "queries": values["queries"],
        }
        for run, values in zip(collection.runs, document["runs"], strict=True)
    ]
    return document


def _summary(run: EvaluatedRun) -> dict[str, Any]:
    return {
        "measures": means(run.queries),
        "interval": {MAIN_MEASURE: interval(list(run.values().values()))},
        "categories": {
            name: {"queries": count, "measures": values}
            for name, (count, values) in means_by_category(run.queries).items()
        },
    }
