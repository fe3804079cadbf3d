"""`findling eval`: how good the answers are, measured on collections with judgements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from findling.domain.errors import InvalidValueError, PathNotFoundError
from findling.faces.cli.output.evaluation_text import (
    Bar,
    draw_bars,
    render_comparisons,
    render_measures,
    render_no_answer,
    render_queries,
    render_sizes,
)
from findling.faces.cli.output.json_output import dump, report_document, write_report
from findling.faces.cli.output.progress import progress_bar
from findling.faces.cli.output.terminal import note
from findling.faces.cli.request.options import json_option, resolve
from findling.service.export.evaluating import (
    GAINS,
    GOLDEN_SET,
    MAIN_MEASURE,
    OWN_SETTINGS,
    SPEEDS,
    Evaluation,
    EvaluationPlan,
    changed_settings,
    evaluate_all,
)
from findling.service.settings.settings import Settings


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
@click.option("--gain", type=click.Choice(GAINS), default="linear", help="What a grade is worth to NDCG.")
@click.option("--per-query", is_flag=True, help="Print every query as well, the worst losses first.")
@click.option("--compare", metavar="FILE", help="Hold the runs against those of a saved evaluation.")
@json_option
@click.option(
    "--save", multiple=True, metavar="FILE", help=f"Write the JSON document, too; FILE.svg: draw {MAIN_MEASURE}."
)
def eval(  # noqa: A001 - commands are called what users type
    folders: tuple[str, ...],
    changes: tuple[str, ...],
    per_query: bool,
    compare: str | None,
    as_json: bool,
    save: tuple[str, ...],
    **planned: Any,
) -> int:
    """Measure how good the answers are, on collections with judged queries.

    Each FOLDER holds a collection in BEIR layout (corpus.jsonl, queries.jsonl, qrels/test.tsv) or a golden set (files/
    instead of corpus.jsonl; judgements name paths). Without one, findling's own documentation is asked. All of it goes
    through the engine, in a workspace that is thrown away. Two or more profiles, or --compare, are tested in pairs.
    """
    for output in save:
        _must_be_writable(Path(output))
    settings = _change(resolve("."), changes)
    given = settings.origin("search.limit").startswith("flag ")
    plan = EvaluationPlan(**planned, **({"depth": max(1, settings["search.limit"])} if given else {}))
    found = evaluate_all(
        [Path(folder) for folder in folders] or [GOLDEN_SET],
        plan,
        settings,
        compare=Path(compare) if compare else None,
        on_stage=note,
        watched=progress_bar,
    )
    document = report_document(found.document())
    for output in save:
        is_drawn = output.lower().endswith(".svg")
        text = _draw(document["collections"], found) if is_drawn else dump(document, indent=2)
        Path(output).write_text(text, encoding="utf-8")
    queries = f"\n{render_queries(found.collections, found.pairs)}" if per_query else ""
    write_report(as_json, document, _render(document["collections"], found) + queries)
    _warn(found, compare)
    return 0


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


def _render(documents: Sequence[dict[str, Any]], found: Evaluation) -> str:
    plan = found.plan
    changed = ", ".join(f"{name} = {value}" for name, value in changed_settings(found.settings).items())
    gain = "linear gain, as in trec_eval" if plan.gain == "linear" else "gain 2^grade - 1"
    parts = [
        f"settings: {changed or 'default'}\n"
        f"NDCG with {gain}; {plan.depth} hits a query; a document stands where its best hit does\n"
        "each collection is indexed once: the index does not depend on the profile; every run asks every query anew\n"
        + render_sizes(found.collections),
        render_measures(documents),
        render_no_answer(found.collections),
        render_comparisons(found.pairs),
    ]
    return "\n".join(filter(None, parts))


def _draw(documents: Sequence[dict[str, Any]], found: Evaluation) -> str:
    groups = {}
    for document in documents:
        before = found.saved.get(document["name"], {})
        bars = [Bar(f"saved {label}", *figures) for label, figures in before.items()]
        for run in document["runs"]:
            bars.append(Bar(run["label"], run["measures"][MAIN_MEASURE], *run["interval"][MAIN_MEASURE]))
        groups[document["name"]] = bars
    return draw_bars(f"{MAIN_MEASURE}, whiskers: 95 % interval", groups)


def _warn(found: Evaluation, compare: str | None) -> None:
    """Report what makes the figures mean less than they seem to."""
    for collection in found.collections:
        for run in collection.runs:
            for reason, count in run.degraded.items():
                note(f"{collection.name}, {run.label}: {count:,} of {len(run.queries):,} answers: {reason}")
    if compare and not any(pair.baseline.startswith("saved ") for pair in found.pairs):
        note(f"nothing in {compare} was measured on these collections under these names")
