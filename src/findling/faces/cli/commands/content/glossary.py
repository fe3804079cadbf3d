"""`findling glossary`: words that mean the same, decided by people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import InvalidValueError, PathNotFoundError, UntrustedSettingError, UsageError
from findling.domain.values import counted, read_json
from findling.faces.cli.output.json_output import dump, write_json, write_table
from findling.faces.cli.output.terminal import note, show_controls, write
from findling.faces.cli.request.options import command_group, json_option, opened, resolve
from findling.faces.cli.request.place import GivenPlace, place_option
from findling.service.workspace.scope import NO_CONTEXT

if TYPE_CHECKING:
    from findling.domain.records import GlossaryTerm
    from findling.pipelines.glossary.glossary import Edit
    from findling.service.content.glossary import WorkspaceGlossary
    from findling.service.engine.engine import Engine

_SCHEMA = 1
"""Version of what `list export` writes."""

_HERE = "."
"""The folder of a command that names none."""

_EDITS: Mapping[str, Callable[[WorkspaceGlossary, str, str | None], Edit]] = {
    "approved": lambda found, term, group: found.approve(term, group),
    "canonical": lambda found, term, group: found.approve(term, group, canonical=True),
    "rejected": lambda found, term, group: found.reject(term, group),
    "protected": lambda found, term, group: found.protect(term),
    "unprotected": lambda found, term, group: found.unprotect(term),
    "removed": lambda found, term, group: found.remove(term, group),
    "merged": lambda found, term, group: found.merge(term, group or ""),
}
"""State → what brings a term there."""


@command_group(
    pending="findling glossary list pending",
    export="findling glossary list export",
    approve="findling glossary set TERM approved",
    reject="findling glossary set TERM rejected",
    protect="findling glossary set TERM protected",
    remove="findling glossary set TERM removed",
    merge="findling glossary set GROUP merged --group INTO",
)
def glossary() -> None:
    """Keep words that mean the same, so that one finds the others.

    \b
      findling glossary add auth authentication sign-in
      findling glossary list pending         what was found in the files and waits for you
      findling glossary set OTP protected    take a word to the letter

    Quotes and exclusions in a query are never widened. Every answer names the aliases that it made use of.
    """


@glossary.command("add")
@click.argument("canonical")
@click.argument("aliases", nargs=-1, required=True, metavar="ALIAS...")
@place_option
def _add(canonical: str, aliases: tuple[str, ...], place: GivenPlace) -> int:
    """Have CANONICAL and every ALIAS stand for each other."""
    with _opened(place, to_change=True) as engine:
        _tell(engine.glossary.add(canonical, aliases))
    return 0


@glossary.command("list")
@click.argument("which", default="groups", type=click.Choice(("groups", "all", "pending", "export")))
@json_option
@place_option
def _list(which: str, as_json: bool, place: GivenPlace) -> int:
    """List the groups, and the words that are protected.

    \b
      all      also what is pending or rejected, with its source
      pending  only what was suggested and waits for a decision; nothing of it is used before it is approved
      export   all of it as JSON, which `import` reads

    Exit code: 0 there are some, 1 there are none.
    """
    everything = which == "all"
    with _opened(place) as engine:
        if which == "pending":
            return _list_pending(engine, as_json)
        if which == "export":
            write(dump({"schema": _SCHEMA, "terms": engine.glossary.export_rows()}, indent=2))
            return 0
        groups, protected = engine.glossary.groups(), engine.glossary.protected()
        terms = engine.glossary.terms()
    if as_json:
        write_json(
            groups=groups, protected=[term.surface for term in protected], **({"terms": terms} if everything else {})
        )
    elif everything:
        write_table((term.status, term.group, term.surface, term.source) for term in terms)
    else:
        listed = [(group.canonical, ", ".join(group.aliases)) for group in groups]
        write_table([*listed, *((term.surface, "(protected)") for term in protected)])
    is_empty = not groups and not protected and not (everything and terms)
    if is_empty and not as_json:
        note("the glossary is empty", "findling glossary add CANONICAL ALIAS, or findling glossary list pending")
    return 1 if is_empty else 0


def _list_pending(engine: Engine, as_json: bool) -> int:
    found = engine.glossary
    terms = found.pending()
    if found.trouble is not None:
        note(found.trouble.what, found.trouble.fix)
    if as_json:
        write_json(pending=terms)
    else:
        write_table((term.surface, term.group, term.source, " ".join(term.snippet.split())) for term in terms)
        if terms:
            note(f"{len(terms)} pending", "findling glossary set TERM approved, or rejected")
    return 0 if terms else 1


@glossary.command("set")
@click.argument("term")
@click.argument("state", type=click.Choice(tuple(_EDITS)))
@click.option("--group", metavar="GROUP", help="The group that is meant, if there are several; for merged: the other.")
@place_option
def _set(term: str, state: str, group: str | None, place: GivenPlace) -> int:
    """Decide what becomes of TERM.

    \b
      approved     a pending term is used           canonical    and is the name of its group
      rejected     never suggest it again           removed      drop it, or a whole group by its name
      protected    take it to the letter            unprotected  no longer
      merged       move all terms of the group TERM to the group of --group
    """
    if (state == "merged") > (group is not None):
        raise UsageError("merged needs the other group", hint=f"findling glossary set {term} merged --group INTO")
    with _opened(place, to_change=True) as engine:
        edit = _EDITS[state](engine.glossary, term, group)
    if state == "unprotected":
        note(f"{term} is not protected any more")
    elif state == "removed":
        note(f"{len(edit.dropped)} dropped")
    else:
        _tell(edit)
    return 0


@glossary.command("import")
@click.argument("file", type=click.Path())
@click.option("--replace", is_flag=True, help="Drop everything that is not in FILE.")
@place_option
def _import(file: str, replace: bool, place: GivenPlace) -> int:
    """Take in FILE as `list export` writes it.

    All of it, or nothing when a row is wrong.

    What FILE says wins over what is here; its pending terms only fill gaps.
    """
    rows = _read_rows(file)
    with _opened(place, to_change=True) as engine:
        edit = engine.glossary.import_rows(rows, replace=replace)
    note(f"{counted(len(edit.put), 'term')} put in, {len(edit.dropped)} dropped")
    return 0


def _opened(place: GivenPlace, *, to_change: bool = False) -> AbstractContextManager[Engine]:
    """The engine that a search would ask; a folder that is named is asked without its context.

    Raises UntrustedSettingError `to_change` the glossary of a workspace that a project file has chosen.
    """
    is_named = place.path != _HERE
    settings = resolve(place.path, in_context=True, workspace=place.workspace)
    settings = settings.override(NO_CONTEXT, "flag --workspace") if is_named else settings
    name, file = settings["context.workspace"], settings.project_file("context.workspace")
    if to_change and name and file is not None and not settings["workspace.name"]:
        raise UntrustedSettingError(
            f"{file} names the workspace {name}, whose glossary a project may not have you change",
            hint=f"--workspace {name}, or --workspace ./ for that of this folder",
        )
    return opened(place.path if is_named else None, settings)


def _read_rows(file: str) -> list[Any]:
    hint = "findling glossary list export writes such a file"
    try:
        document = read_json(Path(file).read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise PathNotFoundError(f"{file} does not exist", hint="findling glossary list export > FILE") from error
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
