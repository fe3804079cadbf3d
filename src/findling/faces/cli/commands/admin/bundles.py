"""`findling export` and `findling import`: a workspace as plain files, and a workspace made of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from findling.domain.errors import FindlingError, UsageError
from findling.domain.strangers import TRUSTS
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_report
from findling.faces.cli.output.progress import format_size
from findling.faces.cli.output.terminal import note, show_controls
from findling.faces.cli.request.options import at_store, compact_in_background, json_option, opened, path_argument
from findling.faces.cli.request.place import GivenPlace, at_workspace

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from findling.service.export.bundles import ImportReport
    from findling.service.settings.settings import Settings


@click.command()
@click.argument("target", type=click.Path())
@path_argument
@click.option("--no-vectors", is_flag=True, help="Leave out what a model has read; it can be read again.")
@click.option("--as", "principals", multiple=True, metavar="PRINCIPAL", help="Only what user:NAME, … may see.")
@click.option("--title", default="", metavar="TEXT", help="What a page is called.")
@click.option("--max-size", metavar="SIZE", help="The largest page to write, such as 80MB; 50MB.")
@click.option("-f", "--force", is_flag=True, help="Take the place of a bundle that is there.")
@json_option
@at_workspace
def export(
    place: GivenPlace,
    target: str,
    principals: tuple[str, ...],
    no_vectors: bool,
    force: bool,
    as_json: bool,
    **page: Any,
) -> int:
    """Write the index of PATH to the folder, .zip or .html TARGET.

    An .html is one page that searches in a browser, without a server. TARGET holds the texts of everything that is
    indexed, for its owner's eyes alone: mind who you give it to. With --as, which may be repeated, it holds what these
    may see and nothing of anything else. A folder of a workspace gives its files alone, without decisions, chats and
    memories.
    """
    with place.opened() as engine:
        if engine.scope:
            whole = f"findling export {target} {engine.root}"
            note(f"only the files of {engine.asked}", f"{whole} for the whole workspace")
        if target.endswith((".html", ".htm")):
            if no_vectors or force:
                raise UsageError("a page goes with neither --no-vectors nor --force", hint="findling export --help")
            return _export_page(engine, target, principals, as_json, **page)
        if any(page.values()):
            raise UsageError("--title and --max-size are for pages", hint="findling export TARGET.html")
        from findling.service.export.bundles import export_bundle

        report = export_bundle(engine, target, vectors=not no_vectors, principals=principals or None, force=force)
    text = f"{report.target}: {_counted(report.counts)}, {format_size(report.size_bytes)}\n"
    write_report(as_json, report, text)
    return 0


@click.command("import")
@click.argument("bundle", type=click.Path(), required=False)
@click.option("--root", type=click.Path(), metavar="PATH", help="Where the indexed files are on this machine.")
@click.option("--merge", is_flag=True, help="Add to a workspace that is not empty.")
@click.option("--replace", is_flag=True, help="Let a merge change what is there; memories keep their earlier texts.")
@click.option("--trust", default="", metavar="NAMES", help=f"Take more than content: {', '.join(TRUSTS)}, by commas.")
@click.option("--from-postgres", "url", metavar="URL", help="Import rows of this database, instead of a bundle.")
@click.option(
    "--mapping",
    multiple=True,
    metavar="NAME=COLUMN|FILE",
    help="Which table, and columns of text (by commas), title, time, tags, id or cursor; or a TOML or JSON file.",
)
@click.option("--full", is_flag=True, help="Read all rows in spite of a cursor, and delete those that are gone.")
@json_option
@at_workspace
def import_(place: GivenPlace, bundle: str | None, url: str | None, as_json: bool, **given: Any) -> int:
    """Make a workspace of BUNDLE, or import rows of a database.

    A bundle may come from a stranger: its content is imported, and you alone may see it. --trust rights also takes
    its permissions, root the folder that it names, survey its record of the files. The command reports what it leaves
    out.

    Every file of it is checked first. Without --workspace it becomes that of the folder that was indexed, which must
    be here then, at --root or, with --trust root, where it was.

    With --from-postgres rows of a table become resources of the workspace, that of this folder by default, as in
    --mapping table=public.notes --mapping text=body,comment. An id is the primary key unless the mapping says
    otherwise; a cursor is a column that grows with every change, from which the next run reads on. Let PGPASSWORD or
    ~/.pgpass give the password: other users of the machine see what you type.
    """
    settings = at_store(place.settings, creates=True)
    of_rows = [name for name, value in given.items() if name in ("mapping", "full") and value]
    if url is not None:
        if bundle or given["root"] or given["merge"] or given["replace"] or given["trust"]:
            raise UsageError("--from-postgres goes with no bundle, --root, --merge or --trust", hint=_HELP)
        return _import_rows(url, given["mapping"], given["full"], as_json, settings)
    if of_rows:
        raise UsageError(f"--{of_rows[0]} is for rows of a database", hint="--from-postgres URL")
    if not bundle:
        raise UsageError("there is nothing to import", hint="findling import BUNDLE, or --from-postgres URL")
    return _import_bundle(bundle, as_json, settings, given)


_HELP = "findling import --help"


def _import_bundle(bundle: str, as_json: bool, settings: Settings, given: Mapping[str, Any]) -> int:
    root, merge, replace = given["root"], given["merge"], given["replace"]
    if replace and not merge:
        raise UsageError("--replace is for --merge", hint=f"findling import {bundle} --merge --replace")
    from findling.service.export.bundles import import_bundle

    trusted = [name.strip() for name in given["trust"].split(",") if name.strip()]
    report = import_bundle(bundle, root=root, merge=merge, replaces=replace, trust=trusted, settings=settings)
    for name, what in report.left_out.items():
        note(f"left out: {', '.join(what)}", f"--trust {name}, if you trust where it comes from" if name else "")
    for rid in report.replaced:
        note(f"replaced: {show_controls(rid)}")
    for name, (there, here) in report.differing.items():
        note(f"answers may differ: {name} was {there!r} where the bundle was written, and is {here!r} here")
    write_report(as_json, report, _describe(report))
    return 0


def _import_rows(url: str, given: Sequence[str], full: bool, as_json: bool, settings: Settings) -> int:
    from findling.service.content.rows import RowReport, WorkspaceRows, mapping_of

    pairs = [one for one in given if "=" in one]
    files = [Path(one) for one in given if "=" not in one]
    if len(files) > 1:
        raise UsageError("one file says the mapping", hint=f"leave out --mapping {files[1]}")
    mapping = mapping_of(dict(one.split("=", 1) for one in pairs), files[0] if files else None)
    latest: deque[RowReport] = deque(maxlen=1)
    with opened(".", settings) as engine:
        try:
            report = WorkspaceRows(engine.writer).add(url, mapping, full=full, on_progress=latest.append)
        except FindlingError:
            for done in latest:
                note(f"imported before the error: {counted(done.read, 'row')}, {done.changed:,} new or changed")
            raise
        compact_in_background(engine, settings)
    for left_out in report.notes:
        note(left_out)
    if report.empty:
        note(f"{counted(report.empty, 'row')} left out: without an id, or without a text")
    if report.repeated:
        note(
            f"{counted(report.repeated, 'row')} had the id of another one",
            "--mapping id=COLUMN whose values never repeat",
        )
    counts = f"{counted(report.read, 'row')} read, {report.changed:,} new or changed, {report.deleted:,} deleted"
    write_report(as_json, report, f"{report.source.removesuffix('/')}: {counts}\n")
    return 0


def _describe(report: ImportReport) -> str:
    follows = f"follows {report.root}" if report.root else "has no files to follow"
    changed = "nothing was new" if not report.changed else f"{report.changed:,} new or changed"
    return f"{report.home}: {_counted(report.counts)}; {changed}; it {follows}\n"


def _counted(counts: Mapping[str, int]) -> str:
    words = {"resources": "resource", "chunks": "chunk"}
    words |= {"vectors": "vector", "relations": "relation", "glossary": "term"}
    shown = [name for name in words if counts.get(name) or name in ("resources", "chunks")]
    return ", ".join(counted(counts.get(name, 0), words[name]) for name in shown)


def _export_page(
    engine: Engine, target: str, principals: tuple[str, ...], as_json: bool, *, title: str, max_size: str | None
) -> int:
    from findling.service.export.browser_bundle import MAX_PAGE_BYTES, export_html
    from findling.service.export.bundles import sight_of

    may_see = sight_of(engine, principals) if principals else None
    most = _size(max_size) if max_size else MAX_PAGE_BYTES
    report = export_html(engine, target, title=title, may_see=may_see, max_bytes=most)
    each = format_size(round(report.bytes_per_document))
    text = f"{report.target}: {counted(report.documents, 'document')}, {format_size(report.bytes)}, {each} each\n"
    write_report(as_json, report.to_dict(), text)
    return 0


def _size(text: str) -> int:
    """A size as settings write it. Raises InvalidValueError for what is none."""
    from findling.service.settings.settings import Setting, parse_text

    return int(str(parse_text(Setting("--max-size", "size", 0, "", minimum=1), text, "flag --max-size")))


globals()["import"] = import_  # the name of the command, under which it is looked up, is a keyword of the language
