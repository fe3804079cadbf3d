"""`findling index`: take in what is new, changed or gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from findling.domain.reports import IndexReport
from findling.faces.cli.output.progress import format_size, progress_bar
from findling.faces.cli.output.terminal import ask_before_indexing, note, write
from findling.faces.cli.request.options import (
    json_option,
    opened,
    path_argument,
    resolve,
    work_in_background,
    workspace_option,
    yes_option,
)

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine

__all__ = ["count_reasons", "index"]


@click.command()
@path_argument
@click.option("--dry-run", is_flag=True, help="Print the paths that would be indexed, and index nothing.")
@click.option("--rebuild", is_flag=True, help="Forget all indexed files and read them again.")
@json_option
@workspace_option
@yes_option
def index(path: str, dry_run: bool, rebuild: bool, as_json: bool, workspace: str | None, yes: bool) -> int:
    """Take in what is new, changed or gone.

    PATH is the current folder unless you name another; if it lies in a folder that has an index, all of that folder is
    brought up to date. Searching does this by itself; the command is for scripts, for large folders, and to see what
    is left out.
    """
    settings = resolve(path, workspace=workspace)
    with opened(path, settings, creates=True) as engine:
        if dry_run:
            _preview(engine, as_json)
            return 0
        ask_before_indexing(engine.subject, yes)
        with progress_bar() as bar:
            report = engine.index(on_progress=bar, rebuild=rebuild)
        for notice in engine.notices():
            note(notice.what, notice.fix)
        if as_json:
            from findling.faces.cli.output.json_output import dump, report_document

            write(dump(report_document({"root": engine.root, **vars(report)}), indent=2))
        else:
            write(_describe(report))
        work_in_background(engine, settings)
    return 0


def count_reasons(skipped: Mapping[str, int]) -> str:
    """How many paths were left out for which reason, the frequent ones first."""
    return ", ".join(f"{reason} {count:,}" for reason, count in Counter(skipped).most_common())


def _describe(report: IndexReport) -> str:
    parts = {"new": report.added, "changed": report.updated, "gone": report.removed, "unchanged": report.unchanged}
    counts = ", ".join(f"{count:,} {word}" for word, count in parts.items() if count) or "nothing to index"
    text = f"{counts}; {report.chunks:,} chunks, {format_size(report.bytes_read)} read in {report.seconds:.1f} s\n"
    if report.failed or report.partial:
        outcomes = {"could not be read": report.failed, "were read in part": report.partial}
        told = ", ".join(f"{count:,} {what}" for what, count in outcomes.items() if count)
        text += f"{told} (findling status --failed)\n"
    if report.skipped:
        text += f"left out: {count_reasons(report.skipped)} (findling status --skipped)\n"
    return text


def _preview(engine: Engine, as_json: bool) -> None:
    paths, skipped = engine.preview()
    if as_json:
        from findling.faces.cli.output.json_output import dump, report_document

        left_out = [{"path": entry.path, "reason": entry.reason, "detail": entry.detail} for entry in skipped]
        write(dump(report_document({"root": engine.root, "paths": paths, "skipped": left_out}), indent=2))
        return
    write("".join(f"{path}\n" for path in paths))
    reasons = count_reasons(Counter(entry.reason for entry in skipped))
    note(f"{len(paths):,} files would be indexed" + (f"; left out: {reasons}" if reasons else ""))
