"""The question of `findling search --explain-hit`: why a document is in an answer, or is not."""

from __future__ import annotations

from collections.abc import Iterator

from findling.domain.results import Explanation, LegVerdict
from findling.domain.values import counted
from findling.faces.cli.commands.find.asked import is_agreed_first
from findling.faces.cli.output.json_output import write_report
from findling.faces.cli.output.progress import progress_bar
from findling.faces.cli.output.rendering import receipt_lines
from findling.faces.cli.output.terminal import note_each
from findling.faces.cli.request.options import ask_client, name_from_root, place_of
from findling.faces.cli.request.request_builder import SearchOptions, build_request, read_queries, settled


def explain_hit(options: SearchOptions, name: str, *, as_json: bool) -> int:
    """Print why a document is in the answer to a query, or is not; the exit code: 0 it is, 1 it is not."""
    (query,), named = read_queries(options)
    settings, folder = settled(options, named if named or options.workspace else place_of(name))
    request = build_request(query, options, settings)
    with progress_bar() as bar:
        explanation = ask_client(
            folder,
            settings,
            lambda client: client.explain(request, name_from_root(name, client.root), refresh=True, on_progress=bar),
            before=lambda engine: is_agreed_first(engine, settings),
        )
    write_report(as_json, explanation.to_dict(), "".join(f"{line}\n" for line in _lines(explanation)))
    note_each(explanation.degraded)
    return 0 if explanation.found else 1


def _lines(told: Explanation) -> Iterator[str]:
    where = told.path or told.rid
    if told.found:
        yield f"{where} is hit {told.rank} of {told.shown}"
    elif told.shown > 1:
        yield f"{where} is not among the {counted(told.shown, 'hit')}"
    else:
        yield f"{where} is not in the answer: there {'is one other hit' if told.shown else 'are no hits'}"
    yield from (f"  because {reason}" for reason in told.reasons)
    yield f"  understood as: {told.understood_as} ({told.reading})"
    yield from (f"  filter {name}: {'passes' if passes else 'FAILS'}" for name, passes in told.filters)
    yield from map(_verdict, told.legs)
    if told.hit is not None:
        yield f"  {told.hit.id}, lines {told.hit.line_start} to {told.hit.line_end}"
        yield from (f"  {line}" for line in receipt_lines(told.hit))


def _verdict(leg: LegVerdict) -> str:
    if not leg.rank:
        return f"  {leg.leg}: does not find it among {leg.total:,}"
    limit = f", {leg.least:.3f} needed to be found by this alone" if leg.least else ""
    return f"  {leg.leg}: rank {leg.rank:,} of {leg.total:,}, score {leg.score:.4g}{limit}"
