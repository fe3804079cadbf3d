"""`findling workspaces`: all indexes of a user."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from findling.domain.errors import UsageError
from findling.domain.values import counted
from findling.faces.cli.output.json_output import write_list
from findling.faces.cli.output.progress import copy_bar, format_size
from findling.faces.cli.output.terminal import agrees, note, write
from findling.faces.cli.request.options import command_group, json_option, resolve

if TYPE_CHECKING:
    from findling.service.workspace.workspaces import WorkspaceAccount


@command_group(
    search="findling search QUERY --workspace A,B, or --shared",
    rename="findling workspaces set NAME --name NEW",
    move="findling workspaces set NAME --to PLACE, or --root PATH",
)
def workspaces() -> None:
    """List, make, change and drop workspaces.

    \b
      findling workspaces list
      findling workspaces create team                   for chats, decisions and memories
      findling "rate limit" --workspace team,notes      ask several at once

    A workspace is one folder. It is made by the first search of a folder, or by `create` under a name of its own.
    """


@workspaces.command("list")
@json_option
def _list(as_json: bool) -> int:
    """List all workspaces, with what they hold.

    Exit code: 0 there are some, 1 there are none.
    """
    from findling.service.workspace.workspaces import list_workspaces

    hint = "findling index PATH, or findling workspaces create NAME"
    return write_list(as_json, "workspaces", list_workspaces(_home()), _row, "there is no workspace yet", hint)


@workspaces.command("create")
@click.argument("name")
@click.option("--root", type=click.Path(), metavar="PATH", help="What it indexes; without one it has no files.")
@click.option(
    "--place",
    metavar="home|project|URL",
    default="home",
    help="Where the index lies; project: in PATH; a URL: file:///FOLDER, or the place of an installed backend.",
)
def _create(name: str, root: str | None, place: str) -> int:
    """Make a workspace called NAME.

    It is searched with `findling --workspace NAME QUERY`, from anywhere.
    """
    from findling.service.workspace.workspaces import create_workspace

    made = create_workspace(name, home=_home(), root=root, place=place)
    note(f"made {made.folder}")
    _warn_if_synced(made.folder, name)
    return 0


@workspaces.command("set")
@click.argument("workspace", metavar="NAME|PATH")
@click.option("--name", metavar="NAME", help="Give it another name.")
@click.option("--shared/--not-shared", default=None, help="Whether searches across ask it without naming it.")
@click.option(
    "--quota",
    "quotas",
    multiple=True,
    metavar="WHAT=MOST",
    help="The most that it may hold, such as resources=1000, text=50MB (characters) or disk=2GB; 0: any.",
)
@click.option(
    "--to", metavar="home|project|URL", help="Put the index beside all others, into its project or on a server."
)
@click.option("--root", type=click.Path(), metavar="PATH", help="Where the indexed folder is now, if it has moved.")
@click.option("-y", "--yes", is_flag=True, help="Use an index that was not made here without asking.")
def _set(workspace: str, yes: bool, shared: bool | None, quotas: tuple[str, ...], **moves: str | None) -> int:
    """Change the name, the place, who may ask, or how much it may hold.

    \b
      findling workspaces set notes --to postgresql://USER@HOST/DATABASE#notes
      findling workspaces set notes --to home

    Nothing is indexed again. To a server and back all of it is copied, and 200 questions about it are put to both: only
    if all answers are the same does the new one count. A move that was stopped continues when it is repeated.

    With `--to project`, findling uses an index that lies in the folder already, even one that was not made here: only
    for one that you trust.
    """
    chosen = [shared is not None or bool(quotas), *(one is not None for one in moves.values())]
    if sum(chosen) != 1:
        told = "there is nothing to change" if not any(chosen) else "a name, a place and limits change one by one"
        raise UsageError(told, hint="findling workspaces set --help")
    from findling.service.workspace.workspace_moves import move_root
    from findling.service.workspace.workspaces import rename_workspace

    to, name, root = moves["to"], moves["name"], moves["root"]
    if to is not None:
        return _move(workspace, to, yes)
    if name is not None:
        rename_workspace(workspace, name, home=_home())
        note(f"{workspace} is called {name} now")
    elif root is not None:
        move_root(workspace, root, home=_home())
        note(f"{workspace} indexes {Path(root).resolve()} now")
    else:
        _limit(workspace, shared, quotas)
    return 0


def _limit(workspace: str, shared: bool | None, quotas: tuple[str, ...]) -> None:
    """Change who asks a workspace without naming it, and how much it may hold."""
    from findling.service.workspace.workspaces import change_workspace

    _, changed = change_workspace(workspace, home=_home(), shared=shared, limits=_limits(quotas))
    limits = changed.quota._asdict() if changed.quota else {}
    told = ", ".join(f"{what} {most:,}" for what, most in limits.items() if most) or "none"
    note(f"{workspace} is {'shared' if changed.shared else 'not shared'}; quota: {told}")


def _move(workspace: str, to: str, yes: bool) -> int:
    from findling.service.workspace.workspace import place_of
    from findling.service.workspace.workspace_moves import adopt_index, adoptable_index, move_workspace
    from findling.service.workspace.workspaces import find_workspace

    if "://" in to or (to == "home" and place_of(find_workspace(workspace, _home()).folder)):
        return _copy(workspace, to)
    if to not in ("home", "project"):
        raise UsageError(f"{to!r} is no place of an index", hint="--to home, --to project, or --to URL")
    if to == "project" and (folder := adoptable_index(workspace, home=_home())) is not None:
        if not agrees(f"use the index in {folder}, which was not made here", yes):
            return 1
        note(f"the index in {adopt_index(workspace, home=_home()).folder} is used now")
        _warn_if_synced(folder, workspace)
        return 0
    found, is_moved = move_workspace(workspace, to, home=_home())
    note(f"the index is in {found.folder}{'' if is_moved else ' already'}")
    _warn_if_synced(found.folder, workspace)
    return 0


@workspaces.command("drop")
@click.argument("workspace", metavar="NAME|PATH")
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
def _drop(workspace: str, yes: bool) -> int:
    """Delete an index; the files that it indexes stay as they are.

    What is no file (chats, decisions, memories) is in the index alone, and goes with it.
    """
    from findling.service.workspace.workspaces import account_of, drop_workspace, find_workspace

    account = account_of(find_workspace(workspace, _home()))
    if not agrees(
        f"delete the index of {account.label} with {counted(account.resources, 'resource')}, in {account.folder}", yes
    ):
        return 1
    drop_workspace(workspace, home=_home())
    note(f"deleted {account.folder}" + (f"; {account.place} stays as it is" if "://" in account.place else ""))
    return 0


def _copy(workspace: str, to: str) -> int:
    """Move the content of a workspace to a server, or back to this host."""
    from findling.service.export.moving import move_truth

    with copy_bar() as bar:
        report = move_truth(workspace, to, home=_home(), settings=resolve("."), on_progress=bar)
    if not report.is_moved:
        text = f"{workspace} is at {report.place} already\n"
    else:
        told = f"{counted(report.resources, 'resource')}; {report.asked} of {report.asked} answers are the same"
        text = f"{workspace} is at {report.place} now: {told}\n"
    write(text)
    return 0


def _home() -> Path:
    from findling.service.workspace.workspace import home_folder

    return home_folder(resolve(".")["store.home"])


def _limits(given: Iterable[str]) -> dict[str, int]:
    """The limits that were given. Raises UsageError for what limits nothing."""
    from findling.service.workspace.quotas import Quota, parse_limit

    limits: dict[str, int] = {}
    for what, _, most in (one.partition("=") for one in given):
        if what not in Quota._fields:
            raise UsageError(f"--quota {what} limits nothing", hint="--quota resources=1000, text=50MB or disk=2GB")
        limits[what] = parse_limit(what, most, "flag --quota")
    return limits


def _warn_if_synced(folder: Path, called: str) -> None:
    from findling.service.workspace.workspace_folders import sync_warning

    if warning := sync_warning(folder, called):
        note(warning.what, warning.fix)


def _row(account: WorkspaceAccount) -> tuple[str, ...]:
    indexed = time.strftime("%Y-%m-%d %H:%M", time.localtime(account.indexed_at)) if account.indexed_at else "never"
    remarks = {
        "shared": account.shared,
        "no files": not account.root and not account.problem,
        f"of {account.root}": bool(account.name and account.root),
        "in the project": account.place == "project",
        "the folder is gone": account.is_root_missing,
        account.problem: bool(account.problem),
    }
    return (
        account.label,
        counted(account.resources, "resource"),
        counted(account.chunks, "chunk"),
        format_size(account.size_bytes),
        indexed,
        ", ".join(remark for remark, holds in remarks.items() if holds),
    )
