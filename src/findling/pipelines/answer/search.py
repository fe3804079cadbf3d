"""Searching: understand → legs → fuse → steps → assemble, with a receipt for every hit and an account of all stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from findling.domain.budgets import StageClock, current_budget, finished_by, spending
from findling.domain.errors import FindlingError, MissingExtraError, ModelError, OverdueError
from findling.domain.plans import Plan
from findling.domain.queries import All, Not, SearchRequest
from findling.domain.resources import StoredChunk
from findling.domain.results import Degradation, Hit, SearchAnswer, Suggestion
from findling.domain.values import changed
from findling.pipelines.answer.cursors import behind, next_cursor, read_cursor
from findling.pipelines.answer.hits import make_hit
from findling.pipelines.answer.rankings import (
    MOST_PASSAGES,
    HighlightSpec,
    Ranked,
    Ranking,
    StepContext,
    highlights,
    load_chunks,
)
from findling.pipelines.answer.steps import TOGETHER, plan_account, quality_of, run_steps, unknown_terms, vector_account
from findling.pipelines.retrieve.legs import KEYWORD, Found, Retrievers, Widened
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, check_request, corrected, understand
from findling.pipelines.retrieve.retrieval import depth_of, find_candidates, in_order, widen_if_weak
from findling.pipelines.retrieve.vector_retrieval import Meaning, able_to_read, judge_of, may_hang, told_unread
from findling.text.query.tree import typed_terms

if TYPE_CHECKING:
    from findling.domain.ports import ReadStore
    from findling.pipelines.retrieve.match_time import TimedPattern
    from findling.text.query.parser import Parsed

_LEAST_WINDOW = 100
"""Candidates to look at once some of the first ones have to make room."""

_MOST_RESPELLED = 8
"""Unknown words to correct: each takes 10 to 90 ms. A query with more of them is a pasted text."""


@spending()
def search(
    legs: Retrievers,
    request: SearchRequest,
    parsed: Parsed | None = None,
    snippet_lines: int = 3,
    degraded: Sequence[Degradation] = (),
) -> SearchAnswer:
    """Answer the request from what the legs and the store hold now; `parsed` is its query, where that is known.

    Raises InvalidValueError for a limit, score, pattern, plan, cursor or facet that cannot be used.
    """
    plan = request.plan or Plan()
    exclude = check_request(request, plan)
    if request.facets:
        from findling.pipelines.answer.facets import check_facets

        check_facets(request.facets)
    clock, budget = StageClock(), current_budget()
    budget.end_within(request.timeout_s)
    legs, question = _in_place(legs, understand(request, plan, legs.store, parsed), clock)
    ranking = _with_parts(legs, rank(legs, question, exclude, clock))
    question, found = ranking.question, ranking.found
    wanted = changed(ranking.highlights, snippet_lines=snippet_lines)
    hits, cursor = _assembled(ranking, wanted, legs.store)
    clock.lap("assemble")
    notes, meaning, related, relaxed, planned = _beside(legs, ranking, wanted, exclude, hits, clock)
    facets, cut = _facets(legs, ranking, clock)
    refused = [Degradation(what=sentence, fix="ask for less") for sentence in budget.refused]
    notes_on_legs = tuple(dict.fromkeys((*degraded, *ranking.degraded, *meaning.degraded, *refused)))
    return SearchAnswer(
        query=request.query,
        understood_as=question.understood_as,
        hits=hits,
        total=found.total,
        weaker=found.weaker,
        total_is_exact=found.is_exact,
        strategy=found.strategy,
        reading=question.reading,
        quality=quality_of(found, hits, ranking.meaning, notes_on_legs),
        degraded=notes_on_legs,
        notes=notes + cut,
        unknown_terms=_unknown(legs, question, found),
        did_you_mean=ranking.suggestions,
        related=related,
        relaxed=relaxed,
        timings_ms=clock.laps,
        meaning=vector_account(meaning, ranking.page) if meaning.spaces or meaning.reranker else {},
        plan={**plan_account(ranking, legs.keyword), **planned},
        facets=facets,
        next_cursor=cursor,
    )


def _in_place(legs: Retrievers, question: AnalyzedQuery, clock: StageClock) -> tuple[Retrievers, AnalyzedQuery]:
    """The question with what its patterns match, or with the name that it is, and the legs with that evidence."""
    clock.lap("understand")
    if question.has_patterns:
        from findling.pipelines.retrieve.pattern_matches import resolved

        legs, question = resolved(legs, question)
        clock.lap("patterns")
    elif " " not in question.text:
        from findling.pipelines.answer.whole_names import whole_name

        question = whole_name(legs, question)
    return legs, question


def _with_parts(legs: Retrievers, ranking: Ranking) -> Ranking:
    """The ranking of a name with what has parts of it among the weaker matches."""
    question, found = ranking.question, ranking.found
    if question.parts is None:
        return ranking
    others = legs.keyword.search(question.parts, question.filters, 0, weights=question.plan.weights).total
    return changed(ranking, found=changed(found, weaker=max(others - found.total, 0)))


def _facets(legs: Retrievers, ranking: Ranking, clock: StageClock) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The facets that are asked for, if there is time to count, and notes on them."""
    if not ranking.question.request.facets or current_budget().is_over("nothing was counted"):
        return {}, ()
    from findling.pipelines.answer.facets import facets_of

    found = facets_of(legs, ranking)
    clock.lap("facets")
    return found


