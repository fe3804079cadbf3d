"""`findling situate`: a language model says where chunks stand in their documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from findling.domain.errors import ProviderError
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_report
from findling.faces.cli.output.terminal import agrees, note
from findling.faces.cli.request.options import (
    json_option,
    opened,
    path_argument,
    refine_in_background,
    resolve,
    workspace_option,
)

if TYPE_CHECKING:
    from findling.service.content.situating import SituateCost

__all__ = ["situate"]


@click.command()
@path_argument
@click.option("-y", "--yes", is_flag=True, help="Send the documents without asking.")
@click.option("--remove", is_flag=True, help="Remove all sentences again.")
@json_option
@workspace_option
def situate(path: str, yes: bool, remove: bool, as_json: bool, workspace: str | None) -> int:
    """Have a language model write a sentence about each chunk of PATH.

    The sentence says where a chunk stands in its document; chat.model writes it. Models read it in front of the chunk,
    and words find it; no hit shows it as text of the document. One call is made for each document of two or more
    chunks, and none for one that was sent before. The cost is shown first. A run that ends early continues with the
    next one.
    """
    settings = resolve(path, workspace=workspace)
    with opened(path, settings) as engine:
        if remove:
            removed = engine.situating.remove()
            write_report(as_json, {"removed": removed}, f"removed from {counted(removed, 'document')}\n")
            return 0 if removed else 1
        situating = engine.situating
        cost = situating.cost()
        for line in _told(cost):
            note(line)
        if not cost.documents:
            write_report(as_json, {"cost": cost, "report": None}, "nothing to ask\n")
            return 1
        if cost.calls and not agrees(f"make {counted(cost.calls, 'call')} to {cost.model}", yes):
            return 1
        report = situating.run(lambda documents: note(f"{documents:,} of {counted(cost.documents, 'document')}"))
        told = f"{counted(report.chunks, 'sentence')} in {counted(report.documents, 'document')}"
        write_report(as_json, {"cost": cost, "report": report}, f"{told}, {counted(report.calls, 'call')}\n")
        if report.problems:
            what = f"{counted(report.failed, 'document')} failed: {report.problems[-1]}"
            raise ProviderError(what, hint="findling situate continues where it was")
        refine_in_background(engine, settings)
    return 0


def _told(cost: SituateCost) -> list[str]:
    """The cost in words."""
    where = f" at {cost.sent_to}" if cost.sent_to else " on this machine"
    lines = [
        f"{counted(cost.chunks, 'chunk')} of {counted(cost.documents, 'document')} have no sentence;"
        f" {counted(cost.calls, 'call')} to {cost.model}{where},"
        f" about {cost.tokens_sent:,} tokens to send and {cost.tokens_received:,} to receive"
    ]
    others = {"were sent before": cost.kept, "are private": cost.withheld, "are too long": cost.too_long}
    lines += [f"{counted(count, 'document')} {what}" for what, count in others.items() if count]
    return lines
