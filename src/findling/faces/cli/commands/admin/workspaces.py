"""`findling workspaces`: all indexes of a user, and searching several of them at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from findling.domain.errors import UsageError
from findling.faces.cli.output.columns import show_controls
from findling.faces.cli.output.json_output import write_json, write_table
from findling.faces.cli.output.progress import format_size
from findling.faces.cli.output.terminal import is_interactive, note, write
from findling.faces.cli.request.options import json_option, resolve
from findling.faces.cli.request.request_builder import SearchOptions, build_request, question_options, settled
from findling.service.settings.settings import get_setting
from findling.service.workspace.scope import NO_CONTEXT

if TYPE_CHECKING:
    from findling.service.export.searching_across import AcrossHit
    from findling.service.settings.settings import Settings
    from findling.service.workspace.workspaces import WorkspaceAccount

__all__ = ["workspaces"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_PLACES = click.Choice(get_setting("store.place").choices)

_QUOTAS = {
    "quota_resources": ("--quota-resources", "N", "The most resources it may hold; 0: any number."),
    "quota_text": ("--quota-text", "N", "The most characters of text, such as 50MB; 0: any number."),
    "quota_disk": ("--quota-disk", "SIZE", "The most bytes on disk, such as 2GB; 0: any number."),
}


def _quota_options(command: _Command) -> _Command:
    for parameter, (flag, metavar, told) in reversed(_QUOTAS.items()):
        command = click.option(flag, parameter, metavar=metavar, help=told)(command)
    return command


@click.group(no_args_is_help=False)
def workspaces() -> None:
    """List, make, move and drop workspaces, and search several at once.

    \b
      findling workspaces list
      findling workspaces create team --shared          for chats, decisions and memories
      findling workspaces search "rate limit" --in team --in notes

    A workspace is one folder. It is made by the first search of a folder, or by `create` under a name of its own.
    """


@workspaces.command("list")
@json_option
def _list(as_json: bool) -> int:
    """List all workspaces, with what they hold.

    Exit code: 0 there are some, 1 there are none.
    """
    from findling.service.workspace.workspaces import list_workspaces

    accounts = list_workspaces(_home())
    if as_json:
        write_json(workspaces=[_account_document(account) for account in accounts])
    else:
        write_table(map(_row, accounts))
        if not accounts:
            note("there is no workspace yet", "findling index PATH, or findling workspaces create NAME")
    return 0 if accounts else 1


@workspaces.command("create")
@click.argument("name")
@click.option("--root", type=click.Path(), metavar="PATH", help="What it indexes; without one it has no files.")
@click.option(
    "--place",
    metavar="home|project|URL",
    default="home",
    help="Where the index lies; project: in PATH; a URL: file:///FOLDER, or the place of an installed backend.",
)
@click.option("--shared", is_flag=True, help="Let searches across workspaces ask it without naming it.")
@_quota_options
def _create(name: str, root: str | None, place: str, shared: bool, **quotas: str | None) -> int:
    """Make a workspace called NAME.

    It is searched with `findling --workspace NAME QUERY`, from anywhere.
    """
    from findling.service.workspace.quotas import Quota
    from findling.service.workspace.workspaces import create_workspace

    quota = Quota(**limits) if (limits := _limits(quotas)) else None
    made = create_workspace(name, home=_home(), root=root, place=place, shared=shared, quota=quota)
    note(f"made {made.folder}")
    _warn_if_synced(made.folder, name)
    return 0


@workspaces.command("set")
@click.argument("workspace", metavar="NAME|PATH")
@click.option("--shared/--not-shared", default=None, help="Whether searches across ask it without naming it.")
@_quota_options
def _set(workspace: str, shared: bool | None, **quotas: str | None) -> int:
    """Change who may ask a workspace, or how much it may hold."""
    from findling.service.workspace.workspaces import change_workspace

    if shared is None and not any(quotas.values()):
        raise UsageError("there is nothing to change", hint="findling workspaces set --help")
    _, changed = change_workspace(workspace, home=_home(), shared=shared, limits=_limits(quotas))
    limits = changed.quota._asdict() if changed.quota else {}
    told = ", ".join(f"{name} {most:,}" for name, most in limits.items() if most) or "none"
    note(f"{workspace} is {'shared' if changed.shared else 'not shared'}; quota: {told}")
    return 0


@workspaces.command("move")
@click.argument("workspace", metavar="NAME|PATH")
@click.option(
    "--to",
    type=_PLACES,
    help="Put the index with all others, or into its project.",
)
@click.option("--root", type=click.Path(), metavar="PATH", help="Where the indexed folder is now, if it has moved.")
@click.option("-y", "--yes", is_flag=True, help="Use an index that was not made here without asking.")
def _move(workspace: str, to: str | None, root: str | None, yes: bool) -> int:
    """Move an index, or have it follow a folder that was moved.

    Nothing is indexed again. With `--to project`, an index that lies in the folder already and was not made here is
    used from then on: only for one that you trust.
    """
    from findling.service.workspace.workspace_moves import adopt_index, adoptable_index, move_root, move_workspace

    if (to is None) == (root is None):
        raise UsageError("name either a new place or a new root", hint="--to home, --to project or --root PATH")
    if to == "project" and (folder := adoptable_index(workspace, home=_home())) is not None:
        if not _may(f"use the index in {folder}, which was not made here", yes):
            return 1
        note(f"the index in {adopt_index(workspace, home=_home()).folder} is used now")
        _warn_if_synced(folder, workspace)
    elif to is not None:
        found, is_moved = move_workspace(workspace, to, home=_home())
        note(f"the index is in {found.folder}{'' if is_moved else ' already'}")
        _warn_if_synced(found.folder, workspace)
    elif root is not None:
        move_root(workspace, root, home=_home())
        note(f"{workspace} indexes {Path(root).resolve()} now")
    return 0


@workspaces.command("rename")
@click.argument("name")
@click.argument("new_name")
def _rename(name: str, new_name: str) -> int:
    """Give a workspace another name."""
    from findling.service.workspace.workspaces import rename_workspace

    rename_workspace(name, new_name, home=_home())
    note(f"{name} is called {new_name} now")
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
    if not _may(f"delete the index of {account.label} with {account.resources:,} resources, in {account.folder}", yes):
        return 1
    drop_workspace(workspace, home=_home())
    note(f"deleted {account.folder}")
    return 0


@workspaces.command("search")
@click.argument("words", nargs=-1, required=True, metavar="QUERY")
@click.option("--in", "names", multiple=True, metavar="NAME|PATH", help="A workspace to ask; may be repeated.")
@click.option("--shared", is_flag=True, help="Ask all workspaces that are marked as shared.")
@question_options
@json_option
def _search(words: tuple[str, ...], names: tuple[str, ...], shared: bool, as_json: bool, **given: Any) -> int:
    """Ask several workspaces at once: those named, or all shared ones.

    One that cannot be read is named on stderr, and the others answer. Exit code: 0 found, 1 nothing found, 2 error.
    """
    from findling.service.export.searching_across import search_across

    options = SearchOptions(words=words, **given)
    query = words[0]
    if len(words) > 1 or not query.strip():
        raise UsageError("there must be one query", hint=f'findling workspaces search "{" ".join(words)}" --shared')
    if options.workspace is not None:
        raise UsageError("--workspace chooses one workspace", hint="--in NAME, which may be repeated")

    def settings_for(place: Path) -> Settings:
        return settled(options, str(place))[0].override(NO_CONTEXT, "search across workspaces")

    settings = settings_for(Path())
    request = build_request(query, options, settings)
    answer = search_across(request, home=_home(), names=names, shared=shared, settings_for=settings_for)
    if as_json:
        write_json(**answer.to_dict())
    else:
        write(_shown(answer.hits, answer.query), styled=True)
    for missing in answer.degraded:
        note(missing.what, missing.fix)
    if not answer.hits:
        note(f'no match for "{query}" in {", ".join(answer.asked) or "any workspace"}')
    if answer.relaxed and not as_json:
        note("relaxed, without what is demanded:")
        click.echo(_shown(answer.relaxed, query), err=True, nl=False)
    return 0 if answer.hits else 1


def _shown(hits: Sequence[AcrossHit], query: str) -> str:
    """Every hit with its workspace, in their order."""
    import sys
    from dataclasses import replace

    from findling.domain.results import SearchAnswer
    from findling.faces.cli.output.rendering import make_view, render_text
    from findling.faces.cli.output.terminal import use_color

    parts = []
    for found in hits:
        view = make_view(found.root, color=use_color("auto", sys.stdout), terminal=sys.stdout.isatty())
        shown = replace(found.hit, score=found.score)
        one = SearchAnswer(query=query, understood_as="", hits=(shown,), total=1, strategy="")
        parts.append(f"[{show_controls(found.workspace)}] {render_text(one, view)}")
    return "\n".join(parts)


def _home() -> Path:
    from findling.service.workspace.workspace import home_folder

    return home_folder(resolve(".")["store.home"])


def _limits(given: dict[str, str | None]) -> dict[str, int]:
    """The limits that were given, by the names that a quota has for them."""
    from findling.service.workspace.quotas import parse_limit

    names = {parameter: parameter.removeprefix("quota_") for parameter in given}
    return {
        names[parameter]: parse_limit(names[parameter], text, f"flag {_QUOTAS[parameter][0]}")
        for parameter, text in given.items()
        if text is not None
    }


def _may(what: str, yes: bool) -> bool:
    """Whether something that cannot be undone may be done. Raises UsageError when there is nobody to ask."""
    if not yes and not is_interactive():
        raise UsageError(f"would {what}; nothing was done", hint="the same with --yes")
    return yes or click.confirm(f"findling: {what}?", err=True)


def _warn_if_synced(folder: Path, called: str) -> None:
    from findling.service.workspace.locations import sync_warning

    if warning := sync_warning(folder, called):
        note(warning.what, warning.fix)


def _account_document(account: WorkspaceAccount) -> dict[str, Any]:
    document = asdict(account)
    document["quota"] = account.quota._asdict() if account.quota else None
    return document


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
        f"{account.resources:,} resources",
        f"{account.chunks:,} chunks",
        format_size(account.size_bytes),
        indexed,
        ", ".join(remark for remark, holds in remarks.items() if holds),
    )
