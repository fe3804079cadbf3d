"""Memories that stay true: near copies and newer values found while remembering, and taken back again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from findling.domain.errors import DeniedError, InvalidValueError, NotFoundError
from findling.domain.queries import HERE, Filters
from findling.domain.records import DECISIONS
from findling.domain.resources import Document, Resource
from findling.domain.sight import Rights
from findling.domain.values import closest_name
from findling.pipelines.content.memories import MEMORY, Wish, make_resource, memory_rid, renewed_resource, spelled
from findling.pipelines.content.memory_history import (
    MOST_STATES,
    MemoryVersion,
    Span,
    changed_resource,
    marked_apart,
    restored,
    states_of,
)
from findling.pipelines.content.memory_judge import (
    Judgement,
    Neighbour,
    anchors,
    judge,
    may_touch,
    reading_of,
    same_readers,
)
from findling.pipelines.content.memory_times import lasting
from findling.service.index.writing import WorkspaceWriter
from findling.text.statements.periods import LATER, NEAREST, read_day

_MOST_READ = 200
"""Memories that are compared with a new one: those that share most words with it, the latest first."""

Principals = tuple[str, ...] | None
"""The caller; the owner where it is `None`."""


@dataclass(frozen=True, kw_only=True)
class Undone:
    """The memory as it is again, and the newer text as a memory of its own, if there was one."""

    rid: str
    text: str
    other: str = ""
    other_text: str = ""


class MemoryTruth:
    """Decisions about the memories of one workspace. `clock` gives seconds since the epoch."""

    def __init__(self, writer: WorkspaceWriter, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._clock = clock

    def with_span(self, wish: Wish, since: str, until: str) -> Wish:
        """The wish with the time in which it holds, by options or else by its own words.

        Raises InvalidValueError for what is no day, and for an end before the beginning.
        """
        now = self._clock()
        reading = reading_of(wish.text, now)
        said = Span() if reading is None else Span(reading.since, reading.until)
        first = read_day(since, now, NEAREST) if since else None
        last = read_day(until, now, LATER) if until else None
        for name, text, found in (("since", since, first), ("until", until, last)):
            if text and found is None:
                raise InvalidValueError(f"{name} {text!r} names no day", hint="2026-06-03, June 2026 or Friday")
        span = Span(first.begin if first else said.since, last.end if last else said.until)
        if span.since is not None and span.until is not None and span.since >= span.until:
            raise InvalidValueError("it would end before it begins", hint="--until a later day")
        return wish._replace(span=span)

    def place(self, wish: Wish, resource: Resource, principals: Principals) -> Judgement:
        """The place of a new memory among those with the same readers that hold. The lock is held."""
        now, settings = self._clock(), self._writer.settings
        reading = reading_of(wish.text, now)
        if reading is None:
            return Judgement()
        may_concern = anchors(reading)
        neighbours = self._holding(resource, principals, may_concern, now)
        found = judge(Neighbour(resource, wish.text), reading, neighbours, now)
        if wish.id or settings["memory.copies"] == "add":
            found = found._replace(copy_of="")
        if settings["memory.conflicts"] == "review" and found.supersedes:
            found = found._replace(supersedes="", conflicts=(found.supersedes, *found.conflicts))
        return found

    def renewed(self, wish: Wish, known: Document, now: float) -> Resource | None:
        """The known memory with the text of a near copy.

        `None` when it has had this text before, and nothing has to be written.
        """
        if any(spelled(str(state.was["text"])) == spelled(wish.text) for state in states_of(known.resource)):
            return None
        later = renewed_resource(wish, known.resource, now, is_same_text=False)
        return changed_resource(known.resource, known.text, later, "copy", now, self._alone(wish, now))

    def changed(self, wish: Wish, known: Document, later: Resource, now: float) -> Resource:
        """The memory whose text somebody replaces under its id, with its state before."""
        return changed_resource(known.resource, known.text, later, "id", now, self._alone(wish, now))

    def _alone(self, wish: Wish, now: float) -> tuple[Resource, str]:
        """The memory that a wish would have become."""
        return make_resource(wish, memory_rid(wish._replace(id="")), now), wish.text

    def _holding(
        self, new: Resource, principals: Principals, concerns: Callable[[str], int], now: float
    ) -> list[Neighbour]:
        """The memories with the same readers and folder whose texts concern a statement, without those that ended."""
        store = self._writer.store
        may_see = sight_of(self._writer, principals)
        numbers = store.matching(Filters(type=(MEMORY,)))
        shared = {
            (one.rid, one.number): concerns(one.text)
            for one in store.texts(numbers)
            if same_readers(one.visibility, new.visibility) and may_see(one.rid, one.visibility)
        }
        best = nlargest(_MOST_READ, filter(shared.__getitem__, reversed(shared)), key=shared.__getitem__)
        gone = store.successors(rid for rid, _ in best)
        found = dict(store.documents(number for rid, number in best if rid not in gone))
        return [
            Neighbour(one.resource, one.text)
            for one in (found[number] for _, number in best if number in found)
            if may_touch(one.resource, new)
            and lasting(one.resource, None).until > now
            and len(states_of(one.resource)) < MOST_STATES
        ]

    # Looking back

    def history(self, rid: str, principals: Principals = None) -> list[MemoryVersion]:
        """All states of a fact that a memory tells, the present one first. Raises NotFoundError."""
        document = self._document(rid, principals)
        store, may_see = self._writer.store, sight_of(self._writer, principals)

        def found(rid: str | None, known: Sequence[Document]) -> Document | None:
            one = store.document(rid) if rid else None
            return one if one and one not in known and may_see(one.resource.rid, one.resource.visibility) else None

        chain = [document]
        while later := found(store.successors([chain[0].resource.rid]).get(chain[0].resource.rid), chain):
            chain.insert(0, later)
        while earlier := found(chain[-1].resource.fields.get("supersedes"), chain):
            chain.append(earlier)
        versions: list[MemoryVersion] = []
        for place, one in enumerate(chain):
            held = lasting(one.resource, chain[place - 1].resource if place else None)
            until = None if held.until == float("inf") else held.until
            why = "superseded" if place else ""
            states = [state for state in states_of(one.resource) if state.is_shown or principals is None]
            begin = states[-1].at if states else held.since
            versions.append(_version(one, one.text, begin, until, why))
            for number in range(len(states) - 1, -1, -1):
                state = states[number]
                begin = states[number - 1].at if number else held.since
                versions.append(_version(one, str(state.was["text"]), begin, state.at, state.why))
        return versions

    # Undoing and deciding

    def undo(self, rid: str, principals: Principals = None) -> Undone:
        """Take back the latest decision about a memory: what it was is there again, and the newer text by itself.

        Raises NotFoundError when there is no such memory, InvalidValueError when there is nothing to undo.
        """
        self._document(rid, principals)
        with self._writer.writing() as put:
            document = self._document(rid, principals)
            resource, store = document.resource, self._writer.store
            self._check_own(resource, principals)
            before, states = restored(resource), states_of(resource)
            if states and not states[-1].is_shown:
                message = f"other people see {resource.rid} now than before the change"
                raise InvalidValueError(message, hint="remember the text again")
            if before is None:
                earlier = resource.fields.get("supersedes", "")
                if not earlier:
                    message = f"nothing was decided about {resource.rid}"
                    raise InvalidValueError(message, hint="findling memory history ID")
                fields = {name: value for name, value in resource.fields.items() if name != "supersedes"}
                apart = marked_apart(replace(resource, fields=fields), earlier)
                put(self._writer.documents([(apart, document.text)]), ())
                found = store.document(earlier)
                return Undone(rid=earlier, text=found.text if found else "", **_named(resource, document.text))
            other = before.other and self._free(*before.other)
            put(self._writer.documents([(before.resource, before.text), *([other] if other else [])]), ())
            told = other or before.other
            return Undone(rid=resource.rid, text=before.text, **({} if told is None else _named(*told)))

    def decide(self, newer: str, older: str, decision: str, principals: Principals = None) -> Undone:
        """Decide on two memories: `keep` both, `merge` them into the older one, or have the newer one `supersede` it.

        Raises InvalidValueError for another decision and for a pair with different readers, NotFoundError.
        """
        if decision not in DECISIONS:
            raise InvalidValueError(f"{decision!r} is no decision", hint=closest_name(decision, DECISIONS))
        self._document(newer, principals)
        with self._writer.writing() as put:
            new, old = self._document(newer, principals), self._document(older, principals)
            self._check_own(new.resource, principals)
            self._check_pair(new.resource, old.resource)
            now = self._clock()
            if decision == "merge":
                later = replace(
                    old.resource,
                    author=new.resource.author or old.resource.author,
                    tags=tuple(dict.fromkeys((*old.resource.tags, *new.resource.tags))),
                    updated_at=now,
                )
                merged = changed_resource(old.resource, old.text, later, "merge", now, (new.resource, new.text))
                put(self._writer.documents([(merged, new.text)]), [new.resource.rid])
                return Undone(rid=merged.rid, text=new.text)
            if decision == "keep":
                changed = marked_apart(new.resource, old.resource.rid)
            else:
                changed = replace(new.resource, fields={**new.resource.fields, "supersedes": old.resource.rid})
            kept = changed_resource(new.resource, new.text, changed, decision, now)
            put(self._writer.documents([(kept, new.text)]), ())
            return Undone(rid=kept.rid, text=new.text, **_named(old.resource, old.text))

    def _check_own(self, resource: Resource, principals: Principals) -> None:
        """Raises DeniedError when others see the memory, too: then only the owner may change it."""
        if principals is not None and not (resource.visibility and set(resource.visibility) <= set(principals)):
            raise DeniedError(f"others see {resource.rid}, too", hint="ask whoever runs the server")

    def _check_pair(self, new: Resource, old: Resource) -> None:
        if new.rid == old.rid:
            raise InvalidValueError(f"{new.rid} is one memory, no pair", hint="findling memory review lists pairs")
        if not may_touch(old, new):
            message = f"{new.rid} and {old.rid} are seen by different people or folders"
            raise InvalidValueError(message, hint="remember one of them again")
        seen, earlier = {new.rid}, old.rid
        while earlier and earlier not in seen:
            seen.add(earlier)
            found = self._writer.store.document(earlier)
            earlier = "" if found is None else found.resource.fields.get("supersedes", "")
        if earlier == new.rid:
            raise InvalidValueError(f"{old.rid} supersedes {new.rid} already", hint=f"findling memory undo {old.rid}")

    def _free(self, other: Resource, text: str) -> tuple[Resource, str] | None:
        """The newer text under an id that no other memory has; `None` when it is there already."""
        store = self._writer.store
        for rid in (other.rid, memory_rid(Wish(text, visibility=other.visibility, here=other.fields.get(HERE, "")))):
            if not rid.startswith(f"{MEMORY}:"):
                continue  # an id that a stranger has written
            found = store.document(rid)
            if found is None:
                return replace(other, rid=rid), text
            if spelled(found.text) == spelled(text):
                return None
        return None

    def _document(self, rid: str, principals: Principals) -> Document:
        """A memory that the caller may see; with principals, one of their own. Raises NotFoundError."""
        rid = f"{MEMORY}:{rid.removeprefix(f'{MEMORY}:')}"
        found = self._writer.store.document(rid) if self._writer.exists else None
        if found is None or not sight_of(self._writer, principals)(rid, found.resource.visibility):
            raise NotFoundError(f"there is no memory {rid}", hint="findling recall lists them")
        return found


def _named(other: Resource, text: str) -> dict[str, str]:
    return {"other": other.rid, "other_text": text}


def sight_of(writer: WorkspaceWriter, principals: Principals) -> Callable[[str, tuple[str, ...] | None], bool]:
    """Tells whether principals may see a memory by its id and its list of readers; the owner sees all."""
    if principals is None:
        return lambda rid, visibility: True
    is_public = writer.settings["permissions.unset"] == "public"
    rights = Rights(principals, writer.store.relations(), unset_is_public=is_public)
    return lambda rid, visibility: rights.may_see(rid, "", visibility)


def _version(document: Document, text: str, since: float, until: float | None, why: str) -> MemoryVersion:
    return MemoryVersion(rid=document.resource.rid, text=text, since=since, until=until, why=why)
