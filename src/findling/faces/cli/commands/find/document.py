"""One document: `findling fetch`, its neighbours, why it is in an answer or not; and completions of a query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from findling.domain.results import Explanation, LegVerdict
from findling.domain.values import counted
from findling.faces.cli.commands.find.asked import AskedPlace, is_agreed_first, question
from findling.faces.cli.output.json_output import answer_document, write_json, write_report
from findling.faces.cli.output.progress import progress_bar
from findling.faces.cli.output.rendering import receipt_lines
from findling.faces.cli.output.terminal import note, note_each, show_controls, use_color, write
from findling.faces.cli.request.options import ask_client, name_from_root, path_argument, place_of, setting_option
from findling.faces.cli.request.request_builder import SearchOptions, build_request, read_queries, settled

if TYPE_CHECKING:
    from findling.service.index.documents import FetchedDocument

_limit_option = setting_option("limit", "-k", metavar="N")


@click.command()
@click.argument("name", metavar="ID")
@path_argument
@click.option("--lines", "context", type=int, default=0, metavar="N", help="Lines before and after the passage, too.")
@question(about="name")
def fetch(asked: AskedPlace, name: str, context: int) -> int:
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
def similar(asked: AskedPlace, name: str) -> int:
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
def suggest(asked: AskedPlace, text: str) -> int:
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
    write_report(as_json, explanation.to_dict(), "".join(f"{line}\n" for line in _explained(explanation)))
    note_each(explanation.degraded)
    return 0 if explanation.found else 1


def _explained(told: Explanation) -> Iterator[str]:
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
