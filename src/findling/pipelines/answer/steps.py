"""Steps of a plan after the fusion, each from a ranking to a ranking; and the account of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from findling.domain.plans import Plan
from findling.domain.ports import KeywordLeg
from findling.domain.queries import GROUPS, Filters, Node
from findling.domain.resources import StoredChunk
from findling.domain.results import Degradation, Hit, Step
from findling.domain.values import plain
from findling.pipelines.answer.hits import judged_text
from findling.pipelines.answer.rankings import (
    MOST_PASSAGES,
    Ranked,
    Ranking,
    StepContext,
    group_of,
    grouped,
    joined_twins,
)
from findling.pipelines.retrieve.legs import SEMANTIC, Found, Retrievers
from findling.pipelines.retrieve.plan_files import filters_document
from findling.pipelines.retrieve.query_planner import WORDS, AnalyzedQuery
from findling.pipelines.retrieve.vector_retrieval import Meaning
from findling.text.analysis.analysis import word_terms
from findling.text.analysis.lines import SENTENCE_WORDS
from findling.text.analysis.scripts import is_unspaced
from findling.text.query.leaves import CODE_LANGUAGES
from findling.text.query.tree import typed_terms


def plan_account(ranking: Ranking, leg: KeywordLeg) -> dict[str, Any]:
    """Everything that was planned, in a form from which the search can be carried out again."""
    question, found = ranking.question, ranking.found
    request, shape, weighing = question.request, question.route, found.weighing
    planned: dict[str, Any] = {
        "query": request.query,
        "filters": filters_document(request.filters) if request.filters != Filters() else {},
        "limit": request.limit,
        "offset": request.offset,
        "min_score": (request.plan or Plan()).min_score,
        "exclude_pattern": request.exclude_pattern,
        "plan": plain(request.plan or Plan()),  # with its defaults, which may change
        "reading": question.reading,
        "because": question.because,
        "route": {name: getattr(shape, name) for name in _ROUTE} | {"complexity": round(shape.complexity, 3)},
        "legs": list(found.legs),
        "unit": leg.unit,
        "overfetch": question.plan.overfetch,
    }
    optional = {
        "weighing": weighing and {"alpha": round(weighing.alpha, 3), "because": weighing.reason},
        "glossary": [fired._asdict() for fired in question.fired],
        "feedback": found.feedback,
        "graph": dict(found.graph),
        "expansion": dict(ranking.expansion),
    }
    steps = (("feedback", found.feedback), ("resources", found.resources), *ranking.steps)
    planned |= {name: told for name, told in optional.items() if told}
    planned["steps"] = [{"name": name, "did": did} for name, did in steps if did]
    return planned | (_scale_account(found, leg) if request.explain else {})


_ROUTE = ("kind", "complexity", "shape", "signals", "graph", "reasons")


def _scale_account(found: Found, leg: KeywordLeg) -> dict[str, Any]:
    """The most that words could score, and the forms of each."""
    from findling.pipelines.answer.no_results import standing

    # Without those of deleted texts only, which the leg knows until a compaction.
    forms = {term: [one for one in known if standing(leg, one)] for term, known in found.keyword.forms.items()}
    return {"ceiling": round(found.keyword.ceiling, 4), "forms": forms}


def vector_account(meaning: Meaning, page: Sequence[Ranked]) -> dict[str, Any]:
    """The vectors that served an answer."""
    # With vectors of one kind they are those of every hit, whose evidence is not made for that.
    near = [entry.candidate.of(SEMANTIC) for entry in page] if len(meaning.spaces) > 1 else []
    speeds = {one.why for one in near if one is not None} or {space.leg.speed for space in meaning.spaces[:1]}
    models = [space.embedder for space in meaning.spaces if space.is_refined]
    hosts = {model.host for model in (*models, meaning.reranker) if model is not None and model.host}
    return {
        "speed": "mixed" if len(speeds) > 1 else "".join(speeds),
        "model": ", ".join(dict.fromkeys(model.name for model in models)),
        "coverage": round(meaning.coverage, 4),
        "reranker": meaning.reranker.name if meaning.reranker else "",
        "sent_to": sorted(hosts),
    }


def quality_of(found: Found, hits: Sequence[Hit], meaning: Meaning, degraded: Sequence[Degradation]) -> str:
    """The quality of an answer by its best score and by how complete the search was; `none` without hits."""
    if not hits:
        return "none"
    if degraded:
        return "reduced"
    best = max(hit.score for hit in hits)
    if best < _WEAK and found.strategy != "browse":
        return "weak"
    is_complete = found.strategy == "hybrid" and meaning.coverage >= 1
    return "excellent" if is_complete and best >= _EXCELLENT else "good"


_WEAK, _EXCELLENT = 0.2, 0.5
"""Scores of the best hit, out of 1: right answers in notes of another language begin at .08, those by words at .3."""


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


class PlanStep(NamedTuple):
    """A step of the plan: its name, a test whether the plan has it, and its function."""

    name: str
    applies: Callable[[StepContext], bool]
    run: Callable[[list[Ranked], StepContext], list[Ranked]]


def run_steps(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The ranking after all steps of the plan; `context.did` has the effect of each."""
    for name, applies, run in STEPS:
        if applies(context):
            before, ranking = ranking, run(ranking, context)
            if did := _difference(before, ranking):
                context.did.append((name, did))
    return ranking


