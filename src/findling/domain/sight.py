"""Sight: what one caller may see, as the classes of resources that the same principals may see."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property
from itertools import chain
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

ROOT = f"{PATH}."
"""The folder that all files lie below, as relations name it."""

_NOBODY: frozenset[str] = frozenset()


class Audience(NamedTuple):
    """The viewers of a resource, everybody where `is_unset` and the policy is public, but nobody denied.

    Resources with one audience are a class of visibility: every caller sees all of them or none.
    """

    viewers: frozenset[str]
    is_unset: bool = False
    denied: frozenset[str] = _NOBODY


class Audiences:
    """The audience of every resource under some relations.

    A resource has a list of its own, else that of the nearest folder with viewers, else the workspace's policy counts.
    Viewers of the resource itself see it besides. A denial counts wherever it stands: in the list, on the resource, on
    any folder above it.
    """

    def __init__(self, relations: Iterable[Relation]) -> None:
        known = list(relations)
        self.viewers = _subjects(known, VIEWER)
        self.denied = _subjects(known, DENIED)
        self._named = self.viewers.keys() | self.denied.keys()
        # Most resources share their list and their folder with others: each pair is decided once.
        self._inherited = cache(self._of_folder)

    def of(self, rid: str, path: str, visibility: tuple[str, ...] | None) -> Audience:
        """The audience of a resource."""
        audience = self._inherited(visibility, path.rpartition("/")[0] if path else None)
        place = PATH + path if path else rid
        if rid not in self._named and place not in self._named:
            return audience
        viewers, is_unset, denied = audience
        if path and visibility is None and place in self.viewers:
            viewers, is_unset = self.viewers[place], False
        viewers = viewers.union(self.viewers.get(rid, _NOBODY))
        return Audience(viewers, is_unset, denied.union(self.denied.get(rid, _NOBODY), self.denied.get(place, _NOBODY)))

    def differing(self, former: Audiences) -> set[str]:
        """The resources and folders that have other viewers, or other denials, than formerly."""
        pairs = ((self.viewers, former.viewers), (self.denied, former.denied))
        return {name for now, then in pairs for name in now.keys() | then.keys() if now.get(name) != then.get(name)}

    def _of_folder(self, visibility: tuple[str, ...] | None, folder: str | None) -> Audience:
        """The audience by a list, or without one by the nearest folder with viewers. Without a path it is None."""
        places = [] if folder is None else [*_folders(folder)]
        denied = _NOBODY.union(*(self.denied.get(place, _NOBODY) for place in places))
        if visibility is not None:
            named, refused = _split_list(visibility)
            return Audience(named, denied=denied | refused)
        nearest = next((self.viewers[place] for place in places if place in self.viewers), None)
        return Audience(nearest or _NOBODY, nearest is None, denied)


class Population:
    """The resources of one state, by their audiences: numbers, each with its latest change. It never changes.

    `changed` are numbers that may have another audience or change than `before`.
    """

    def __init__(
        self,
        audiences: Audiences,
        classes: Mapping[Audience, Mapping[int, int]],
        audience_of: Mapping[int, Audience],
        before: Population | None = None,
        changed: frozenset[int] = frozenset(),
    ) -> None:
        self.audiences = audiences
        self.classes = classes
        self.audience_of = audience_of
        self._before = None if before is None else weakref.ref(before)
        self._changed = changed

    @classmethod
    def of(cls, audiences: Audiences, entries: Iterable[Right], before: Population | None = None) -> Population:
        """The entries, and what was there `before` and has its audience still; only classes that differ are copied."""
        classes: dict[Audience, Mapping[int, int]] = dict(before.classes) if before else {}
        audience_of = dict(before.audience_of) if before else {}
        own: dict[Audience, dict[int, int]] = {}

        def members(audience: Audience) -> dict[int, int]:
            if audience not in own:
                classes[audience] = own[audience] = dict(classes.get(audience, ()))
            return own[audience]

        changed = set()
        for one in entries:
            changed.add(one.number)
            audience = audiences.of(one.rid, one.path, one.visibility)
            former = audience_of.get(one.number, audience)
            if former != audience:
                del members(former)[one.number]
            members(audience)[one.number] = one.seq
            audience_of[one.number] = audience
        kept = {audience: held for audience, held in classes.items() if held}
        return cls(audiences, kept, audience_of, before, frozenset(changed))

    def only(self, numbers: Iterable[int]) -> Population:
        """The same without what is not among the numbers."""
        gone = self.audience_of.keys() - numbers
        audience_of = {number: audience for number, audience in self.audience_of.items() if number not in gone}
        touched = {self.audience_of[number] for number in gone}
        left = {one: {n: seq for n, seq in self.classes[one].items() if n not in gone} for one in touched}
        classes = {audience: left.get(audience, held) for audience, held in self.classes.items()}
        kept = {audience: held for audience, held in classes.items() if held}
        before = None if self._before is None else self._before()
        return Population(self.audiences, kept, audience_of, before, self._changed | gone)

    def changed_since(self, former: Population) -> frozenset[int] | None:
        """The numbers that may differ from the population that this one was made of; None for any other one."""
        if former is self:
            return frozenset()
        return self._changed if self._before is not None and self._before() is former else None


class Numbers(Collection[int]):
    """The numbers of the resources of some classes."""

    def __init__(self, population: Population, audiences: Collection[Audience]) -> None:
        self._audience_of = population.audience_of
        self._audiences = frozenset(audiences)
        self._classes = [population.classes[one] for one in audiences]

    def __contains__(self, number: object) -> bool:
        return self._audience_of.get(number) in self._audiences  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._classes)

    def __len__(self) -> int:
        return sum(map(len, self._classes))


class Sight:
    """The part of one state of a workspace that a caller sees. `rights` decides about a resource as it is now."""

    def __init__(self, rights: Rights, population: Population) -> None:
        self.rights = rights
        self.population = population
        self.audiences = [one for one in population.classes if rights.sees(one)]
        self.numbers = Numbers(population, self.audiences)

    @cached_property
    def latest(self) -> int:
        """The latest change of anything in sight."""
        return max((max(self.population.classes[one].values()) for one in self.audiences), default=0)


class Rights:
    """The rights of one caller. Nobody has any, `everyone` is in every caller, and what is denied stays denied."""

    def __init__(self, principals: Iterable[str], relations: Iterable[Relation], *, unset_is_public: bool) -> None:
        """`unset_is_public` counts where no relation says it. Raises InvalidValueError for what is no principal."""
        known = list(relations)
        policy = policy_of(known) or ("public" if unset_is_public else "owner")
        self.principals = _with_groups([check_principal(one) for one in principals], known)
        self._sees_unset = policy == "public" and bool(self.principals)
        self._audiences = Audiences(known)

    def sees(self, audience: Audience) -> bool:
        """Whether the caller is in an audience."""
        if self._is_any_of(audience.denied):
            return False
        return self._is_any_of(audience.viewers) or (audience.is_unset and self._sees_unset)

    def may_see(self, rid: str, path: str, visibility: tuple[str, ...] | None) -> bool:
        """Whether the caller may see a resource."""
        return self.sees(self._audiences.of(rid, path, visibility))

    def reason(self, rid: str, path: str, visibility: tuple[str, ...] | None) -> str:
        """The reason of `may_see`, in words."""
        viewers, denied = self._audiences.viewers, self._audiences.denied
        places = [rid, *_folders(path)] if path else [rid]
        for place in places:
            if self._is_any_of(denied.get(place, ())):
                return f"denied by a right to {place}"
        named, refused = _split_list(visibility or ())
        if visibility is not None and self._is_any_of(refused):
            return f"denied by its own list: {', '.join(visibility)}"
        if self._is_any_of(viewers.get(rid, ())):
            return f"it was shared with {self._among(viewers[rid])}"
        if visibility is not None:
            return f"its own list names {self._among(named) or ', '.join(visibility) or 'nobody'}"
        nearest = next((place for place in places[1:] if place in viewers), "")
        if nearest:
            return f"{nearest} is shared with {self._among(viewers[nearest]) or ', '.join(sorted(viewers[nearest]))}"
        return "nobody was given a right to it" + (", and permissions.unset is public" if self._sees_unset else "")

    def _among(self, principals: Collection[str]) -> str:
        return ", ".join(sorted(self.principals.intersection(principals)))

    def _is_any_of(self, principals: Collection[str]) -> bool:
        return not self.principals.isdisjoint(principals)


def _split_list(entries: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Those whom a list names, and those whom it denies."""
    listed = frozenset(entries)
    denied = frozenset(entry[len(DENY) :] for entry in listed if entry.startswith(DENY))
    # A denial that cannot be understood is one of everybody.
    refused = denied if all(map(is_principal, denied)) else denied | {EVERYONE}
    return frozenset(entry for entry in listed if not entry.startswith(DENY)), refused


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


def _subjects(relations: Iterable[Relation], wanted: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for subject, relation, target in relations:
        if relation == wanted:
            found.setdefault(target, set()).add(subject)
    return {target: frozenset(subjects) for target, subjects in found.items()}


def _folders(path: str) -> Iterator[str]:
    """The path and the folders above it, nearest first and the root last, as relations name them."""
    while path:
        yield PATH + path
        path = path.rpartition("/")[0]
    yield ROOT
