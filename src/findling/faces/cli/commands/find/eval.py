"""`findling eval`: how good the answers are, measured on collections with judgements."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from findling import __version__
from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.faces.cli.output.evaluation_text import (
    Bar,
    BarGroup,
    draw_bars,
    render_comparisons,
    render_measures,
    render_no_answer,
    render_queries,
    render_sizes,
)
from findling.faces.cli.output.json_output import dump, report_document
from findling.faces.cli.output.progress import progress_bar
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import json_option, resolve
from findling.pipelines.evaluation.evaluation import (
    MAIN_MEASURE,
    EvaluatedCollection,
    PairedRuns,
    SavedRuns,
    collection_document,
    pair_runs,
    read_saved_runs,
)
from findling.pipelines.evaluation.evaluation_collections import read_collection
from findling.ranking.metrics import GAINS, interval, mean
from findling.service.export.evaluating import (
    GOLDEN_SET,
    OWN_SETTINGS,
    SPEEDS,
    EvaluationPlan,
    changed_settings,
    evaluate,
)
from findling.service.settings.settings import Settings

__all__ = ["eval"]


@click.command()
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path())
@click.option("--profile", "profiles", multiple=True, metavar="NAME", help="How to search, such as keyword or strict.")
@click.option(
    "--speed",
    type=click.Choice(SPEEDS),
    default="refined",
    help="instant: as indexing leaves it; refined: once the model has read all passages.",
)
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Measure with another setting.")
@click.option("--split", metavar="NAME", help="Judgements to use: qrels/NAME.tsv, by default test.")
@click.option("--limit-queries", type=click.IntRange(min=1), metavar="N", help="Only the first N judged queries.")
@click.option("--depth", type=click.IntRange(min=1), default=100, metavar="N", help="Hits to ask for, by default 100.")
@click.option("--gain", type=click.Choice(GAINS), default="linear", help="What a grade is worth to NDCG.")
@click.option("--per-query", is_flag=True, help="Print every query as well, the worst losses first.")
@click.option("--compare", metavar="FILE", help="Hold the runs against those of a saved evaluation.")
@json_option
@click.option("--save", metavar="FILE", help="Write the JSON document to FILE, too.")
@click.option("--plot", metavar="FILE.svg", help=f"Draw {MAIN_MEASURE} with its intervals.")
def eval(  # noqa: A001 - commands are called what users type
    folders: tuple[str, ...],
    changes: tuple[str, ...],
    per_query: bool,
    compare: str | None,
    as_json: bool,
    save: str | None,
    plot: str | None,
    **planned: Any,
) -> int:
    """Measure how good the answers are, on collections with judged queries.

    Each FOLDER holds a collection in BEIR layout (corpus.jsonl, queries.jsonl, qrels/test.tsv) or a golden set (files/
    instead of corpus.jsonl; judgements name paths). Without one, findling's own documentation is asked. All of it goes
    through the engine, in a workspace that is thrown away. Two or more profiles, or --compare, are tested in pairs.
    """
    plan = EvaluationPlan(**planned)
    for output in filter(None, (save, plot)):
        _must_be_writable(Path(output))
    if plot and not plot.lower().endswith(".svg"):
        raise click.UsageError(f"--plot draws SVG, so {plot} must end in .svg")
    settings = _change(resolve("."), changes)
    saved = read_saved_runs(Path(compare), gain=plan.gain) if compare else None
    collections = list(_evaluate_all([Path(folder) for folder in folders] or [GOLDEN_SET], plan, settings))
    pairs = pair_runs(collections, saved)
    document = _document(collections, pairs, plan, settings)
    if save:
        Path(save).write_text(dump(document, indent=2), encoding="utf-8")
    if plot:
        Path(plot).write_text(_draw(collections, saved), encoding="utf-8")
    if as_json:
        write(dump(document, indent=2))
    else:
        write(_render(collections, pairs, plan, settings))
        if per_query:
            write("\n" + render_queries(collections, pairs))
    _tell(collections, pairs, compare)
    return 0


def _evaluate_all(folders: Sequence[Path], plan: EvaluationPlan, settings: Settings) -> Iterator[EvaluatedCollection]:
    # A mistake in the last collection must not come to light after an hour with the others.
    names = Counter(read_collection(folder, split=plan.split).name for folder in folders)
    if twice := next((name for name, count in names.items() if count > 1), None):
        raise InvalidValueError(f"two collections are called {twice}", hint="rename one of the folders")
    for folder in folders:
        yield evaluate(folder, plan, settings, on_stage=note, watched=progress_bar)


def _change(settings: Settings, changes: Sequence[str]) -> Settings:
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise click.UsageError(f"--set wants NAME=VALUE, not {change}")
        if name in OWN_SETTINGS:
            raise InvalidValueError(f"flag --set: an evaluation sets {name} itself", hint=OWN_SETTINGS[name])
        settings = settings.override_text(name, text, "flag --set")
    return settings


def _must_be_writable(path: Path) -> None:
    """Better before the work than after it."""
    if not path.parent.is_dir():
        raise PathNotFoundError(f"there is no folder {path.parent}", hint=f"mkdir {path.parent}")
    if path.is_dir():
        raise InvalidValueError(f"{path} is a folder", hint="name a file")


def _document(
    collections: Sequence[EvaluatedCollection], pairs: Sequence[PairedRuns], plan: EvaluationPlan, settings: Settings
) -> dict[str, Any]:
    return report_document(
        {
            "created_at": time.time(),
            "versions": {"findling": __version__, "python": platform.python_version(), "system": platform.platform()},
            "plan": asdict(plan),
            "settings": changed_settings(settings),
            "collections": [collection_document(collection) for collection in collections],
            "comparisons": [pair.to_dict() for pair in pairs],
        }
    )


def _render(
    collections: Sequence[EvaluatedCollection], pairs: Sequence[PairedRuns], plan: EvaluationPlan, settings: Settings
) -> str:
    changed = ", ".join(f"{name} = {value}" for name, value in changed_settings(settings).items())
    gain = "linear gain, as in trec_eval" if plan.gain == "linear" else "gain 2^grade - 1"
    parts = [
        f"settings: {changed or 'default'}\n"
        f"NDCG with {gain}; {plan.depth} hits a query; a document stands where its best hit does\n"
        "each collection is indexed once: the index does not depend on the profile; every run asks every query anew\n"
        + render_sizes(collections),
        render_measures(collections),
        render_no_answer(collections),
        render_comparisons(pairs),
    ]
    return "\n".join(filter(None, parts))


def _draw(collections: Sequence[EvaluatedCollection], saved: SavedRuns | None) -> str:
    groups = []
    for collection in collections:
        before = (saved or {}).get(collection.name, {})
        bars = [_bar(f"saved {label}", list(values.values())) for label, values in before.items()]
        bars += [_bar(run.label, list(run.values().values())) for run in collection.runs]
        groups.append(BarGroup(collection.name, bars))
    return draw_bars(f"{MAIN_MEASURE}, whiskers: 95 % interval", groups)


def _bar(label: str, values: list[float]) -> Bar:
    return Bar(label, mean(values), *interval(values))


def _tell(collections: Sequence[EvaluatedCollection], pairs: Sequence[PairedRuns], compare: str | None) -> None:
    """What makes the figures mean less than they seem to."""
    for collection in collections:
        for run in collection.runs:
            for reason, count in run.degraded.items():
                note(f"{collection.name}, {run.label}: {count:,} of {len(run.queries):,} answers: {reason}")
    if compare and not any(pair.baseline.startswith("saved ") for pair in pairs):
        note(f"nothing in {compare} was measured on these collections under these names")
