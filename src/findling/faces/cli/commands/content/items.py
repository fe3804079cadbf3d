"""`findling add` and `findling sync`: what is no file, from JSON, and what lies in `.ai` folders."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.errors import PathNotFoundError
from findling.faces.cli.output.json_output import skipped_entries, write_json
from findling.faces.cli.output.terminal import note, piped, show_controls, write
from findling.faces.cli.request.options import compact_in_background, json_option, path_argument
from findling.faces.cli.request.place import GivenPlace, at_workspace, place_option

if TYPE_CHECKING:
    from findling.service.content.items import ItemReport

_MOST_NAMED = 5
"""Ids that a note names before it only counts."""


@click.command()
@click.argument("file", default="-", type=click.Path(allow_dash=True), metavar="[FILE]")
@click.option("--type", "type_name", default="", metavar="TYPE", help="The type of items that do not say theirs.")
@click.option("--delete", is_flag=True, help="Delete what is named instead: ids, or items with type and id.")
@json_option
@place_option
def add(place: GivenPlace, file: str, type_name: str, delete: bool, as_json: bool) -> int:
    """Add or change items such as decisions, from JSON in FILE or on stdin.

    \b
      echo '{"type": "decision", "title": "Use SQLite"}' | findling add
      findling add decisions.jsonl
      echo decision:3f2a91c0 | findling add --delete

    A JSON array is added as a whole or not at all. JSON lines are added one after the other; when one of them cannot
    be, those before it stay. A line {"delete": "decision:ID"} deletes.

    Exit code: 0 done, 1 there was nothing to do, 2 an error.
    """
    with _lines(file) as lines, place.opened() as engine:
        report = engine.items.add_stream(lines, type=type_name, delete=delete)
        compact_in_background(engine, place.settings)
    _tell(report, as_json)
    return 0 if report.added or report.changed or report.unchanged or report.deleted else 1


@click.command()
@path_argument
@click.option("--user-folder", type=click.Path(), metavar="DIR", help="The folder of your own items instead of ~/.ai.")
@json_option
@at_workspace
def sync(place: GivenPlace, user_folder: str | None, as_json: bool) -> int:
    """Index the directives, tools and knowledge in .ai folders.

    They lie below .ai/directives, .ai/tools and .ai/knowledge of the workspace of PATH, and of your home folder. An
    item of the project wins over yours of the same id; such pairs are listed.

    Exit code: 0 there are some, 1 there are none.
    """
    with place.opened() as engine:
        report = engine.items.sync(engine.root, Path(user_folder) if user_folder else None)
        root = engine.root
        compact_in_background(engine, place.settings)
    if as_json:
        write_json(report, skipped=skipped_entries(report.skipped))
    else:
        for shadow in report.shadows:
            write(show_controls(f"{shadow.winner} shadows {shadow.loser}") + "\n")
        for each in report.skipped:
            note(show_controls(f"left out {each.path}: {' '.join(filter(None, (each.reason, each.detail)))}"))
    found = report.added + report.changed + report.unchanged
    if not found and not report.deleted:
        note(f"there are no items in .ai folders of {root} or of your own", "findling sync --help")
    else:
        note(str(report))
    return 0 if found or report.deleted else 1


@contextmanager
def _lines(file: str) -> Iterator[Iterator[bytes]]:
    """The lines of a file, or of stdin. Raises UsageError when nobody writes anything there."""
    if file == "-":
        yield iter(piped("are no items", "findling add FILE, or pipe JSON into it"))
        return
    place = Path(file)
    if not place.exists() or place.is_dir():
        raise PathNotFoundError(f"there is no file {file}", hint="name a file of JSON, or - for stdin")
    with place.open("rb") as lines:
        yield lines


def _tell(report: ItemReport, as_json: bool) -> None:
    if as_json:
        write_json(report)
    if report.missing:
        named = ", ".join(report.missing[:_MOST_NAMED]) + (" …" if len(report.missing) > _MOST_NAMED else "")
        note(show_controls(f"not there: {named}"))
    note(str(report))