def _beside(
    legs: Retrievers,
    ranking: Ranking,
    wanted: HighlightSpec,
    exclude: TimedPattern | None,
    hits: Sequence[Hit],
    clock: StageClock,
) -> tuple[tuple[str, ...], Meaning, tuple[Hit, ...], tuple[Hit, ...], Mapping[str, Any]]:
    """Notes on an answer, the vectors that served, and where there is no hit, what is near it or found by less."""
    question, found, budget = ranking.question, ranking.found, current_budget()
    request, notes, meaning = question.request, question.notes, ranking.meaning
    related, relaxed, planned = tuple[Hit, ...](), tuple[Hit, ...](), dict[str, Any]()
    if isinstance(question.node, (All, Not)):
        from findling.pipelines.answer.no_results import idle_exclusions

        notes += idle_exclusions(legs.keyword, question)
    is_first = not request.offset and not request.cursor
    if not found.total and is_first:
        from findling.pipelines.answer.no_results import neighbours, why_nothing

        notes += why_nothing(legs.keyword, question, found)
        if not budget.is_over():
            looser = _relaxed(legs, ranking, exclude, wanted.snippet_lines)
            if looser is not None:
                relaxed, note, planned, meaning = looser
                notes += (note,)
            clock.lap("relax")
        if not relaxed and not budget.is_over():
            related, meaning = neighbours(legs, ranking, wanted, exclude)
            clock.lap("related")
    elif not hits and request.limit and is_first:
        match = f"{found.total:,} match" if found.is_exact else f"at least {found.total:,} match"
        notes += (f"{match}, but none scores enough or escapes the pattern that excludes",)
    notes += told_unread(meaning) if not hits and request.limit and is_first else ()
    return notes, meaning, related, relaxed, planned


def _relaxed(
    legs: Retrievers, ranking: Ranking, exclude: TimedPattern | None, snippet_lines: int
) -> tuple[tuple[Hit, ...], str, dict[str, Any], Meaning] | None:
    """The hits of a question without its demands, a sentence on it, its plan and its vectors."""
    from findling.pipelines.answer.no_results import relax

    given = relax(ranking.question)
    if given is None:
        return None
    # Other words are asked for once alone.
    looser = rank(legs, replace(given.query, plan=replace(given.query.plan, expand="off")), exclude)
    if not looser.page:
        return None
    wanted = changed(looser.highlights, snippet_lines=snippet_lines)
    account = plan_account(looser, legs.keyword)
    told = {name: account[name] for name in ("reading", "because", "weighing", "ceiling", "forms") if name in account}
    hits, _ = _assembled(looser, wanted, legs.store)
    return hits, given.note, {"relaxed": {"understood_as": looser.question.understood_as, **told}}, looser.meaning


def rank(
    legs: Retrievers, question: AnalyzedQuery, exclude: TimedPattern | None, clock: StageClock | None = None
) -> Ranking:
    """Have the legs find and the plan order what answers the question, with misspelled words corrected.

    Where meaning takes longer than there is time for, words alone answer.
    """
    clock, budget = clock or StageClock(), current_budget()
    meant = misspelled(legs, question)
    if question.plan.typos == "correct":
        question = corrected(question, {one.term: one.suggestion for one in meant if one.applied})
    else:
        meant = [replace(one, applied=False) for one in meant]
    clock.lap("spell")
    meaning = _available_vectors(legs, question)
    clock.lap("open")
    if budget.deadline is None or not may_hang(meaning):
        ranking = _Page(legs, question, exclude, meaning).fill()
    else:
        try:
            ranking = finished_by(budget.deadline, _Page(legs, question, exclude, meaning).fill)
        except OverdueError:
            budget.is_over("words alone were searched")
            ranking = _Page(legs, question, exclude, Meaning()).fill()
    clock.lap("search")
    return changed(ranking, suggestions=tuple(meant)) if meant else ranking


