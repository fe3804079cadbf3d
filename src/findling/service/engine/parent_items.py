"""Answers of several workspaces in one ranking.

An item is found from every folder below the one it was added in, a person's own one from everywhere. Answers of a
workspace include the items, never the files, of those above. The nearest one that holds an id stands for it. A question
to several workspaces finds all they have; a file is found in that of the nearest folder.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from findling.domain.errors import FindlingError, NotFoundError
from findling.domain.queries import SCOPES, Field, Not, SearchRequest
from findling.domain.results import Degradation, Explanation, Hit, SearchAnswer, Step
from findling.pipelines.lookup.federated import RankedAcross, as_relaxed, fuse_across
from findling.service.workspace.scope import Scoped, timings_for, with_condition

if TYPE_CHECKING:
    from findling.service.index.documents import FetchedDocument
    from findling.service.workspace.workspace import Workspace

_Found = TypeVar("_Found", Explanation, "FetchedDocument")


class ItemSource(Protocol):
    """A workspace that answers what another one is asked; an engine is one."""

    label: str
    home: Path
    root: Path

    def at(self, place: Workspace) -> ItemSource:
        """Open another workspace."""

    def release(self) -> None:
        """Close what was opened for one question."""

    def search_items(self, request: SearchRequest, *, refresh: bool | None = None) -> SearchAnswer:
        """Answer a request that was put to another workspace."""

    def explain(self, request: SearchRequest, name: str, *, refresh: bool = True) -> Explanation:
        """Say why a document is in the answer."""

    def holds(self, rid: str) -> bool:
        """Tell whether there is a resource with this id."""

    def group_of(self, hit: Hit, by: str) -> str:
        """Name the group of a hit."""


_Source = TypeVar("_Source", bound=ItemSource)

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
    theirs = scoped
    if own.hits and not own.did_you_mean and asked.plan is not None:
        # Words that a few items lack are no slips: to look for near ones took 40 of 60 ms.
        theirs = scoped._replace(request=replace(asked, plan=replace(asked.plan, typos="ignore")))
    asks = [(one.label, partial(_items_of, one, theirs, [engine, *above[:at]])) for at, one in enumerate(above)]
    answer, fused = _fused(_gathered(engine.label, asks, own), asked)
    return replace(
        answer,
        timings_ms={**own.timings_ms, "above": round((time.perf_counter() - started) * 1000, 3)},
        next_cursor=_next_cursor(own, scoped, engine, sum(not one.answer for one in fused)),
    )


def answer_of_several(
    scoped: Scoped, engine: ItemSource, places: Sequence[Workspace], *, refresh: bool
) -> SearchAnswer:
    """The answer of the workspaces that a scope means. Raises the error of the first one where none answers.

    Those that were named are brought up to date first; of all, only the opened one.
    """
    started, asked = time.perf_counter(), scoped.request

    def ask(place: Workspace) -> SearchAnswer:
        left = asked.timeout_s and max(started + asked.timeout_s - time.perf_counter(), asked.timeout_s / 100)
        request = replace(to_be_fused(_request_to(place.root, scoped, places)), timeout_s=left)
        one = engine.at(place)
        try:
            return one.search_items(request, refresh=refresh and (asked.scope != SCOPES[1] or one.home == engine.home))
        finally:
            one.release()

    asks = [("" if one.folder == engine.home else one.label, partial(ask, one)) for one in places]
    answer, _ = _fused(_gathered(engine.label, asks), asked)
    timings = timings_for(asked.principals, {"several": round((time.perf_counter() - started) * 1000, 3)})
    return replace(answer, timings_ms=timings, plan={**answer.plan, **scoped.account()}, next_cursor="")


_Gathered = tuple[list[SearchAnswer], list[str], list[Degradation]]


def _gathered(own_label: str, asks: Iterable[tuple[str, Callable[[], SearchAnswer]]], *own: SearchAnswer) -> _Gathered:
    """The answers of workspaces, their names, and what they lack. Raises the first error where none answers."""
    answers, labels, degraded = [*own], [""] * len(own), [missing for one in own for missing in one.degraded]
    errors: list[FindlingError] = []
    for label, ask in asks:
        try:
            answers.append(ask())
        except FindlingError as error:
            errors.append(error)
            told = f"{label or own_label} is not searched: {error.message}"
            degraded.append(replace(Degradation.of(error), what=told))
        else:
            labels.append(label)
            missed = [missing for missing in answers[-1].degraded if missing not in degraded]
            degraded += [replace(missing, what=f"{label}: {missing.what}") if label else missing for missing in missed]
    if not answers:
        raise errors[0]
    return answers, labels, degraded


def _fused(gathered: _Gathered, asked: SearchRequest) -> tuple[SearchAnswer, list[RankedAcross]]:
    """One answer, and its hits up to the last with the number of the answer of each."""
    answers, labels, degraded = gathered
    if asked.principals is not None:  # nobody else learns what is wrong with a workspace
        degraded = []
    fused = fuse_across(answers, asked.offset + asked.limit)
    hits = tuple(_hit(one, labels) for one in fused[asked.offset :])
    looser, nearest = _instead(answers, asked)
    # Where the workspace itself has nothing to say, the one that has speaks for the answer.
    lead = next((answer for answer in answers if answer.hits or (looser and answer.relaxed)), answers[0])
    unknown = set[str].intersection(*[_unknown(answer) for answer in answers])
    answer = replace(
        answers[0],
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
        unknown_terms=tuple([term for term in answers[0].unknown_terms if term in unknown]),
        did_you_mean=tuple([one for one in answers[0].did_you_mean if one.term in unknown]),
        related=tuple(_hit(one, labels) for one in nearest),
        relaxed=tuple(_hit(one, labels) for one in looser),
        plan=_plan(answers[0], lead, asked, is_relaxed=bool(looser)),
        facets=_summed([answer.facets for answer in answers], labels if asked.scope != SCOPES[0] else ()),
    )
    return answer, fused


def _instead(
    answers: Sequence[SearchAnswer], asked: SearchRequest
) -> tuple[Sequence[RankedAcross], Sequence[RankedAcross]]:
    """The hits of looser questions where all answers are empty, or else the nearest passages."""
    if asked.offset or any(answer.hits for answer in answers):
        return [], []
    if looser := fuse_across([as_relaxed(answer) for answer in answers], asked.limit):
        return looser, []
    most = max(len(answer.related) for answer in answers)
    return [], fuse_across([replace(answer, hits=answer.related) for answer in answers], most)


def first_item(name: str, above: Sequence[_Source], ask: Callable[[_Source], _Found]) -> _Found:
    """The first answer that is about an item, from the nearest workspace on. Raises NotFoundError."""
    for one in above:
        try:
            found = ask(one)
        except NotFoundError:
            continue
        if not found.path:
            return found
    from findling.pipelines.lookup.document_names import not_there

    raise not_there(name)


def explained_with(
    here: Callable[[], Explanation], name: str, scoped: Scoped, engine: ItemSource, above: Sequence[ItemSource]
) -> Explanation:
    """Why what a name stands for, here or above, is in the answer that is fused, or what keeps it out.

    `here` explains it in the workspace that was asked. Raises NotFoundError.
    """
    request = replace(scoped.request, cursor="", in_context=False)

    def ask(one: ItemSource) -> Explanation:
        told = one.explain(_request_to(one.root, scoped, ()), name, refresh=False)
        return replace(told, hit=told.hit and replace(told.hit, workspace=one.label))

    try:
        told = here()
    except NotFoundError:
        told = first_item(name, above, ask)
    hits = with_items_above(engine.search_items(to_be_fused(request)), scoped, engine, above).hits
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


def _request_to(root: Path, scoped: Scoped, others: Sequence[Workspace]) -> SearchRequest:
    """The question as another workspace is asked: for items, with the context of the workspace that was asked.

    A question to several is also for files, but for those of a folder below that has a workspace of its own.
    """
    request = replace(scoped.request, filters=scoped.filters, within=_NOWHERE, in_context=False)
    if scoped.request.scope == SCOPES[0]:
        return request
    below = [other.root.relative_to(root).as_posix() for other in others if root in other.root.parents]
    filters = with_condition(scoped.filters, Not(Field("path", tuple(below)))) if below else scoped.filters
    return replace(request, within="", filters=filters)


def _items_of(one: ItemSource, scoped: Scoped, nearer: Sequence[ItemSource]) -> SearchAnswer:
    """The items of a workspace that no nearer one holds under the same id."""
    request = to_be_fused(_request_to(one.root, scoped, ()))
    while True:
        answer = one.search_items(request)
        held = tuple({hit.rid: None for hit in answer.hits if any(near.holds(hit.rid) for near in nearer)})
        if not held:
            return answer
        request = replace(request, filters=with_condition(request.filters, Not(Field("rid", held))))


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


def _summed(
    facets: Sequence[Mapping[str, Mapping[str, int]]], labels: Sequence[str]
) -> Mapping[str, Mapping[str, int]]:
    """The counts of all; a file of another workspace goes by both names where labels are given."""
    if not facets[0]:
        return {}
    from findling.pipelines.answer.facets import FILE, MOST_VALUES

    summed = {}
    for name in facets[0]:
        counter = Counter[str]()
        for counts, label in zip(facets, labels or [""] * len(facets), strict=True):
            is_far = name == FILE and label
            counter.update({f"{label}/{one}" if is_far else one: n for one, n in counts.get(name, {}).items()})
        ordered = sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))
        summed[name] = dict(ordered if name == FILE else ordered[:MOST_VALUES])
    return summed


def _next_cursor(own: SearchAnswer, scoped: Scoped, engine: ItemSource, shown: int) -> str:
    """The cursor behind those hits of the workspace itself that were shown."""
    if shown == len(own.hits):
        return own.next_cursor
    from findling.pipelines.answer.cursors import cursor_after

    return cursor_after(to_be_fused(scoped.request), own.hits[:shown], engine.group_of)
