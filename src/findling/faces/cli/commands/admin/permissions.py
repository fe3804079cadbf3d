"""`findling permissions`: who may see what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from findling.domain.errors import UsageError
from findling.domain.permissions import UNSET, is_principal
from findling.faces.cli.output.json_output import write_json
from findling.faces.cli.output.terminal import note, write
from findling.faces.cli.request.options import command_group, json_option, name_from_root
from findling.faces.cli.request.place import GivenPlace, place_option

if TYPE_CHECKING:
    from findling.service.engine.engine import Engine
    from findling.service.index.permissions import WorkspacePermissions

_ALL_ELSE = "what has no list of its own"

_VERBS = {"member": "is a member of", "viewer": "may see", "denied": "must not see"}


@command_group(
    join="findling permissions share GROUP PRINCIPAL",
    leave="findling permissions share GROUP PRINCIPAL --remove",
    unshare="findling permissions share TARGET PRINCIPAL --remove",
    deny="findling permissions share TARGET '!PRINCIPAL'",
    undeny="findling permissions share TARGET '!PRINCIPAL' --remove",
    policy="findling permissions share '*' everyone, or '!everyone'; findling permissions list shows it",
)
def permissions() -> None:
    """Say who may see what; the owner of a workspace sees everything.

    \b
      findling permissions share group:eng user:ann         make Ann a member
      findling permissions share docs/plans group:eng       a folder, a file, or the id of a resource
      findling permissions share docs/plans/pay '!user:bob'  beats every right that lets him in
      findling permissions share '*' everyone               what has no list of its own
      findling --as user:ann "roadmap"                      search as Ann would

    A principal is user:NAME, group:NAME, role:NAME or everyone. Resources may bring a list of their own.
    """


@permissions.command("list")
@json_option
@place_option
def _list(as_json: bool, place: GivenPlace) -> int:
    """List memberships and rights, and who sees what has no list of its own.

    Exit code: 0 there are some, 1 there are none.
    """
    with place.opened() as engine:
        relations = engine.permissions.relations()
        policy = engine.permissions.policy() or engine.writer.settings["permissions.unset"]
    if as_json:
        write_json(relations=relations, policy=policy)
    else:
        for subject, relation, target in relations:
            write(f"{subject} {_VERBS[relation]} {_ALL_ELSE if target == UNSET else target}\n")
        if not relations:
            note("nobody was given any right", "findling permissions share TARGET PRINCIPAL")
        note(f"{_ALL_ELSE} is left to {policy}")
    return 0 if relations else 1


@permissions.command("share")
@click.argument("target", metavar="TARGET|GROUP|*")
@click.argument("principals", nargs=-1, required=True, metavar="PRINCIPAL...")
@click.option("--remove", is_flag=True, help="Take it back; exit code 1 where there was nothing.")
@place_option
def _share(target: str, principals: tuple[str, ...], remove: bool, place: GivenPlace) -> int:
    """Let each PRINCIPAL see a file, a folder or a resource, or no longer.

    !PRINCIPAL is kept out, against every other right. Whoever is given a GROUP, or a role, is a member of it.
    For `*`, which is what has no list of its own, everyone lets every caller see it, and !everyone the owner alone.
    That holds at once, also in a running daemon, and for this workspace alone; `findling config set permissions.unset`
    changes all of them.
    """
    with place.opened() as engine:
        if target == "*":
            return _share_rest(engine.permissions, principals, remove)
        if is_principal(target):
            return max(_join(engine.permissions, one, target, remove) for one in principals)
        seen = [one for one in principals if not one.startswith("!")]
        return max(
            _give(engine, target, seen, "viewer", remove),
            _give(engine, target, [one[1:] for one in principals if one not in seen], "denied", remove),
        )


def _share_rest(rights: WorkspacePermissions, principals: Sequence[str], remove: bool) -> int:
    """Set the policy of a workspace. Raises UsageError for a principal that it cannot name."""
    policies = {"everyone": "public", "!everyone": "owner"}
    policy = policies.get(",".join(principals), "")
    if remove or not policy:
        hint = "findling permissions share '*' everyone, or '!everyone'"
        raise UsageError("what has no list of its own is for everyone, or for its owner alone", hint=hint)
    return _told(rights.set_policy(policy), f"{_ALL_ELSE} is left to {policy}")


def _join(rights: WorkspacePermissions, principal: str, group: str, remove: bool) -> int:
    """Make a principal, which may be a group, a member of a group, or end it."""
    if remove:
        was_none = f"{principal} was no member of {group}"
        return _told(rights.leave(principal, group), f"{principal} is no longer a member of {group}", was_none)
    return _told(rights.join(principal, group), f"{principal} is a member of {group}")


def _give(engine: Engine, target: str, principals: Sequence[str], what: str, remove: bool) -> int:
    """Let principals see a target, or deny it to them, or take that back."""
    rights = engine.permissions
    give, take, was = (
        (rights.share, rights.unshare, "shared with") if what == "viewer" else (rights.deny, rights.undeny, "denied to")
    )
    if not principals:
        return 0
    if remove:
        return _take_back(engine, take, target, principals, was)
    named = rights.target(name_from_root(target, engine.root))
    for principal in principals:
        _told(give(named, principal), f"{principal} {_VERBS[what]} {named}")
    above, others = rights.overridden(named) if what == "viewer" and named.startswith("path:") else ("", "")
    if above:
        note(f"{others} may see the rest of {above}, but not this: the nearest folder that is shared decides")
    return 0


@permissions.command("check")
@click.argument("principal")
@click.argument("rid", metavar="RESOURCE")
@json_option
@place_option
def _check(principal: str, rid: str, as_json: bool, place: GivenPlace) -> int:
    """Tell whether PRINCIPAL may see one resource, and through which groups.

    RESOURCE is an id, or the path of a file. Exit code: 0 yes, 1 no.
    """
    with place.opened() as engine:
        verdict = engine.permissions.check([principal], engine.resource_id(rid))
    if as_json:
        write_json(verdict)
    else:
        write(f"{'yes' if verdict.may_see else 'no'}: {verdict.reason}\n")
        note(f"{principal} is {', '.join(one for one in verdict.principals if one != principal)}")
    return 0 if verdict.may_see else 1


def _take_back(engine: Engine, take: Callable[[str, str], bool], name: str, principals: Sequence[str], was: str) -> int:
    """Take a right back, also one to a file that is gone from the index."""
    held = {relation.object for relation in engine.permissions.relations()}
    path = f"path:{name_from_root(name, engine.root).removeprefix('./').strip('/')}"
    named, whom = next((known for known in (name, path) if known in held), name), " and ".join(principals)
    done = [take(named, principal) for principal in principals]
    return _told(any(done), f"{named} is no longer {was} {whom}", f"{named} was not {was} {whom}")


def _told(is_done: bool, what: str, otherwise: str = "") -> int:
    """Say what was done; what was so `already` is no failure, what could not be done `otherwise` is one."""
    if is_done or not otherwise:
        note(what if is_done else f"{what} already")
        return 0
    note(otherwise, "findling permissions list")
    return 1
