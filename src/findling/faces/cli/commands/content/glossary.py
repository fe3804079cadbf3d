"""`findling glossary`: words that mean the same, decided by people."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from findling.domain.errors import InvalidValueError, PathNotFoundError, UntrustedSettingError
from findling.domain.strangers import read_json
from findling.faces.cli.output.columns import show_controls
from findling.faces.cli.output.json_output import write_json, write_table
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import json_option, no_context_option, opened, resolve, workspace_option
from findling.service.workspace.scope import NO_CONTEXT

if TYPE_CHECKING:
    from findling.domain.records import GlossaryTerm
    from findling.pipelines.glossary.glossary import Edit
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings

__all__ = ["glossary"]

_SCHEMA = 1
"""Version of what `export` writes."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _place_options(command: _Command) -> _Command:
    """Have a command take what says whose glossary is meant."""
    path_option = click.option(
        "--in",
        "path",
        type=click.Path(),
        metavar="PATH",
        help="A folder of the workspace; by default what a search asks.",
    )
    return path_option(no_context_option(workspace_option(command)))


_group_option = click.option("--group", metavar="GROUP", help="The group that is meant, if there are several.")


@click.group(no_args_is_help=False)
def glossary() -> None:
    """Keep words that mean the same, so that one finds the others.

    \b
      findling glossary add auth authentication sign-in
      findling glossary pending              what was found in the files and waits for you
      findling glossary protect OTP          take a word to the letter

    Quotes and exclusions in a query are never widened. Every answer names the aliases that it made use of.
    """


@glossary.command("add")
@click.argument("canonical")
@click.argument("aliases", nargs=-1, required=True, metavar="ALIAS...")
@_place_options
def _add(canonical: str, aliases: tuple[str, ...], **place: Any) -> int:
    """Have CANONICAL and every ALIAS stand for each other."""
    with _opened_to_change(**place) as engine:
        _tell(engine.glossary.add(canonical, aliases))
    return 0


@glossary.command("list")
@click.option("--all", "everything", is_flag=True, help="Also what is pending or rejected, with its source.")
@json_option
@_place_options
def _list(everything: bool, as_json: bool, **place: Any) -> int:
    """List the groups, and the words that are protected.

    Exit code: 0 there are some, 1 there are none.
    """
    with _opened(**place) as engine:
        groups, protected = engine.glossary.groups(), engine.glossary.protected()
        terms = engine.glossary.terms()
    if as_json:
        write_json(
            groups=[group._asdict() for group in groups],
            protected=[term.surface for term in protected],
            **({"terms": [term._asdict() for term in terms]} if everything else {}),
        )
    elif everything:
        write_table((term.status, term.group, term.surface, term.source) for term in terms)
    else:
        listed = [(group.canonical, ", ".join(group.aliases)) for group in groups]
        write_table([*listed, *((term.surface, "(protected)") for term in protected)])
    is_empty = not groups and not protected and not (everything and terms)
    if is_empty and not as_json:
        note("the glossary is empty", "findling glossary add CANONICAL ALIAS, or findling glossary pending")
    return 1 if is_empty else 0


@glossary.command("pending")
@json_option
@_place_options
def _pending(as_json: bool, **place: Any) -> int:
    """List the terms that were suggested and wait for a decision.

    Nothing of this is used before it is approved. Exit code: 0 there are some, 1 there are none.
    """
    with _opened(**place) as engine:
        found = engine.glossary
        terms = found.pending()
    if found.trouble is not None:
        note(found.trouble.what, found.trouble.fix)
    if as_json:
        write_json(pending=[term._asdict() for term in terms])
    else:
        write_table((term.surface, term.group, term.source, " ".join(term.snippet.split())) for term in terms)
        if terms:
            note(f"{len(terms)} pending", "findling glossary approve TERM, or reject TERM")
    return 0 if terms else 1


@glossary.command("approve")
@click.argument("term")
@_group_option
@click.option("--canonical", is_flag=True, help="Make it the name of its group.")
@_place_options
def _approve(term: str, group: str | None, canonical: bool, **place: Any) -> int:
    """Take a pending TERM into use."""
    with _opened_to_change(**place) as engine:
        _tell(engine.glossary.approve(term, group, canonical=canonical))
    return 0


@glossary.command("reject")
@click.argument("term")
@_group_option
@_place_options
def _reject(term: str, group: str | None, **place: Any) -> int:
    """Never have TERM suggested for this group again."""
    with _opened_to_change(**place) as engine:
        _tell(engine.glossary.reject(term, group))
    return 0


