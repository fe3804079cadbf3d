"""The ledger of items that are about to be written: immutability, succession, and abbreviated ids."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from findling.domain.errors import FindlingError, InvalidValueError, NotFoundError
from findling.domain.ports import TruthStore
from findling.domain.resources import Resource, ResourceType
from findling.pipelines.content.items import Link, read_links

_MOST_LISTED = 10  # ids that an error names when several fit
_HEXADECIMAL = re.compile(r"[0-9a-f]{8,}")  # digits of an id that may stand for all of it


class Composed(NamedTuple):
    """An item to write; `where` is its place in the input, `given` are its keys.

    An item that does not say its readers or its path keeps those it has; `null` is said.
    """

    type: ResourceType
    resource: Resource
    text: str
    where: str
    given: frozenset[str]


class Written(NamedTuple):
    """An item as a store has it, or will have it."""

    resource: Resource
    text: str


class Ledger:
    """Changes on top of a store; the caller writes `pending`, in which a deleted item is `None`."""

    def __init__(self, store: TruthStore, now: float) -> None:
        self.pending: dict[str, Written | None] = {}
        self._store = store
        self._now = now
        self._hex_ids: dict[str, list[tuple[str, str]]] = {}
        self._superseded: set[str] = set()

    def get(self, rid: str) -> Written | None:
        """An item by its whole id."""
        if rid in self.pending:
            return self.pending[rid]
        document = self._store.document(rid)
        return None if document is None else Written(document.resource, document.text)

    def add(self, group: Sequence[Composed]) -> list[str]:
        """Add items that may name each other, all or none; the outcome of each is `added`, `changed` or `unchanged`.

        Raises InvalidValueError for a change of an immutable item, a contradiction in the group, or a predecessor that
        is missing, of another type or its own successor; NotFoundError for an unknown abbreviation.
        """
        announced = [item.resource.rid for item in group]
        drafted: dict[str, Written] = {}
        outcomes: list[str] = []
        for item in group:
            with at(item.where):
                outcomes.append(self._draft(item, announced, drafted))
        self._check_predecessors(group, drafted)
        changed = zip(announced, outcomes, strict=True)
        self.pending.update((rid, drafted[rid]) for rid, outcome in changed if outcome != "unchanged")
        return outcomes

    def delete(self, rid: str) -> None:
        """Delete an item by its whole id; its predecessor and its successor stay."""
        self.pending[rid] = None

    def full_id(self, name: str, announced: Iterable[str] = ()) -> str:
        """The id that is meant: itself, or the only one that begins with these 8 or more hexadecimal digits.

        Raises NotFoundError when there is none, InvalidValueError when there are several.
        """
        if self.get(name) is not None or name in announced:
            return name
        type_name, colon, start = name.rpartition(":")
        digits = _hexadecimal(start)
        found = self._beginning_with(type_name, digits, announced) if digits else []
        if len(found) > 1:
            listed = ", ".join(found[:_MOST_LISTED]) + (" …" if len(found) > _MOST_LISTED else "")
            raise InvalidValueError(f"{name} may be any of {listed}", hint="write more of it")
        if not found:
            hint = "findling ls" if colon else "write it with its type: decision:ID"
            raise NotFoundError(f"there is no {name}", hint=hint)
        return found[0]

    def _beginning_with(self, type_name: str, digits: str, announced: Iterable[str]) -> list[str]:
        if type_name not in self._hex_ids:
            self._hex_ids[type_name] = sorted(_hex_ids(self._store.rids(type_name or None), type_name))
        ids = self._hex_ids[type_name]
        stored = ids[bisect_left(ids, (digits, "")) : bisect_left(ids, (f"{digits}g", ""))]
        new = [one for one in _hex_ids((*announced, *self.pending), type_name) if one[0].startswith(digits)]
        return sorted({rid for _, rid in (*stored, *new) if self.pending.get(rid, True) is not None})

    def _draft(self, item: Composed, announced: Sequence[str], drafted: dict[str, Written]) -> str:
        rid, stored = item.resource.rid, self.get(item.resource.rid)
        known = drafted.get(rid, stored)
        resource = item.resource
        if known is not None:
            kept = {"visibility", "path"} - item.given
            resource = replace(resource, **{name: getattr(known.resource, name) for name in kept})
        resource = self._with_full_ids(resource, known, announced)
        if stored is not None and item.type.immutable and _content(stored) != _content(Written(resource, item.text)):
            raise InvalidValueError(
                f"{rid} is there already, and a {item.type.name} never changes",
                hint=f'add a new one with "supersedes": "{rid}"',
            )
        new = Written(_stamped(resource, item.text, known, self._now), item.text)
        if rid in drafted and new != drafted[rid]:
            raise InvalidValueError(f"{rid} is there twice with different content", hint="keep one of the two")
        drafted[rid] = new
        return "unchanged" if new == known else "added" if stored is None else "changed"

    def _with_full_ids(self, resource: Resource, known: Written | None, announced: Sequence[str]) -> Resource:
        """The resource with whole ids; an abbreviation keeps its first meaning, so an item can be added again."""
        before = {} if known is None else known.resource.fields
        changed = {}
        if earlier := resource.fields.get("supersedes"):
            try:
                meant = before.get("supersedes", "")
                changed["supersedes"] = meant if _stands_for(earlier, meant) else self.full_id(earlier, announced)
            except NotFoundError as error:
                hint = "add that one first, or correct the id"
                raise InvalidValueError(f"it supersedes {earlier}, which is not there", hint=hint) from error
        if "links" in resource.fields:
            old, links = read_links(before), read_links(resource.fields)
            full = [link._replace(to=self._target(link, old, announced))._asdict() for link in links]
            changed["links"] = json.dumps(full, ensure_ascii=False)
        return replace(resource, fields={**resource.fields, **changed}) if changed else resource

    def _target(self, link: Link, old: Iterable[Link], announced: Sequence[str]) -> str:
        for one in old:
            if one.type == link.type and _stands_for(link.to, one.to):
                return one.to
        try:
            return self.full_id(link.to, announced)
        except NotFoundError:
            if ":" in link.to:
                return link.to
            raise

    def _check_predecessors(self, group: Sequence[Composed], drafted: dict[str, Written]) -> None:
        """Raise InvalidValueError for a new predecessor of another type, or one that leads back."""
        new = {}
        for item in group:
            resource = drafted[item.resource.rid].resource
            earlier = resource.fields.get("supersedes", "")
            if earlier and earlier != _predecessor_of(self.get(resource.rid)):
                new[resource.rid] = item.where
                if earlier.partition(":")[0] != resource.type:
                    with at(item.where):
                        raise InvalidValueError(
                            f"a {resource.type} cannot supersede {earlier}", hint=f"name a {resource.type}"
                        )
        # A circle has to come back to something new. When nothing older supersedes that, it lies in the group: a
        # long history is not walked through for everything that is added to it.
        leads_back = not self._superseded.isdisjoint(new) or bool(self._store.successors(new))
        sound: set[str] = set()
        for rid, where in new.items():
            chain = {rid: None}
            last = rid
            while last not in sound and (leads_back or last in drafted):
                last = _predecessor_of(drafted.get(last) or self.get(last))
                if not last:
                    break
                if last in chain:
                    circle = " → ".join((*chain, last))
                    with at(where):
                        raise InvalidValueError(f"{rid} would supersede itself: {circle}", hint="break the circle")
                chain[last] = None
            sound.update(chain)
        self._superseded.update(_predecessor_of(drafted[rid]) for rid in new)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Have an error in the block say where it happened."""
    try:
        yield
    except FindlingError as error:
        if not where:
            raise
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


