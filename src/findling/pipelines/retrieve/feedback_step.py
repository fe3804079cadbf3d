"""Feedback: a short query is asked again with the words that its best hits share."""

from __future__ import annotations

from findling.domain.ports import KeywordHits, KeywordLeg, ReadStore
from findling.domain.queries import Any, Word
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, loose_words
from findling.ranking.feedback import drift, expansion
from findling.text.analysis.analysis import STOP_WORDS, terms
from findling.text.query.tree import typed_terms

__all__ = ["with_feedback"]

_READ = 10


def with_feedback(
    store: ReadStore, leg: KeywordLeg, question: AnalyzedQuery, found: KeywordHits, limit: int
) -> tuple[KeywordHits, str]:
    """The hits with those of the added words counted in, and what was added or why nothing was.

    Only for plain words.
    """
    filters, weights = question.filters, question.plan.weights
    if loose_words(question)[1] is not None or not found.hits:
        return found, ""
    best = found.hits[:_READ]
    chunks = store.chunks([cid for cid, _ in best])
    texts = [[word for word in terms(chunk.text) if word not in STOP_WORDS] for chunk in chunks.values()]
    scores = [score for cid, score in best if cid in chunks]
    chunk_count = leg.size()
    counted = leg.frequencies({word for text in texts for word in text})
    frequencies = {word: min(count, chunk_count) for word, count in counted.items()}
    added = expansion(typed_terms(question.node), texts, scores, frequencies, chunk_count)
    if not added.terms:
        return found, added.reason
    words = Any(tuple(Word(term) for term, _, _ in added.terms))
    more = leg.search(words, filters, limit, weights=weights)
    if not more.hits:
        return found, added.reason
    share = max(weight for _, weight, _ in added.terms) * found.hits[0][1] / more.hits[0][1]
    total = dict(found.hits)
    for cid, score in more.hits:
        total[cid] = total.get(cid, 0.0) + share * score
    hits = sorted(total.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]
    verdict = drift([cid for cid, _ in found.hits], [cid for cid, _ in hits])
    report = f"{added.reason}: {', '.join(term for term, _, _ in added.terms)}; {verdict.reason}"
    return (found._replace(hits=hits) if verdict.accepted else found), report
