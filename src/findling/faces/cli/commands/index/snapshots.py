"""`findling compact` and `findling snapshot`: making an index smaller, and copies of it to go back to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_json, write_report
from findling.faces.cli.output.progress import format_size
from findling.faces.cli.output.terminal import agrees, note, write
from findling.faces.cli.request.options import command_group, json_option, looks_like_path, path_argument
from findling.faces.cli.request.place import GivenPlace, at_workspace, place_option

if TYPE_CHECKING:
    from findling.service.upkeep.compaction import CompactReport
    from findling.service.upkeep.snapshots import WorkspaceSnapshots


@click.command()
@path_argument
@click.option(
    "--full/--if-worthwhile",
    default=None,
    help="Rewrite every part, however little of it is unused; or only when a good part is, and nobody else is writing.",
)
@json_option
@at_workspace
def compact(place: GivenPlace, full: bool | None, as_json: bool) -> int:
    """Make the index of PATH smaller; it answers as before.

    Drops unused data and rewrites the parts of which a quarter is unused. Searches continue meanwhile.
    Exit code: 0 done, 1 it was not worthwhile.
    """
    from findling.service.index.embeddings import WorkspaceVectors
    from findling.service.upkeep.compaction import compact as run
    from findling.service.upkeep.compaction import compact_if_worthwhile, ending_when_wanted

    with place.opened() as engine:
        files = engine.writer.files
        if full is False:
            with ending_when_wanted(files.queue):
                return 0 if compact_if_worthwhile(files, place.settings) else 1
        report = run(files, WorkspaceVectors(files, place.settings), place.settings, full=bool(full))
    write_report(as_json, {**vars(report), "freed_bytes": report.freed_bytes}, _describe(report))
    return 0


@command_group(verify="findling snapshot restore NAME --check")
def snapshot() -> None:
    """Keep copies of the index, and go back to one of them.

    \b
      findling snapshot create                   a copy of the present state
      findling snapshot list
      findling snapshot restore 20260712-081530  go back to it

    Others may search and write during the copy. It holds the texts, memories, glossary and vectors; a restore rebuilds
    the rest.
    """


@snapshot.command("create")
@path_argument
@click.option("--name", default="", metavar="NAME", help="What to call it; by default the present time (UTC).")
@click.option("--to", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a file instead.")
@json_option
@at_workspace
def _create(place: GivenPlace, name: str, file: Path | None, as_json: bool) -> int:
    """Copy the index of PATH while others search and write."""
    if file is not None and name:
        raise click.UsageError("--to writes a file that has no other name and is kept until you delete it")
    with _opened(place) as snapshots:
        made = snapshots.create(name, to=file)
    if as_json:
        write_json(snapshot=made)
    else:
        write(f"{made.path if file else made.name}\n")
        held = counted(made.counts["resources"], "resource")
        note(f"{held}, {format_size(made.size_bytes)}, sha256 {made.sha256[:12]}…")
    return 0


@snapshot.command("list")
@path_argument
@json_option
@at_workspace
def _list(place: GivenPlace, as_json: bool) -> int:
    """List the snapshots of PATH, the latest first.

    Exit code: 0 there are some, 1 there are none.
    """
    with _opened(place) as snapshots:
        found = snapshots.list()
    if as_json:
        write_json(snapshots=found)
    else:
        width = max((len(each.name) for each in found), default=0)
        for each in found:
            made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.created_at))
            holds = each.problem or f"{each.counts.get('resources', 0):>9,} resources"
            write(f"{each.name:<{width}}  {made}  {format_size(each.size_bytes):>8}  {holds}\n")
        if not found:
            note("there are no snapshots", "findling snapshot create")
    return 0 if found else 1


@snapshot.command("restore")
@click.argument("name", metavar="NAME|FILE")
@place_option
@click.option("--check", is_flag=True, help="Only check that it can be restored: checksum, pages, counts.")
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
@click.option("--no-safety", is_flag=True, help="Do not keep a snapshot of what is there now.")
@json_option
def _restore(place: GivenPlace, name: str, check: bool, yes: bool, no_safety: bool, as_json: bool) -> int:
    """Go back to a snapshot; searches continue meanwhile.

    FILE is one that `create --to` wrote, with its folder: ./copy.snapshot.
    The command verifies it first, and keeps the present state as another snapshot. The next search indexes files that
    have changed since. Works also when the index is damaged or gone.

    Exit code of --check: 0 it is sound, 1 it is damaged.
    """
    chosen = Path(name).expanduser() if looks_like_path(name) else name
    with _opened(place) as snapshots:
        if check:
            problems = snapshots.verify(chosen)
            text = "".join(f"{problem}\n" for problem in problems) or f"{chosen} is sound\n"
            write_report(as_json, {"snapshot": str(chosen), "ok": not problems, "problems": problems}, text)
            return 1 if problems else 0
        if not agrees(f"replace the present index by the snapshot {chosen}", yes):
            return 1
        report = snapshots.restore(chosen, safety=not no_safety)
    if as_json:
        write_json(snapshot=report.snapshot, safety=report.safety, put_aside=report.put_aside)
        return 0
    write(f"restored {report.snapshot.name}: {counted(report.snapshot.counts['resources'], 'resource')}\n")
    if report.safety is not None and report.safety.problem:
        note(f"what was there before is damaged; {report.safety.name} keeps it, and cannot be restored")
    elif report.safety is not None:
        note("what was there before is kept", f"findling snapshot restore {report.safety.name}")
    if report.put_aside is not None:
        note(f"the damaged store lies in {report.put_aside}")
    return 0


@snapshot.command("drop")
@click.argument("name")
@place_option
def _drop(place: GivenPlace, name: str) -> int:
    """Delete a snapshot."""
    with _opened(place) as snapshots:
        dropped = snapshots.drop(name)
    note(f"deleted {dropped.name}, {format_size(dropped.size_bytes)}")
    return 0


@contextmanager
def _opened(place: GivenPlace) -> Iterator[WorkspaceSnapshots]:
    from findling.service.upkeep.snapshots import WorkspaceSnapshots

    with place.opened() as engine:
        yield WorkspaceSnapshots(engine.writer.files, place.settings)


def _describe(report: CompactReport) -> str:
    rows = [
        (part, format_size(size), format_size(report.after[part]))
        for part, size in report.before.items()
        if size or report.after[part]
    ]
    rows.append(("all", format_size(sum(report.before.values())), format_size(sum(report.after.values()))))
    text = "".join(f"{part:<16}{before:>10}{after:>10}\n" for part, before, after in [("", "before", "after"), *rows])
    parts = {
        "vectors dropped": report.vectors_dropped,
        "models dropped": len(report.models_dropped),
        "log entries dropped": report.log_entries_dropped,
        "sidecars removed": len(report.removed),
    }
    done = [f"{what} {count:,}" for what, count in parts.items() if count]
    done += [f"rewritten: {', '.join(report.rewritten)}"] if report.rewritten else []
    return text + ("; ".join(done) or "nothing to drop or rewrite") + f" ({report.seconds:.1f} s)\n"
