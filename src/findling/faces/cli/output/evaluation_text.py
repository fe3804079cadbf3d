"""Evaluations as text: a table of measures, the outcome of paired tests, single queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

from findling.domain.values import counted
from findling.faces.cli.output.json_output import aligned
from findling.faces.cli.output.terminal import show_controls
from findling.service.export.evaluating import MAIN_MEASURE

if TYPE_CHECKING:
    from findling.pipelines.evaluation.evaluation import EvaluatedCollection, EvaluatedQuery, EvaluatedRun, PairedRuns


class Bar(NamedTuple):
    """A value between 0 and 1 and the interval it lies in."""

    label: str
    value: float
    low: float
    high: float


_BAR, _GAP, _MARGIN = 34, 28, 56
_HEIGHT, _TOP, _LINE = 260, 64, 20
_LETTER = 7.2
"""Width of a letter at 12 px, generously: names must not run into each other."""

_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
"""The palette of Okabe and Ito, distinct for people with any colour vision."""


def draw_bars(title: str, groups: Mapping[str, Sequence[Bar]]) -> str:
    """The whole drawing, with the bars above each name side by side.

    The same label has the same colour above every name; a legend names them.
    """
    style = (files(__package__) / "bars.css").read_text(encoding="utf-8")
    quoted = escape(title, {'"': "&quot;"})
    labels = list(dict.fromkeys(bar.label for bars in groups.values() for bar in bars))
    colors = {label: _COLORS[number % len(_COLORS)] for number, label in enumerate(labels)}
    widths = [max(len(bars) * _BAR, round(len(name) * _LETTER)) for name, bars in groups.items()]
    legend = _MARGIN + round(_LETTER * max(map(len, [title, *labels]))) + 2 * _GAP
    width = max(_MARGIN + sum(widths) + _GAP * (len(groups) + 1), legend)
    height = _TOP + _HEIGHT + 2 * _LINE + _LINE * len(labels) + _GAP
    body = [*_axis(width), *_grouped(groups, widths, colors), *_legend(labels, colors)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
            f' height="{height}" role="img" aria-label="{quoted}">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{style}</style>",
            f'<rect class="ground" width="{width}" height="{height}"/>',
            f'<text class="title" x="{_MARGIN}" y="28">{escape(title)}</text>',
            *body,
            "</svg>\n",
        ]
    )


def _axis(width: int) -> Iterator[str]:
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        yield f'<line class="rule" x1="{_MARGIN}" x2="{width - _GAP}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{_MARGIN - 8}" y="{y + 4}">{tenth / 10:.1f}</text>'


def _grouped(groups: Mapping[str, Sequence[Bar]], widths: Sequence[int], colors: dict[str, str]) -> Iterator[str]:
    left = _MARGIN + _GAP
    for (name, bars), width in zip(groups.items(), widths, strict=True):
        start = left + (width - len(bars) * _BAR) // 2
        for number, bar in enumerate(bars):
            yield from _bar(bar, start + number * _BAR, colors[bar.label])
        yield f'<text class="name" x="{left + width // 2}" y="{_y(0) + _LINE}">{escape(name)}</text>'
        left += width + _GAP


def _bar(bar: Bar, x: int, color: str) -> Iterator[str]:
    top, middle = _y(bar.value), x + _BAR // 2
    yield (
        f'<rect x="{x + 3}" y="{top}" width="{_BAR - 6}" height="{round(_y(0) - top, 1)}" fill="{color}">'
        f"<title>{escape(bar.label)}: {bar.value:.4f}, 95 % from {bar.low:.4f} to {bar.high:.4f}</title></rect>"
    )
    high, low = _y(bar.high), _y(bar.low)
    yield f'<path class="whisker" d="M{middle - 5} {high}h10m-5 0V{low}m-5 0h10"/>'
    yield f'<text class="value" x="{middle}" y="{round(min(top, high) - 5, 1)}">{bar.value:.3f}</text>'


def _legend(labels: Sequence[str], colors: dict[str, str]) -> Iterator[str]:
    for number, label in enumerate(labels):
        y = _y(0) + _LINE * (number + 2)
        yield f'<rect x="{_MARGIN}" y="{y}" width="12" height="12" fill="{colors[label]}"/>'
        yield f'<text x="{_MARGIN + 20}" y="{y + 10.5}">{escape(label)}</text>'


def _y(value: float) -> float:
    return round(_TOP + _HEIGHT * (1 - value), 1)


_QUERY_WIDTH = 70


def render_sizes(collections: Sequence[EvaluatedCollection]) -> str:
    """A line for each collection that says how large it is."""
    lines = []
    for each in collections:
        facts = [counted(each.documents, "document"), counted(each.chunks, "chunk")]
        facts.append(counted(len(each.runs[0].queries), "query", "queries"))
        if each.unanswerable:
            facts.append(f"{each.unanswerable:,} more without a relevant document left out")
        if each.missing:
            facts.append(f"{each.missing:,} relevant documents not in the corpus")
        lines.append(f"{each.name}: {', '.join(facts)}\n")
    return "".join(lines)


def render_measures(documents: Sequence[Mapping[str, Any]]) -> str:
    """A row for each collection and run, rows by category below it, and means where there are several collections."""
    names = list(documents[0]["runs"][0]["measures"])
    rows = [("collection", "run", *names, "CPU ms")]
    for document in documents:
        for run in document["runs"]:
            figures = _figures(run["measures"].values())
            rows.append((document["name"], run["label"], *figures, f"{run['cpu_ms_per_query']:.1f}"))
            for name, part in run["categories"].items():
                rows.append(("", f"  {name} ({part['queries']:,})", *_figures(part["measures"].values()), ""))
    if len(documents) > 1:
        rows += _mean_rows(documents, names)
    return _table(rows, left=2)


def render_no_answer(collections: Sequence[EvaluatedCollection]) -> str:
    """A row for each run on a collection with questions that nothing answers."""
    rows = [("collection", "run", "no answer", "median of right", "reach it", "empty")]
    for collection in collections:
        for run in collection.runs:
            if told := run.no_answer:
                shares = (f"{told.median:.4f}", f"{told.reaching:.1%}", f"{told.empty:.1%}")
                rows.append((collection.name, run.label, f"{told.questions:,}", *shares))
    return _table(rows, left=2) if len(rows) > 1 else ""


def render_comparisons(pairs: Sequence[PairedRuns]) -> str:
    """A row for each paired test."""
    heading = ("collection", f"{MAIN_MEASURE} of", "against", "difference", "95 % interval", "p", "won", "tied", "lost")
    rows = [heading]
    for pair in pairs:
        of = pair.outcome
        interval = f"{of.low:+.4f} … {of.high:+.4f}"
        counts = (f"{of.wins:,}", f"{of.ties:,}", f"{of.losses:,}")
        rows.append((pair.collection, pair.label, pair.baseline, f"{of.difference:+.4f}", interval, _p(of.p), *counts))
    return _table(rows, left=3) if pairs else ""


def render_queries(collections: Sequence[EvaluatedCollection], pairs: Sequence[PairedRuns]) -> str:
    """Every query: the worst losses first where runs are compared, the worst values first where they are not."""
    by_name = {(each.name, run.label): run for each in collections for run in each.runs}
    if not pairs:
        parts = [_query_table(name, run, {}) for (name, _), run in by_name.items()]
    else:
        parts = [
            _query_table(
                f"{pair.collection}, against {pair.baseline}", by_name[pair.collection, pair.label], pair.theirs
            )
            for pair in pairs
        ]
    return "\n".join(parts)


def _mean_rows(documents: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Of the runs that every collection has; each collection counts the same."""
    for label in (run["label"] for run in documents[0]["runs"]):
        runs = [run for document in documents for run in document["runs"] if run["label"] == label]
        if len(runs) == len(documents):
            averages = [fmean(run["measures"][name] for run in runs) for name in names]
            yield "(mean)", label, *_figures(averages), f"{fmean(run['cpu_ms_per_query'] for run in runs):.1f}"