def _difference(before: Sequence[Ranked], after: Sequence[Ranked]) -> str:
    """The effect of a step on a ranking, in words; empty for none."""
    scores = {entry.stored.chunk.cid: entry.score for entry in before}
    kept = {entry.stored.chunk.cid for entry in after}
    order = [cid for cid in scores if cid in kept]
    moved = sum(entry.stored.chunk.cid != cid for entry, cid in zip(after, order, strict=False))
    scored = sum(scores.get(entry.stored.chunk.cid) != entry.score for entry in after)
    told = (
        f"{len(before):,} became {len(after):,}" if len(before) != len(after) else "",
        f"{moved:,} of {len(after):,} moved" if moved else "",
        f"{scored:,} of {len(after):,} scored otherwise" if scored else "",
    )
    return ", ".join(filter(None, told))


def _post(name: str) -> Callable[[list[Ranked], StepContext], list[Ranked]]:
    """A step of `post_ranking`, which is loaded by plans that have one: 9 ms that most searches save."""

    def run(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
        from findling.pipelines.answer import post_ranking

        step: Callable[[list[Ranked], StepContext], list[Ranked]] = getattr(post_ranking, name)
        return step(ranking, context)

    return run


_CUES = (
    "copyright",
    "licen",
    "all rights reserved",
    "without warranty",
    "do not edit",
    "generated by",
    "unsubscribe",
    "confidential",
    "wrote:",
    "original message",
    "sent from my",
    "\n>",
    "skip to ",
    "table of contents",
)
"""Words of boilerplate in lower case. To look for them in ten passages takes 0.05 ms."""

_GLANCED_AT = 200
"""Best passages that are looked at, each for 15 µs: what stands further down nobody reads."""

_BRIEF, _MARKS, _LISTED, _AGAIN = 80, 12, 25, 4
"""Characters of a passage that may say nothing but its headings, of marks around those, and of a line in a list of
links. From so many times on that each word comes, a passage says the same again and again."""


_HEAD = 800
"""Characters of a passage that a glance takes in: half of most, and 12 µs instead of 24."""


def _is_suspect(stored: StoredChunk) -> bool:
    """Whether a passage may be boilerplate or near-empty, by a glance at it; no other candidate has a say in that."""
    text = stored.text
    if len(text) < _BRIEF:
        headings = stored.chunk.heading
        return bool(headings) and len(text) < len("\n# ".join(headings)) + _MARKS
    head = text[:_HEAD]
    words, lowered = head.split(), head.lower()
    if len(words) > _AGAIN * len(set(words)) or any(map(lowered.__contains__, _CUES)):
        return True
    if len(text) >= _LISTED * text.count("\n") or stored.resource.lang in CODE_LANGUAGES:
        return False
    return "=" not in text and "{" not in text  # code that has no language is no list of links


def _hold_back(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The ranking with what stands everywhere lowered; most answers have nothing that looks like it."""
    suspects = {entry.stored.chunk.cid for entry in ranking[:_GLANCED_AT] if _is_suspect(entry.stored)}
    if not suspects:
        return ranking
    from findling.pipelines.answer.novelty import hold_back

    return hold_back(ranking, context, suspects, _CUES)


def _is_to_hold_back(context: StepContext) -> bool:
    legs = context.legs
    return context.plan.novelty and legs is not None and legs.keyword.unit != "page"


def _has_versions(context: StepContext) -> bool:
    return context.legs is not None


def _demote_superseded(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The ranking with what was superseded below its successors; a file supersedes nothing."""
    legs = context.legs
    if legs is None or all(entry.stored.resource.type == "file" for entry in ranking):
        return ranking
    from findling.pipelines.answer.versions import demote, replaced_by

    replaced = replaced_by(legs.store, {entry.stored.resource.rid for entry in ranking})
    if not replaced:
        return ranking
    moved = demote(ranking, replaced)
    top, is_cut = context.top(moved)
    # What was not fetched may also be the successor of something.
    here = {entry.stored.resource.rid for entry in moved}
    away = {replaced[e.stored.resource.rid] for e in top if e.stored.resource.rid in replaced} - here
    context.is_settled = not is_cut and not any(_matches(legs, context.question, rid) for rid in away)
    return moved


def _join_twins(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The ranking with copies of a passage as others of it; those of the last one may not have been fetched."""
    joined = joined_twins(ranking)
    last = {entry.stored.chunk.cid for entry in joined[: context.wanted][-1:]}
    context.is_settled &= last.isdisjoint(entry.stored.chunk.cid for entry in ranking[-MOST_PASSAGES:])
    return joined


def _put_newer_first(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The ranking in which of two memories that say nearly the same the newer one comes first, whatever the scores."""
    best: dict[str, Ranked] = {}
    for entry in ranking:
        # A person may have said that the older one holds.
        if entry.stored.resource.type == "memory" and all(step.name != "superseded" for step in entry.steps):
            best.setdefault(entry.stored.resource.rid, entry)
    if len(best) < 2:
        return ranking
    from findling.pipelines.answer.versions import below_newer
    from findling.pipelines.content.memory_judge import newer_of

    said = ((rid, one.stored.text, one.stored.resource.updated_at or 0.0) for rid, one in best.items())
    newer = newer_of(said, context.question.request.query)
    lowered = below_newer({rid: one.score for rid, one in best.items()}, newer)
    moved = []
    for entry in ranking:
        rid = entry.stored.resource.rid
        if lowered.get(rid, entry.score) < entry.score:
            step = Step(name="newer", factor=lowered[rid] / entry.score, reason=f"{newer[rid][0]} says it newer")
            entry = entry.moved(lowered[rid], step)
        moved.append(entry)
    return sorted(moved, key=lambda entry: -entry.score)


TOGETHER = 10
"""Best passages that sentences may order, whatever the size of a page is."""


def _is_asked_in_words(context: StepContext) -> bool:
    """Whether sentences may answer: not a name, a pattern or a condition, and no model reads the passages anyway."""
    is_plain = context.question.reading == "ranked" and " " in context.question.text and not context.shuffles
    return is_plain and context.asked is not None and not context.asked.patterns and not context.asked.definitions


def _by_sentences(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The ranking in which of the best passages of one text those come first whose sentence tells most.

    They change places with each other, and scores with the places: no other text moves.
    """
    places, moved = dict[str, list[int]](), list(ranking)
    for place, entry in enumerate(ranking[:TOGETHER]):
        if entry.stored.resource.type != "chat" and entry.stored.resource.lang not in CODE_LANGUAGES:
            places.setdefault(entry.stored.resource.rid, []).append(place)
    for own in [own for own in places.values() if len(own) > 1]:
        assert context.asked is not None
        told = {at: ranking[at].score + judged_text(ranking[at].stored, context.asked)[1].answer() for at in own}
        for place, at in zip(own, sorted(own, key=lambda at: (-told[at], at)), strict=True):
            if at != place:
                entry, score = ranking[at], ranking[place].score
                reason = f"its best sentence tells {'more' if place < at else 'less'} than one of another passage"
                step = Step(name="sentences", factor=score / entry.score if entry.score else 1.0, reason=reason)
                moved[place] = entry.moved(score, step)
    return moved


def _matches(legs: Retrievers, question: AnalyzedQuery, rid: str) -> bool:
    document = legs.store.document(rid)
    return document is not None and bool(legs.keyword.scores(question.node, [chunk.cid for chunk in document.chunks]))


def _in_groups(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The groups of a ranking, each of several passages with a step that counts them; it moves nothing."""
    by = context.plan.group
    return [_with_count(group, by, len(ranking)) if group.others else group for group in grouped(ranking, by)]


def _with_scores(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    return [entry for entry in ranking if entry.score >= context.least]


def _with_count(group: Ranked, by: str, looked_at: int) -> Ranked:
    whose = "of this thread" if group_of(group.stored.resource, by) != group.stored.resource.rid else "of it"
    reason = f"{1 + len(group.others):,} passages {whose} among the best {looked_at:,}"
    return group.moved(group.score, Step(name="group", factor=1.0, reason=reason))


STEPS = (
    PlanStep("read", lambda context: context.reads, _post("set_unread_aside")),
    PlanStep("novelty", _is_to_hold_back, _hold_back),
    PlanStep("boosts", lambda context: context.boosts, _post("boost")),
    PlanStep("rerank", lambda context: context.reranks, _post("rerank")),
    PlanStep("diversity", lambda context: context.plan.diversity < 1, _post("spread")),
    PlanStep("order", lambda context: context.shuffles, _post("put_in_order")),
    PlanStep("cut", lambda context: context.plan.adaptive_k, _post("cut")),
    PlanStep("superseded", _has_versions, _demote_superseded),
    PlanStep("newer", _has_versions, _put_newer_first),
    PlanStep("sentences", _is_asked_in_words, _by_sentences),
    PlanStep("min_score", lambda context: context.least > 0, _with_scores),
    PlanStep("collapse", lambda context: context.joins, _join_twins),
    PlanStep("group", lambda context: context.plan.group != "none", _in_groups),
)
