"""Feedback: a short query is asked again with the words that its best hits share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum, hypot, log, sqrt
from typing import NamedTuple, TypeAlias

from findling.domain.ports import KeywordHits, KeywordLeg, ReadStore
from findling.domain.values import counted
from findling.pipelines.retrieve.query_planner import AnalyzedQuery, loose_words
from findling.ranking.evidence import finite, unit
from findling.ranking.fusion import Hits
from findling.text.analysis.analysis import STOP_WORDS, terms
from findling.text.query.tree import typed_terms

_FLAT, _MOST_WEIGHT = 0.02, 0.3
"""Deviation / mean of scores that do not tell texts apart; and the weight of the best added term."""

Frequencies: TypeAlias = Mapping[str, int]
"""The number of documents with a term; a term that is missing occurs in none."""


class _Expansion(NamedTuple):
    """A term to add, with its weight beside terms of the query, which have 1."""

    term: str
    weight: float
    reason: str


class Feedback(NamedTuple):
    """The terms to add, heaviest first, and why there are some or none."""

    terms: tuple[_Expansion, ...]
    reason: str


class Drift(NamedTuple):
    """A verdict whether the ranking with feedback takes the place of the old one; `overlap` is their common top."""

    accepted: bool
    overlap: float
    reason: str


def expansion(
    query: Sequence[str],
    texts: Sequence[Sequence[str]],
    scores: Sequence[float],
    frequencies: Frequencies,
    documents: int,
    *,
    depth: int = 10,
    few_terms: int = 4,
    most_terms: int = 8,
) -> Feedback:
    """Terms that the best texts have in common and other documents lack.

    Query and texts come as analysed terms, texts and scores best first; `query` has content terms only, and `documents`
    counts what `frequencies` counts in. Nothing is added unless the query has at most `few_terms` terms or the scores
    of the first `depth` texts are flat: deviation / mean at most 0.02. Raises ValueError for unpaired texts and
    scores, a score that is not finite, or an impossible document frequency.
    """
    if len(texts) != len(scores):
        raise ValueError(f"{len(texts)} texts come with {len(scores)} scores")
    top = texts[:depth]
    why = _occasion(query, [finite(score, "score") for score in scores[:depth]], few_terms)
    if why is None:
        return Feedback((), f"not needed: {counted(len(query), 'term')}, and scores that tell the texts apart")
    weighed = _weighed(query, top, frequencies, documents)[:most_terms]
    if not weighed:
        return Feedback((), f"{why}, but the best {len(top)} texts share no further term")
    scale = _MOST_WEIGHT / weighed[0][0]
    added = tuple(
        _Expansion(term, value * scale, f"in {held} of the best {len(top)} texts, in {frequency} of {documents} in all")
        for value, term, held, frequency in weighed
    )
    return Feedback(added, why)


def drift(old: Sequence[int], new: Sequence[int], *, depth: int = 10, least: float = 0.4) -> Drift:
    """Accept the new ranking if it keeps at least this share of the ids that the old one has on top.

    Keep the old ranking otherwise. From an empty ranking nothing drifts.
    """
    unit(least, "least")
    before = set(old[:depth])
    overlap = len(before.intersection(new[:depth])) / len(before) if before else 1.0
    accepted = overlap >= least
    verdict = "kept" if accepted else f"dropped, less than {least:.0%}"
    return Drift(
        accepted, overlap, f"{overlap:.0%} of the first {counted(len(before), 'hit')} remain: feedback {verdict}"
    )


def _occasion(query: Sequence[str], scores: Sequence[float], few_terms: int) -> str | None:
    """The reason to look for terms, if there is one."""
    if not query or not scores:
        return None
    if len(query) <= few_terms:
        return f"short query: {len(query)} of at most {counted(few_terms, 'term')}"
    spread = _relative_deviation(scores)
    return f"flat scores: deviation {spread:.3f} of the mean" if len(scores) > 1 and spread <= _FLAT else None


def _relative_deviation(scores: Sequence[float]) -> float:
    """Deviation / mean; by hand, because importing `statistics` takes 5 ms and this takes 2 µs."""
    mean = fsum(scores) / len(scores)
    deviation = hypot(*(score - mean for score in scores)) / sqrt(len(scores))
    return deviation / abs(mean) if mean else float(deviation > 0)


def _weighed(
    query: Sequence[str], texts: Sequence[Sequence[str]], frequencies: Frequencies, documents: int
) -> list[tuple[float, str, int, int]]:
    """Value, term, texts that hold it and document frequency, best first.

    A term of a single text says something about that text, not about the question, so it takes two.
    """
    counts = [Counter(text) for text in texts]
    held = Counter(term for count in counts for term in count)
    asked = set(query)
    weighed = []
    for term, holding in held.items():
        if holding < 2 or term in asked or len(term) < 2 or term.isdecimal():
            continue
        # A term cannot be rarer than what is before our eyes, whatever the statistics say.
        frequency = max(frequencies.get(term, 0), holding)
        if frequency > documents:
            raise ValueError(f"term {term!r} is in {frequency} of {documents} documents")
        rarity = log(1 + (documents - frequency + 0.5) / (frequency + 0.5))
        value = rarity * sum(1 + log(count[term]) for count in counts if term in count)
        weighed.append((value, term, holding, frequency))
    return sorted(weighed, key=lambda one: (-one[0], one[1]))


READ = 10
"""Best passages whose words are counted."""


def shared_words(
    store: ReadStore, leg: KeywordLeg, question: AnalyzedQuery, best: Hits, size: int, few_terms: int = 4
) -> Feedback:
    """The `expansion` of a question by the best passages; `size` counts all passages that there are."""
    chunks = store.chunks([cid for cid, _ in best])
    read = [(chunks[cid].text, score) for cid, score in best if cid in chunks]
    texts = [[word for word in terms(text) if word not in STOP_WORDS] for text, _ in read]
    counted = leg.frequencies({word for text in texts for word in text})
    frequencies = {word: min(count, leg.size()) for word, count in counted.items()}
    scores = [score for _, score in read]
    return expansion(typed_terms(question.node), texts, scores, frequencies, size, few_terms=few_terms)


def with_feedback(
    store: ReadStore, leg: KeywordLeg, question: AnalyzedQuery, found: KeywordHits, limit: int
) -> tuple[KeywordHits, str]:
    """The hits with those of the added words counted in, and what was added or why nothing was.

    Only for plain words.
    """
    filters, weights = question.filters, question.plan.weights
    if loose_words(question)[1] is not None or not found.hits:
        return found, ""
    added = shared_words(store, leg, question, found.hits[:READ], leg.size())
    if not added.terms:
        return found, added.reason
    words = question.any_of(term for term, _, _ in added.terms)
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
