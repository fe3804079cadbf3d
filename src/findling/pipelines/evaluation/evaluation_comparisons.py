"""Runs against each other: which of two did better on the same queries, and whether that can be chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.domain.strangers import read_json
from findling.pipelines.evaluation.evaluation import MAIN_MEASURE, EvaluatedCollection, EvaluatedRun
from findling.ranking.metrics import Comparison, compare

__all__ = ["PairedRuns", "SavedRuns", "pair_runs", "read_saved_runs"]

SavedRuns = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Collection → label of the run → query id → value of the main measure."""


@dataclass(frozen=True, kw_only=True)
class PairedRuns:
    """A run and the one it is held against, with the values of the queries that both have."""

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


def pair_runs(collections: Sequence[EvaluatedCollection], saved: SavedRuns | None = None) -> list[PairedRuns]:
    """Hold every run against the first one of its collection, and against the saved one that is called the same.

    A collection of which only one run was saved has every run held against that one.
    """
    return [
        pair for collection in collections for pair in _pairs_of(collection, (saved or {}).get(collection.name, {}))
    ]


def read_saved_runs(path: Path, *, gain: str) -> SavedRuns:
    """The runs of an evaluation that was saved as JSON.

    Raises PathNotFoundError when the file cannot be read, InvalidValueError when it is none or was measured with
    another gain.
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
    """Nothing when the two have no query in common."""
    ours = {qid: value for qid, value in run.values().items() if qid in values}
    theirs = {qid: values[qid] for qid in ours}
    if ours:
        outcome = compare(list(ours.values()), list(theirs.values()))
        yield PairedRuns(
            collection=collection, label=run.label, baseline=baseline, ours=ours, theirs=theirs, outcome=outcome
        )
