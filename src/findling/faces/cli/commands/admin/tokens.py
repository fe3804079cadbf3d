"""`findling token`: who may ask the daemon from elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import click

from findling.domain.errors import NotFoundError, UsageError
from findling.domain.permissions import ALL_WORKSPACES, SCOPES
from findling.faces.cli.output.json_output import write_list, write_report
from findling.faces.cli.output.terminal import note
from findling.faces.cli.request.options import command_group, json_option, resolve

if TYPE_CHECKING:
    from pathlib import Path

    from findling.service.server.tokens import TokenAccount, TokenBook

_DAY_S = 86_400
_LONGEST_DAYS = 36_500


@command_group()
def token() -> None:
    """Give programs and people access to the daemon.

    \b
      findling token create laptop --as owner --days 90
      findling token create bot --as group:eng --scope read
      findling token revoke bot

    A server that other machines can reach answers nobody without a token. A token has the rights of its principals, or
    all of the owner's, and can be revoked at any time.
    """


@token.command("create")
@click.argument("name")
@click.option(
    "--as", "principals", multiple=True, metavar="PRINCIPAL", help="Whose rights it has: user:ann; owner: all of yours."
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    default=("read",),
    help="What for.",
    show_default=True,
)
@click.option(
    "--workspace", "workspaces", multiple=True, metavar="NAME", help="May be asked besides the one served; '*': all."
)
@click.option("--days", type=click.IntRange(1, _LONGEST_DAYS), metavar="N", help="How long it is good for.")
@json_option
def _create(
    name: str, principals: tuple[str, ...], days: int | None, as_json: bool, **good_for: tuple[str, ...]
) -> int:
    """Make a token and print its secret, once.

    It is for reading unless --scope says otherwise; for both, give --scope read --scope write.
    """
    is_owner = "owner" in principals
    if not principals or (is_owner and len(principals) > 1):
        what = "a token is for the owner or for principals, not both" if is_owner else f"whose rights has {name}?"
        raise UsageError(what, hint="--as user:NAME, or --as owner")
    home, book = _home_and_book()
    expires_at = None if days is None else time.time() + days * _DAY_S
    whose = None if is_owner else principals
    secret = book.create(name, principals=whose, expires_at=expires_at, **good_for)
    write_report(as_json, {"name": name, "token": secret, "expires_at": expires_at}, f"{secret}\n")
    note(f"keep the secret of {name} now: it is not shown again", f"findling token revoke {name} when it has leaked")
    _tell_missing(good_for["workspaces"], home)
    return 0


@token.command("revoke")
@click.argument("name")
def _revoke(name: str) -> int:
    """Revoke a token; the next request with it is refused."""
    _home_and_book()[1].revoke(name)
    note(f"the token {name} is revoked")
    return 0


@token.command("list")
@json_option
def _list(as_json: bool) -> int:
    """List the tokens with what each is good for.

    Exit code: 0 there are some, 1 there are none.
    """
    accounts = _home_and_book()[1].list()
    hint = "findling token create NAME --as user:NAME, or --as owner"
    return write_list(as_json, "tokens", accounts, partial(_row, now=time.time()), "there are no tokens", hint)


def _home_and_book() -> tuple[Path, TokenBook]:
    from findling.service.server.tokens import TokenBook
    from findling.service.workspace.workspace import home_folder

    home = home_folder(resolve(".")["store.home"])
    return home, TokenBook(home)


def _tell_missing(workspaces: Iterable[str], home: Path) -> None:
    """A workspace may come later, but its name may be mistyped, too."""
    from findling.service.workspace.workspaces import find_workspace

    for name in workspaces:
        if name != ALL_WORKSPACES:
            try:
                find_workspace(name, home)
            except NotFoundError:
                note(f"there is no workspace {name} yet", "findling workspaces list")


def _row(account: TokenAccount, now: float) -> tuple[str, ...]:
    workspaces = ("all" if name == ALL_WORKSPACES else name for name in account.workspaces)
    if account.expires_at is None:
        end = "for good"
    else:
        end = f"{'expired' if account.expires_at <= now else 'until'} {_day(account.expires_at)}"
    return (
        account.name,
        "owner" if account.principals is None else ",".join(account.principals),
        ",".join(account.scopes),
        ",".join(workspaces) or "-",
        f"made {_day(account.created_at)}",
        end,
        "never used" if account.last_used_at is None else f"used {_day(account.last_used_at)}",
    )


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
