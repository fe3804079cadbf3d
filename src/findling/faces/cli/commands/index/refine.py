"""`findling refine`: have the model read what it has not read yet."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import click

from findling.domain.errors import LockedError
from findling.faces.cli.output.progress import refine_bar
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import (
    apply_changes,
    changes_option,
    json_option,
    opened,
    path_argument,
    resolve,
    workspace_option,
)

__all__ = ["refine"]


@click.command()
@path_argument
@click.option("--seconds", type=click.FloatRange(min=0), metavar="S", help="Stop after so many seconds.")
@click.option("--gently", is_flag=True, help="At low priority, and with the share of time that the settings allow.")
@click.option("--stop", is_flag=True, help="End the process that reads in the background instead.")
@json_option
@changes_option
@workspace_option
def refine(
    path: str,
    seconds: float | None,
    gently: bool,
    stop: bool,
    as_json: bool,
    changes: tuple[str, ...],
    workspace: str | None,
) -> int:
    """Have the model read the passages of PATH that it has not read yet.

    The passages that searches would have liked best come first. It can be stopped at any time and goes on where it
    was. `findling index` and a first search start it in the background.
    """
    settings = apply_changes(resolve(path, workspace=workspace), changes)
    if stop:
        with opened(path, settings) as engine:
            stopped = engine.stop_refining()
        note("reading has been stopped; it goes on with the next search" if stopped else "nothing is reading here")
        return 0 if stopped else 1
    deadline = None if seconds is None else time.monotonic() + seconds
    if gently:
        with suppress(AttributeError, OSError):  # no such thing on Windows
            os.nice(19)
    with opened(path, settings) as engine, refine_bar() as bar:
        try:
            report = engine.refine(
                cpu_share=settings["semantic.cpu_share"] if gently else 1.0,
                on_progress=bar,
                should_stop=lambda: deadline is not None and time.monotonic() >= deadline,
            )
        except LockedError:
            if gently:
                return 0  # another process does it already
            raise
        if gently and settings["compact.auto"]:
            from findling.service.upkeep.compaction import compact_if_worthwhile

            compact_if_worthwhile(engine.writer.files, settings)
    if as_json:
        from findling.faces.cli.output.json_output import dump, report_document

        write(dump(report_document(report._asdict()), indent=2))
        return 0
    parts = {"read": report.read, "taken from other workspaces": report.borrowed, "kept private": report.withheld}
    told = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count) or "nothing read"
    write(f"{told} in {report.seconds:.1f} s; {report.covered:,} of {report.chunks:,} passages have been read\n")
    return 0
