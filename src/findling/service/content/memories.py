"""Memories of one workspace: remembered and forgotten under its lock, recalled without."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from findling.domain.errors import FindlingError, InvalidValueError, NotFoundError
from findling.domain.permissions import EVERYONE
from findling.domain.plans import MODES, Plan
from findling.domain.queries import Filters, SearchRequest
from findling.domain.records import Access
from findling.domain.results import Degradation, Hit, SearchAnswer
from findling.pipelines.content.memories import (
    LARGEST_FACTOR,
    MEMORY,
    Memory,
    RecallAnswer,
    Recalled,
    Wish,
    checked_wish,
    evidence,
    is_same_text,
    make_memory,
    make_recalled,
    make_resource,
    memory_rid,
    renewed_resource,
)
from findling.service.index.access_log import AccessLog

if TYPE_CHECKING:
    from findling.service.index.writing import WorkspaceWriter

__all__ = ["WorkspaceMemories", "usual_cosines"]

_POOL = 20
"""Fewest hits of a search: importance may lift lower ones. Among 1,000 memories 15 % of recalls need more. Asking for
40 at once takes 7 % longer, and so does asking for 12, as more recalls have to ask again."""

_EVERYTHING = 1 << 20
"""A limit that cuts nothing off."""

_NO_VECTORS = Degradation(
    what="there are no vectors to recall by meaning; words were searched instead", fix="findling index"
)


class WorkspaceMemories:
    """The memories of one workspace.

    `search` answers a request as `Engine.search` does, from this workspace alone, without a look at its files.
    `above` gives the memories of the folders above by their folder. `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        writer: WorkspaceWriter,
        search: Callable[[SearchRequest], SearchAnswer],
        *,
        above: Callable[[], Mapping[str, WorkspaceMemories]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._writer = writer
        self._search = search
        self._above = above
        self._clock = clock
        self._log = AccessLog(writer.files.folder, clock=clock)

    @property
    def folder(self) -> Path:
        """The folder of the workspace."""
        return self._writer.files.folder

    def remember(
        self,
        text: str,
        *,
        importance: float | None = None,
        tags: Iterable[str] = (),
        author: str = "",
        visibility: Iterable[str] | None = None,
        id: str = "",  # noqa: A002 - what everybody calls it
    ) -> Memory:
        """Keep a text. The same text again is an access to the same memory, which may raise its importance.

        An `id` names the memory; another text under it replaces the old one. Raises InvalidValueError for a wrong
        value, and as `WorkspaceWriter.writing` does.
        """
        wish = checked_wish(Wish(text, importance, tags, author, visibility, id))
        rid, now = memory_rid(wish), self._clock()
        with self._writer.writing() as put:
            self._fold_held()
            store = self._writer.store
            known, access = store.document(rid), store.accesses([rid]).get(rid)
            if known is None:
                resource = make_resource(wish, rid, now, accesses_before=access.count if access else 0)
                put(self._writer.documents([(resource, wish.text)]), ())
                return make_memory(resource, wish.text, access, now, "new")
            is_same = is_same_text(known.text, wish.text)
            text = known.text if is_same else wish.text
            resource = renewed_resource(wish, known.resource, now, is_same_text=is_same)
            if resource != known.resource or not is_same:
                put(self._writer.documents([(resource, text)]), ())
            store.add_accesses({rid: Access(1, now)})
            return make_memory(resource, text, store.accesses([rid])[rid], now, "known" if is_same else "changed")

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        mode: str | None = None,
        min_importance: float = 0.0,
        principals: tuple[str, ...] | None = None,
    ) -> RecallAnswer:
        """The memories that answer a query, best first; an access of each is noted, without a lock.

        A memory without a word of the query must be close to it in meaning. `mode` is `hybrid`, `keyword` or
        `semantic`, by default that of the settings. The owner recalls the memories of the folders above, too. Raises
        InvalidValueError for a limit, mode or importance that cannot be.
        """
        _check(limit, mode, min_importance)
        places = {"": self, **(self._above() if principals is None else {})}
        answers: dict[str, RecallAnswer] = {}
        degraded: list[Degradation] = []
        for label, place in places.items():
            try:
                found = place._recalled(query, limit, mode, min_importance, principals)
            except FindlingError as error:
                if place is self:
                    raise
                missing = Degradation.of(error)
                degraded.append(replace(missing, what=f"the memories of {label} are not searched: {missing.what}"))
                continue
            degraded += found.degraded if place is self else ()
            # The nearest folder wins an id.
            stores = [places[near]._writer.store for near in answers if places[near]._writer.exists]
            others = [one for one in found.memories if not any(store.document(one.rid) for store in stores)]
            labelled = [replace(one, hit=replace(one.hit, workspace=label)) for one in others]
            answers[label] = replace(found, memories=tuple(labelled))
        everything = [one for answer in answers.values() for one in answer.memories]
        best = sorted(everything, key=lambda one: (-one.relevance, one.rid))[:limit]
        lead = next((answer for answer in answers.values() if answer.memories), answers[""])
        noted = [
            place._log.append([one.rid for one in best if one.hit.workspace == label])
            for label, place in places.items()
        ]
        return replace(lead, memories=tuple(best), degraded=tuple(degraded), is_counted=all(noted))

    def _recalled(
        self, query: str, limit: int, mode: str | None, min_importance: float, principals: tuple[str, ...] | None = None
    ) -> RecallAnswer:
        """The memories of this workspace that answer a query; no access is noted."""
        if not self._writer.exists:
            return RecallAnswer(query=query)
        plan = self._plan(mode)
        answer, recalled = self._ranked(_request(query, plan, principals), limit, min_importance)
        degraded = answer.degraded
        if plan.mode != "keyword" and answer.strategy == "keyword" and not degraded:
            degraded = (_NO_VECTORS,)
        return RecallAnswer(
            query=query,
            memories=tuple(recalled),
            strategy=answer.strategy,
            degraded=degraded,
            notes=answer.notes,
            did_you_mean=answer.did_you_mean,
            meaning=answer.meaning,
        )

    def forget(self, ids: Iterable[str]) -> int:
        """Delete memories for good; returns how many there were. Raises as `WorkspaceWriter.writing` does."""
        rids = list(dict.fromkeys(_rid(id_) for id_ in ids))
        if not self._writer.exists or not any(self._writer.store.document(rid) for rid in rids):
            return 0
        with self._writer.writing() as put:
            self._fold_held()
            return put((), rids)

    def get(self, id: str) -> Memory:  # noqa: A002 - what everybody calls it
        """One memory, which is no access. Raises NotFoundError when there is none of this id."""
        document = self._writer.store.document(_rid(id)) if self._writer.exists else None
        if document is None:
            raise NotFoundError(f"there is no memory {_rid(id)}", hint="findling recall lists them")
        access = self._log.counts(self._writer.store, [document.resource.rid])
        return make_memory(document.resource, document.text, access.get(document.resource.rid), self._clock())

    def list(self, *, principals: tuple[str, ...] | None = None) -> Sequence[Memory]:
        """All memories that a caller may see, the most important first, which is no access.

        Only the owner learns who else sees a memory, and how often and when it was recalled.
        """
        if not self._writer.exists:
            return []
        store, now = self._writer.store, self._clock()
        if principals is None:
            rids = list(store.rids(MEMORY))
        else:
            everything = replace(_request("", self._plan("keyword"), principals), limit=_EVERYTHING)
            rids = list(dict.fromkeys(hit.rid for hit in self._search(everything)))
        documents = [document for rid in rids if (document := store.document(rid))]
        accesses = self._accesses(rids, principals)
        memories = [make_memory(one.resource, one.text, accesses.get(one.resource.rid), now) for one in documents]
        memories = [replace(one, visibility=_shown_list(one.visibility, principals)) for one in memories]
        return sorted(memories, key=lambda memory: (-memory.importance, memory.rid))

    def _accesses(self, rids: Iterable[str], principals: tuple[str, ...] | None) -> Mapping[str, Access]:
        """The accesses of resources; none for anybody but the owner."""
        return self._log.counts(self._writer.store, rids) if principals is None else {}

    def fold(self) -> None:
        """Count the accesses that recalls have noted, under the lock. Raises as `OpenedWorkspace.writing` does."""
        if self._writer.exists:
            with self._writer.files.writing():
                self._fold_held()

    def _fold_held(self) -> None:
        store = self._writer.store
        self._log.fold(store, lambda rid: store.document(rid) is not None)

    def _plan(self, mode: str | None) -> Plan:
        """The profile `memory` weighs meaning 0.7 and words 0.3; a memory has no path to route to."""
        from findling.service.settings.settings import plan_of

        plan = plan_of(self._writer.settings, MEMORY)
        return replace(
            plan, mode=mode or plan.mode, fusion="weighted", route=False, relax=False, related=0, group="none"
        )

    def _ranked(self, request: SearchRequest, limit: int, least: float) -> tuple[SearchAnswer, Sequence[Recalled]]:
        """The best memories, out of so many hits that importance can lift no other one among them."""
        size = max(_POOL, 2 * limit)
        while True:
            answer = self._search(replace(request, limit=size))
            judged = self._judged(answer, least, request.principals)[:limit]
            within_reach = answer.hits[-1].score * LARGEST_FACTOR if len(answer.hits) >= size else 0.0
            if not within_reach or (len(judged) == limit and judged[-1].relevance >= within_reach):
                documents = [(one, self._writer.store.document(one.rid)) for one in judged]
                return answer, [replace(one, text=document.text) for one, document in documents if document is not None]
            size *= 4

    def _judged(self, answer: SearchAnswer, least: float, principals: tuple[str, ...] | None) -> Sequence[Recalled]:
        """The memories of an answer, ordered by relevance and importance, without the texts."""
        store, now = self._writer.store, self._clock()
        found: dict[str, tuple[Hit, tuple[str, ...]]] = {}
        for hit in answer.hits:
            reasons = evidence(hit, usual_cosines(hit.receipt.speed, answer.meaning.get("model", "")))
            if reasons and hit.rid not in found:
                found[hit.rid] = hit, reasons
        chunks = store.chunks([int(hit.id, 16) for hit, _ in found.values()])
        resources = {one.resource.rid: one.resource for one in chunks.values()}
        accesses = self._accesses(resources, principals)
        recalled = []
        for rid, resource in resources.items():
            memory = make_memory(resource, "", accesses.get(rid), now)
            if memory.importance >= least:
                hit, reasons = found[rid]
                recalled.append(make_recalled(hit, memory, reasons, now))
        return sorted(recalled, key=lambda one: (-one.relevance, one.rid))


def usual_cosines(speed: str, model: str) -> tuple[float, float] | None:
    """Mean and deviation of the cosines of unrelated texts, where they are known without asking the model."""
    if speed == "instant":
        from findling.models.local.instant import InstantEmbedder

        return InstantEmbedder().usual_cosines
    from findling.models.catalogue import known_card

    card = known_card(model) if speed else None
    return card.usual_cosines if card else None


def _request(query: str, plan: Plan, principals: tuple[str, ...] | None) -> SearchRequest:
    return SearchRequest(
        query=query,
        plan=plan,
        filters=Filters(type=(MEMORY,)),
        principals=principals,
        # Memories have no path and no system: a folder or a project would exclude them all.
        within="",
        in_context=False,
    )


def _shown_list(visibility: tuple[str, ...] | None, principals: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The principals of a list that are the caller's; all of them for the owner."""
    if visibility is None or principals is None:
        return visibility
    return tuple([one for one in visibility if one in (*principals, EVERYONE)])


def _check(limit: int, mode: str | None, min_importance: float) -> None:
    if limit < 1:
        raise InvalidValueError(f"limit {limit} recalls nothing", hint="1 or more")
    if mode is not None and mode not in MODES:
        raise InvalidValueError(f"mode {mode!r} is none", hint=f"one of {', '.join(MODES)}")
    if not 0 <= min_importance <= 1:
        raise InvalidValueError(f"importance {min_importance:g} is not between 0 and 1", hint="0 recalls everything")


def _rid(id_: str) -> str:
    return f"{MEMORY}:{id_.removeprefix(f'{MEMORY}:')}"
