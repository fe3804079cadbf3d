"""Retrieval: ask the legs of a plan, and make one ranking of their findings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from findling.domain.budgets import current_budget
from findling.domain.ports import KeywordHits, KeywordLeg
from findling.domain.queries import Any as AnyOf
from findling.domain.queries import Term
from findling.domain.resources import Resource
from findling.domain.results import Evidence
from findling.pipelines.retrieve.legs import (
    COMPARED,
    KEYWORD,
    SEMANTIC,
    Candidate,
    Found,
    Retrievers,
    Widened,
    bound_legs,
)
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, loose_words
from findling.pipelines.retrieve.vector_retrieval import Meaning
from findling.ranking.evidence import (
    falling,
    is_best,
    is_hit,
    least_alone,
    least_evidence,
    least_words,
    words_evidence,
)
from findling.text.analysis.scripts import written_name
from findling.text.query.tree import typed_terms

if TYPE_CHECKING:
    from findling.domain.backends import Retriever

_ASKING = frozenset({"question", "sentence"})
"""Shapes of queries that may name something in lower case."""

_PROSE = frozenset({"markdown", "text"})

_LEAST_DEPTH = 100
"""Candidates a leg is asked for at least: what is far down in one leg may be first in the other."""

_REORDERED = 250
"""Matches that meaning puts in order where it finds none by itself: the same ones for a page and for the next."""

_READ_AHEAD = 20
"""Best candidates that a leg may look at again."""

_COUNTED = 1_000
"""Hits above the cut that are counted, unless more were asked for. To count all of them was 1.9 of 2.8 ms of the
keyword leg at 78,000 chunks, where a question has 8,300 of them."""

_JUDGED = 10
"""Best candidates that tell whether a first round is weak, and whether code may have been searched."""

_WEAK = 0.55
"""Evidence of the best candidates below which a first round is weak: that of a third of SciFact's questions. With 0.65
words of the best passages cost musique-100 .007 NDCG@10, with 0.55 none of six collections loses .003."""

_HANDFUL = 20
"""Passages below which all that has a word is a hit, and a person sees at a glance what is none."""

_BM25 = "BM25"


def find_candidates(legs: Retrievers, meaning: Meaning, question: AnalyzedQuery, wanted: int) -> Found:
    """Ask the legs of the plan for at least `wanted` candidates. Raises ModelError when a model fails."""
    plan = question.plan
    others = bound_legs(legs, meaning, plan) if question.reading != "browse" else []
    if others:
        round_ = _Round(legs, meaning, question, others, wanted)
        round_.ask_legs()
        round_.fuse()
        round_.look_again()
        return round_.found()
    # As many as are compared afterwards, so that an answer begins with the same hits whatever its length is.
    wanted = max(wanted, COMPARED) if wanted and question.reading != "browse" else wanted
    found = legs.keyword.search(question.node, question.filters, wanted, weights=plan.weights)
    found, feedback = _with_feedback(legs, question, found, wanted) if plan.feedback else (found, "")
    return _by_words_alone(legs, question, wanted, found, feedback)


class _Round:
    """One question to the keyword leg and others: their evidence is gathered, fused, and cut where hits end.

    `words` and `said` are the evidence by words and by the other legs, `added` the chunks that only these have found.
    """

    def __init__(
        self, legs: Retrievers, meaning: Meaning, question: AnalyzedQuery, others: Sequence[Retriever], wanted: int
    ) -> None:
        plan, self.keyword = question.plan, legs.keyword
        self.legs, self.question, self.others = legs, question, others
        # Only words can promise that something stands in a hit: other legs then reorder and add nothing.
        self.loose, self.conditions = loose_words(question)
        self.finds = self.loose is not None and plan.meaning_finds
        self.with_words = not self.finds or not (plan.mode == SEMANTIC and meaning.spaces)
        self.depth = max(depth_of(wanted, plan.overfetch), 0 if self.finds else _REORDERED)
        limit = self.depth if self.with_words else 1
        hits = self.keyword.search(question.node, question.filters, limit, weights=plan.weights)
        self.hits, self.feedback = _with_feedback(legs, question, hits, limit) if plan.feedback else (hits, "")
        # What a correction has brought is a guess, however often the texts have it.
        self.query = question.for_legs([term for term in typed_terms(question.node) if self.hits.forms.get(term)])
        self.words = _words(self.hits.hits, self.hits.ceiling) if self.with_words else {}
        self.said: dict[str, dict[int, Evidence]] = {}
        self.added: dict[int, None] = {}
        self.is_all = True
        self.ages: Mapping[int, float] | None = None

    def ask_legs(self) -> None:
        """Ask every leg for what it finds, and for what the others have found."""
        plan, depth = self.question.plan, self.depth if self.loose is not None else 0
        for leg in self.others:
            self.said[leg.name] = own = dict(leg.search(self.query, depth, [*self.words, *self.added]))
            fresh = [cid for cid, one in own.items() if (one.worth or plan.weak) and cid not in self.words]
            self.is_all = self.is_all and len(fresh) < self.depth
            self.added |= dict.fromkeys(fresh)
        self.added = dict.fromkeys(self._fitting(list(self.added)))
        # Asked for by name, so that a score does not depend on how deep a leg was asked.
        for leg in self.others if len(self.others) > 1 else ():
            if missing := [cid for cid in self.added if cid not in self.said[leg.name]]:
                self.said[leg.name] |= leg.search(self.query, 0, missing)
        if self.with_words and self.loose is not None:
            scores = self.keyword.scores(self.loose, list(self.added), weights=plan.weights)
            self.words |= _words(scores.items(), self.hits.ceiling)

    def fuse(self) -> None:
        """Weigh the evidence of the legs, and make one ranking of it."""
        from findling.pipelines.retrieve.fusion_step import ages_of, fuse, weigh

        plan = self.question.plan
        self.evidence = _ranking_evidence(self.words if self.with_words else None, self.said, self.added)
        if self.ages is None:
            cids = {cid for own in self.evidence.values() for cid in own}
            self.ages = ages_of(self.legs.store, cids) if plan.fusion == "recency" else {}
        self.weighing, weights = weigh(self.question.text, self.evidence, self.hits.ceiling, plan)
        self.fused = fuse(self.evidence, weights, plan, self.ages)

    def look_again(self) -> None:
        """Let each leg look at the best candidates once more, and fuse what it has seen."""
        for leg in self.others:
            seen = leg.second_look(self.query, [cid for cid, _ in self.fused.ranking[:_READ_AHEAD]])
            known = self.words.keys() | self.added.keys()
            fitting = self._fitting([cid for cid, one in seen.items() if self.finds and one.worth and cid not in known])
            self.added |= dict.fromkeys(fitting)
            self.said[leg.name] |= {cid: one for cid, one in seen.items() if cid in known or cid in self.added}
            if seen:
                self.fuse()

    def _fitting(self, cids: list[int]) -> list[int]:
        """Those of the chunks that fulfil the conditions of the question."""
        if self.conditions is None or not cids:
            return cids
        fitting = self.keyword.scores(self.conditions, cids)
        return [cid for cid in cids if cid in fitting]

    def found(self) -> Found:
        """The candidates with evidence enough for a hit, best first, and how many there are."""
        from findling.pipelines.retrieve.fusion_step import evidence_of

        worth, hits = _best_worth(self.evidence), self.hits
        matching = len(worth.keys() - self.words.keys()) + (hits.total if self.with_words else 0)
        least = _least(self.question, [worth[cid] for cid, _ in self.fused.ranking])
        kept = {cid: strength for cid, strength in self.fused.ranking if worth[cid] >= least}
        total, is_exact, unsupported = self._counted(kept, least) if least else (matching, True, frozenset[int]())
        kept = {cid: strength for cid, strength in kept.items() if cid not in unsupported}
        scores = falling([worth[cid] for cid in kept])
        given = partial(evidence_of, self.fused, self.evidence, self.ages or {})
        is_all_words = len(hits.hits) < self.depth or words_evidence(hits.hits[-1][1], hits.ceiling) < least
        return Found(
            [Candidate(cid, score, given, kept[cid], worth[cid]) for cid, score in zip(kept, scores, strict=True)],
            hits,
            total=total,
            weaker=matching - total if is_exact else 0,
            least=least,
            is_all=is_all_words and self.is_all,
            strategy=self.question.plan.mode,
            legs=(*([KEYWORD] if self.with_words else []), *(leg.name for leg in self.others)),
            weighing=self.weighing,
            feedback=self.feedback,
            is_exact=is_exact,
            unsupported=unsupported,
        )

    def _counted(self, kept: Mapping[int, float], least: float) -> tuple[int, bool, frozenset[int]]:
        """The number of hits, whether it is exact, and those kept ones that neither words nor meaning support."""
        keyword, question = self.keyword, self.question
        by_words, is_exact = _count(keyword, question, self.hits, least) if self.with_words else (0, True)
        total = by_words + sum(cid not in self.words or self.words[cid].worth < least for cid in kept)
        unsupported = _unsupported(kept, self.evidence, _telling(keyword, question), keyword.size())
        unsupported = _without_names(keyword, question, unsupported) if unsupported else unsupported
        if unsupported:
            # Meaning has judged these alone: of those behind them it may support none.
            is_judged = is_exact and by_words <= len(self.hits.hits)
            left = len(kept.keys() - unsupported)
            total, is_exact = (total - len(unsupported), True) if is_judged else (left, False)
        return total, is_exact, frozenset(unsupported)


def widen_if_weak(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Widened:
    """Other words for the question, if the plan wants them always, or its first round is weak."""
    best = max([candidate.worth for candidate in found.candidates[:_JUDGED]], default=0.0)
    account = {"wanted": question.plan.expand, "asked": False, "best": round(best, 3), "weak_below": _WEAK}
    if question.reading != "ranked" or question.is_literal:
        return Widened({**account, "because": "it is meant to the letter"})
    if question.plan.expand == "auto" and best >= _WEAK:
        return Widened({**account, "because": f"the best hit has evidence {best:.2f}, at least {_WEAK}"})
    from findling.pipelines.retrieve.expansion import widen

    why = f"the best hit has evidence {best:.2f}, below {_WEAK}" if best < _WEAK else "the plan wants it always"
    return widen(legs, question, found, {**account, "asked": True, "because": why})


def _words(hits: Iterable[tuple[int, float]], ceiling: float) -> dict[int, Evidence]:
    """The evidence of words, by BM25 scores."""
    made = tuple.__new__  # as the tuple that it is, which takes a third of the time that its own constructor takes
    return {
        cid: made(Evidence, (KEYWORD, raw, raw, words_evidence(raw, ceiling), "", _BM25, 0, 0.0, 0.0, 0.0, None))
        for cid, raw in hits
    }


def _ranking_evidence(
    words: Mapping[int, Evidence] | None, said: Mapping[str, Mapping[int, Evidence]], added: Container[int]
) -> dict[str, Mapping[int, Evidence]]:
    """By leg, the evidence for chunks that words have found, or that a leg has added and still supports."""
    listed = {cid for own in said.values() for cid in own if cid in added} | (words or {}).keys()
    evidence: dict[str, Mapping[int, Evidence]] = {} if words is None else {KEYWORD: words}
    for name, own in said.items():
        evidence[name] = {cid: one for cid, one in own.items() if cid in listed}
    return evidence


def _telling(keyword: KeywordLeg, question: AnalyzedQuery) -> int:
    """The number of words that a hit has to answer; none in a handful of passages, in which no word is common."""
    return question.telling if keyword.size() >= _HANDFUL else 0


def _unsupported(
    cids: Collection[int], evidence: Mapping[str, Mapping[int, Evidence]], asked: int, passages: int
) -> set[int]:
    """The chunks that neither their words nor their meaning make a hit, nor any other leg; all if the best is none."""
    by_words, by_meaning = evidence.get(KEYWORD, {}), evidence.get(SEMANTIC, {})
    others = {cid for leg, own in evidence.items() if leg not in (KEYWORD, SEMANTIC) for cid in own if own[cid].worth}
    found: set[int] = set()
    has_best = asked < 2
    for cid in cids:
        near = by_meaning.get(cid)
        words = by_words[cid].worth if cid in by_words else 0.0
        support, speed = (near.support, near.why) if near else (None, "")
        has_best = has_best or support is None or is_best(words, support, speed, asked, passages)
        if not is_hit(words, support, speed, asked) and cid not in others:
            found.add(cid)
    return found if has_best else set(cids) - others


def _without_names(keyword: KeywordLeg, question: AnalyzedQuery, cids: set[int]) -> set[int]:
    """The chunks without those that hold a name of code in the question, whatever a model makes of code."""
    from findling.text.query.asked_names import code_names

    names = code_names(question.text)
    return cids - keyword.scores(AnyOf(tuple(map(Term, names))), list(cids)).keys() if names else cids


def _best_worth(evidence: Mapping[str, Mapping[int, Evidence]]) -> dict[int, float]:
    """The best support of each chunk by any leg."""
    worth: dict[int, float] = {}
    for own in evidence.values():
        said = {cid: one.worth for cid, one in own.items()}
        worth = said | {cid: best for cid, best in worth.items() if best > said.get(cid, -1.0)}
    return worth


def _least(question: AnalyzedQuery, worths: Iterable[float]) -> float:
    """The evidence that a hit must have: none where it fulfils conditions or the query has one word."""
    if question.plan.weak or question.parts or question.reading != "ranked" or len(typed_terms(question.node)) < 2:
        return 0.0
    return least_evidence(max(worths, default=0.0))


def _count(keyword: KeywordLeg, question: AnalyzedQuery, found: KeywordHits, least: float) -> tuple[int, bool]:
    """Count the chunks with so much evidence by their words, and say whether these are all of them."""
    # Hits stand best first.
    enough = bisect_left(found.hits, True, key=lambda hit: words_evidence(hit[1], found.ceiling) < least)
    if enough < len(found.hits) or enough == found.total:
        return enough, True
    raw, most = least_words(least, found.ceiling), max(_COUNTED, enough)
    count = keyword.count(question.node, question.filters, raw, most=most, weights=question.plan.weights)
    return count, count < most or count == found.total


def _with_feedback(
    legs: Retrievers, question: AnalyzedQuery, found: KeywordHits, limit: int
) -> tuple[KeywordHits, str]:
    from findling.pipelines.retrieve.feedback_step import with_feedback

    return with_feedback(legs.store, legs.keyword, question, found, limit)


def _by_words_alone(legs: Retrievers, question: AnalyzedQuery, wanted: int, found: KeywordHits, feedback: str) -> Found:
    ceiling, is_browsing = found.ceiling, question.reading == "browse"
    # Whatever fulfils conditions alone fulfils them wholly.
    worths = [1.0 if is_browsing else words_evidence(raw, ceiling) for _, raw in found.hits]
    least = _least(question, worths)
    least = least and max(least, least_alone(_telling(legs.keyword, question)))
    ranked = enumerate(zip(found.hits, worths, strict=True), start=1)
    kept = {cid: (rank, raw, worth) for rank, ((cid, raw), worth) in ranked if worth >= least}

    def given(cid: int) -> tuple[Evidence, ...]:
        rank, raw, worth = kept[cid]
        return (Evidence(KEYWORD, raw, raw, worth, "", _BM25, rank, worth, 1.0, worth),)

    scores = falling([worth for _, _, worth in kept.values()])
    candidates = [
        Candidate(cid, score, given, worth, worth)
        for (cid, (_, _, worth)), score in zip(kept.items(), scores, strict=True)
    ]
    total, is_exact = _count(legs.keyword, question, found, least) if least else (found.total, True)
    return Found(
        candidates,
        found,
        total=total,
        weaker=found.total - total if is_exact else 0,
        least=least,
        is_all=len(found.hits) < wanted or len(kept) < len(worths),
        strategy="browse" if is_browsing else KEYWORD,
        legs=() if is_browsing else (KEYWORD,),
        feedback=feedback,
        is_exact=is_exact,
    )


def depth_of(wanted: int, overfetch: float, depth: int = _LEAST_DEPTH) -> int:
    """Hits asked of each leg, at least a `depth`: in steps, so that a page and the next one see the same ranking."""
    most = current_budget().candidates
    while depth < min(wanted * overfetch, most):
        depth *= 4
    return min(depth, most)


def in_order(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Found:
    """The findings in the order of what is known besides: of their resources, their speakers, and what they lead to."""
    return _by_graph(legs, question, _by_resources(legs, question, found))


def _by_resources(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Found:
    """The findings in the order of evidence about resources, if the router may and code may have been meant.

    Either some of the best may be code, or the question is a name that code defines.
    """
    if not found.candidates or not question.plan.route or question.reading == "browse" or legs.keyword.unit == "page":
        return found
    best = [candidate.cid for candidate in found.candidates[:COMPARED]]
    resources = legs.store.resources_of(best)
    if all(resources[cid].lang in _PROSE for cid in best[:_JUDGED] if cid in resources):
        # Most questions have more than a word: they need no look at names.
        name = written_name(question.text) if " " not in question.text else ""
        if not name or not legs.keyword.definers([name], question.node, question.filters, 1):
            return _by_turns(legs, question, found, resources)
    from findling.pipelines.retrieve.resource_order import order_by_resources

    ordered = order_by_resources(legs, question, found, resources)
    return ordered if ordered is not found else _by_turns(legs, question, found, resources)


def _by_turns(legs: Retrievers, question: AnalyzedQuery, found: Found, resources: Mapping[int, Resource]) -> Found:
    """The findings in the order of their speakers, if the best are no files but perhaps turns of chats."""
    # Memories are no turns either: to find that out took 12 of 30 ms of a question to a few of them.
    if all(one.type == "memory" or (one.path and one.type != "chat") for one in resources.values()):
        return found
    from findling.pipelines.retrieve.turn_order import order_by_turns

    return order_by_turns(legs, question, found, resources)


def _by_graph(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Found:
    """The findings with what the graph leads to from their best, if the question may name something."""
    chosen, text = question.plan.graph, question.text
    if chosen == "off" or question.reading != "ranked" or legs.keyword.unit == "page" or not found.candidates:
        return found
    # A search for words needs no names, and code has other evidence.
    is_asking = not _ASKING.isdisjoint(question.route.shape) or any(map(str.isupper, text[1:]))
    if legs.leg is None or (chosen == "auto" and (found.resources or " " not in text or not is_asking)):
        return found
    from findling.pipelines.retrieve.graph_step import lead_on

    return lead_on(legs, question, found)
