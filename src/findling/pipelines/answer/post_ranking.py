"""Reordering: the steps of a plan after the fusion, each with its reason.

Scores never rise from one hit to the next, whatever the steps do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from findling.domain.backends import GRAPH
from findling.domain.budgets import current_budget, finished_by
from findling.domain.errors import ModelError, OverdueError
from findling.domain.plans import Plan
from findling.domain.resources import StoredChunk
from findling.domain.results import Degradation, Step
from findling.pipelines.answer.hits import judged_text
from findling.pipelines.answer.rankings import HighlightSpec, Ranked, StepContext
from findling.pipelines.content.resource_types import half_life_of
from findling.ranking.boosts import (
    MOST,
    Boost,
    Boosted,
    author_affinity,
    boosted,
    exact_field,
    exact_phrase,
    field_match,
    recency,
    starts_field,
)
from findling.ranking.diversity import adaptive_k, diversify, jaccard
from findling.ranking.evidence import is_refuted, judge_weight, judged_order
from findling.text.analysis.analysis import terms
from findling.text.chunking.chunk_plan import passage
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.query.asked_names import looks_like_code
from findling.text.query.tree import typed_terms

if TYPE_CHECKING:
    from findling.models.ports import Reranker

_FEWEST = 3
"""Hits that are given wherever scores fall."""


def set_unread_aside(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """The passages that there is time to take apart; `put_in_order` puts the others back."""
    most = current_budget().take("read", len(ranking), "boosts and diversity were for the best passages alone")
    context.unread = ranking[most:]
    return ranking[:most]


def boost(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """Lift hits for what their fields, their writer and their age say."""
    plan, asked = context.plan, typed_terms(context.question.node)
    now = time.time() if context.now is None else context.now
    by_cid = {entry.stored.chunk.cid: entry for entry in ranking}
    boosts = {cid: _boosts(entry, asked, plan, now) for cid, entry in by_cid.items()}
    # A plan may ask for a larger factor.
    most = max(MOST, plan.exact_boost * plan.phrase_boost * plan.prefix_boost)
    lifted = boosted([(cid, entry.score) for cid, entry in by_cid.items()], boosts, most=most)
    return [_lifted(by_cid[one.id], one) for one in lifted]


def rerank(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """Have a judge read the best; one that fails leaves the ranking as it was, and a note.

    Where it finds all of them far off, nothing is a hit.
    """
    first = ranking[: context.plan.rerank_depth]
    # A judge of prose knows nothing of code: cosqa loses .02 NDCG@10 at a weight of .3.
    if sum(map(_is_code, first[:_LOOKED_AT])) > _LOOKED_AT // 2:
        return ranking
    try:
        judged = _judged(first, context)
    except ModelError as error:
        context.notes.append(Degradation(what=f"not reranked: {error.message}", fix=error.hint))
        return ranking
    verdicts = [context.verdicts[cid] for entry in first if (cid := entry.stored.chunk.cid) in context.verdicts]
    is_all = len(verdicts) == len(first) and not context.plan.weak
    context.is_refuted = is_all and is_refuted(verdicts, [entry.candidate.worth for entry in first])
    return [] if context.is_refuted else [*judged, *ranking[len(first) :]]


def spread(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """Spread what is nearly equal, as long as there is time."""
    is_over = current_budget().is_over("what is nearly equal was not spread")
    return ranking if is_over else _diversify(ranking, context.plan.diversity)


def put_in_order(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """All passages again, with scores that never rise from one hit to the next."""
    return _falling([*ranking, *context.unread])


def cut(ranking: list[Ranked], context: StepContext) -> list[Ranked]:
    """End the ranking where scores fall most."""
    scores = [entry.score for entry in ranking]
    return ranking[: adaptive_k(scores, k_max=max(_FEWEST, len(scores)), k_min=_FEWEST).k_used]


def _lifted(entry: Ranked, one: Boosted) -> Ranked:
    score = min(one.score, 1.0)
    # All boosts together have a limit: what comes when it is reached moves nothing and is left out.
    room = score / entry.score if entry.score else 1.0
    steps = []
    for boost in one.boosts:
        factor = min(boost.factor, room)
        if factor > 1:
            steps.append(Step(name=boost.name, factor=factor, reason=boost.reason))
        room /= factor
    return entry.moved(score, *steps)


def _boosts(entry: Ranked, asked: Sequence[str], plan: Plan, now: float) -> list[Boost]:
    chunk, resource, text = entry.stored
    name = resource.fields.get("name") or resource.path.rpartition("/")[2].partition(".")[0]
    fields = {"title": terms(resource.title), "file name": terms(name)}
    found = [exact_field(asked, fields, factor=plan.exact_boost)]
    found += [starts_field(asked, fields, factor=plan.prefix_boost)]
    if plan.phrase_boost > 1:
        found.append(exact_phrase(asked, terms(text), most=plan.phrase_boost))
    if plan.boosts:
        fields |= {"heading": terms("\n".join(chunk.heading)), "tags": terms(" ".join(resource.tags))}
        # Evidence about resources may have counted the file name already.
        told = {step.name for step in entry.all_steps}
        found += [field_match(field, asked, words) for field, words in fields.items() if field not in told]
        found += _boosts_of_the_writer(entry, asked, plan, now)
        if plan.phrase_boost <= 1:
            found.append(exact_phrase(asked, terms(text)))
    return [boost for boost in found if boost is not None]


def _boosts_of_the_writer(entry: Ranked, asked: Sequence[str], plan: Plan, now: float) -> list[Boost | None]:
    """The boosts for time and author; in a chat, those of the message that has the query's words."""
    resource = entry.stored.resource
    written_at, author = resource.updated_at, ""
    if resource.type == "chat":
        from findling.pipelines.content.chat_parts import best_message

        said = best_message(entry.stored, asked)
        author, written_at = said.author, written_at if said.at is None else said.at
    half_life = plan.half_lives.get(resource.type)
    half_life = half_life_of(resource.type) if half_life is None else half_life
    # What does not age gains nothing by being new.
    age = None if written_at is None or not half_life else (now - written_at) / 86_400
    # Names are those of people, who are not careful about capitals.
    affinity = plan.affinities.get(author.casefold())
    return [
        None if age is None else recency(age, half_life_in_days=half_life),
        None if affinity is None else author_affinity(author, {author: affinity}),
    ]


