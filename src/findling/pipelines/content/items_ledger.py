"""What items do to each other: which may change, what supersedes what, and which one an abbreviated id means."""

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
from findling.pipelines.content.items import Link

__all__ = ["Composed", "Ledger", "Written", "at"]

_SHORTEST_PREFIX = 8
"""Hexadecimal digits of an id that may stand for all of it."""

_MOST_LISTED = 10
"""Ids that an error names when several are meant."""


class Composed(NamedTuple):
    """An item that shall be written; `where` says which one it is in what was given, `given` are the keys it has.

    What an item does not say about its readers and its path stays as it is; `null` is said.
    """

    type: ResourceType
    resource: Resource
    text: str
    where: str
    given: frozenset[str]


class Written(NamedTuple):
    """An item as it is, or is going to be."""

    resource: Resource
    text: str


class Ledger:
    """What is going to be written, on top of what a store holds; nothing of it is in the store before `pending` is."""

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
        """Take in items that may name each other, all or none; tells of each if it was `added`, `changed` or neither.

        Raises InvalidValueError for an item that is not to be changed, that another one of the group contradicts, or
        whose predecessor is not there, is of another type or leads back to it; NotFoundError for an id that is none.
        """
        announced = [item.resource.rid for item in group]
        drafted: dict[str, Written] = {}
        outcomes: list[str] = []
        for item in group:
            with at(item.where):
                outcomes.append(self._draft(item, announced, drafted))
        self._check_predecessors(group, drafted)
        self.pending.update(
            (item.resource.rid, drafted[item.resource.rid])
            for item, outcome in zip(group, outcomes, strict=True)
            if outcome != "unchanged"
        )
        return outcomes

    def delete(self, rid: str) -> bool:
        """Take an item out; whether it was there. What it superseded, and what supersedes it, stays."""
        if self.get(rid) is None:
            return False
        self.pending[rid] = None
        return True

    def full_id(self, name: str, announced: Iterable[str] = ()) -> str:
        """The id that is meant: itself, or the only one that begins so, by 8 or more hexadecimal digits.

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

    def _draft(self, item: Composed, announced: Sequence[str], drafted: dict[str, Written]) -> str:
        rid, stored = item.resource.rid, self.get(item.resource.rid)
        known = drafted.get(rid, stored)
        resource = self._with_full_ids(_with_what_is_kept(item, known), known, announced)
        if stored is not None and item.type.immutable and not _is_same(stored, resource, item.text):
            raise InvalidValueError(
                f"{rid} is there already, and a {item.type.name} never changes",
                hint=f'add a new one with "supersedes": "{rid}"',
            )
        new = Written(_stamped(resource, item.text, known, self._now), item.text)
        if rid in drafted and new != drafted[rid]:
            raise InvalidValueError(f"{rid} is there twice with different content", hint="keep one of the two")
        if new == known:
            drafted[rid] = new
            return "unchanged"
        drafted[rid] = new
        return "added" if stored is None else "changed"

    def _with_full_ids(self, resource: Resource, known: Written | None, announced: Sequence[str]) -> Resource:
        """The resource with every abbreviated id in it written out; a link may lead to what is not there yet.

        What it stood for once it stands for ever, so that the same item can be added again whatever has come or gone.
        """
        before = {} if known is None else known.resource.fields
        changed = {}
        if earlier := resource.fields.get("supersedes"):
            meant = before.get("supersedes", "")
            changed["supersedes"] = meant if _stands_for(earlier, meant) else self._predecessor(earlier, announced)
        if "links" in resource.fields:
            old = [Link(**link) for link in json.loads(before.get("links", "[]"))]
            links = [Link(**link) for link in json.loads(resource.fields["links"])]
            full = [link._replace(to=self._target(link, old, announced))._asdict() for link in links]
            changed["links"] = json.dumps(full, ensure_ascii=False)
        return replace(resource, fields={**resource.fields, **changed}) if changed else resource

    def _predecessor(self, name: str, announced: Sequence[str]) -> str:
        try:
            return self.full_id(name, announced)
        except NotFoundError as error:
            raise InvalidValueError(
                f"it supersedes {name}, which is not there", hint="add that one first, or correct the id"
            ) from error

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
        """Raises InvalidValueError for a predecessor of another type, and for one that leads back.

        Only what newly supersedes something is looked at: what was there stays, also without its predecessor.
        """
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
            with at(where):
                sound.update(self._sound_chain(rid, drafted, sound, in_group=not leads_back))
        self._superseded.update(_predecessor_of(drafted[rid]) for rid in new)

    def _sound_chain(self, rid: str, drafted: dict[str, Written], sound: set[str], *, in_group: bool) -> Iterable[str]:
        """What a resource supersedes, one after the other. Raises InvalidValueError for a circle."""
        chain = {rid: None}
        at_end = rid
        while (at_end in drafted or not in_group) and at_end not in sound:
            at_end = _predecessor_of(drafted.get(at_end) or self.get(at_end))
            if not at_end:
                break
            if at_end in chain:
                told = " → ".join((*chain, at_end))
                raise InvalidValueError(f"{rid} would supersede itself: {told}", hint="break the circle")
            chain[at_end] = None
        return chain

    def _beginning_with(self, type_name: str, digits: str, announced: Iterable[str]) -> list[str]:
        if type_name not in self._hex_ids:
            self._hex_ids[type_name] = sorted(_hex_ids(self._store.rids(type_name or None), type_name))
        ids = self._hex_ids[type_name]
        found = {rid for _, rid in _from(ids, digits)}
        new = (*announced, *self.pending)
        found |= {rid for own, rid in _hex_ids(new, type_name) if own.startswith(digits)}
        return sorted(rid for rid in found if self.pending.get(rid, True) is not None)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Have an error in the block say where it happened."""
    try:
        yield
    except FindlingError as error:
        if not where:
            raise
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


