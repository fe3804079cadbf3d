"""Memories of one workspace: remembered and forgotten under its lock, recalled without."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import FindlingError, InvalidValueError, NotFoundError
from findling.domain.permissions import EVERYONE, check_principal
from findling.domain.queries import HERE, SearchRequest
from findling.domain.records import Access
from findling.domain.resources import Document, Resource
from findling.domain.results import Degradation, SearchAnswer
from findling.pipelines.content.memories import (
    MEMORY,
    Memory,
    RecallAnswer,
    Wish,
    checked_wish,
    is_same_text,
    make_memory,
    make_resource,
    memory_rid,
    renewed_resource,
)
from findling.service.content.recalling import Recall, Recaller, newer_first
from findling.service.index.access_log import AccessLog

if TYPE_CHECKING:
    from findling.pipelines.content.memory_history import MemoryVersion
    from findling.pipelines.content.memory_judge import Judgement
    from findling.service.content.memory_review import MemoryReview
    from findling.service.content.memory_truth import MemoryTruth, Undone
    from findling.service.index.writing import WorkspaceWriter

    Put = Callable[[Iterable[Document], Iterable[str]], int]

_EVERYTHING = 1 << 20
"""A limit that cuts nothing off."""


class WorkspaceMemories:
    """The memories of one workspace.

    `search` answers a request as `Engine.search` does, from this workspace alone, without a look at its files.
    `others` gives the memories that the owner asks, too, nearest first; `label` names this workspace among them.
    `part` is the folder of it that asks, `kept_apart` the ids that others keep. `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        writer: WorkspaceWriter,
        search: Callable[[SearchRequest], SearchAnswer],
        label: str = "",
        others: Callable[[], Iterable[WorkspaceMemories]] = tuple,
        *,
        part: str = "",
        kept_apart: Callable[[tuple[str, ...] | None], Collection[str]] = lambda principals: (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._search = search
        self.label, self._others = label, others
        self._part, self._kept_apart = part or ".", kept_apart
        self._clock = clock
        self._log = AccessLog(writer.files.folder, clock=clock)
        self._recaller = Recaller(writer, search, self._log, clock)

    @property
    def folder(self) -> Path:
        """The folder of the workspace."""
        return self._writer.files.folder

    @cached_property
    def _truth(self) -> MemoryTruth:
        from findling.service.content.memory_truth import MemoryTruth

        return MemoryTruth(self._writer, self._clock)

    def remember(
        self,
        text: str,
        *,
        importance: float | None = None,
        tags: Iterable[str] = (),
        author: str = "",
        visibility: Iterable[str] | None = None,
        id: str = "",  # noqa: A002 - what everybody calls it
        source: str = "",
        since: str = "",
        until: str = "",
        here: bool = False,
        principals: tuple[str, ...] | None = None,
    ) -> Memory:
        """Keep a text. The same text again is an access to the same memory, which may raise its importance.

        A near copy updates the memory that says the same; a newer value of a fact supersedes the older one. An `id`
        names the memory; another text under it replaces the old one. `since` and `until` are days. `here` keeps it to
        the folder and those below. With `principals`, only memories that they may see count. Raises
        InvalidValueError for a wrong value, and as `WorkspaceWriter.writing` does.
        """
        wish = Wish(text, importance, tags, author, visibility, id, source, here=self._part if here else "")
        wish = self._truth.with_span(checked_wish(wish), since, until)
        now = self._clock()
        with self._writer.writing() as put:
            self._fold_held()
            store = self._writer.store
            if here:
                store.set_meta(HERE, "//".join(sorted({*(store.get_meta(HERE) or ".").split("//"), self._part})))
            return self._remembered(put, wish, principals, now)

    def _remembered(self, put: Put, wish: Wish, principals: tuple[str, ...] | None, now: float) -> Memory:
        """The memory of a wish: a new one, or one that is there and says the same, or has its id."""
        store, rid = self._writer.store, self._own_rid(memory_rid(wish), wish)
        known = store.document(rid)
        if known is not None:
            if rid in self._kept_apart(None):
                raise InvalidValueError(f"{rid} is kept in another folder", hint="another --id")
            return self._again(put, wish, known, now, is_copy=not wish.id)
        access = store.accesses([rid]).get(rid)
        resource = make_resource(wish, rid, now, accesses_before=access.count if access else 0)
        found = self._truth.place(wish, resource, principals)
        like = store.document(found.copy_of) if found.copy_of else None
        if like is not None:
            return self._again(put, wish, like, now, is_copy=True)
        return self._added(put, wish, resource, access, found, now)

    def _added(
        self, put: Put, wish: Wish, resource: Resource, access: Access | None, found: Judgement, now: float
    ) -> Memory:
        """A new memory, in the place of an older one perhaps."""
        if found.supersedes:
            resource = replace(resource, fields={**resource.fields, "supersedes": found.supersedes})
        put(self._writer.documents([(resource, wish.text)]), ())
        memory = make_memory(resource, wish.text, access, now, "new")
        return replace(memory, conflicts=found.conflicts, undo=_undoing(resource.rid) if found.supersedes else "")

    def _again(self, put: Put, wish: Wish, known: Document, now: float, *, is_copy: bool = False) -> Memory:
        """A memory that is there: the same text, another one under its id, or a near copy."""
        store, rid = self._writer.store, known.resource.rid
        is_same = is_same_text(known.text, wish.text)
        renewed = self._truth.renewed(wish, known, now) if is_copy and not is_same else None
        if renewed is not None:
            put(self._writer.documents([(renewed, wish.text)]), ())
            memory = make_memory(renewed, wish.text, store.accesses([rid]).get(rid), now, "updated")
            return replace(memory, undo=_undoing(rid))
        is_known = is_same or is_copy
        text = known.text if is_known else wish.text
        resource = renewed_resource(wish, known.resource, now, is_same_text=is_known)
        if not is_known:
            resource = self._truth.changed(wish, known, resource, now)
        if resource != known.resource:
            put(self._writer.documents([(resource, text)]), ())
        store.add_accesses({rid: Access(1, now)})
        memory = make_memory(resource, text, store.accesses([rid])[rid], now, "known" if is_known else "changed")
        return memory if is_known else replace(memory, undo=_undoing(rid))

    def _own_rid(self, rid: str, wish: Wish) -> str:
        """The id of a text; one that something newer has superseded is left as it is, and the text is new again."""
        if wish.id:
            return rid
        store, free, number = self._writer.store, rid, 1
        while store.successors([free]):
            number += 1
            free = f"{rid}-{number}"
        return free

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | None = None,
        min_importance: float = 0.0,
        principals: tuple[str, ...] | None = None,
        at: str = "",
        all_versions: bool = False,
    ) -> RecallAnswer:
        """The memories that answer a query, best first; an access of each is noted, without a lock.

        A memory without a word of the query must be close to it in meaning. `mode` is `hybrid`, `keyword` or
        `semantic`, by default that of the settings. The owner recalls those of other workspaces, too. `at` is a day:
        the answer is that of then. `all_versions` also recalls what does not hold any more. Raises InvalidValueError
        for a limit, mode, importance or day that cannot be.
        """
        asked = Recall(query, limit, mode, min_importance, principals, at, all_versions).checked(self._clock())
        asked = self._recaller.timed(asked)
        places = self._places(principals)
        answers, degraded = self._recalled(asked, places)
        best = newer_first([one for answer in answers.values() for one in answer.memories], asked)[:limit]
        lead = next((answer for answer in answers.values() if answer.memories or answer.left_out), answers[""])
        noted = [
            place._log.append([one.rid for one in best if one.hit.workspace == label])
            for label, place in places.items()
        ]
        return replace(lead, memories=tuple(best), degraded=tuple(degraded), is_counted=all(noted))

    def _recalled(
        self, asked: Recall, places: Mapping[str, WorkspaceMemories]
    ) -> tuple[dict[str, RecallAnswer], list[Degradation]]:
        """The answers of all places that can give one, and what is missing. The nearest folder wins an id."""
        answers: dict[str, RecallAnswer] = {}
        degraded: list[Degradation] = []
        for label, place in places.items():
            try:
                found = place._recaller.recalled(asked)
            except FindlingError as error:
                if place is self:
                    raise
                missing = Degradation.of(error)
                degraded.append(replace(missing, what=f"the memories of {label} are not searched: {missing.what}"))
                continue
            degraded += found.degraded if place is self else ()
            stores = [places[near]._writer.store for near in answers if places[near]._writer.exists]
            others = [one for one in found.memories if not any(store.document(one.rid) for store in stores)]
            labelled = [replace(one, hit=replace(one.hit, workspace=label)) for one in others]
            answers[label] = replace(found, memories=tuple(labelled))
        return answers, degraded

    def forget(self, ids: Iterable[str]) -> int:
        """Delete memories for good; returns how many there were. Raises as `WorkspaceWriter.writing` does."""
        rids, count = set(map(_rid, ids)), 0
        for place in self._places(None).values():
            if held := [rid for rid in rids if place._holds(rid)]:
                with place._writer.writing() as put:
                    place._fold_held()
                    count += put((), held)
                rids -= set(held)
        return count

    def get(self, id: str) -> Memory:  # noqa: A002 - what everybody calls it
        """One memory, which is no access. Raises NotFoundError when there is none of this id."""
        place = self._holding(None, id)
        document = place._writer.store.document(_rid(id)) if place._writer.exists else None
        if document is None:
            raise NotFoundError(f"there is no memory {_rid(id)}", hint="findling recall lists them")
        access = place._log.counts(place._writer.store, [document.resource.rid])
        return make_memory(document.resource, document.text, access.get(document.resource.rid), self._clock())

    def list(self, *, principals: tuple[str, ...] | None = None, all_versions: bool = True) -> Sequence[Memory]:
        """All memories that a caller may see, of other workspaces, too, the most important first; this is no access.

        Without `all_versions`, only those that hold now. Only the owner learns who else sees a memory, and how often
        and when it was recalled.
        """
        listed: dict[str, Memory] = {}
        for label, place in self._places(principals).items():
            for one in place._listed(principals, all_versions=all_versions):
                listed.setdefault(one.rid, replace(one, workspace=label))  # the nearest folder wins an id
        return sorted(listed.values(), key=lambda memory: (-memory.importance, memory.rid))

    def _listed(self, principals: tuple[str, ...] | None, *, all_versions: bool) -> Sequence[Memory]:
        if not self._writer.exists:
            return []
        store, now = self._writer.store, self._clock()
        apart = self._kept_apart(principals)
        if principals is None:
            hits = dict.fromkeys(rid for rid in store.rids(MEMORY) if rid not in apart)
        else:
            plan = self._recaller.plan("keyword")
            everything = replace(self._recaller.request("", plan, principals), limit=_EVERYTHING)
            hits = {hit.rid: hit for hit in self._search(everything)}
        documents = [document for rid in hits if (document := store.document(rid))]
        if not all_versions:
            documents = [
                one for one in documents if self._recaller.held(one.resource, hits[one.resource.rid]).until > now
            ]
        accesses = self._recaller.accesses(hits, principals)
        memories = [make_memory(one.resource, one.text, accesses.get(one.resource.rid), now) for one in documents]
        return [_seen_by(one, principals) for one in memories]

    def history(self, id: str, *, principals: tuple[str, ...] | None = None) -> Sequence[MemoryVersion]:  # noqa: A002
        """All states of the fact that a memory tells, the present one first. Raises NotFoundError."""
        return self._holding(principals, id)._truth.history(id, principals)

    def undo(self, id: str, *, principals: tuple[str, ...] | None = None) -> Undone:  # noqa: A002
        """Take back the latest decision about a memory; both texts stay.

        Raises NotFoundError, and InvalidValueError when nothing was decided.
        """
        return self._holding(principals, id)._truth.undo(id, principals)

    def review(self, *, principals: tuple[str, ...] | None = None) -> MemoryReview:
        """The pairs of memories that may not hold together and wait for a decision; both are of one workspace."""
        from findling.service.content.memory_review import MemoryReview, review_memories

        places = self._places(principals).items()
        found = [(label or one.label, review_memories(one._writer, one._clock(), principals)) for label, one in places]
        trouble = next((one.trouble for _, one in found if one.trouble is not None), None)
        pairs = tuple(replace(pair, workspace=label) for label, one in found for pair in one.pairs)
        return MemoryReview(pairs=pairs, trouble=trouble)

    def decide(self, newer: str, older: str, decision: str, *, principals: tuple[str, ...] | None = None) -> Undone:
        """Decide on a pair: `keep` both, `merge` them, or have the newer one `supersede` the older one.

        Raises NotFoundError, and InvalidValueError for what cannot be decided.
        """
        return self._holding(principals, newer, older)._truth.decide(newer, older, decision, principals)

    def fold(self) -> None:
        """Count the accesses that recalls have noted, under the lock. Raises as `OpenedWorkspace.writing` does."""
        if self._writer.exists:
            with self._writer.files.writing():
                self._fold_held()

    def _places(self, principals: tuple[str, ...] | None) -> dict[str, WorkspaceMemories]:
        """The memories that answer a caller, by their names in an answer; the own ones have none."""
        list(map(check_principal, principals or ()))
        others = self._others() if principals is None else ()
        return {"": self, **{one.label: one for one in others}}

    def _holding(self, principals: tuple[str, ...] | None, *ids: str) -> WorkspaceMemories:
        """The nearest place that holds all of these memories; this one where there is none."""
        rids, places = [_rid(id_) for id_ in ids], self._places(principals).values()
        return next((place for place in places if all(map(place._holds, rids))), self)

    def _holds(self, rid: str) -> bool:
        return self._writer.exists and self._writer.store.document(rid) is not None

    def _fold_held(self) -> None:
        store = self._writer.store
        self._log.fold(store, lambda rid: store.document(rid) is not None)


def _seen_by(memory: Memory, principals: tuple[str, ...] | None) -> Memory:
    """The memory as a caller may see it: of its readers only the caller's own principals."""
    if memory.visibility is None or principals is None:
        return memory
    return replace(memory, visibility=tuple([one for one in memory.visibility if one in (*principals, EVERYONE)]))


def _undoing(rid: str) -> str:
    return f"findling memory undo {rid}"


def _rid(id_: str) -> str:
    return f"{MEMORY}:{id_.removeprefix(f'{MEMORY}:')}"
