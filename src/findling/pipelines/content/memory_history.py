"""The history of a memory: earlier states in its fields, the time in which it holds, and undoing.

A change of the text keeps the state before it, and the newer text as the memory that it would have been. So undoing
gives back both, byte for byte. Rights are no part of a state: undoing never changes who may see something.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from findling.domain.resources import Resource
from findling.text.statements.periods import shown_day

MOST_STATES = 50
"""Earlier states of one memory. A memory that has as many is not changed by near copies any more."""

_STATES, _APART, _VERDICTS = "versions", "apart", "verdicts"
_SINCE, _UNTIL = "valid_from", "valid_until"


class Span(NamedTuple):
    """The time in which a memory holds, in seconds; `None` where it does not say so."""

    since: float | None = None
    until: float | None = None


class KeptState(NamedTuple):
    """An earlier state: `at` is when and `why` for what it was left; `other` is the newer text by itself.

    `is_shown` says that the same people saw it who see the memory now.
    """

    at: float
    why: str
    was: Mapping[str, Any]
    other: Mapping[str, Any] | None = None
    is_shown: bool = True


class Restored(NamedTuple):
    """The memory as it was, and the newer text as a memory of its own, if there was one."""

    resource: Resource
    text: str
    other: tuple[Resource, str] | None


@dataclass(frozen=True, kw_only=True)
class MemoryVersion:
    """One state of a fact. It held from `since` to `until`; `why` says what ended it, empty for the present one."""

    rid: str
    text: str
    since: float | None
    until: float | None
    why: str = ""

    def __str__(self) -> str:
        days = f"{shown_day(self.since) if self.since else '…'} to {shown_day(self.until) if self.until else 'now'}"
        return f"{self.rid}  {days}{f'  {self.why}' if self.why else ''}"


def span_of(resource: Resource) -> Span:
    """The time in which a memory holds by its own words or options."""
    return Span(_seconds(resource.fields.get(_SINCE)), _seconds(resource.fields.get(_UNTIL)))


def with_span(fields: Mapping[str, str], span: Span) -> dict[str, str]:
    """The fields with a span."""
    kept = {name: value for name, value in fields.items() if name not in (_SINCE, _UNTIL)}
    given = {_SINCE: span.since, _UNTIL: span.until}
    return kept | {name: repr(value) for name, value in given.items() if value is not None}


def states_of(resource: Resource) -> list[KeptState]:
    """The earlier states, oldest first; none where a stranger has written nonsense."""
    found = []
    for row in _listed(resource, _STATES):
        if isinstance(row, dict) and isinstance(row.get("was"), dict) and isinstance(row["was"].get("text"), str):
            other = row.get("other")
            at = row.get("at")
            is_time = isinstance(at, (int, float)) and math.isfinite(at)
            found.append(
                KeptState(
                    float(at) if is_time and at is not None else 0.0,
                    str(row.get("why", "")),
                    row["was"],
                    other if isinstance(other, dict) and isinstance(other.get("text"), str) else None,
                    row.get("seen_by") == _readers(resource),
                )
            )
    return found


def changed_resource(
    former: Resource, text: str, later: Resource, why: str, now: float, other: tuple[Resource, str] | None = None
) -> Resource:
    """The later resource with the former one, whose text is given, as its latest earlier state."""
    # The other one has its own earlier states, which go with it.
    kept = None if other is None else {"rid": other[0].rid, **_packed(*other, without=())}
    row = {"at": now, "why": why, "seen_by": _readers(former), "was": _packed(former, text), "other": kept}
    states = [*_listed(former, _STATES), row]
    return replace(later, fields={**later.fields, _STATES: json.dumps(states, ensure_ascii=False)})


def with_states_of(resource: Resource, former: Resource) -> Resource:
    """The resource with the earlier states of another one instead of its own."""
    fields = {name: value for name, value in resource.fields.items() if name != _STATES}
    kept = {_STATES: former.fields[_STATES]} if _STATES in former.fields else {}
    return replace(resource, fields={**fields, **kept})


def restored(resource: Resource) -> Restored | None:
    """The state before the latest change; `None` when there was none."""
    states = states_of(resource)
    if not states:
        return None
    last, rows = states[-1], _listed(resource, _STATES)[:-1]
    before = _unpacked(resource, last.was)
    if rows:
        before = replace(before, fields={**before.fields, _STATES: json.dumps(rows, ensure_ascii=False)})
    if last.other is None or not isinstance(last.other.get("rid"), str):
        return Restored(before, str(last.was["text"]), None)
    blank = replace(resource, rid=str(last.other["rid"]), created_at=last.at)
    return Restored(before, str(last.was["text"]), (_unpacked(blank, last.other), str(last.other["text"])))


def state_at(resource: Resource, text: str, moment: float) -> tuple[Resource, str]:
    """The memory as it was at a moment, to the same readers: the first state left later, or the present one."""
    for state in states_of(resource):
        if moment < state.at and state.is_shown:
            return _unpacked(resource, state.was), str(state.was["text"])
    return resource, text


def apart_from(resource: Resource) -> frozenset[str]:
    """Ids of memories that somebody has decided to keep beside this one."""
    return frozenset(rid for rid in _listed(resource, _APART) if isinstance(rid, str))


def marked_apart(resource: Resource, rid: str) -> Resource:
    """The memory that stands beside another one."""
    apart = sorted({*apart_from(resource), rid})
    return replace(resource, fields={**resource.fields, _APART: json.dumps(apart)})


def verdicts_of(resource: Resource) -> dict[str, Mapping[str, str]]:
    """Answers of language models about this memory and others, by their ids."""
    try:
        found = json.loads(resource.fields.get(_VERDICTS, "{}"))
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {rid: said for rid, said in found.items() if isinstance(said, dict)}


def _readers(resource: Resource) -> list[str] | None:
    return None if resource.visibility is None else sorted(set(resource.visibility))


def _packed(resource: Resource, text: str, *, without: Sequence[str] = (_STATES,)) -> dict[str, Any]:
    fields = {name: value for name, value in resource.fields.items() if name not in without}
    return {
        "text": text,
        "author": resource.author,
        "tags": list(resource.tags),
        "created_at": resource.created_at,
        "updated_at": resource.updated_at,
        "fields": fields,
    }


def _unpacked(present: Resource, state: Mapping[str, Any]) -> Resource:
    """The resource of a state. Id, type and rights are those of the present one, whatever the state says."""
    tags, fields = state.get("tags"), state.get("fields")
    return replace(
        present,
        author=str(state.get("author", "")),
        tags=tuple(map(str, tags)) if isinstance(tags, Sequence) and not isinstance(tags, str) else present.tags,
        created_at=_number(state.get("created_at"), present.created_at),
        updated_at=_number(state.get("updated_at"), present.updated_at),
        fields={str(name): str(value) for name, value in fields.items()} if isinstance(fields, dict) else {},
    )


def _listed(resource: Resource, name: str) -> list[Any]:
    try:
        found = json.loads(resource.fields.get(name, "[]"))
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def _number(value: object, otherwise: float | None) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else otherwise  # type: ignore[arg-type]


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text) if text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
