"""`findling fetch`, `findling similar` and `findling suggest`: one document, its neighbours, completions of a query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from findling.faces.cli.commands.find.asked import Asked, question
from findling.faces.cli.output.json_output import answer_document, write_json, write_report
from findling.faces.cli.output.terminal import note, note_each, show_controls, use_color, write
from findling.faces.cli.request.options import name_from_root, path_argument, setting_option

if TYPE_CHECKING:
    from findling.service.index.documents import FetchedDocument

_limit_option = setting_option("limit", "-k", metavar="N")


@click.command()
@click.argument("name", metavar="ID")
@path_argument
@click.option("--lines", "context", type=int, default=0, metavar="N", help="Lines before and after the passage, too.")
@question(about="name")
def fetch(asked: Asked, name: str, context: int) -> int:
    """Print what a document says, or one passage of it.

    ID is the id of a hit or of a resource, or a path, also with a line: notes.md:12. PATH is the folder to search.
    """
    document = asked.client(lambda client: client.fetch(name_from_root(name, client.root), context=context))
    end = "" if document.text.endswith("\n") or not document.text else "\n"
    write_report(asked.as_json, document.to_dict(), document.text + end)
    if asked.as_json:
        return 0
    for remark in _remarks(document, with_place=sys.stdout.isatty()):
        note(remark)
    return 0


@click.command()
@click.argument("name", metavar="ID")
@path_argument
@_limit_option
@question("limit", about="name")
def similar(asked: Asked, name: str) -> int:
    """Find what is most like a document or a passage of it.

    ID is the id of a hit or of a resource, or a path, also with a line: notes.md:12. PATH is the folder to search.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    answer, root = asked.client(
        lambda client: (client.similar(name_from_root(name, client.root), asked.limit), client.root)
    )
    if asked.as_json:
        write_json(answer_document(answer, root))
    else:
        from findling.faces.cli.output.rendering import make_view, render_text

        color = use_color(asked.settings["output.color"], sys.stdout)
        write(render_text(answer, make_view(root, color=color, terminal=sys.stdout.isatty())), styled=True)
    note_each(answer.degraded)
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
@question("limit")
def suggest(asked: Asked, text: str) -> int:
    """Complete a query that is being typed, one suggestion a line.

    Indexed words complete the last word, frequent ones first; titles that begin so follow. Unknown words are corrected
    first.

    Exit code: 0 found, 1 nothing found, 2 error.
    """
    found = asked.client(lambda client: client.suggest(text, asked.limit))
    listed = "".join(f"{show_controls(one.text)}\n" for one in found)
    write_report(asked.as_json, {"text": text, "suggestions": found}, listed)
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