_LOOKED_AT = 3
"""Best hits of which most must be prose for a judge to read any."""

_WINDOW = 450
"""Characters of a passage that a judge reads: 90 ms of a core without 8-bit instructions, 170 with twice as many."""


def _is_code(entry: Ranked) -> bool:
    """Whether a hit is code: a file by its language, anything else but a chat by its look."""
    resource = entry.stored.resource
    if resource.path or resource.type == "chat":
        return resource.lang in CODE_LANGS
    return looks_like_code(entry.stored.text)


def _ask(reranker: Reranker, entries: Sequence[Ranked], context: StepContext) -> None:
    """Have the judge read what it has not read yet and may read, each by the window around its best sentence.

    What the graph has led to answers a part that the question does not name: judged, musique-100 falls from .837 to
    .825, and rises to .847 where it stays in its place (30 questions, read).
    """
    may_send = context.meaning.may_send
    named = [entry for entry in entries if entry.candidate.of(GRAPH) is None]
    new = [entry.stored for entry in named if entry.stored.chunk.cid not in context.verdicts]
    new = [stored for stored in new if not reranker.host or may_send(stored.resource)]
    texts = [passage(one.resource, one.chunk.heading, _window(one, context.asked), one.chunk.cid) for one in new]
    verdicts = _verdicts_in_time(reranker, texts, context) if texts else []
    context.verdicts |= zip([stored.chunk.cid for stored in new], verdicts, strict=False)


_SHARE = 0.7
"""Share of the time left that a judge may take: an answer that is late has words alone, and a shorter page."""


def _verdicts_in_time(reranker: Reranker, texts: Sequence[str], context: StepContext) -> list[float]:
    """The verdicts on as many of the best texts as there is time for. Raises ModelError when the judge fails."""
    budget, query = current_budget(), context.question.text
    if budget.deadline is None:
        return reranker.rerank(query, texts)
    # A ranking that is made again, of more candidates, has no further time for it.
    now = time.perf_counter()
    context.judge_until = context.judge_until or now + _SHARE * (budget.deadline - now)
    at_once = len(texts) if reranker.host else max(os.cpu_count() or 1, 4)
    verdicts: list[float] = []
    for start in range(0, len(texts), at_once):
        try:
            judge = partial(reranker.rerank, query, texts[start : start + at_once])
            verdicts += finished_by(context.judge_until, judge)
        except OverdueError:
            budget.refuse(f"there was time to judge {len(verdicts)} of the best {len(texts)} hits")
            break
    return verdicts


def _window(stored: StoredChunk, asked: HighlightSpec | None) -> str:
    return stored.text if asked is None else judged_text(stored, asked)[1].window(_WINDOW)


def _judged(entries: Sequence[Ranked], context: StepContext) -> list[Ranked]:
    """The hits in the order of their places and of the judge's verdicts; what it has not read stays in its place.

    They change scores with the places, so that a score stays evidence and no other hit moves.
    """
    reranker, weight = context.meaning.reranker, judge_weight(context.question.route.shape)
    assert reranker is not None
    _ask(reranker, entries, context)
    places = [place for place, entry in enumerate(entries) if entry.stored.chunk.cid in context.verdicts]
    verdicts = [context.verdicts[entries[place].stored.chunk.cid] for place in places]
    judged = list(entries)
    for place, number in zip(places, judged_order(verdicts, weight), strict=True):
        entry, score, before = entries[places[number]], entries[place].score, places[number]
        moved = f"place {before + 1} becomes {place + 1}" if before != place else f"place {place + 1} stays"
        reason = f"{reranker.name} gives {verdicts[number]:.3f}, which weighs {weight:g}; {moved}"
        step = Step(name="rerank", factor=score / entry.score if entry.score else 1.0, reason=reason)
        judged[place] = entry.moved(score, step)
    return judged


def _diversify(entries: Sequence[Ranked], balance: float) -> list[Ranked]:
    words = [frozenset(terms(entry.stored.text)) for entry in entries]
    by_cid = {entry.stored.chunk.cid: entry for entry in entries}
    spread = diversify(
        [(cid, entry.score) for cid, entry in by_cid.items()],
        lambda one, other: jaccard(words[one], words[other]),
        balance=balance,
    )
    moved = []
    for one in spread:
        steps = [Step(name="diversity", factor=1.0, reason=one.reason)] if one.reason else []
        moved.append(by_cid[one.id].moved(by_cid[one.id].score, *steps))
    return moved


def _falling(entries: Sequence[Ranked]) -> list[Ranked]:
    lowest = 1.0
    falling = []
    for entry in entries:
        if entry.score > lowest:
            step = Step(name="order", factor=lowest / entry.score, reason="scores do not rise from hit to hit")
            entry = entry.moved(lowest, step)
        lowest = entry.score
        falling.append(entry)
    return falling