def _assembled(ranking: Ranking, wanted: HighlightSpec, store: ReadStore) -> tuple[tuple[Hit, ...], str]:
    """The hits of a page, as many as there is time for, and the cursor behind them."""
    request, budget = ranking.question.request, current_budget()
    hits: list[Hit] = []
    unnumbered: set[tuple[str, ...]] = set()
    for place, entry in enumerate(ranking.page):
        if hits and budget.is_over("the page is shorter than was asked for"):
            return tuple(hits), next_cursor(request, ranking.page[:place], read_cursor(request))
        hit = make_hit(entry, wanted, store)
        # Without a number or a place, the same sentence of one document in two passages looks like one hit twice.
        shown = () if hit.line or hit.place or not hit.lines else (hit.rid, *[line.text for line in hit.lines])
        if shown not in unnumbered:
            hits.append(hit)
        unnumbered |= {shown} if shown else set()
    return tuple(hits), ranking.next_cursor


def misspelled(legs: Retrievers, question: AnalyzedQuery) -> list[Suggestion]:
    """Words of the query that the index lacks, each with the word that was probably meant."""
    if question.plan.typos == "ignore" or current_budget().is_over():
        return []
    frequencies = legs.keyword.frequencies(question.asked)
    rare = [term for term in question.asked if not frequencies.get(term)]
    if not any(map(str.isalnum, rare)):
        return []
    # Perhaps it has other forms, or stands in titles only: the leg knows. The frequent words need not be searched.
    forms = legs.keyword.search(question.any_of(rare), question.filters, 0).forms
    typed = [term for term in typed_terms(question.node) if not frequencies.get(term)]
    unknown = [term for term in typed if not forms.get(term)]
    if not unknown or len(unknown) > _MOST_RESPELLED:
        return []
    from findling.pipelines.answer.no_results import suggestions

    return suggestions(legs.keyword, question, unknown)


def _unknown(legs: Retrievers, question: AnalyzedQuery, found: Found) -> tuple[str, ...]:
    """The typed words that nobody wrote."""
    unknown = unknown_terms(question, found)
    if not unknown:
        return ()
    from findling.pipelines.answer.no_results import nowhere

    return tuple(nowhere(legs.keyword, unknown))


def _available_vectors(legs: Retrievers, question: AnalyzedQuery) -> Meaning:
    """The vectors that can serve this query."""
    plan = question.plan
    if legs.meaning is None or plan.mode == "keyword" or not question.asked:
        return Meaning()
    if legs.keyword.unit == "page":
        return Meaning(degraded=(Degradation(what="whole pages are ranked by their words only"),))
    at_hand = legs.meaning()
    notes = list(at_hand.degraded)
    able = able_to_read(at_hand, question.text, notes)
    if at_hand.spaces and not able.spaces:
        names = " and ".join(space.embedder.name for space in at_hand.spaces)
        why = f"words alone were searched: {names} cannot read this language"
        notes.append(Degradation(what=why, fix="findling models list"))
    elif not able.spaces and plan.mode == "semantic" and not notes:
        why = "there are no vectors to search by meaning; words were searched instead"
        notes.append(Degradation(what=why, fix="findling index"))
    return able._replace(reranker=judge_of(at_hand, question.to_judge, notes), degraded=tuple(notes))


