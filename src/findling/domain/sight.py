"""Sight: what one caller may see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from findling.domain.permissions import DENIED, DENY, EVERYONE, MEMBER, VIEWER, Relation, Right, check_principal

__all__ = ["Rights", "Sight"]

_FOLDER = "path:"


class Sight(NamedTuple):
    """What a caller sees of one state of a workspace: numbers of resources, each with its latest change, in order.

    `rights` decides about a resource as it is now.
    """

    rights: Rights
    changes: dict[int, int]

    @classmethod
    def of(cls, rights: Rights, entries: Iterable[Right]) -> Sight:
        """Everything among the entries that the caller may see."""
        seen = (one for one in entries if rights.may_see(one.rid, one.path, one.visibility))
        return cls(rights, {one.number: one.seq for one in seen})


class Rights:
    """The rights of one caller. Nobody has any, `everyone` is in every caller, and what is denied stays denied.

    A resource has a list of its own, or takes that of the nearest folder with viewers, or is left to the workspace's
    policy. Whoever is made a viewer of the resource itself sees it besides. A denial counts wherever it stands: in the
    list, on the resource, on any folder above it.
    """

    def __init__(self, principals: Iterable[str], relations: Iterable[Relation], *, unset_is_public: bool) -> None:
        """Raises InvalidValueError for what is no principal."""
        known = list(relations)
        self.principals = _with_groups([check_principal(one) for one in principals], known)
        self._unset = (EVERYONE,) if unset_is_public else ()
        self._viewers = _subjects(known, VIEWER)
        self._denied = _subjects(known, DENIED)

    def may_see(self, rid: str, path: str, visibility: tuple[str, ...] | None) -> bool:
        """Whether the caller may see a resource."""
        places = [rid, *_folders(path)] if self._viewers or self._denied else [rid]
        entries = self._inherited(places[1:]) if visibility is None else visibility
        allowed = {entry for entry in entries if not entry.startswith(DENY)}
        denied = {entry[len(DENY) :] for entry in entries if entry.startswith(DENY)}
        allowed.update(self._viewers.get(rid, ()))
        denied.update(*(self._denied.get(place, ()) for place in places))
        return not self.principals.isdisjoint(allowed) and self.principals.isdisjoint(denied)

    def _inherited(self, folders: Iterable[str]) -> Iterable[str]:
        return next((self._viewers[folder] for folder in folders if folder in self._viewers), self._unset)


def _with_groups(principals: Iterable[str], relations: Iterable[Relation]) -> frozenset[str]:
    """The principals, the groups and roles they are members of, directly or through others, and everyone."""
    groups: dict[str, list[str]] = {}
    for subject, relation, target in relations:
        if relation == MEMBER:
            groups.setdefault(subject, []).append(target)
    found: set[str] = set()
    waiting = list(principals)
    if waiting:
        waiting.append(EVERYONE)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += groups.get(one, ())
    return frozenset(found)


def _subjects(relations: Iterable[Relation], wanted: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for subject, relation, target in relations:
        if relation == wanted:
            found.setdefault(target, set()).add(subject)
    return found


def _folders(path: str) -> Iterator[str]:
    """The path and the folders above it, nearest first, as relations name them."""
    while path:
        yield _FOLDER + path
        path = path.rpartition("/")[0]
