"""Expansion: a question is asked again in other words, those of a language model or of its own best passages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from findling.domain.budgets import current_budget
from findling.domain.queries import Any as AnyOf
from findling.domain.queries import LegQuery, Rephrasing, Variant, Word
from findling.domain.results import Degradation, Evidence
from findling.pipelines.retrieve.feedback_step import READ, shared_words
from findling.pipelines.retrieve.legs import EXPANSION, Found, Retrievers, Widened
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.pipelines.retrieve.vector_retrieval import Meaning, allowed_resources, find_by_meaning
from findling.ranking.evidence import words_evidence
from findling.text.query.variants import LOCAL, bag_of_words, told

_PATIENCE_S = 5.0
"""Seconds for all language models together; less where the answer itself has less than twice that left."""

_NEVER = 1_000_000
"""Terms of a question up to which its best passages may add some: the first round was weak already."""

_DISCOUNT = 0.7
"""Worth of evidence for a variant beside evidence for the question itself."""

_OF_MODELS = ("lex", "vec", "hyde")
_OWN = 0.33
"""Strength of words that come from passages, beside those of a language model."""

_OWN_WORTH = 0.5
"""Worth of such words, likewise: that a passage has its own words proves nothing."""


def widen(legs: Retrievers, question: AnalyzedQuery, found: Found, account: Mapping[str, Any]) -> Widened:
    """Variants of a question from the language model of the caller, else from the best passages and the glossary."""
    given = _rephrased(legs, question, found)
    variants = given.variants or tuple(_from_passages(legs, question, found))
    by = given.by if given.variants else LOCAL
    notes = given.notes
    if notes and not given.variants:
        instead = "words of the best passages were asked instead" if variants else "nothing was asked instead"
        notes = (*notes[:-1], Degradation(what=f"{notes[-1].what}; {instead}", fix=notes[-1].fix))
    shown = [variant._asdict() for variant in variants]
    more = {"by": by, "cached": given.is_cached, "sent_to": given.sent_to, "variants": shown}
    bind = (lambda legs, meaning: VariantLeg(legs, meaning, variants)) if variants else None
    return Widened({**account, **more}, bind, notes)


def _rephrased(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Rephrasing:
    rephraser = legs.rephraser() if legs.rephraser is not None else None
    if rephraser is None:
        return Rephrasing()
    patience_s, deadline = _PATIENCE_S, current_budget().deadline
    if deadline is not None:
        patience_s = min(patience_s, (deadline - time.perf_counter()) / 2)
    best = [candidate.cid for candidate in found.candidates[:READ]]
    resources = legs.store.resources_of(best)
    about = [resources[cid] for cid in best if cid in resources]
    return rephraser.rephrase(question.text, question.filters, about, question.plan.profile, patience_s)


def _from_passages(legs: Retrievers, question: AnalyzedQuery, found: Found) -> Iterator[Variant]:
    """Words that the best passages share, and what the glossary calls them."""
    if question.plan.feedback:
        return  # the first round had them already
    best = [(candidate.cid, candidate.score) for candidate in found.candidates[:READ]]
    # A page stands for its best chunk alone, so words may seem rarer than they are.
    size = max(legs.keyword.size(), READ)
    shared = shared_words(legs.store, legs.keyword, question, best, size, few_terms=_NEVER)
    words = [one.term for one in shared.terms]
    if words:
        yield Variant("passages", " ".join(words))
    if aliases := list(_aliases(legs, words)) if question.plan.glossary else []:
        yield Variant("glossary", " ".join(aliases))


def _aliases(legs: Retrievers, words: Iterable[str]) -> Iterator[str]:
    if not legs.store.glossary_version():
        return
    from findling.pipelines.glossary.glossary_expansion import lookup_of

    lookup = lookup_of(legs.store)
    for word in words:
        for group in lookup.groups(word).values():
            yield from (term.surface for term in group if term.surface.lower() != word)


class VariantLeg:
    """The leg of one question's variants: words for words, passages and questions for meaning, where there is any."""

    name = EXPANSION
    least = 0.0

    def __init__(self, legs: Retrievers, meaning: Meaning, variants: Sequence[Variant]) -> None:
        self._legs, self._spaces, self._variants = legs, meaning.spaces, variants
        self._best: dict[Variant, tuple[float, float]] = {}

    def search(self, query: LegQuery, limit: int, also: Sequence[int] = ()) -> dict[int, Evidence]:
        """The evidence of all variants together; its remark names those that have found the chunk."""
        strengths: dict[int, float] = {}
        worths: dict[int, float] = {}
        remarks: dict[int, list[str]] = {}
        for variant in self._variants:
            for cid, (strength, worth) in self._found(variant, query, limit, also).items():
                strengths[cid] = strengths.get(cid, 0.0) + strength / len(self._variants)
                worths[cid] = max(worths.get(cid, 0.0), worth * _DISCOUNT)
                remarks.setdefault(cid, []).append(told(variant))
        return {
            cid: Evidence(self.name, strength, strength, worths[cid], "; ".join(remarks[cid]))
            for cid, strength in strengths.items()
        }

    def second_look(self, query: LegQuery, best: Sequence[int]) -> dict[int, Evidence]:
        """Nothing: words and vectors are asked at once."""
        return {}

    def _found(
        self, variant: Variant, query: LegQuery, limit: int, also: Sequence[int]
    ) -> Mapping[int, tuple[float, float]]:
        """Strength and worth of chunks by one variant, both 0 to 1."""
        if variant.kind not in ("vec", "hyde") or not self._spaces:
            return self._by_words(variant, query, limit, also)
        allowed = allowed_resources(self._legs.store, query.filters)
        kind = "passage" if variant.kind == "hyde" else "query"
        near, _ = find_by_meaning(self._spaces, variant.text, limit, allowed=allowed, also=also, kind=kind)
        return {cid: (one.strength, one.worth) for cid, one in near.items() if one.worth}

    def _by_words(
        self, variant: Variant, query: LegQuery, limit: int, also: Sequence[int]
    ) -> Mapping[int, tuple[float, float]]:
        keyword, weights = self._legs.keyword, query.plan.weights
        node = AnyOf(tuple(map(Word, bag_of_words(variant.text))))
        if not node.nodes:
            return {}
        scores: dict[int, float] = {}
        if limit or variant not in self._best:
            hits = keyword.search(node, query.filters, max(limit, 1), weights=weights)
            self._best[variant] = hits.hits[0][1] if hits.hits else 0.0, hits.ceiling
            scores = dict(hits.hits) if limit else {}
        best, ceiling = self._best[variant]
        if missing := [cid for cid in also if cid not in scores]:
            scores |= keyword.scores(node, missing, weights=weights)
        if best <= 0:
            return {}
        strength, worth = (1.0, 1.0) if variant.kind in _OF_MODELS else (_OWN, _OWN_WORTH)
        found = {cid: raw for cid, raw in scores.items() if raw > 0}
        return {cid: (strength * raw / best, worth * words_evidence(raw, ceiling)) for cid, raw in found.items()}
