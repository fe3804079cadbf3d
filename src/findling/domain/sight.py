"""Sight: what one caller may see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from findling.domain.permissions import (
    DENIED,
    DENY,
    EVERYONE,
    MEMBER,
    PATH,
    VIEWER,
    Relation,
    Right,
    check_principal,
    is_principal,
    policy_of,
)

__all__ = ["ROOT", "Rights", "Sight"]

ROOT = f"{PATH}."
"""The folder that all files lie below, as relations name it."""


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
        """`unset_is_public` counts where no relation says it. Raises InvalidValueError for what is no principal."""
        known = list(relations)
        policy = policy_of(known) or ("public" if unset_is_public else "owner")
        self.principals = _with_groups([check_principal(one) for one in principals], known)
        self._sees_unset = policy == "public" and bool(self.principals)
        self._viewers = _subjects(known, VIEWER)
        self._denied = {place for place, subjects in _subjects(known, DENIED).items() if self._is_any_of(subjects)}
        # Most resources share their list and their folder with others: each is decided once.
        self._by_list = cache(self._decided_by_list)
        self._by_folder = cache(self._decided_by_folder)

    def may_see(self, rid: str, path: str, visibility: tuple[str, ...] | None) -> bool:
        """Whether the caller may see a resource."""
        if rid in self._denied or (path and self._denied and not self._denied.isdisjoint(_folders(path))):
            return False
        if visibility is None:
            own = self._viewers.get(PATH + path) if path else ()
            # What has no path lies in no folder.
            is_seen = self._by_folder(path.rpartition("/")[0]) if own is None else self._is_any_of(own)
            is_seen = is_seen or (not path and self._sees_unset)
        else:
            is_seen, is_denied = self._by_list(visibility)
            if is_denied:
                return False
        return is_seen or (rid in self._viewers and self._is_any_of(self._viewers[rid]))

    def reason(self, rid: str, path: str, visibility: tuple[str, ...] | None) -> str:
        """What `may_see` goes by, in words."""
        places = [rid, *_folders(path)] if path else [rid]
        for place in places:
            if place in self._denied:
                return f"denied by a right to {place}"
        if visibility is not None and self._by_list(visibility)[1]:
            return f"denied by its own list: {', '.join(visibility)}"
        if rid in self._viewers and self._is_any_of(self._viewers[rid]):
            return f"it was shared with {self._among(self._viewers[rid])}"
        if visibility is not None:
            told = ", ".join(visibility) or "nobody"
            return f"its own list names {self._among(visibility) if self._by_list(visibility)[0] else told}"
        nearest = next((place for place in places[1:] if place in self._viewers), "")
        if nearest:
            viewers = self._viewers[nearest]
            return f"{nearest} is shared with {self._among(viewers) or ', '.join(sorted(viewers))}"
        return "nobody was given a right to it" + (", and permissions.unset is public" if self._sees_unset else "")

    def _among(self, principals: Collection[str]) -> str:
        return ", ".join(sorted(self.principals.intersection(principals)))

    def _decided_by_list(self, entries: tuple[str, ...]) -> tuple[bool, bool]:
        """Whether a list names the caller, and whether it denies the caller."""
        named = {entry for entry in entries if not entry.startswith(DENY)}
        denied = {entry[len(DENY) :] for entry in entries if entry not in named}
        # A denial that cannot be understood is one of everybody.
        return self._is_any_of(named), self._is_any_of(denied) or not all(map(is_principal, denied))

    def _decided_by_folder(self, folder: str) -> bool:
        """Whether the nearest folder with viewers has the caller among them; if there is none, what the policy says."""
        viewers = (self._viewers[place] for place in _folders(folder) if place in self._viewers)
        nearest = next(viewers, None)
        return self._sees_unset if nearest is None else self._is_any_of(nearest)

    def _is_any_of(self, principals: Collection[str]) -> bool:
        return not self.principals.isdisjoint(principals)


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
    """The path and the folders above it, nearest first and the root last, as relations name them."""
    while path:
        yield PATH + path
        path = path.rpartition("/")[0]
    yield ROOT