def _query_table(name: str, run: EvaluatedRun, theirs: Mapping[str, float]) -> str:
    queries = [query for query in run.queries if not theirs or query.qid in theirs]
    rows = [("query", MAIN_MEASURE, *(("baseline", "change") if theirs else ()), "first at", "category", "text")]
    for query in sorted(queries, key=lambda each: each.measures[MAIN_MEASURE] - theirs.get(each.qid, 0.0)):
        value = query.measures[MAIN_MEASURE]
        before = (f"{theirs[query.qid]:.4f}", f"{value - theirs[query.qid]:+.4f}") if theirs else ()
        rows.append((query.qid, f"{value:.4f}", *before, _first_rank(query), query.category, _short(query.text)))
    return f"{name}: {run.label}\n{_table(rows, left=1, text=2)}"


def _first_rank(query: EvaluatedQuery) -> str:
    return str(min((rank for rank in query.ranks.values() if rank is not None), default="–"))


def _short(text: str) -> str:
    text = " ".join(show_controls(text.replace("\n", " ")).split())
    return text if len(text) <= _QUERY_WIDTH else text[: _QUERY_WIDTH - 1] + "…"


def _figures(values: Iterable[float]) -> list[str]:
    return [f"{value:.4f}" for value in values]


def _p(value: float) -> str:
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _table(rows: Sequence[Sequence[str]], *, left: int, text: int = 0) -> str:
    """Columns of equal width: the first `left` and the last `text` of them flush left, numbers flush right."""
    return aligned(rows, range(left, len(rows[0]) - text))
