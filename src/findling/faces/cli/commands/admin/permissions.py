"""`findling permissions`: who may see what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from findling.domain.permissions import POLICIES, UNSET
from findling.faces.cli.output.json_output import write_json
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import (
    GroupWithMoves,
    json_option,
    name_from_root,
    opened,
    place_option,
    resolve,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from findling.service.engine.engine import Engine

__all__ = ["permissions"]

_ALL_ELSE = "what has no list of its own"

_VERBS = {"member": "is a member of", "viewer": "may see", "denied": "must not see"}


_remove_option = click.option("--remove", is_flag=True, help="Take it back; exit code 1 where there was nothing.")


@click.group(
    cls=GroupWithMoves,
    no_args_is_help=False,
    moved={
        "leave": "findling permissions join PRINCIPAL GROUP --remove",
        "unshare": "findling permissions share TARGET PRINCIPAL --remove",
        "undeny": "findling permissions deny TARGET PRINCIPAL --remove",
    },
)
def permissions() -> None:
    """Say who may see what; the owner of a workspace sees everything.

    \b
      findling permissions join user:ann group:eng
      findling permissions share docs/plans group:eng     a folder, a file, or the id of a resource
      findling permissions deny docs/plans/pay user:bob    beats every right that lets him in
      findling --as user:ann "roadmap"                     search as ann would

    A principal is user:NAME, group:NAME, role:NAME or everyone. Resources may bring a list of their own.
    """


@permissions.command("list")
@json_option
@place_option
def _list(as_json: bool, **place: Any) -> int:
    """List memberships and rights.

    Exit code: 0 there are some, 1 there are none.
    """
    with _opened(**place) as engine:
        relations = engine.permissions.relations()
    if as_json:
        write_json(relations=relations)
    else:
        for subject, relation, target in relations:
            write(f"{subject} {_VERBS[relation]} {_ALL_ELSE if target == UNSET else target}\n")
        if not relations:
            note("nobody was given any right", "findling permissions share TARGET PRINCIPAL")
    return 0 if relations else 1


@permissions.command("policy")
@click.argument("policy", required=False, type=click.Choice(POLICIES))
@json_option
@place_option
def _policy(policy: str | None, as_json: bool, **place: Any) -> int:
    """Show or set who sees what has no list: its owner, or every caller.

    Without POLICY it is shown. It holds at once, also in a running daemon, and for this workspace alone;
    `findling config set permissions.unset` changes all of them.
    """
    with _opened(**place) as engine:
        if policy:
            _tell(engine.permissions.set_policy(policy), f"{_ALL_ELSE} is left to {policy}")
        holds = engine.permissions.policy() or engine.writer.settings["permissions.unset"]
    if as_json:
        write_json({"policy": holds})
    elif not policy:
        write(f"{holds}\n")
    return 0


@permissions.command("join")
@click.argument("principal")
@click.argument("group")
@_remove_option
@place_option
def _join(principal: str, group: str, remove: bool, **place: Any) -> int:
    """Make PRINCIPAL, which may be a group, a member of GROUP, or end it."""
    with _opened(**place) as engine:
        if remove:
            is_done = engine.permissions.leave(principal, group)
            was_none = f"{principal} was no member of {group}"
            return _told(is_done, f"{principal} is no longer a member of {group}", was_none)
        _tell(engine.permissions.join(principal, group), f"{principal} is a member of {group}")
    return 0


@permissions.command("share")
@click.argument("target")
@click.argument("principals", nargs=-1, required=True, metavar="PRINCIPAL...")
@_remove_option
@place_option
def _share(target: str, principals: tuple[str, ...], remove: bool, **place: Any) -> int:
    """Let each PRINCIPAL see a file, a folder or a resource, or no longer."""
    with _opened(**place) as engine:
        rights = engine.permissions
        if remove:
            return _take_back(engine, rights.unshare, target, principals, "shared with")
        named = rights.target(name_from_root(target, engine.root))
        for principal in principals:
            _tell(rights.share(named, principal), f"{principal} may see {named}")
        above, others = rights.overridden(named) if named.startswith("path:") else ("", "")
    if above:
        note(f"{others} may see the rest of {above}, but not this: the nearest folder that is shared decides")
    return 0


@permissions.command("deny")
@click.argument("target")
@click.argument("principals", nargs=-1, required=True, metavar="PRINCIPAL...")
@_remove_option
@place_option
def _deny(target: str, principals: tuple[str, ...], remove: bool, **place: Any) -> int:
    """Keep each PRINCIPAL out, against every other right, or no longer."""
    with _opened(**place) as engine:
        rights = engine.permissions
        if remove:
            return _take_back(engine, rights.undeny, target, principals, "denied to")
        named = rights.target(name_from_root(target, engine.root))
        for principal in principals:
            _tell(rights.deny(named, principal), f"{principal} must not see {named}")
    return 0


@permissions.command("check")
@click.argument("principal")
@click.argument("rid", metavar="RESOURCE")
@json_option
@place_option
def _check(principal: str, rid: str, as_json: bool, **place: Any) -> int:
    """Tell whether PRINCIPAL may see one resource, and through which groups.

    RESOURCE is an id, or the path of a file. Exit code: 0 yes, 1 no.
    """
    with _opened(**place) as engine:
        verdict = engine.permissions.check([principal], engine.resource_id(rid))
    if as_json:
        write_json(verdict)
    else:
        write(f"{'yes' if verdict.may_see else 'no'}: {verdict.reason}\n")
        note(f"{principal} is {', '.join(one for one in verdict.principals if one != principal)}")
    return 0 if verdict.may_see else 1


def _opened(path: str, workspace: str | None) -> AbstractContextManager[Engine]:
    return opened(path, resolve(path, workspace=workspace))


def _take_back(
    engine: Engine, take: Callable[[str, str], bool], name: str, principals: tuple[str, ...], was: str
) -> int:
    """Take a right back, also one to a file that is gone from the index."""
    held = {relation.object for relation in engine.permissions.relations()}
    path = f"path:{name_from_root(name, engine.root).removeprefix('./').strip('/')}"
    named, whom = next((known for known in (name, path) if known in held), name), " and ".join(principals)
    done = [take(named, principal) for principal in principals]
    return _told(any(done), f"{named} is no longer {was} {whom}", f"{named} was not {was} {whom}")


def _tell(is_new: bool, what: str) -> None:
    note(what if is_new else f"{what} already")


def _told(is_done: bool, what: str, otherwise: str) -> int:
    if is_done:
        note(what)
    else:
        note(otherwise, "findling permissions list")
    return 0 if is_done else 1
