"""Items of the folders above: an item is found from every folder below the one it was added in.

A folder that had an index before one was made above it keeps its own. Its answers include the items, never the files,
of the workspaces above. The nearest workspace that holds an id stands for it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from findling.domain.errors import FindlingError, NotFoundError
from findling.domain.queries import All, Field, Not, SearchRequest
from findling.domain.results import Degradation, Explanation, Hit, SearchAnswer, Step
from findling.pipelines.answer.facets import FILE, MOST_VALUES
from findling.pipelines.lookup.document_names import not_there
from findling.pipelines.lookup.federated import RankedAcross, as_relaxed, fuse_across
from findling.service.workspace.scope import Scoped

if TYPE_CHECKING:
    from findling.service.index.documents import FetchedDocument

__all__ = ["ItemSource", "explained_with", "fetch_item", "to_be_fused", "with_items_above"]

_Found = TypeVar("_Found", Explanation, "FetchedDocument")


class ItemSource(Protocol):
    """A workspace whose items answer what is asked below it; an engine is one."""

    root: Path

    def search_items(self, request: SearchRequest) -> SearchAnswer:
        """Answer a request that was put to another workspace."""

    def explain(self, request: SearchRequest, name: str, *, refresh: bool = True) -> Explanation:
        """Say why a document is in the answer."""

    def fetch(self, name: str, *, context: int = 0) -> FetchedDocument:
        """Give a document."""

    def holds(self, rid: str) -> bool:
        """Tell whether there is a resource with this id."""

    def group_of(self, hit: Hit, by: str) -> str:
        """Name the group of a hit."""


_NOWHERE = ".."
"""A folder that no path of an index lies in, so only what has no path passes."""


def to_be_fused(request: SearchRequest) -> SearchRequest:
    """The request as a workspace is asked whose hits are fused with others: all of them, with what they are worth."""
    return replace(request, limit=request.offset + request.limit, offset=0, explain=True)


def with_items_above(
    own: SearchAnswer, scoped: Scoped, engine: ItemSource, above: Sequence[ItemSource]
) -> SearchAnswer:
    """The answer of a workspace to `to_be_fused` of a request, fused with the items of those above it."""
    started, asked = time.perf_counter(), scoped.request
    answers, labels, degraded = [own], [""], list(own.degraded)
    for number, one in enumerate(above):
        label = str(one.root)
        try:
            answers.append(_items_of(one, scoped, [engine, *above[:number]]))
        except FindlingError as error:
            missing = Degradation.of(error)
            degraded.append(replace(missing, what=f"the items of {label} are not searched: {missing.what}"))
        else:
            labels.append(label)
            missed = [missing for missing in answers[-1].degraded if missing not in own.degraded]
            degraded += [replace(missing, what=f"{label}: {missing.what}") for missing in missed]
    fused = fuse_across(answers, asked.offset + asked.limit)
    hits = tuple(_hit(one, labels) for one in fused[asked.offset :])
    is_empty = not any(answer.hits for answer in answers) and not asked.offset
    looser = fuse_across([as_relaxed(answer) for answer in answers], asked.limit) if is_empty else []
    relaxed = tuple(_hit(one, labels) for one in looser)
    # Where the workspace itself has nothing to say, the one that has speaks for the answer.
    lead = next((answer for answer in answers if answer.hits or (looser and answer.relaxed)), own)
    unknown = set[str].intersection(*[_unknown(answer) for answer in answers])
    return replace(
        own,
        understood_as=lead.understood_as,
        hits=hits,
        total=sum(answer.total for answer in answers),
        weaker=sum(answer.weaker for answer in answers),
        total_is_exact=all(answer.total_is_exact for answer in answers),
        strategy=lead.strategy,
        reading=lead.reading,
        quality="none" if not hits else "reduced" if degraded else lead.quality,
        degraded=tuple(dict.fromkeys(degraded)),
        notes=lead.notes,
        unknown_terms=tuple([term for term in own.unknown_terms if term in unknown]),
        did_you_mean=tuple([one for one in own.did_you_mean if one.term in unknown]),
        related=() if hits or relaxed else own.related,
        relaxed=relaxed,
        timings_ms={**own.timings_ms, "above": round((time.perf_counter() - started) * 1000, 3)},
        plan=_plan(own, lead, asked, is_relaxed=bool(relaxed)),
        facets=_summed([answer.facets for answer in answers]),
        next_cursor=_next_cursor(own, scoped, engine, sum(not one.answer for one in fused)),
    )


def fetch_item(name: str, context: int, above: Sequence[ItemSource]) -> FetchedDocument:
    """The item that a name stands for in the nearest workspace above that has it. Raises NotFoundError."""
    return _first(name, above, lambda one: one.fetch(name, context=context))


def explained_with(
    here: Callable[[], Explanation], name: str, scoped: Scoped, engine: ItemSource, above: Sequence[ItemSource]
) -> Explanation:
    """Why what a name stands for, here or above, is in the answer that is fused, or what keeps it out.

    `here` explains it in the workspace that was asked. Raises NotFoundError.
    """
    request = replace(scoped.request, cursor="", in_context=False)

    def ask(one: ItemSource) -> Explanation:
        told = one.explain(_items_request(scoped), name, refresh=False)
        return replace(told, hit=told.hit and replace(told.hit, workspace=str(one.root)))

    try:
        told = here()
    except NotFoundError:
        told = _first(name, above, ask)
    own = engine.search_items(to_be_fused(request))
    hits = with_items_above(own, scoped, engine, above).hits
    place = _place(told, hits)
    if place:
        return replace(told, found=True, rank=request.offset + place, shown=len(hits), reasons=())
    if not told.found:
        return replace(told, shown=len(hits))
    reason = f"it is hit {told.rank:,} of its own workspace, and hits of other folders leave it no place"
    return replace(told, found=False, shown=len(hits), reasons=(reason,))


def _place(told: Explanation, hits: Sequence[Hit]) -> int:
    """The place of what is explained among the hits; 0 when it is none of them."""
    where = told.hit.workspace if told.hit else ""
    return next((place for place, hit in enumerate(hits, 1) if (hit.rid, hit.workspace) == (told.rid, where)), 0)


def _items_request(scoped: Scoped) -> SearchRequest:
    """The question as items are asked: with the context of the workspace that was asked."""
    return replace(scoped.request, filters=scoped.filters, within=_NOWHERE, in_context=False)


def _items_of(one: ItemSource, scoped: Scoped, nearer: Sequence[ItemSource]) -> SearchAnswer:
    """The items of a workspace that no nearer one holds under the same id."""
    request = to_be_fused(_items_request(scoped))
    while True:
        answer = one.search_items(request)
        held = tuple({hit.rid: None for hit in answer.hits if any(near.holds(hit.rid) for near in nearer)})
        if not held:
            return answer
        others, filters = Not(Field("rid", held)), request.filters
        where = others if filters.where is None else All((filters.where, others))
        request = replace(request, filters=replace(filters, where=where))


def _first(name: str, above: Sequence[ItemSource], ask: Callable[[ItemSource], _Found]) -> _Found:
    """The first answer that is about an item."""
    for one in above:
        try:
            found = ask(one)
        except NotFoundError:
            continue
        if not found.path:
            return found
    raise not_there(name)


def _hit(one: RankedAcross, labels: Sequence[str]) -> Hit:
    hit = replace(one.hit, workspace=labels[one.answer])
    if one.score >= hit.score:
        return hit
    factor = one.score / hit.score
    step = Step(name="order", factor=factor, reason="a hit of another folder with a lower score ranks above it")
    receipt = replace(hit.receipt, steps=(*hit.receipt.steps, step), final_score=hit.receipt.final_score * factor)
    return replace(hit, score=one.score, receipt=receipt)


def _unknown(answer: SearchAnswer) -> set[str]:
    return {*answer.unknown_terms, *[one.term for one in answer.did_you_mean]}


def _plan(own: SearchAnswer, lead: SearchAnswer, asked: SearchRequest, *, is_relaxed: bool) -> Mapping[str, Any]:
    """The plan of the workspace itself, with the page that was asked for, and without details that were not."""
    plan = {**own.plan, "limit": asked.limit, "offset": asked.offset, "relaxed": lead.plan.get("relaxed", {})}
    unasked = set() if asked.explain else {"ceiling", "forms"}
    plan["relaxed"] = {name: value for name, value in plan["relaxed"].items() if name not in unasked}
    unasked |= set() if is_relaxed else {"relaxed"}
    return {name: value for name, value in plan.items() if name not in unasked}


def _summed(facets: Sequence[Mapping[str, Mapping[str, int]]]) -> Mapping[str, Mapping[str, int]]:
    summed = {}
    for name in facets[0]:
        counter = Counter[str]()
        for counts in facets:
            counter.update(counts.get(name, {}))
        ordered = sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))
        summed[name] = dict(ordered if name == FILE else ordered[:MOST_VALUES])
    return summed


def _next_cursor(own: SearchAnswer, scoped: Scoped, engine: ItemSource, shown: int) -> str:
    """The cursor behind those hits of the workspace itself that were shown."""
    if shown == len(own.hits):
        return own.next_cursor
    from findling.pipelines.answer.cursors import cursor_after

    return cursor_after(to_be_fused(scoped.request), own.hits[:shown], engine.group_of)
