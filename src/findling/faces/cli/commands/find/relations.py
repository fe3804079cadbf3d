"""`findling refs` and `findling outline`: relations in code, by name; `findling related`: paths between things."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from findling.domain.reports import ListedFile, RelatedAnswer, RelatedPassage
from findling.domain.values import counted
from findling.faces.cli.commands.find.grep import indexing, path_shower
from findling.faces.cli.output.json_output import write_json
from findling.faces.cli.output.terminal import note, show_controls, write
from findling.faces.cli.request.options import (
    as_option,
    json_option,
    name_from_root,
    note_settings,
    opened,
    path_argument,
    place_of,
    resolve,
    setting_option,
    workspace_option,
)

if TYPE_CHECKING:
    from findling.service.settings.settings import Settings


@click.command()
@click.argument("name", metavar="NAME")
@path_argument
@json_option
@as_option
@workspace_option
def refs(name: str, path: str, as_json: bool, as_: tuple[str, ...], workspace: str | None) -> int:
    """List the lines of code that define, import, call or use NAME.

    NAME is one such as send, or has its scope: Session.send, Session::send. Names are found as words, without comments
    and strings, in files as they are now; other things of the same name are listed, too.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    settings = resolve(path, workspace=workspace, in_context=True)
    note_settings(settings)
    with opened(path, settings) as engine:
        with indexing(engine, settings) as bar:
            answer = engine.exact.refs(name, principals=as_ or None, on_progress=bar)
        shown = path_shower(engine.root, None if path == "." else path)
        if as_json:
            write_json({"root": engine.root, **answer.to_dict()})
        else:
            _write_lines(
                [
                    f"{shown(ListedFile(one.path))}:{one.line}  {one.kind}  {one.symbol or '-'}  {one.text}"
                    for one in answer.references
                ]
            )
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    if not answer.references:
        note(f"no code has the name {name}")
    return 0 if answer.references else 1


@click.command()
@click.argument("file", metavar="FILE")
@json_option
@as_option
@workspace_option
def outline(file: str, as_json: bool, as_: tuple[str, ...], workspace: str | None) -> int:
    """List the definitions of FILE with their lines.

    Each stands below the one that holds it. FILE is a path or the id of a resource; its folder has to be indexed.

    Exit code: 0 found, 1 it defines nothing, 2 error.
    """
    path = "." if workspace else place_of(file) or "."
    settings = resolve(path, workspace=workspace, in_context=True)
    note_settings(settings)
    with opened(path, settings) as engine:
        name = name_from_root(file, engine.root)
        engine.check_path(name, as_ or None)
        with indexing(engine, settings) as bar:
            answer = engine.exact.outline(name, principals=as_ or None, on_progress=bar)
        if as_json:
            write_json({"root": engine.root, **answer.to_dict()})
        else:
            _write_lines(
                [f"{one.line:>5}-{one.end:<5} {'  ' * one.level}{one.signature}" for one in answer.definitions]
            )
    if not answer.definitions:
        note(f"{answer.path or answer.rid} defines nothing that findling knows", "")
    return 0 if answer.definitions else 1


@click.command()
@click.argument("of", metavar="[A]", default="")
@click.argument("to", metavar="[B]", default="")
@path_argument
@setting_option("limit", "-k", metavar="N")
@json_option
@as_option
@workspace_option
def related(
    of: str, to: str, path: str, limit: str | None, as_json: bool, as_: tuple[str, ...], workspace: str | None
) -> int:
    """Show how A and B are connected, or A alone; without both, themes.

    A and B are names, titles, paths or ids. Each step shows the passage that proves it. A theme is a group of passages
    that name the same things. PATH is the folder to search; write "" for what is missing in front of it.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    from findling.service.engine.client import LocalClient

    settings = resolve(path, workspace=workspace, limit=limit, in_context=True)
    note_settings(settings)
    if not of and not to:
        return _list_themes(path, settings, as_json, as_ or None)
    with opened(path, settings) as engine:
        with indexing(engine, settings) as bar:
            things = [name_from_root(one, engine.root) if one else "" for one in (of, to)]
            most = max(settings["search.limit"], 1)
            answer = engine.related(*things, limit=most, principals=as_ or None, refresh=True, on_progress=bar)
        shown = path_shower(engine.root, None if path == "." else path)
        if as_json:
            write_json({"root": engine.root, **answer.to_dict()})
        else:
            _write_lines(_related_lines(answer, lambda one: shown(ListedFile(one.path)) if one.path else one.rid))
        LocalClient(engine, settings=settings).finish()  # which starts what builds a graph that is missing
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    for name in answer.unknown:
        note(f"nothing names {name}", f'findling search "{name}"')
    if not answer.is_found and not answer.degraded and not answer.unknown:
        note(f"nothing connects {answer.of} with {answer.to}" if to else f"nothing is connected to {answer.of}")
    return 0 if answer.is_found else 1


def _list_themes(path: str, settings: Settings, as_json: bool, principals: tuple[str, ...] | None) -> int:
    """Each theme by its names, how much has them, a summary, and its best passage."""
    from findling.service.engine.client import LocalClient

    with opened(path, settings) as engine:
        with indexing(engine, settings) as bar:
            most = max(settings["search.limit"], 1)
            answer = engine.themes.top(most, principals=principals, refresh=True, on_progress=bar)
        if as_json:
            write_json({"root": engine.root, **answer.to_dict()})
        else:
            lines = []
            for theme in answer.themes:
                size = f"{counted(theme.resources, 'document')}, {counted(theme.passages, 'passage')}"
                lines += [f"{', '.join(one.name for one in theme.names)}  ({size}, {theme.id})", f"  {theme.summary}"]
            _write_lines(lines)
        LocalClient(engine, settings=settings).finish()
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    if len(answer.themes) < answer.total:
        note(f"{len(answer.themes)} of {counted(answer.total, 'theme')}", "findling related -k 100")
    if not answer.themes and not answer.degraded:
        note("no two documents name the same thing")
    return 0 if answer.themes else 1


def _related_lines(answer: RelatedAnswer, place: Callable[[RelatedPassage], str]) -> list[str]:
    """Paths with a line for each step; for one thing its names and documents."""

    def proof(one: RelatedPassage) -> str:
        where = f" ({one.place})" if one.place else f":{one.line}" if one.line else ""
        return f"  {place(one)}{where}  {one.text}"

    lines = []
    for path in answer.paths:
        lines += [" → ".join(path.names), *(proof(step.passage) for step in path.steps)]
    for name in answer.names:
        lines += [f"{answer.of} → {name.name}", proof(name.passage)]
    if answer.documents:
        lines.append(f"documents with {answer.of}, or with names that it has:")
        lines += [f"{proof(one.passage)}  (by {', '.join(one.names)})" for one in answer.documents]
    return lines


def _write_lines(lines: list[str]) -> None:
    is_terminal = sys.stdout.isatty()
    write("".join([f"{show_controls(line) if is_terminal else line}\n" for line in lines]))