def _predecessor_of(item: Written | None) -> str:
    return "" if item is None else item.resource.fields.get("supersedes", "")


def _stands_for(name: str, rid: str) -> bool:
    """Whether a name is an id, or hexadecimal digits that it begins with."""
    type_name, _, start = name.rpartition(":")
    own_type, _, own = rid.partition(":")
    digits = _hexadecimal(start)
    return name == rid or (bool(digits) and type_name in ("", own_type) and _hexadecimal(own).startswith(digits))


def _stamped(resource: Resource, text: str, stored: Written | None, now: float) -> Resource:
    """The resource with the times that were not given: those it had, or now."""
    created, updated = resource.created_at, resource.updated_at
    if created is None:
        created = now if stored is None else stored.resource.created_at
    if updated is None:
        updated = created if stored is None else stored.resource.updated_at
    stamped = replace(resource, created_at=created, updated_at=updated)
    is_known = stored is None or resource.updated_at is not None or Written(stamped, text) == stored
    return stamped if is_known else replace(stamped, updated_at=now)


def _content(item: Written) -> Written:
    """The item without its readers, its path and its times, which are no content."""
    return item._replace(resource=replace(item.resource, visibility=None, path="", created_at=None, updated_at=None))


def _hexadecimal(text: str) -> str:
    """The digits of an id without dashes; empty when it is none, or too short to stand for one."""
    digits = text.replace("-", "").lower()
    return digits if _HEXADECIMAL.fullmatch(digits) else ""


def _hex_ids(rids: Iterable[str], type_name: str) -> Iterator[tuple[str, str]]:
    for rid in rids:
        own_type, _, own = rid.partition(":")
        # The name of a file is nobody's abbreviation.
        is_meant = own_type == type_name if type_name else own_type != "file"
        if is_meant and (digits := _hexadecimal(own)):
            yield digits, rid