@glossary.command("protect")
@click.argument("term")
@click.option("--off", is_flag=True, help="Protect it no longer.")
@_place_options
def _protect(term: str, off: bool, **place: Any) -> int:
    """Take TERM to the letter.

    It is in no group, never suggested, and found only as it is written.
    """
    with _opened_to_change(**place) as engine:
        edit = engine.glossary.unprotect(term) if off else engine.glossary.protect(term)
    if off:
        note(f"{term} is not protected any more")
    else:
        _tell(edit)
    return 0


@glossary.command("remove")
@click.argument("term")
@_group_option
@_place_options
def _remove(term: str, group: str | None, **place: Any) -> int:
    """Drop TERM, and the whole group when TERM is its name.

    It may be suggested again; `reject` is for good.
    """
    with _opened_to_change(**place) as engine:
        edit = engine.glossary.remove(term, group)
    note(f"{len(edit.dropped)} dropped")
    return 0


@glossary.command("merge")
@click.argument("group")
@click.argument("into")
@_place_options
def _merge(group: str, into: str, **place: Any) -> int:
    """Move all terms of GROUP to the group INTO."""
    with _opened_to_change(**place) as engine:
        _tell(engine.glossary.merge(group, into))
    return 0


@glossary.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False))
@_place_options
def _export(file: str | None, **place: Any) -> int:
    """Write the whole glossary as JSON to FILE, or to the terminal."""
    with _opened(**place) as engine:
        rows = engine.glossary.export_rows()
    document = {"schema": _SCHEMA, "terms": rows}
    if file is None:
        from findling.faces.cli.output.json_output import dump

        write(dump(document, indent=2))
    else:
        Path(file).write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        note(f"{len(rows)} terms are in {file}")
    return 0


@glossary.command("import")
@click.argument("file", type=click.Path())
@click.option("--replace", is_flag=True, help="Drop everything that is not in FILE.")
@_place_options
def _import(file: str, replace: bool, **place: Any) -> int:
    """Take in FILE as `export` writes it.

    All of it, or nothing when a row is wrong.

    What FILE says wins over what is here; its pending terms only fill gaps.
    """
    rows = _read_rows(file)
    with _opened_to_change(**place) as engine:
        edit = engine.glossary.import_rows(rows, replace=replace)
    note(f"{len(edit.put)} terms put in, {len(edit.dropped)} dropped")
    return 0


@contextmanager
def _opened(path: str | None, no_context: bool, workspace: str | None) -> Iterator[Engine]:
    """The engine that a search would ask."""
    with opened(path, _settings(path, no_context, workspace)) as engine:
        yield engine


@contextmanager
def _opened_to_change(path: str | None, no_context: bool, workspace: str | None) -> Iterator[Engine]:
    """The same engine, unless it was a project file that has chosen its workspace."""
    settings = _settings(path, no_context, workspace)
    name, file = settings["context.workspace"], settings.project_file("context.workspace")
    if name and file is not None and not settings["workspace.name"]:
        raise UntrustedSettingError(
            f"{file} names the workspace {name}, whose glossary a project may not have you change",
            hint=f"--workspace {name}, or --no-context",
        )
    with opened(path, settings) as engine:
        yield engine


def _settings(path: str | None, no_context: bool, workspace: str | None) -> Settings:
    settings = resolve(path or ".", in_context=True, workspace=workspace)
    return settings.override(NO_CONTEXT, "flag --no-context") if no_context else settings


def _read_rows(file: str) -> list[Any]:
    hint = "findling glossary export writes such a file"
    try:
        document = read_json(Path(file).read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise PathNotFoundError(f"{file} does not exist", hint="findling glossary export FILE") from error
    except ValueError as error:  # no JSON, or no UTF-8
        raise InvalidValueError(f"{file} is no JSON: {error}", hint=hint) from error
    if not isinstance(document, dict) or not isinstance(document.get("terms"), list):
        raise InvalidValueError(f"{file} holds no glossary", hint=hint)
    if document.get("schema") != _SCHEMA:
        raise InvalidValueError(f"{file} has the schema {document.get('schema')!r}, not {_SCHEMA}", hint=hint)
    rows: list[Any] = document["terms"]
    return rows


def _tell(edit: Edit) -> None:
    """Say what has changed, term by term."""
    for term in edit.put:
        note(_sentence(term))
    if not any(edit):
        note("nothing has changed")


def _sentence(term: GlossaryTerm) -> str:
    said = {
        "canonical": f"{term.surface} is the name of a group",
        "alias": f"{term.surface} is an alias of {term.group}",
        "pending": f"{term.surface} is pending in {term.group}",
        "rejected": f"{term.surface} will not be suggested for {term.group} again",
        "protected": f"{term.surface} is protected",
    }
    return show_controls(said[term.status])
