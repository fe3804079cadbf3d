"""Searching: parse → legs → fuse → reorder → assemble, with a receipt for every hit and an account of every stage."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from findling.domain.errors import FindlingError, InvalidValueError, MissingExtraError, ModelError
from findling.domain.plans import FUSIONS, MODES, Plan
from findling.domain.ports import KeywordLeg, TruthStore
from findling.domain.queries import Filters, Node, SearchRequest
from findling.domain.resources import StoredChunk
from findling.domain.results import SearchAnswer
from findling.pipelines.assembling import Asked, Ranked, make_hit
from findling.pipelines.candidates import Found, find_candidates
from findling.pipelines.meaning import Meaning, can_read, nearest_line
from findling.text.query_language import canonical, identifier_parts, parse, positive_terms

__all__ = ["search"]


def search(
    store: TruthStore,
    leg: KeywordLeg,
    request: SearchRequest,
    *,
    meaning: Callable[[], Meaning] | None = None,
    snippet_lines: int = 3,
    degraded: Sequence[str] = (),
) -> SearchAnswer:
    """Answer the request from what the legs and the store hold now; `meaning` is asked only where the plan needs it.

    Raises InvalidValueError for a limit, score, pattern or plan that cannot be used.
    """
    plan = request.plan or Plan()
    exclude = _check(request, plan)
    clock = _Clock()
    node = parse(request.query)
    clock.lap("parse")
    asked = positive_terms(node)
    at_hand = _at_hand(meaning, plan, leg.unit, request.query if asked else "")
    clock.lap("open")
    notes = [*degraded, *at_hand.degraded]
    question = _Question(request, plan, node, asked, exclude)
    while True:
        try:
            ranked, found, trouble = _ranking(store, leg, at_hand, question)
            notes += trouble
            break
        except (MissingExtraError, ModelError) as error:
            # Whatever still works answers, and the answer says what did not.
            notes.append(f"{error.message}; {error.hint}" if error.hint else error.message)
            at_hand = _without_models(at_hand, error, notes)
    clock.lap("search")
    forms = {form: term for term in asked for form in found.keyword.forms.get(term, ())}
    wanted = Asked(asked, forms, identifier_parts(node), snippet_lines, request.context)
    if at_hand.instant is not None and found.strategy != "keyword":
        wanted = wanted._replace(nearest=nearest_line(at_hand.instant, request.query))
    page = ranked[request.offset : request.offset + request.limit]
    hits = tuple(make_hit(entry, wanted) for entry in page)
    clock.lap("assemble")
    # What a caller with limited rights may not see must not show in what the vocabulary knows, either.
    is_owner = request.filters.principals is None
    return SearchAnswer(
        query=request.query,
        understood_as=canonical(node),
        hits=hits,
        total=found.total,
        strategy=found.strategy,
        degraded=tuple(notes),
        unknown_terms=tuple(term for term in asked if is_owner and not found.keyword.forms.get(term)),
        timings_ms=clock.laps,
        meaning=_account(at_hand, page) if at_hand.spaces or at_hand.reranker else {},
        plan=_plan(request, plan, node, found, leg.unit) if request.explain else {},
    )


class _Question(NamedTuple):
    """A request that has been understood."""

    request: SearchRequest
    plan: Plan
    node: Node
    asked: Sequence[str]
    exclude: re.Pattern[str] | None


def _check(request: SearchRequest, plan: Plan) -> re.Pattern[str] | None:
    if request.limit < 0 or request.offset < 0:
        raise InvalidValueError(f"limit {request.limit} and offset {request.offset} must not be negative")
    if not 0 <= request.min_score <= 1:
        raise InvalidValueError(f"min_score {request.min_score} is not between 0 and 1", hint="scores run from 0 to 1")
    for name, value, choices in (("mode", plan.mode, MODES), ("fusion", plan.fusion, FUSIONS)):
        if value not in choices:
            raise InvalidValueError(f"{name} {value!r} is unknown", hint=f"one of {', '.join(choices)}")
    for name, number, least, most in (
        ("diversity", plan.diversity, 0.0, 1.0),
        ("overfetch", plan.overfetch, 1.0, 1000.0),
        ("rrf_k", plan.rrf_k, 0.0, 1e6),
    ):
        if not least <= number <= most:
            raise InvalidValueError(f"{name} {number} is not between {least:g} and {most:g}")
    if plan.alpha is not None and not 0 <= plan.alpha <= 1:
        raise InvalidValueError(
            f"alpha {plan.alpha} is not between 0 and 1", hint="0 counts words only, 1 meaning only"
        )
    if request.exclude_pattern is None:
        return None
    try:
        return re.compile(request.exclude_pattern)
    except re.error as error:
        raise InvalidValueError(
            f"exclude pattern {request.exclude_pattern!r} is no regular expression: {error}",
            hint="escape special characters with a backslash",
        ) from error


def _at_hand(meaning: Callable[[], Meaning] | None, plan: Plan, unit: str, query: str) -> Meaning:
    """What of meaning can serve this query."""
    if meaning is None or plan.mode == "keyword" or not query:
        return Meaning()
    if unit == "page":
        return Meaning(degraded=("whole pages are ranked by their words only",))
    at_hand = meaning()
    able = tuple(space for space in at_hand.spaces if can_read(space.embedder, query))
    notes = at_hand.degraded
    if at_hand.spaces and not able:
        names = " and ".join(space.embedder.name for space in at_hand.spaces)
        notes += (f"words alone were searched: {names} cannot read this script",)
    elif not able and plan.mode == "semantic" and not notes:
        notes = ("there are no vectors to search by meaning; words were searched instead",)
    return at_hand._replace(spaces=able, degraded=notes)


def _without_models(meaning: Meaning, error: FindlingError, notes: list[str]) -> Meaning:
    """What is left when a model has failed: instant vectors need none."""
    if all(space.leg.speed == "instant" for space in meaning.spaces):
        raise error
    return meaning._replace(spaces=tuple(meaning.spare(notes)), coverage=0.0)


def _ranking(
    store: TruthStore, leg: KeywordLeg, meaning: Meaning, question: _Question
) -> tuple[list[Ranked], Found, list[str]]:
    """The hits that stand up to the truth, as many as are wanted, asking the legs for more when some do not.

    Also what the legs have found, and what went wrong on the way.
    """
    request, plan, node, asked, exclude = question
    wanted = request.offset + request.limit
    shuffles = (meaning.reranker is not None) or plan != replace(
        plan, boosts=False, collapse=False, diversity=1.0, adaptive_k=False
    )
    limit = max(round(wanted * plan.overfetch), plan.rerank_depth) if shuffles else wanted
    if request.offset:
        plan = replace(plan, budget_ms=0.0)  # reading on would change the ranking between one page and the next
    while True:
        trouble: list[str] = []
        found = find_candidates(store, leg, meaning, request.query, node, request.filters, plan, limit)
        stored = store.chunks([candidate.cid for candidate in found.candidates[:limit]])
        ranked = []
        for candidate in found.candidates[:limit]:
            chunk = stored.get(candidate.cid)
            if chunk is None or not _may_see(chunk, request.filters):
                continue
            if leg.unit == "page":
                from findling.pipelines.passages import best_passage

                chunk = best_passage(store, chunk, found.keyword.forms)
            if exclude is None or not exclude.search(chunk.text):
                ranked.append(Ranked(chunk, candidate, candidate.score))
        if shuffles:
            from findling.pipelines.reordering import reorder

            ranked = reorder(ranked, request.query, asked, plan, meaning, trouble)
        ranked = [entry for entry in ranked if entry.score >= request.min_score]
        is_all = found.is_all and len(found.candidates) <= limit
        if len(ranked) >= wanted or is_all or plan.adaptive_k or _is_low(found, limit, request.min_score):
            return ranked[:wanted], found, trouble
        limit *= 4


def _is_low(found: Found, limit: int, min_score: float) -> bool:
    """Whether whatever else there is scores too little."""
    return len(found.candidates) >= limit and found.candidates[limit - 1].score < min_score


def _may_see(chunk: StoredChunk, filters: Filters) -> bool:
    """The legs have filtered already; rights are checked again against the truth, which may be newer than they."""
    if filters.principals is None:
        return True
    return not set(filters.principals).isdisjoint(chunk.resource.visibility or ())


def _account(meaning: Meaning, page: Sequence[Ranked]) -> dict[str, Any]:
    """Which vectors served an answer."""
    speeds = {entry.candidate.vector.speed for entry in page if entry.candidate.vector is not None}
    speeds = speeds or {space.leg.speed for space in meaning.spaces[:1]}
    models = [space.embedder for space in meaning.spaces if space.leg.speed == "refined"]
    hosts = {model.host for model in (*models, meaning.reranker) if model is not None and model.host}
    return {
        "speed": "mixed" if len(speeds) > 1 else "".join(speeds),
        "model": models[0].name if models else "",
        "coverage": round(meaning.coverage, 4),
        "reranker": meaning.reranker.name if meaning.reranker else "",
        "sent_to": sorted(hosts),
    }


def _plan(request: SearchRequest, plan: Plan, node: Node, found: Found, unit: str) -> dict[str, Any]:
    filters = {name: value for name, value in asdict(request.filters).items() if value not in ((), None)}
    keyword = found.keyword
    return {
        "legs": {"keyword": ["keyword"], "semantic": ["semantic"]}.get(found.strategy, ["keyword", "semantic"]),
        "unit": unit,
        "understood_as": canonical(node),
        "forms": {} if "principals" in filters else {term: list(forms) for term, forms in keyword.forms.items()},
        "filters": filters,
        "limit": request.limit,
        "offset": request.offset,
        "ceiling": round(keyword.ceiling, 4),
        **({"alpha": round(found.weighing.alpha, 3), "because": found.weighing.reason} if found.weighing else {}),
        **{name: value for name, value in asdict(plan).items() if name not in ("alpha", "mode")},
        **({"feedback": found.feedback} if found.feedback else {}),
    }


class _Clock:
    """Milliseconds of wall time per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = round((now - self._last) * 1000, 3)
        self._last = now