def _with_what_is_kept(item: Composed, known: Written | None) -> Resource:
    """The resource with the readers and the path that it has when the item says nothing about them."""
    kept = {"visibility", "path"} - item.given
    return replace(item.resource, **{name: getattr(known.resource, name) for name in kept}) if known else item.resource


def _predecessor_of(item: Written | None) -> str:
    return "" if item is None else item.resource.fields.get("supersedes", "")


def _stands_for(name: str, rid: str) -> bool:
    """Whether a name is an id, or hexadecimal digits that it begins with."""
    if name == rid:
        return True
    type_name, _, start = name.rpartition(":")
    own_type, _, own = rid.partition(":")
    digits = _hexadecimal(start)
    return bool(digits) and type_name in ("", own_type) and _hexadecimal(own).startswith(digits)


def _stamped(resource: Resource, text: str, stored: Written | None, now: float) -> Resource:
    """The resource with the times that were not given: those it had, or now."""
    if stored is None:
        created = now if resource.created_at is None else resource.created_at
        updated = created if resource.updated_at is None else resource.updated_at
        return replace(resource, created_at=created, updated_at=updated)
    if resource.created_at is None:
        resource = replace(resource, created_at=stored.resource.created_at)
    if resource.updated_at is not None:
        return resource
    as_before = replace(resource, updated_at=stored.resource.updated_at)
    return as_before if Written(as_before, text) == stored else replace(resource, updated_at=now)


def _is_same(stored: Written, resource: Resource, text: str) -> bool:
    """Whether two items say the same; who may see them, where they lie and their times are no content."""
    return stored.text == text and _content(stored.resource) == _content(resource)


def _content(resource: Resource) -> Resource:
    return replace(resource, visibility=None, path="", created_at=None, updated_at=None)


def _hexadecimal(text: str) -> str:
    """The digits of an id, dashes ignored; empty when it is none, or too short to stand for one."""
    digits = text.replace("-", "").lower()
    return digits if re.fullmatch(rf"[0-9a-f]{{{_SHORTEST_PREFIX},}}", digits) else ""


def _hex_ids(rids: Iterable[str], type_name: str) -> Iterator[tuple[str, str]]:
    for rid in rids:
        own_type, _, own = rid.partition(":")
        # The name of a file is nobody's abbreviation.
        is_meant = own_type == type_name if type_name else own_type != "file"
        if is_meant and (digits := _hexadecimal(own)):
            yield digits, rid


def _from(ids: Sequence[tuple[str, str]], digits: str) -> Iterator[tuple[str, str]]:
    for position in range(bisect_left(ids, (digits, "")), len(ids)):
        if not ids[position][0].startswith(digits):
            return
        yield ids[position]
