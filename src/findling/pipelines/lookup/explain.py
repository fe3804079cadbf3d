"""Explaining: the reasons why a passage is in an answer, or the filter, leg or rank that keeps it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.budgets import current_budget, spending
from findling.domain.plans import Plan
from findling.domain.queries import GROUPS, OFFERED, All, Any, Field, Filters, Node, Not, SearchRequest
from findling.domain.resources import Document
from findling.domain.results import Degradation, Explanation, LegVerdict
from findling.domain.values import counted
from findling.pipelines.answer.hits import make_hit
from findling.pipelines.answer.rankings import Ranked, Ranking, best_passage
from findling.pipelines.answer.search import rank
from findling.pipelines.lookup.document_names import find_document
from findling.pipelines.retrieve.legs import Retrievers, bound_legs
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, check_request, loose_words, understand
from findling.stores.filtering import passes
from findling.text.query.tree import canonical

if TYPE_CHECKING:
    from findling.domain.ports import ReadStore
    from findling.pipelines.retrieve.match_time import TimedPattern

__all__ = ["explain", "find_document"]

_DEEPEST = 100_000  # ranks are counted this far; nobody reads beyond


class _Case(NamedTuple):
    """A document and the ranking of an answer; `cids` are the chunks of the document that are meant."""

    legs: Retrievers
    ranking: Ranking
    exclude: TimedPattern | None
    document: Document
    cids: set[int]

    @property
    def question(self) -> AnalyzedQuery:
        return self.ranking.question

    @property
    def leg_cids(self) -> list[int]:
        """The ids that the keyword leg knows the chunks by: a page goes by its first chunk."""
        is_page = self.legs.keyword.unit == "page" and self.document.chunks
        return [self.document.chunks[0].cid] if is_page else sorted(self.cids)


@spending()
def explain(
    legs: Retrievers, request: SearchRequest, name: str, below: str = "", *, degraded: Sequence[Degradation] = ()
) -> Explanation:
    """Explain why the document of a name is among the hits of a request, or not. Raises as `find_document` does."""
    document, cids = find_document(legs.store, name, below)
    case, asked = _case(legs, replace(request, cursor=""), document, cids)
    ranking = case.ranking
    shown = ranking.ranked[request.offset : request.offset + request.limit]
    ranked, place = shown, _place(shown, case.cids)
    found = place > 0
    rank_ = place + request.offset if found else 0
    budget = current_budget()
    verdicts, reasons = tuple(_verdicts(case)), tuple[str, ...]()
    if not found and not budget.is_over("why it is not among the hits was not looked for"):
        ranked = rank(case.legs, _deeper(asked), case.exclude).ranked
        rank_ = place = _place(ranked, case.cids)
        reasons = tuple(_held_back(case, ranked[place - 1], place) if place else _absent(case, ranked, verdicts))
    entry = ranked[place - 1] if place else None
    question = ranking.question
    return Explanation(
        query=request.query,
        understood_as=question.understood_as,
        reading=question.reading,
        rid=document.resource.rid,
        path=document.resource.path,
        found=found,
        rank=rank_,
        shown=len(shown),
        reasons=reasons,
        filters=tuple(_filters(case)),
        legs=verdicts,
        hit=make_hit(entry, ranking.highlights, case.legs.store) if entry else None,
        degraded=(*degraded, *ranking.degraded, *[Degradation(what=one, fix="ask for less") for one in budget.refused]),
    )


def _case(
    legs: Retrievers, request: SearchRequest, document: Document, cids: Sequence[int]
) -> tuple[_Case, AnalyzedQuery]:
    """The case of a document, and the question as it was understood, before its words were corrected."""
    plan = request.plan or Plan()
    exclude = check_request(request, plan)
    asked = understand(request, plan, legs.store)
    if asked.has_patterns:
        from findling.pipelines.retrieve.pattern_matches import resolved

        legs, asked = resolved(legs, asked)
    return _Case(legs, rank(legs, asked, exclude), exclude, document, set(cids)), asked


def _deeper(question: AnalyzedQuery) -> AnalyzedQuery:
    """The question without limits: everything that matches, as far down as ranks are counted."""
    request = replace(question.request, limit=_DEEPEST, offset=0)
    return replace(question, request=request, plan=replace(question.plan, min_score=0.0, weak=True, adaptive_k=False))


def _place(ranked: Sequence[Ranked], cids: set[int]) -> int:
    """The rank of the first hit that has one of the chunks, itself or in its group; 0 for none."""
    for at, entry in enumerate(ranked, start=1):
        if any(one.stored.chunk.cid in cids for one in (entry, *entry.others)):
            return at
    return 0


def _held_back(case: _Case, entry: Ranked, place: int) -> list[str]:
    """The reasons why something that matches is not among the hits."""
    request, plan, least = case.question.request, case.question.plan, case.ranking.found.least
    worth, enough = entry.candidate.worth, place - request.offset
    reasons = []
    if entry.score < plan.min_score:
        reasons.append(f"its score {entry.score:.4g} is below the {plan.min_score:g} that is asked for")
    if worth < least:
        weak = f"{worth:.2f} where the best hit makes {least:.2f} the least"
        reasons.append(f"it is a weaker match: it has {weak}; findling search --weak")
    if enough <= 0:
        reasons.append(f"it is hit {place:,}, and the answer leaves out the first {request.offset:,}")
    if enough > request.limit:
        reasons.append(f"it is hit {place:,}, and at most {request.limit:,} are shown; findling search -k {enough}")
    if not reasons and plan.adaptive_k:
        reasons.append(f"scores fall most above it, and adaptive_k ends the answer there; it is hit {place:,}")
    overfetch = f"it is too far down in every leg to be looked at; an overfetch above {plan.overfetch:g} may do so"
    return reasons or [overfetch]


def _absent(case: _Case, ranked: Sequence[Ranked], verdicts: Sequence[LegVerdict]) -> Iterator[str]:
    """The reasons why it is not in the ranking of everything that matches, the most telling first."""
    if not case.document.chunks:
        yield "it holds no text"
        return
    yield from (f"the filter {name} leaves it out" for name, ok in _filters(case) if not ok)
    yield from _excluded(case)
    yield from _stood_for(case, ranked)
    yield from _unmatched(case)
    can_be_near = loose_words(case.question)[0] is not None and case.question.plan.meaning_finds
    if can_be_near and any(one.leg == "semantic" and not one.found for one in verdicts):
        yield "its meaning is not near enough"
    if len(ranked) >= _DEEPEST:
        yield f"there are {_DEEPEST:,} hits before it"


def _excluded(case: _Case) -> Iterator[str]:
    if case.exclude is None:
        return
    text, cids = case.document.text, case.cids
    if case.legs.keyword.unit == "page":
        # Of a page the search tests only the passage that it would show.
        stored = case.legs.store.chunks(case.leg_cids).values()
        cids = {best_passage(case.legs.store, one, case.ranking.found.keyword.forms).chunk.cid for one in stored}
    spans = [text[chunk.start : chunk.end] for chunk in case.document.chunks if chunk.cid in cids]
    excluded = sum(case.exclude.matches(span) for span in spans)
    if excluded:
        what = "it" if excluded == len(spans) else f"{excluded:,} of its {counted(len(spans), 'passage')}"
        yield f"the pattern {case.exclude.pattern} excludes {what}"


def _stood_for(case: _Case, ranked: Sequence[Ranked]) -> Iterator[str]:
    """The hit that stands in its place, if there is one."""
    resource = case.document.resource
    one_each = case.question.reading == "browse" or case.legs.keyword.unit == "page"
    for place, entry in enumerate(ranked, start=1):
        other = entry.stored.resource
        if one_each and other.rid == resource.rid:
            yield f"another passage of it, {entry.stored.chunk.cid:016x}, stands for all of it as hit {place:,}"
            return


def _unmatched(case: _Case) -> Iterator[str]:
    """The parts of the query that none of the chunks fulfils."""
    keyword, node, cids = case.legs.keyword, case.question.node, case.leg_cids
    if keyword.scores(node, cids):
        return
    parts: tuple[Node, ...] = node.nodes if isinstance(node, All) else (node,)
    is_over = partial(current_budget().is_over, "not every part of the question was looked for in it")
    lacking = [part for part in parts if not is_over() and not keyword.scores(part, cids)]
    for part in lacking:
        typed = _as_typed(part, case.legs.store)
        words = " or ".join(map(canonical, typed.nodes if isinstance(typed, Any) else (typed,)))
        yield f"it has what {words} excludes" if words.startswith("-") else f"it does not have {words}"
    if not lacking and not is_over():
        yield "no single passage of it has all that is asked for"


def _filters(case: _Case) -> Iterator[tuple[str, bool]]:
    """Every filter of the question and whether the document passes it."""
    given, resource = case.question.filters, case.document.resource
    for name in (*OFFERED, "within"):
        value = getattr(given, name)
        if value not in ((), None, ""):
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield f"{name} {shown}", passes(resource, Filters(**{name: value}))
    if given.where is not None:
        parts = given.where.nodes if isinstance(given.where, All) else (given.where,)
        for part in parts:
            yield canonical(_as_typed(part, case.legs.store)), passes(resource, Filters(where=part))


def _as_typed(node: Node, store: ReadStore) -> Node:
    """The node with `is:` in place of its ids: they are many, and not every caller may see them."""
    if isinstance(node, Field) and node.name == "rid":
        return Field("is", ("superseded",)) if node.values == tuple(store.superseded()) else node
    if isinstance(node, Not):
        inner = _as_typed(node.node, store)
        return Field("is", ("head",)) if inner == Field("is", ("superseded",)) else Not(inner)
    if isinstance(node, GROUPS):
        return replace(node, nodes=tuple(_as_typed(part, store) for part in node.nodes))
    return node


def _verdicts(case: _Case) -> Iterator[LegVerdict]:
    """The verdict of each leg on the chunks: the best rank and score, and whether the leg finds them."""
    if current_budget().is_over("its rank in each leg was not counted"):
        return
    legs, question, cids = case.legs, case.question, case.leg_cids
    hits = legs.keyword.search(question.node, question.filters, _DEEPEST, weights=question.plan.weights).hits
    at = next((place for place, (cid, _) in enumerate(hits, start=1) if cid in cids), 0)
    yield LegVerdict(leg="keyword", found=at > 0, rank=at, score=hits[at - 1][1] if at else 0.0, total=len(hits))
    held = [term for term, forms in case.ranking.found.keyword.forms.items() if forms]
    # Also where meaning only reorders, its ranks are counted among all passages.
    query = replace(question.for_legs(held), plan=replace(question.plan, meaning_finds=True))
    for leg in bound_legs(legs, case.ranking.meaning, question.plan):
        said = leg.search(query, _DEEPEST, cids)
        order = sorted(said, key=lambda cid: (-said[cid].strength, cid))
        best = next((cid for cid in order if cid in cids), None)
        verdict = LegVerdict(leg=leg.name, found=False, rank=0, score=0.0, total=len(order))
        if best is not None:
            found, at = said[best], order.index(best) + 1
            verdict = replace(verdict, found=found.worth > 0, rank=at, score=found.raw, least=leg.least)
        yield verdict
