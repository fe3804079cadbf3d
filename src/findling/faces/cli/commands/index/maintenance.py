"""`findling forget` and `findling doctor`: looking after an index."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.errors import NotFoundError, NotIndexedError, UsageError, WorkspaceError
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_report
from findling.faces.cli.output.terminal import agrees, note, write
from findling.faces.cli.request.options import (
    at_store,
    compact_in_background,
    json_option,
    opened,
    path_argument,
)
from findling.faces.cli.request.place import GivenPlace, at_workspace

if TYPE_CHECKING:
    from findling.domain.reports import Check
    from findling.service.engine.engine import Engine
    from findling.service.settings.settings import Settings


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH|ID...")
@click.option("--everything", is_flag=True, help="Delete the whole index of the current folder.")
@click.option("-f", "--force", is_flag=True, help="Do it without asking.")
@at_workspace
def forget(place: GivenPlace, paths: tuple[str, ...], everything: bool, force: bool) -> int:
    """Drop files, folders, items and memories from the index.

    Only the index of the current folder changes, never a file; a memory goes wherever it lies. What is not a file goes
    by its id, such as memory:3f2a91c0 or decision:17, and does not come back; 8 characters of an id will do if no other
    begins so.
    Without --force this shows what would go, and asks.
    """
    if everything and paths:
        what = "--everything is the whole index of the current folder, and takes no path"
        raise UsageError(what, hint=f"cd FOLDER, then findling forget --everything; or findling forget {paths[0]}")
    if not everything and not paths:
        raise UsageError("name paths to forget, or --everything", hint="findling forget --help")
    with place.opened() as engine:
        root = engine.root
    # Opened at its root, the engine sees all of the index, also what lies beside the current folder.
    with opened(str(root), place.settings) as engine:
        if everything:
            return _forget_everything(engine, force)
        ids = [name for name in paths if _is_id(name, engine)]
        files = [name for name in paths if name not in ids]
        codes = [_forget_ids(engine, ids, force)] if ids else []
        codes += [_forget_paths(engine, files, force)] if files else []
        compact_in_background(engine, place.settings)
        return max(codes)


@click.command()
@path_argument
@click.option("--repair", is_flag=True, help="Rebuild what is derived from the stored text instead.")
@json_option
@at_workspace
def doctor(place: GivenPlace, repair: bool, as_json: bool) -> int:
    """Examine the index of PATH, or repair it.

    Without an index it examines all that a first one needs. Exit code: 0 all is well, 1 something is not.
    """
    settings = place.settings
    creates = bool(settings["store.url"])  # a place that was never used can be examined
    try:
        settings = at_store(settings, creates=True)
        with opened(place.path, settings, creates=creates) as engine:
            if repair:
                report = engine.repair()
                told = f"{counted(report.unchanged, 'resource')}, {counted(report.chunks, 'chunk')}"
                write(f"rebuilt from {told}, in {report.seconds:.1f} s\n")
                return 0
            checks = engine.check()
    except WorkspaceError as error:  # no index, or a server that does not answer or lets nobody in
        from findling.service.workspace.store_url import examine_store

        checks = _check_machine(settings, error, examine_store(settings))
    return _tell_checks(checks, as_json)


def _check_machine(settings: Settings, error: WorkspaceError, place: Sequence[Check]) -> list[Check]:
    """The checks without an index. Raises the error that the checks of its place do not explain."""
    from findling.service.upkeep.checks import check_machine

    if not isinstance(error, NotIndexedError) and all(check.ok for check in place):
        raise error
    return list(check_machine(settings, error, place))


def _tell_checks(checks: Sequence[Check], as_json: bool) -> int:
    text = ""
    for check in checks:
        text += f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}\n"
        text += f"     try: {check.hint}\n" if check.hint and not check.ok else ""
    write_report(as_json, {"checks": checks}, text)
    return 0 if all(check.ok for check in checks) else 1


def _forget_everything(engine: Engine, force: bool) -> int:
    count = counted(engine.status().resources, "resource")
    place = engine.writer.files.backend.url
    where = engine.home if place.startswith("file:") else f"{place}, for all hosts"
    if not agrees(f"delete the index of {engine.root} with {count}, in {where}", force, "--force"):
        return 1
    engine.forget_everything()
    note(f"deleted {where}")
    return 0


def _forget_paths(engine: Engine, paths: Sequence[str], force: bool) -> int:
    prefixes = [_below_root(path, engine.root) for path in paths]
    doomed = [found.path for found in engine.ls() if any(_is_below(found.path, prefix) for prefix in prefixes)]
    if not doomed:
        note("nothing of that is indexed", "findling ls")
        return 1
    if not _agrees(doomed, f"of the index of {engine.root}", force):
        return 1
    count = engine.forget(prefixes)
    note(
        f"forgot {count:,}; files that still exist come back with the next search",
        "findling config add index.exclude PATTERN",
    )
    return 0


def _forget_ids(engine: Engine, ids: Sequence[str], force: bool) -> int:
    """Drop what was added, remembered or imported; nothing brings it back."""
    doomed: dict[str, None] = {}
    are_all_there = True
    for name in ids:
        try:
            doomed[_full_id(engine, name)] = None
        except NotFoundError as error:
            are_all_there = False
            note(error.message, error.hint)
    if not doomed:
        return 1
    if not _agrees(doomed, "for good", force):
        return 1
    memories = [rid for rid in doomed if rid.startswith("memory:")]
    count = engine.memories.forget(memories) if memories else 0
    items = [rid for rid in doomed if rid not in memories]
    count += engine.writer.put((), items) if items else 0
    note(f"forgot {count:,}")
    return 0 if are_all_there else 1


def _agrees(doomed: Collection[str], what: str, force: bool) -> bool:
    """Show what would go and ask, unless the user has agreed by a flag."""
    if not force:
        write("".join(f"{name}\n" for name in doomed))
    return agrees(f"forget {counted(len(doomed), 'resource')} {what}", force, "--force")


def _full_id(engine: Engine, name: str) -> str:
    """The id of an item here, or of a memory of any folder. Raises NotFoundError."""
    for one in (engine, *engine.above(), *engine.elsewhere()):
        with suppress(NotFoundError, NotIndexedError):
            if (rid := one.items.full_id(name)).startswith("memory:") or one is engine:
                return rid
    raise NotFoundError(f"there is no {name}", hint="findling recall, or findling ls")


def _is_id(name: str, engine: Engine) -> bool:
    """Whether a name is the id of something that is no file: a type, a colon, and no file is called so.

    The beginning of an id that was made, which is hexadecimal, needs no type.
    """
    if Path(name).exists():
        return False
    if re.match(r"(?!file:)[a-z][a-z0-9_-]*:.", name):
        return True
    from findling.domain.queries import Filters

    is_made = re.fullmatch(r"[0-9a-f]{8,32}", name) is not None and engine.writer.exists
    return is_made and not engine.writer.store.matching(Filters(path=(_below_root(name, engine.root),)))


def _below_root(path: str, root: Path) -> str:
    """A path as the index knows it, whether or not it still exists."""
    relative = Path(os.path.relpath(Path(path).parent.resolve() / Path(path).name, root))
    if relative.is_absolute() or ".." in relative.parts:
        raise UsageError(f"{path} does not lie below {root}", hint="change to the folder whose index you mean")
    return relative.as_posix()


def _is_below(path: str, prefix: str) -> bool:
    return prefix == "." or path == prefix or path.startswith(prefix + "/")
