"""`findling situate`: a language model says where chunks stand in their documents, or what these name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from findling.domain.errors import ProviderError
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_report
from findling.faces.cli.output.terminal import agrees, note
from findling.faces.cli.request.options import json_option, path_argument, refine_in_background
from findling.faces.cli.request.place import GivenPlace, at_workspace

if TYPE_CHECKING:
    from findling.service.content.situating import SituateCost


@click.command()
@path_argument
@click.option("-y", "--yes", is_flag=True, help="Send the documents without asking.")
@click.option("--entities", is_flag=True, help="Ask for the names in each document, for the graph.")
@click.option("--remove", is_flag=True, help="Remove all sentences, or names, again.")
@json_option
@at_workspace
def situate(place: GivenPlace, yes: bool, entities: bool, remove: bool, as_json: bool) -> int:
    """Have a language model write a sentence about each chunk of PATH.

    The sentence says where a chunk stands in its document; chat.model writes it. Models read it in front of the chunk,
    and words find it; no hit shows it as text of the document. One call is made for each document of two or more
    chunks, and none for one that was sent before. The cost is shown first. A run that ends early continues with the
    next one.

    With --entities it lists the names in each document, and those that mean the same thing. The graph then knows them
    beside its own; nothing counts that the document does not hold.
    """
    with place.opened() as engine:
        situating = engine.situating.names if entities else engine.situating
        if remove:
            removed = situating.remove()
            write_report(as_json, {"removed": removed}, f"removed from {counted(removed, 'document')}\n")
            return 0 if removed else 1
        cost = situating.cost()
        for line in _told(cost, "names of this model" if entities else "sentence"):
            note(line)
        if not cost.documents:
            write_report(as_json, {"cost": cost, "report": None}, "nothing to ask\n")
            return 1
        if cost.calls and not agrees(f"make {counted(cost.calls, 'call')} to {cost.model}", yes):
            return 1
        report = situating.run(lambda documents: note(f"{documents:,} of {counted(cost.documents, 'document')}"))
        what = f"{counted(report.names, 'name')}, {counted(report.merges, 'merge')}"
        told = f"{what if entities else counted(report.chunks, 'sentence')} in {counted(report.documents, 'document')}"
        write_report(as_json, {"cost": cost, "report": report}, f"{told}, {counted(report.calls, 'call')}\n")
        if report.problems:
            problem = f"{counted(report.failed, 'document')} failed: {report.problems[-1]}"
            raise ProviderError(problem, hint="findling situate continues where it was")
        if not entities:
            refine_in_background(engine, place.settings)
    return 0


def _told(cost: SituateCost, lack: str) -> list[str]:
    """The cost in words."""
    where = f" at {cost.sent_to}" if cost.sent_to else " on this machine"
    lines = [
        f"{counted(cost.chunks, 'chunk')} of {counted(cost.documents, 'document')} have no {lack};"
        f" {counted(cost.calls, 'call')} to {cost.model}{where},"
        f" about {cost.tokens_sent:,} tokens to send and {cost.tokens_received:,} to receive"
    ]
    others = {"were sent before": cost.kept, "are private": cost.withheld, "are too long": cost.too_long}
    lines += [f"{counted(count, 'document')} {what}" for what, count in others.items() if count]
    return lines