class _Page:
    """One page, from its `start` on: the legs are asked for more until `enough` hits stand up to the truth."""

    def __init__(self, legs: Retrievers, asked: AnalyzedQuery, exclude: TimedPattern | None, meaning: Meaning) -> None:
        request = asked.request
        self.legs, self.asked, self.question, self.exclude = legs, asked, asked, exclude
        self.cursor = read_cursor(request) if request.cursor else None
        self.start = self.cursor.shown if self.cursor else request.offset
        self.enough = request.limit + 1 if request.limit else 0
        if self.start:
            # Reading on would change the ranking between one page and the next.
            self.question = replace(asked, plan=replace(asked.plan, budget_ms=0.0))
        self.context = StepContext(legs, asked, meaning, self.start + self.enough)
        self.notes = list(meaning.degraded)
        self.widened: Widened | None = None

    def fill(self) -> Ranking:
        """The ranking with the page. A model that fails leaves it to the legs that still work, and a note."""
        context, limit = self.context, _first_window(self.context)
        found: Found | None = None
        stored: dict[int, StoredChunk] = {}
        while True:
            if found is None or (len(found.candidates) < limit and not found.is_all):
                try:
                    found = find_candidates(self.legs, context.meaning, self.question, limit)
                    found, spec = self._in_order(found, limit)
                except (MissingExtraError, ModelError) as error:
                    self._do_without(error)
                    found = None
                    continue
            candidates = found.candidates[:limit]
            loaded = load_chunks(self.legs, candidates, self.question, found, self.exclude, stored)
            ranked = run_steps(loaded, context.again(candidates, spec))
            if context.is_refuted:
                weaker = found.weaker + found.total
                found = changed(found, candidates=[], total=0, weaker=weaker, is_all=True)
            rest = self._rest(ranked, found, limit)
            if rest is not None:
                return self._shown(ranked, rest, found, spec)
            # A few that have sunk make room for a few others; what is missing may be far down.
            more = max(limit * 4, _LEAST_WINDOW) if context.is_settled else limit * 2
            limit = min(more, current_budget().candidates)

    def _in_order(self, found: Found, limit: int) -> tuple[Found, HighlightSpec]:
        """The findings in order, with other words for a weak question and the legs that know them; and what to show."""
        context, question = self.context, self.question
        if question.plan.expand != "off" and self.widened is None:
            self.widened = widen_if_weak(self.legs, question, found)
            self.notes += self.widened.notes
            if self.widened.variants is not None:
                self.legs = context.legs = self.legs._replace(variants=self.widened.variants)
                found = find_candidates(self.legs, context.meaning, question, limit)
        found = in_order(self.legs, question, found)
        return found, highlights(self.legs, question, found, context.meaning)

    def _do_without(self, error: FindlingError) -> None:
        """Leave the answer to the legs that work without a model."""
        self.notes.append(Degradation.of(error))
        meaning = self.context.meaning
        # Instant vectors need no model.
        if all(space.leg.speed == "instant" for space in meaning.spaces):
            raise error
        self.context.meaning = meaning._replace(spaces=tuple(meaning.spare(self.notes)), readings=())

    def _rest(self, ranked: list[Ranked], found: Found, limit: int) -> list[Ranked] | None:
        """The ranking from the page on, as far as it is needed; `None` where the legs have to be asked for more."""
        context, candidates = self.context, found.candidates
        is_all = (found.is_all and len(candidates) <= limit) or context.plan.adaptive_k
        is_low = 0 < limit <= len(candidates) and candidates[limit - 1].score < context.least
        is_last = is_all or (context.is_settled and is_low)
        rest = self._behind(ranked, is_last)
        is_enough = rest is not None and len(rest) >= self.enough
        if not is_last and not is_enough and _is_spent(limit):
            is_last, rest = True, self._behind(ranked, True)
        return rest if is_last or (context.is_settled and is_enough) else None

    def _behind(self, ranked: list[Ranked], is_last: bool) -> list[Ranked] | None:
        if self.cursor is None:
            return ranked[self.start :]
        return behind(self.cursor, ranked, self.context.plan.group, is_all=is_last)

    def _shown(self, ranked: list[Ranked], rest: list[Ranked], found: Found, spec: HighlightSpec) -> Ranking:
        request, context, wishes = self.asked.request, self.context, self.legs.wishes
        page = rest[: request.limit]
        if wishes and KEYWORD in wishes:
            wishes[KEYWORD] = len(page) < request.limit
        return Ranking(
            self.asked,
            ranked[: context.wanted],
            found,
            context.meaning,
            self.notes + context.notes,
            page,
            spec,
            next_cursor(request, page, self.cursor) if page and len(rest) > len(page) else "",
            steps=(*(self.legs.matches.did if self.legs.matches else ()), *context.did),
            expansion=self.widened.account if self.widened else {},
        )


def _first_window(context: StepContext) -> int:
    """The number of candidates to ask for first."""
    plan, wanted = context.plan, context.wanted
    if not context.shuffles and plan.group == "none":
        return min(max(wanted, TOGETHER if wanted else 0) + MOST_PASSAGES * context.joins, current_budget().candidates)
    return depth_of(wanted, plan.overfetch, max(_LEAST_WINDOW, plan.rerank_depth or 0))


def _is_spent(looked_at: int) -> bool:
    """Whether no more candidates may be looked at for this answer; then it says so."""
    budget = current_budget()
    if looked_at >= budget.candidates:
        budget.refuse(f"only the best {looked_at:,} passages were looked at")
        return True
    return budget.is_over("what stands further down was not looked at")
