"""Questions of `findling search` that are no plain search.

`--explain-hit` says why a document is in an answer, or is not; `--workspace A,B` and `--shared` ask several workspaces.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.errors import UsageError
from findling.domain.results import Explanation, LegVerdict, SearchAnswer
from findling.domain.values import counted
from findling.faces.cli.output.json_output import dump, write_json
from findling.faces.cli.output.progress import progress_bar
from findling.faces.cli.output.rendering import make_view, receipt_lines, render_text
from findling.faces.cli.output.terminal import ask_before_indexing, note, show_controls, use_color, write
from findling.faces.cli.request.options import ask_client, name_from_root, place_of, resolve
from findling.faces.cli.request.request_builder import SearchOptions, build_request, read_queries, settled
from findling.service.workspace.scope import NO_CONTEXT

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from findling.service.export.searching_across import AcrossHit
    from findling.service.settings.settings import Settings

__all__ = ["explain_hit", "search_workspaces"]


def explain_hit(options: SearchOptions, name: str, *, as_json: bool) -> int:
    """Print why a document is in the answer to a query, or is not; the exit code: 0 it is, 1 it is not."""
    (query,), named = read_queries(options)
    settings, folder = settled(options, named if named or options.workspace else place_of(name))
    request = build_request(query, options, settings)

    def ask_first(engine: Engine) -> None:
        if settings["search.refresh"] == "auto" and not engine.is_indexed():
            ask_before_indexing(engine.subject, False)

    with progress_bar() as bar:
        explanation = ask_client(
            folder,
            settings,
            lambda client: client.explain(request, name_from_root(name, client.root), refresh=True, on_progress=bar),
            before=ask_first,
        )
    if as_json:
        write(dump(explanation.to_dict(), indent=2))
    else:
        write("".join(f"{line}\n" for line in _lines(explanation)))
    for missing in explanation.degraded:
        note(missing.what, missing.fix)
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


def search_workspaces(options: SearchOptions, *, shared: bool, as_json: bool) -> int:
    """Ask the workspaces that are named, or all shared ones; the exit code.

    One that cannot be read is named on stderr, and the others answer.
    """
    from findling.service.export.searching_across import search_across
    from findling.service.workspace.workspace import home_folder

    (query,), path = read_queries(options)
    if path is not None:
        raise UsageError("several workspaces are searched as a whole, not below a path", hint=f"leave out {path}")
    names = tuple(name.strip() for name in (options.workspace or "").split(",") if name.strip())
    options = replace(options, workspace=None)

    def settings_for(place: Path) -> Settings:
        return settled(options, str(place))[0].override(NO_CONTEXT, "search across workspaces")

    request = build_request(query, options, settings_for(Path()))
    home = home_folder(resolve(".")["store.home"])
    answer = search_across(request, home=home, names=names, shared=shared, settings_for=settings_for)
    if as_json:
        write_json(**answer.to_dict())
    else:
        write(_shown(answer.hits, answer.query), styled=True)
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    is_counted = not request.limit and any(answer.totals.values())
    if not answer.hits and not is_counted:
        note(f'no match for "{query}" in {", ".join(answer.asked) or "any workspace"}')
    if answer.relaxed and not as_json:
        note("relaxed, without what is demanded:")
        click.echo(_shown(answer.relaxed, query), err=True, nl=False)
    return 0 if answer.hits or is_counted else 1


def _shown(hits: Sequence[AcrossHit], query: str) -> str:
    """Every hit with its workspace, in their order."""
    parts = []
    for found in hits:
        view = make_view(found.root, color=use_color("auto", sys.stdout), terminal=sys.stdout.isatty())
        shown = replace(found.hit, score=found.score)
        one = SearchAnswer(query=query, understood_as="", hits=(shown,), total=1, strategy="")
        parts.append(f"[{show_controls(found.workspace)}] {render_text(one, view)}")
    return "\n".join(parts)
