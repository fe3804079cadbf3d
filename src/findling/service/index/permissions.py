"""Rights in one workspace, as people set them."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.permissions import (
    DENIED,
    EVERYONE,
    MEMBER,
    PATH,
    POLICIES,
    UNSET,
    VIEWER,
    Relation,
    check_object,
    check_principal,
    policy_of,
)
from findling.domain.resources import Resource
from findling.domain.sight import Rights, Sight
from findling.service.index.index_files import OpenedWorkspace


class Verdict(NamedTuple):
    """The answer whether somebody may see a resource, why, and everybody that this somebody is."""

    may_see: bool
    reason: str
    principals: tuple[str, ...]


class WorkspacePermissions:
    """The relations of one workspace. A change holds from the next search on, wherever that runs.

    `sight` tells what principals may see. Every change raises InvalidValueError for what is no principal, group or
    target, and as `OpenedWorkspace.writing` does.
    """

    def __init__(self, files: OpenedWorkspace, root: Path, sight: Callable[[Iterable[str]], Sight]) -> None:
        self._files = files
        self._root = root
        self._sight = sight

    def relations(self) -> list[Relation]:
        """All relations, in order; none where nothing was ever written."""
        self._files.let_go_if_replaced()
        return self._files.store.relations() if self._files.exists else []

    def join(self, principal: str, group: str) -> bool:
        """Make somebody, or a whole group, a member of a group or role; tells whether that is new.

        Raises InvalidValueError when the group would become a member of itself.
        """
        relation = self._relation(principal, MEMBER, group)
        if principal == group or group in self._members_above(group, principal):
            raise InvalidValueError(f"{principal} is above {group} already", hint="no group is a member of itself")
        return self._add(relation)

    def leave(self, principal: str, group: str) -> bool:
        """End a membership; tells whether there was one."""
        return self._drop(self._relation(principal, MEMBER, group))

    def share(self, target: str, principal: str) -> bool:
        """Let somebody see a resource, or all of a folder that has no lists of its own; tells whether that is new."""
        return self._add(self._relation(principal, VIEWER, target))

    def unshare(self, target: str, principal: str) -> bool:
        """Take back what `share` gave; tells whether there was such a right."""
        return self._drop(self._relation(principal, VIEWER, target))

    def deny(self, target: str, principal: str) -> bool:
        """Keep somebody out, whatever else lets them in; tells whether that is new."""
        return self._add(self._relation(principal, DENIED, target))

    def undeny(self, target: str, principal: str) -> bool:
        """Take back what `deny` did; tells whether it was denied."""
        return self._drop(self._relation(principal, DENIED, target))

    def policy(self) -> str:
        """The policy for resources without a list: `owner` or `public`; empty where the settings decide."""
        return policy_of(self.relations())

    def set_policy(self, policy: str) -> bool:
        """Say who may see what has no list of its own; tells whether that is new."""
        if policy not in POLICIES:
            raise InvalidValueError(f"{policy!r} is no policy", hint=f"one of {', '.join(POLICIES)}")
        kept, gone = (DENIED, VIEWER) if policy == "owner" else (VIEWER, DENIED)
        if self.policy() == policy:
            return False
        with self._files.writing():
            self._files.store.write_relations([Relation(EVERYONE, kept, UNSET)], [Relation(EVERYONE, gone, UNSET)])
        return True

    def rights(self, principals: Iterable[str]) -> Rights:
        """The rights of these principals. Raises InvalidValueError for what is no principal."""
        return self._sight(principals).rights

    def check(self, principals: Iterable[str], rid: str) -> Verdict:
        """Whether these principals may see a resource. Raises NotFoundError when there is none with this id."""
        document = self._files.store.document(rid)
        if document is None:
            raise NotFoundError(f"there is no {rid} in the index", hint="findling ls lists what is")
        rights = self.rights(principals)
        resource = document.resource
        about = resource.rid, resource.path, resource.visibility
        return Verdict(rights.may_see(*about), rights.reason(*about), tuple(sorted(rights.principals)))

    def target(self, name: str) -> str:
        """The target of a name: the id of a resource, or a folder or file below the root as `path:…`.

        It may be on disk and not in the index yet. Raises NotFoundError when there is nothing of that name.
        """
        name = name.removeprefix(PATH)
        path = posixpath.normpath(name).strip("/")
        if path == "." or (not path.startswith("..") and (self._root / path).exists()):
            return f"path:{path}"
        known = self._files.store if self._files.exists else None
        if known is not None and known.document(name) is not None:
            return name
        if known is not None and any(_is_at(resource, path) for resource in known.resources()):
            return f"path:{path}"
        raise NotFoundError(f"there is no {name} here", hint="findling ls lists what is indexed")

    def overridden(self, target: str) -> tuple[str, str]:
        """The nearest folder above one whose viewers no longer count there, and who they are; empty without one."""
        viewers: dict[str, list[str]] = {}
        for subject, relation, place in self.relations():
            if relation == VIEWER:
                viewers.setdefault(place, []).append(subject)
        path = target.removeprefix("path:")
        while path not in ("", "."):
            path = path.rpartition("/")[0] or "."
            if others := [one for one in viewers.get(f"path:{path}", ()) if one not in viewers.get(target, ())]:
                return f"path:{path}", ", ".join(others)
        return "", ""

    def _relation(self, principal: str, relation: str, target: str) -> Relation:
        return Relation(check_principal(principal), relation, check_object(relation, target))

    def _members_above(self, group: str, principal: str) -> set[str]:
        """Every group that would be above the principal, and is above the group or the group itself."""
        found: set[str] = set()
        waiting = [group]
        groups = [one for one in self.relations() if one.relation == MEMBER]
        while waiting:
            one = waiting.pop()
            above = {relation.object for relation in groups if relation.subject == one}
            if principal in above:
                return {group}
            waiting += above - found
            found |= above
        return set()

    def _add(self, relation: Relation) -> bool:
        with self._files.writing():
            store = self._files.store
            is_new = relation not in store.relations()
            if is_new:
                store.write_relations([relation])
        return is_new

    def _drop(self, relation: Relation) -> bool:
        if relation not in self.relations():
            return False
        with self._files.writing():
            self._files.store.write_relations((), [relation])
        return True


def forget_rights(files: OpenedWorkspace, rids: Collection[str]) -> None:
    """Take back what was shared of resources that were deleted, and what callers' indexes hold of them.

    Something else may get the same id. What is denied stays denied.
    """
    store = files.store
    shared = [one for one in store.relations() if one.relation == VIEWER and one.object in rids]
    if shared:
        store.write_relations((), shared)
    files.limited_legs().drop_stale(store)


def _is_at(resource: Resource, path: str) -> bool:
    return bool(path) and (resource.path == path or resource.path.startswith(f"{path}/"))
