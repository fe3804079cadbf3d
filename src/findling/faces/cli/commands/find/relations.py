"""`findling refs` and `findling outline`: relations in code, by name."""

from __future__ import annotations

import sys

import click

from findling.domain.reports import ListedFile
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
    workspace_option,
)

__all__ = ["outline", "refs"]


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
        answer = engine.exact.outline(name_from_root(file, engine.root), principals=as_ or None)
        if as_json:
            write_json({"root": engine.root, **answer.to_dict()})
        else:
            _write_lines(
                [f"{one.line:>5}-{one.end:<5} {'  ' * one.level}{one.signature}" for one in answer.definitions]
            )
    if not answer.definitions:
        note(f"{answer.path or answer.rid} defines nothing that findling knows", "")
    return 0 if answer.definitions else 1


def _write_lines(lines: list[str]) -> None:
    is_terminal = sys.stdout.isatty()
    write("".join([f"{show_controls(line) if is_terminal else line}\n" for line in lines]))
