"""Evaluation along the path of users: index a collection, ask every judged query, measure the answers."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from findling import __version__
from findling.domain.errors import InvalidValueError
from findling.domain.reports import Progress
from findling.domain.resources import Resource
from findling.domain.values import counted
from findling.pipelines.evaluation.evaluation import (
    MAIN_MEASURE,
    EvaluatedCollection,
    EvaluatedRun,
    PairedRuns,
    collection_document,
    evaluate_query,
    no_answer,
    pair_runs,
    read_saved_runs,
)
from findling.pipelines.evaluation.evaluation_collections import (
    JudgedCollection,
    find_judgement,
    read_collection,
    read_documents,
)
from findling.ranking.metrics import GAINS, interval, mean
from findling.service.settings.settings import Settings, apply_profile

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine

__all__ = [
    "GAINS",
    "GOLDEN_SET",
    "MAIN_MEASURE",
    "OWN_SETTINGS",
    "SPEEDS",
    "Evaluation",
    "EvaluationPlan",
    "Watch",
    "changed_settings",
    "evaluate",
    "evaluate_all",
]

GOLDEN_SET = Path(__file__).parents[2] / "golden"
"""Findling's own documentation with judged queries."""

SPEEDS = ("instant", "refined", "both")
"""The model reads nothing, or all passages before the first query; or first the one, then the other."""

Watch = Callable[[], AbstractContextManager[Progress | None]]
"""A factory of progress bars and the like for a long step."""

OWN_SETTINGS: Mapping[str, str] = {
    "store.home": "leave it out: the index is thrown away",
    "workspace.name": "leave it out: the index is thrown away",
    "search.refresh": "leave it out: nothing changes while it is measured",
    "semantic.refine": "--speed",
    "semantic.query_budget_ms": "--speed",
}
"""Settings that an evaluation decides itself, and the alternative to each."""


@dataclass(frozen=True, kw_only=True)
class EvaluationPlan:
    """The runs to measure. Without profiles, the settings as they are; every query asks for `depth` hits."""

    profiles: tuple[str, ...] = ()
    speed: str = "refined"
    split: str | None = None
    limit_queries: int | None = None
    depth: int = 100
    gain: str = "linear"


class _Variant(NamedTuple):
    label: str
    profile: str
    speed: str
    settings: Settings


class Evaluation(NamedTuple):
    """Collections with their runs, and runs in pairs; `saved` has mean and interval of each saved run by its label."""

    plan: EvaluationPlan
    settings: Settings
    collections: Sequence[EvaluatedCollection]
    pairs: Sequence[PairedRuns]
    saved: Mapping[str, Mapping[str, tuple[float, float, float]]]

    def document(self) -> dict[str, Any]:
        """All of it as JSON-ready values."""
        return {
            "created_at": time.time(),
            "versions": {"findling": __version__, "python": platform.python_version(), "system": platform.platform()},
            "plan": asdict(self.plan),
            "settings": changed_settings(self.settings),
            "collections": [collection_document(collection) for collection in self.collections],
            "comparisons": [pair.to_dict() for pair in self.pairs],
        }


def evaluate_all(
    folders: Sequence[Path],
    plan: EvaluationPlan,
    settings: Settings,
    *,
    compare: Path | None = None,
    on_stage: Callable[[str], None] | None = None,
    watched: Watch = nullcontext,
) -> Evaluation:
    """Measure collections one after the other, and compare their runs with those saved in a file.

    Raises InvalidValueError for two collections of one name, and as `evaluate` does.
    """
    saved = read_saved_runs(compare, gain=plan.gain) if compare else {}
    # A mistake in the last collection must not come to light after an hour with the others.
    names = Counter(read_collection(folder, split=plan.split).name for folder in folders)
    if twice := next((name for name, count in names.items() if count > 1), None):
        raise InvalidValueError(f"two collections are called {twice}", hint="rename one of the folders")
    collections = [evaluate(folder, plan, settings, on_stage=on_stage, watched=watched) for folder in folders]
    before = {
        name: {label: (mean(list(values.values())), *interval(list(values.values()))) for label, values in runs.items()}
        for name, runs in saved.items()
    }
    return Evaluation(plan, settings, collections, pair_runs(collections, saved), before)


def evaluate(
    folder: Path,
    plan: EvaluationPlan,
    settings: Settings,
    *,
    on_stage: Callable[[str], None] | None = None,
    watched: Watch = nullcontext,
) -> EvaluatedCollection:
    """Measure every profile at every speed on one collection, in a temporary workspace.

    The profiles share one index, and each has an engine of its own. Instant runs come first, before the model has
    read anything. Raises UsageError for a wrong collection or plan, and the errors of the engine.
    """
    variants = list(_variants(plan, settings))
    collection = read_collection(folder, split=plan.split, limit=plan.limit_queries)
    report_stage = on_stage or (lambda _: None)
    with tempfile.TemporaryDirectory(prefix="findling-eval-") as place:
        root = Path(place, "root")
        if collection.files is None:
            root.mkdir()
        else:
            # A copy, because ignore files above the original would apply: an environment is often ignored.
            shutil.copytree(collection.files, root, symlinks=True)
        with _opened(root, settings) as engine:
            report_stage(f"{collection.name}: indexing")
            report = _index(engine, collection, watched)
        runs: list[EvaluatedRun] = []
        for variant in variants:
            with _opened(root, variant.settings) as engine:
                if variant.speed == "refined" and not any(run.speed == "refined" for run in runs):
                    report_stage(f"{collection.name}: the model reads {counted(report.chunks, 'passage')}")
                    engine.refine()
                report_stage(
                    f"{collection.name}: {variant.label}, {counted(len(collection.queries), 'query', 'queries')}"
                )
                _bring_up_graph(engine, variant)
                runs.append(_run(engine, variant, collection, plan))
    return replace(report, runs=tuple(runs))


