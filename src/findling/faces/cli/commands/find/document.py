"""`findling fetch`, `findling similar` and `findling suggest`: one document, its neighbours, completions of a query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from findling.faces.cli.output.json_output import answer_document, dump, write_report
from findling.faces.cli.output.terminal import note, show_controls, use_color, write
from findling.faces.cli.request.options import (
    as_option,
    ask_client,
    json_option,
    name_from_root,
    path_argument,
    place_of,
    resolve,
    setting_option,
    workspace_option,
)

if TYPE_CHECKING:
    from findling.service.index.documents import FetchedDocument

_limit_option = setting_option("limit", "-k", metavar="N")


@click.command()
@click.argument("name", metavar="ID")
@path_argument
@click.option("--lines", "context", type=int, default=0, metavar="N", help="Lines before and after the passage, too.")
@json_option
@as_option
@workspace_option
def fetch(name: str, path: str, context: int, as_json: bool, as_: tuple[str, ...], workspace: str | None) -> int:
    """Print what a document says, or one passage of it.

    ID is the id of a hit or of a resource, or a path, also with a line: notes.md:12. PATH is the folder to search.
    """
    path = path if workspace or path != "." else place_of(name) or path
    document = ask_client(
        path,
        resolve(path, workspace=workspace, in_context=True),
        lambda client: client.fetch(name_from_root(name, client.root), context=context),
        principals=as_ or None,
    )
    if as_json:
        write(dump(document.to_dict(), indent=2))
        return 0
    write(document.text if document.text.endswith("\n") or not document.text else f"{document.text}\n")
    for remark in _remarks(document, with_place=sys.stdout.isatty()):
        note(remark)
    return 0


@click.command()
@click.argument("name", metavar="ID")
@path_argument
@_limit_option
@json_option
@as_option
@workspace_option
def similar(name: str, path: str, limit: str | None, as_json: bool, as_: tuple[str, ...], workspace: str | None) -> int:
    """Find what is most like a document or a passage of it.

    ID is the id of a hit or of a resource, or a path, also with a line: notes.md:12. PATH is the folder to search.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    path = path if workspace or path != "." else place_of(name) or path
    settings = resolve(path, workspace=workspace, limit=limit, in_context=True)
    answer, root = ask_client(
        path,
        settings,
        lambda client: (client.similar(name_from_root(name, client.root), settings["search.limit"]), client.root),
        principals=as_ or None,
    )
    if as_json:
        write(dump(answer_document(answer, root), indent=2))
    else:
        from findling.faces.cli.output.rendering import make_view, render_text

        color = use_color(settings["output.color"], sys.stdout)
        write(render_text(answer, make_view(root, color=color, terminal=sys.stdout.isatty())), styled=True)
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    for hit in answer.hits:
        for part in hit.receipt.further:
            note(f"{hit.path or hit.rid}: {part.remark}")
    for remark in answer.notes:
        note(remark)
    if not answer.total:
        note(f"nothing is {answer.understood_as}")
    return 0 if answer.total else 1


@click.command()
@click.argument("text")
@path_argument
@_limit_option
@json_option
@as_option
@workspace_option
def suggest(text: str, path: str, limit: str | None, as_json: bool, as_: tuple[str, ...], workspace: str | None) -> int:
    """Complete a query that is being typed, one suggestion a line.

    Indexed words complete the last word, frequent ones first; titles that begin so follow. Unknown words are corrected
    first.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    settings = resolve(path, workspace=workspace, limit=limit, in_context=True)
    most = settings["search.limit"]
    found = ask_client(path, settings, lambda client: client.suggest(text, most), principals=as_ or None)
    listed = "".join(f"{show_controls(one.text)}\n" for one in found)
    write_report(as_json, {"text": text, "suggestions": found}, listed)
    return 0 if found else 1


def _remarks(document: FetchedDocument, *, with_place: bool) -> Iterator[str]:
    """All facts about a document besides its text."""
    if with_place:
        place = document.place or (f"lines {document.line_start} to {document.line_end}" if document.line_start else "")
        facts = (document.path or document.rid, document.title, place, document.author, ", ".join(document.tags))
        yield "; ".join(filter(None, facts))
    yield from (f"{link.type or 'links to'} {link.rid}: {link.title}" for link in document.links)
    if document.supersedes:
        yield f"supersedes {' → '.join(document.supersedes)}"
    if document.superseded_by:
        yield f"superseded by {' → '.join(document.superseded_by)}"
