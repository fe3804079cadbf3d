"""From rankings to figures by query and category, and from two runs to their difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.domain.values import read_json
from findling.pipelines.evaluation.evaluation_collections import JudgedQuery
from findling.ranking.metrics import MEASURES, Comparison, compare, interval, mean, measure, unique

MAIN_MEASURE = "NDCG@10"
"""The measure that runs are compared by."""

SavedRuns = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Collection → label of the run → query id → value of the main measure."""


class NoAnswer(NamedTuple):
    """Figures of questions without an answer.

    `reaching` is the share whose best hit has at least `median`, the score that half of the right answers exceed;
    `empty` is the share without any hit.
    """

    questions: int
    median: float
    reaching: float
    empty: float


def no_answer(right: Sequence[float], best: Sequence[float]) -> NoAnswer:
    """Compare best scores of questions without an answer with those of right answers, 0 for one that was not found."""
    middle = median(right) if right else 0.0
    count = max(len(best), 1)
    reaching, empty = sum(score >= middle for score in best), sum(score <= 0 for score in best)
    return NoAnswer(len(best), middle, reaching / count, empty / count)


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

    `no_answer` is there for a collection with questions that nothing answers. `strategies` and `degraded` count the
    strategies and degradations of the answers.
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


@dataclass(frozen=True, kw_only=True)
class PairedRuns:
    """A run and its baseline, with the values of the queries that both have."""

    collection: str
    label: str
    baseline: str
    ours: Mapping[str, float]
    theirs: Mapping[str, float]
    outcome: Comparison

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON-ready values."""
        names = {"collection": self.collection, "run": self.label, "baseline": self.baseline, "measure": MAIN_MEASURE}
        return {**names, **self.outcome._asdict()}


def evaluate_query(query: JudgedQuery, ranking: Sequence[str], *, gain: str) -> EvaluatedQuery:
    """Compare a ranking with the judgements."""
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
    """Category → number of queries and their means; nothing when no query has a category."""
    groups: dict[str, list[EvaluatedQuery]] = {}
    for query in queries:
        groups.setdefault(query.category, []).append(query)
    if set(groups) <= {""}:
        return {}
    return {name or "(none)": (len(group), means(group)) for name, group in sorted(groups.items())}


def collection_document(collection: EvaluatedCollection) -> dict[str, Any]:
    """A collection as JSON-ready values; each run has its means and categories before its queries."""
    return {**asdict(replace(collection, runs=())), "runs": [_run_document(run) for run in collection.runs]}


def pair_runs(collections: Sequence[EvaluatedCollection], saved: SavedRuns | None = None) -> list[PairedRuns]:
    """Compare every run with the first one of its collection, and with a saved one: of its label, or the only one."""
    return [
        pair for collection in collections for pair in _pairs_of(collection, (saved or {}).get(collection.name, {}))
    ]


def read_saved_runs(path: Path, *, gain: str) -> SavedRuns:
    """The runs of an evaluation that was saved as JSON.

    Raises PathNotFoundError for an unreadable file, InvalidValueError for another one or another gain.
    """
    try:
        document = read_json(path.read_text(encoding="utf-8"))
        saved_gain = document["plan"]["gain"]
        saved = {collection["name"]: dict(_saved_values(collection)) for collection in document["collections"]}
    except OSError as error:
        raise PathNotFoundError(f"{path} cannot be read: {error.strerror}", hint="findling eval --save FILE") from error
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidValueError(f"{path} is no saved evaluation", hint="findling eval --save FILE") from None
    if saved_gain != gain:
        raise InvalidValueError(f"{path} was measured with {saved_gain} gain, not {gain}", hint=f"--gain {saved_gain}")
    return saved


def _run_document(run: EvaluatedRun) -> dict[str, Any]:
    values, categories = asdict(run), means_by_category(run.queries).items()
    label, queries, _ = (values.pop(name) for name in ("label", "queries", "no_answer"))
    return {
        "label": label,
        "measures": means(run.queries),
        "interval": {MAIN_MEASURE: interval(list(run.values().values()))},
        "categories": {name: {"queries": count, "measures": own} for name, (count, own) in categories},
        **values,
        "no_answer": run.no_answer._asdict() if run.no_answer else None,
        "queries": queries,
    }


def _saved_values(collection: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    for run in collection["runs"]:
        yield run["label"], {query["qid"]: float(query["measures"][MAIN_MEASURE]) for query in run["queries"]}


def _pairs_of(collection: EvaluatedCollection, saved: Mapping[str, Mapping[str, float]]) -> Iterator[PairedRuns]:
    first, *others = collection.runs
    for run in others:
        yield from _pair(collection.name, run, first.label, first.values())
    for run in collection.runs:
        label = next(iter(saved)) if len(saved) == 1 else run.label
        if label in saved:
            yield from _pair(collection.name, run, f"saved {label}", saved[label])


def _pair(collection: str, run: EvaluatedRun, baseline: str, values: Mapping[str, float]) -> Iterator[PairedRuns]:
    """The pair, unless the two have no query in common."""
    ours = {qid: value for qid, value in run.values().items() if qid in values}
    theirs = {qid: values[qid] for qid in ours}
    if ours:
        outcome = compare(list(ours.values()), list(theirs.values()))
        yield PairedRuns(
            collection=collection, label=run.label, baseline=baseline, ours=ours, theirs=theirs, outcome=outcome
        )
