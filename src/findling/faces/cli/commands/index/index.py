"""`findling index`, `refine` and `situate`: take in what has changed, and have models read and describe it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from findling.domain.errors import LockedError, ProviderError, UsageError
from findling.domain.reports import IndexReport
from findling.domain.values import counted
from findling.faces.cli.output.json_output import skipped_entries, write_json, write_report
from findling.faces.cli.output.progress import format_size, progress_bar, refine_bar
from findling.faces.cli.output.terminal import agrees, ask_before_indexing, note, note_each, write_names
from findling.faces.cli.request.options import (
    NumberRange,
    compact_in_background,
    json_option,
    path_argument,
    refine_in_background,
    yes_option,
)
from findling.faces.cli.request.place import GivenPlace, at_workspace

if TYPE_CHECKING:
    from findling.service.content.situating import SituateCost
    from findling.service.engine.engine import Engine


@click.command()
@path_argument
@click.option("--seconds", type=NumberRange(min=0), metavar="S", help="Stop after so many seconds.")
@click.option("--gently", is_flag=True, help="At low priority, with semantic.cpu_share of one core, not on battery.")
@click.option("--stop", is_flag=True, help="End the process that reads in the background instead.")
@json_option
@at_workspace
def refine(place: GivenPlace, seconds: float | None, gently: bool, stop: bool, as_json: bool) -> int:
    """Have the model read the passages of PATH that it has not read yet.

    The passages that searches would have liked best come first. It can be stopped at any time and continues where it
    was. `findling index` and a first search start it in the background; the command waits for that one, and --stop
    ends it.
    """
    settings = place.settings
    if stop:
        with place.opened() as engine:
            stopped = engine.stop_refining()
        note("reading has been stopped; it continues with the next search" if stopped else "nothing is reading here")
        return 0 if stopped else 1
    deadline = None if seconds is None else time.monotonic() + seconds
    if gently:
        with suppress(AttributeError, OSError):  # no such thing on Windows
            os.nice(19)
    with place.opened() as engine, refine_bar() as bar:
        try:
            report = engine.refine(
                cpu_share=settings["semantic.cpu_share"] if gently else 1.0,
                on_progress=bar,
                should_stop=lambda: deadline is not None and time.monotonic() >= deadline,
                on_waiting=None if gently else _tell_waiting,
                gently=gently,
            )
        except LockedError:
            return 0  # another process does it already
        if gently and (why := engine.reading()["waiting"]):
            note(f"reading waits for power: {why}", "findling refine")
        if gently and settings["compact.auto"]:
            from findling.service.upkeep.compaction import compact_if_worthwhile

            compact_if_worthwhile(engine.writer.files, settings)
    parts = {"read": report.read, "taken from other workspaces": report.borrowed, "kept private": report.withheld}
    told = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count) or "nothing read"
    text = f"{told} in {report.seconds:.1f} s; {report.covered:,} of {counted(report.chunks, 'passage')} read\n"
    write_report(as_json, report, text)
    return 0


def _tell_waiting() -> None:
    note("another process is reading these passages: this one waits for it", "findling refine --stop ends it")


@click.command()
@path_argument
@click.option("--dry-run", is_flag=True, help="Print the paths that would be indexed, and index nothing.")
@click.option("--rebuild", is_flag=True, help="Forget all indexed files and read them again.")
@json_option
@at_workspace
@yes_option
def index(place: GivenPlace, dry_run: bool, rebuild: bool, as_json: bool, yes: bool) -> int:
    """Take in what is new, changed or gone.

    PATH is the current folder unless you name another; if it lies in a folder that has an index, all of that folder is
    brought up to date. Searching does this by itself; the command is for scripts, for large folders, and to see what
    is left out.
    """
    with place.opened(creates=True) as engine:
        if dry_run:
            _preview(engine, as_json)
            return 0
        ask_before_indexing(engine.subject, yes)
        try:
            with progress_bar() as bar:
                report = engine.index(on_progress=bar, rebuild=rebuild)
        except UsageError:
            engine.opened.level_wanted()  # a host that follows no files has legs, too
            raise
        note_each(engine.notices())
        write_report(as_json, {"root": engine.root, **vars(report)}, _describe(report))
        engine.opened.level_wanted()
        refine_in_background(engine, place.settings)
        if report.added or report.updated or report.removed:
            compact_in_background(engine, place.settings)
    return 0


def count_reasons(skipped: Mapping[str, int]) -> str:
    """Counts of skipped paths by reason, the frequent ones first."""
    return ", ".join(f"{reason} {count:,}" for reason, count in Counter(skipped).most_common())


def _describe(report: IndexReport) -> str:
    parts = {"new": report.added, "changed": report.updated, "gone": report.removed, "unchanged": report.unchanged}
    counts = ", ".join(f"{count:,} {word}" for word, count in parts.items() if count) or "nothing to index"
    size = f"{counted(report.chunks, 'chunk')}, {format_size(report.bytes_read)}"
    text = f"{counts}; {size} read in {report.seconds:.1f} s\n"
    if report.failed or report.partial:
        outcomes = {"could not be read": report.failed, "were read in part": report.partial}
        told = ", ".join(f"{count:,} {what}" for what, count in outcomes.items() if count)
        text += f"{told} (findling status --list failed)\n"
    if report.skipped:
        text += f"left out: {count_reasons(report.skipped)} (findling status --list skipped)\n"
    return text


def _preview(engine: Engine, as_json: bool) -> None:
    paths, skipped = engine.preview()
    if as_json:
        write_json(root=engine.root, paths=paths, skipped=skipped_entries(skipped))
        return
    write_names(paths)
    reasons = count_reasons(Counter(entry.reason for entry in skipped))
    note(f"{counted(len(paths), 'file')} would be indexed" + (f"; left out: {reasons}" if reasons else ""))


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
        for line in _told_cost(cost, "names of this model" if entities else "sentence"):
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


def _told_cost(cost: SituateCost, lack: str) -> list[str]:
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