def _bring_up_graph(engine: Engine, variant: _Variant) -> None:
    """Have the graph ready before the first query, which would bring it up behind itself."""
    graph = engine.opened.lazy("graph")
    if variant.settings["search.graph"] != "off" and graph.is_able:
        with engine.opened.files.writing():
            graph.level()


def _opened(root: Path, settings: Settings) -> Engine:
    """The engine of the temporary workspace."""
    from findling.service.engine.engine import open_engine

    own = {"workspace.name": "", "search.refresh": "never", "semantic.refine": "never"}
    own["store.home"] = str(root.with_name("home"))
    return open_engine(root, settings=settings.override(own, "evaluation"))


def changed_settings(settings: Settings) -> dict[str, Any]:
    """The settings that bear on an answer and are not at their default."""
    defaults = Settings()
    return {
        name: value
        for name, value in settings.items()
        if value != defaults[name] and name not in OWN_SETTINGS and not name.startswith(("output.", "serve."))
    }


def _variants(plan: EvaluationPlan, settings: Settings) -> Iterator[_Variant]:
    """One for each profile and speed; without vectors there is only one speed."""
    if plan.speed not in SPEEDS:
        raise InvalidValueError(f"no speed is called {plan.speed}", hint=", ".join(SPEEDS))
    speeds = SPEEDS[:2] if plan.speed == "both" else (plan.speed,)
    for speed in speeds:
        for profile in dict.fromkeys(plan.profiles or ("",)):
            name = profile or settings["search.profile"]
            chosen = settings.override({"search.profile": name}, "flag --profile") if profile else settings
            mode = apply_profile(chosen, name)["search.mode"]
            label = mode if name in ("auto", mode) else name
            if mode != "keyword":
                chosen = chosen.override(
                    {"semantic.query_budget_ms": 0.0} if speed == "instant" else {}, "flag --speed"
                )
                yield _Variant(f"{label}, {speed}", profile, speed, chosen)
            elif speed == speeds[0]:
                yield _Variant(label, profile, "", chosen)


def _index(engine: Engine, collection: JudgedCollection, watched: Watch) -> EvaluatedCollection:
    """Index the collection; the report has no runs yet."""
    wanted = {rid for query in collection.queries for rid, grade in query.grades.items() if grade > 0}
    if collection.files is None:
        there: set[str] = set()

        def resources() -> Iterator[tuple[Resource, str]]:
            for document in read_documents(collection):
                there.add(document.rid)
                yield Resource(rid=document.rid, type="document", title=document.title), document.text

        engine.add(resources())
    else:
        with watched() as on_progress:
            engine.index(on_progress=on_progress)
        there = {resource.path for resource in engine.ls()}
        if absent := sorted(wanted - there):
            raise _not_indexed(engine, collection, absent[0])
    return EvaluatedCollection(
        name=collection.name,
        folder=str(collection.folder),
        documents=len(there),
        chunks=engine.status().chunks,
        unanswerable=collection.unanswerable,
        missing=len(wanted - there),
    )


def _not_indexed(engine: Engine, collection: JudgedCollection, path: str) -> InvalidValueError:
    reason = next((entry.reason for entry in engine.skipped() if entry.path == path), "there is no such file")
    line = find_judgement(collection, path)
    return InvalidValueError(
        f"{collection.qrels}:{line}: {path} is judged, but not indexed: {reason}", hint=f"look into {collection.files}"
    )


def _run(engine: Engine, variant: _Variant, collection: JudgedCollection, plan: EvaluationPlan) -> EvaluatedRun:
    # The first search loads legs and models, which the first query must not pay for.
    engine.search("warm up", limit=plan.depth, refresh=False)
    strategies: Counter[str] = Counter()
    degraded: Counter[str] = Counter()
    evaluated, right = [], []
    cpu_seconds = 0.0
    for query in collection.queries:
        started = time.process_time()
        answer = engine.search(query.text, limit=plan.depth, refresh=False)
        cpu_seconds += time.process_time() - started
        ranking = [hit.rid if collection.files is None else hit.path for hit in answer]
        evaluated.append(evaluate_query(query, ranking, gain=plan.gain))
        first = next((hit.score for hit, rid in zip(answer, ranking, strict=True) if query.grades.get(rid, 0) > 0), 0.0)
        right.append(first)
        strategies[answer.strategy] += 1
        degraded.update(map(str, answer.degraded))
    without = (engine.search(text, limit=1, refresh=False) for text in collection.without)
    best = [max((hit.score for hit in answer), default=0.0) for answer in without]
    return EvaluatedRun(
        label=variant.label,
        profile=variant.profile,
        speed=variant.speed,
        settings=changed_settings(variant.settings),
        cpu_ms_per_query=1000 * cpu_seconds / len(evaluated),
        queries=tuple(evaluated),
        no_answer=no_answer(right, best) if best else None,
        strategies=dict(strategies),
        degraded=dict(degraded),
    )
