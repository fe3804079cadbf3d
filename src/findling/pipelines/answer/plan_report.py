"""The account of a search: its plan, its vectors, its quality, its unknown words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from findling.domain.plans import Plan
from findling.domain.queries import GROUPS, Node
from findling.domain.results import Degradation, Hit
from findling.pipelines.answer.rankings import Ranked, Ranking
from findling.pipelines.retrieve.legs import SEMANTIC, Found
from findling.pipelines.retrieve.plan_files import filters_document, plan_document
from findling.pipelines.retrieve.query_planner import WORDS, AnalyzedQuery
from findling.pipelines.retrieve.vector_retrieval import Meaning
from findling.text.analysis.analysis import word_terms
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.analysis.scripts import is_unspaced
from findling.text.query.tree import typed_terms

__all__ = ["plan_account", "quality_of", "unknown_terms", "vector_account"]


def plan_account(ranking: Ranking, unit: str) -> dict[str, Any]:
    """Everything that was planned, in a form from which the search can be carried out again."""
    question, found = ranking.question, ranking.found
    request, shape, keyword = question.request, question.route, found.keyword
    planned: dict[str, Any] = {
        "query": request.query,
        "filters": filters_document(request.filters),
        "limit": request.limit,
        "offset": request.offset,
        "min_score": (request.plan or Plan()).min_score,
        "exclude_pattern": request.exclude_pattern,
        "plan": plan_document(request.plan or Plan()),
        "reading": question.reading,
        "because": question.because,
        "route": {
            "kind": shape.kind,
            "complexity": round(shape.complexity, 3),
            "shape": shape.shape,
            "signals": shape.signals,
            "graph": shape.graph,
            "reasons": shape.reasons,
        },
        "legs": list(found.legs),
        "unit": unit,
        "overfetch": question.plan.overfetch,
    }
    if found.weighing is not None:
        planned["weighing"] = {"alpha": round(found.weighing.alpha, 3), "because": found.weighing.reason}
    if question.fired:
        planned["glossary"] = [fired._asdict() for fired in question.fired]
    if found.feedback:
        planned["feedback"] = found.feedback
    steps = [*([("feedback", found.feedback)] if found.feedback else []), *ranking.steps]
    planned["steps"] = [{"name": name, "did": did} for name, did in steps]
    if request.explain:
        planned["ceiling"] = round(keyword.ceiling, 4)
        planned["forms"] = {term: list(forms) for term, forms in keyword.forms.items()}
    return planned


def vector_account(meaning: Meaning, page: Sequence[Ranked]) -> dict[str, Any]:
    """The vectors that served an answer."""
    speeds = {near.why for entry in page if (near := entry.candidate.of(SEMANTIC)) is not None}
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


def quality_of(found: Found, hits: Sequence[Hit], meaning: Meaning, degraded: Sequence[Degradation]) -> str:
    """The quality that an answer can have: `none` without hits, else by how complete the search was."""
    if not hits:
        return "none"
    if degraded:
        return "reduced"
    return "excellent" if found.strategy == "hybrid" and meaning.coverage >= 1 else "good"


def unknown_terms(question: AnalyzedQuery, found: Found) -> list[str]:
    """The typed words that the index does not hold in any form.

    Words that are asked of one field, small words, and pairs of characters that stand for a word do not count. An
    identifier counts as a whole.
    """
    forms, in_a_field = found.keyword.forms, _asked_of_a_field(question.node)
    typed = [term for term in typed_terms(question.node) if term not in in_a_field and not forms.get(term)]
    told = {term: word for word in WORDS.findall(question.request.query) for term in word_terms(word)}
    words = [term for term in typed if term not in SENTENCE_WORDS and not any(map(is_unspaced, term))]
    return [*dict.fromkeys(told.get(term, term) for term in words)]


def _asked_of_a_field(node: Node) -> set[str]:
    if isinstance(node, GROUPS):
        return set().union(*map(_asked_of_a_field, node.nodes))
    return set(typed_terms(node)) if getattr(node, "field", "") else set()
