"""`findling search --workspace A,B` and `--shared`: one question to several workspaces."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.errors import UsageError
from findling.domain.results import SearchAnswer
from findling.faces.cli.output.json_output import write_json
from findling.faces.cli.output.rendering import make_view, render_text
from findling.faces.cli.output.terminal import note, show_controls, use_color, write
from findling.faces.cli.request.options import resolve
from findling.faces.cli.request.request_builder import SearchOptions, build_request, read_queries, settled
from findling.service.workspace.scope import NO_CONTEXT

if TYPE_CHECKING:
    from findling.service.export.searching_across import AcrossHit
    from findling.service.settings.settings import Settings

__all__ = ["search_workspaces"]


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
