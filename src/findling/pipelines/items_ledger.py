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
from findling.domain.resource_types import ResourceType
from findling.domain.resources import Resource
from findling.pipelines.items import Link

__all__ = ["Composed", "Ledger", "Written", "at"]

_SHORTEST_PREFIX = 8
"""Hexadecimal digits of an id that may stand for all of it."""

_MOST_LISTED = 10
"""Ids that an error names when several are meant."""


class Composed(NamedTuple):
    """An item that shall be written; `where` says which one it is in what was given."""

    type: ResourceType
    resource: Resource
    text: str
    where: str


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
        for item, outcome in zip(group, outcomes, strict=True):
            # What was there stays, also when its predecessor has been deleted since.
            if outcome != "unchanged":
                with at(item.where):
                    self._check_predecessor(item.resource.rid, drafted)
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
        resource = self._with_full_ids(item.resource, announced)
        rid, stored = resource.rid, self.get(resource.rid)
        if rid in drafted and not _is_same(drafted[rid], resource, item.text):
            raise InvalidValueError(f"{rid} is there twice with different content", hint="keep one of the two")
        if stored is not None and item.type.immutable and not _is_same(stored, resource, item.text):
            raise InvalidValueError(
                f"{rid} is there already, and a {item.type.name} never changes",
                hint=f'add a new one with "supersedes": "{rid}"',
            )
        new = Written(_stamped(resource, item.text, stored, self._now), item.text)
        if new == stored or rid in drafted:
            drafted.setdefault(rid, new)
            return "unchanged"
        drafted[rid] = new
        return "added" if stored is None else "changed"

    def _with_full_ids(self, resource: Resource, announced: Sequence[str]) -> Resource:
        """The resource with every abbreviated id in it written out; a link may lead to what is not there yet."""
        changed = {}
        if earlier := resource.fields.get("supersedes"):
            known = self.get(resource.rid)
            if known is None or known.resource.fields.get("supersedes") != earlier:
                changed["supersedes"] = self._predecessor(earlier, announced)
        if "links" in resource.fields:
            links = [Link(**link) for link in json.loads(resource.fields["links"])]
            full = [link._replace(to=self._target(link.to, announced))._asdict() for link in links]
            changed["links"] = json.dumps(full, ensure_ascii=False)
        return replace(resource, fields={**resource.fields, **changed}) if changed else resource

    def _predecessor(self, name: str, announced: Sequence[str]) -> str:
        try:
            return self.full_id(name, announced)
        except NotFoundError as error:
            raise InvalidValueError(
                f"it supersedes {name}, which is not there", hint="add that one first, or correct the id"
            ) from error

    def _target(self, name: str, announced: Sequence[str]) -> str:
        try:
            return self.full_id(name, announced)
        except NotFoundError:
            if ":" in name:
                return name
            raise

    def _check_predecessor(self, rid: str, drafted: dict[str, Written]) -> None:
        own_type = drafted[rid].resource.type
        chain = [rid]
        while earlier := self._supersedes(chain[-1], drafted):
            if len(chain) == 1 and earlier.partition(":")[0] != own_type:
                raise InvalidValueError(f"a {own_type} cannot supersede {earlier}", hint=f"name a {own_type}")
            if earlier in chain:
                told = " → ".join((*chain, earlier))
                raise InvalidValueError(f"{rid} would supersede itself: {told}", hint="break the circle")
            chain.append(earlier)

    def _supersedes(self, rid: str, drafted: dict[str, Written]) -> str:
        found = drafted.get(rid) or self.get(rid)
        return "" if found is None else found.resource.fields.get("supersedes", "")

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
        if (not type_name or own_type == type_name) and (digits := _hexadecimal(own)):
            yield digits, rid


def _from(ids: Sequence[tuple[str, str]], digits: str) -> Iterator[tuple[str, str]]:
    for position in range(bisect_left(ids, (digits, "")), len(ids)):
        if not ids[position][0].startswith(digits):
            return
        yield ids[position]
