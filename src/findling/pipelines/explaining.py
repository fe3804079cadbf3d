"""Explaining: why a passage is in an answer, or which filter, which leg, which rank keeps it out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from findling.domain.errors import InvalidValueError, NotFoundError
from findling.domain.plans import Plan
from findling.domain.queries import All, Any, Filters, Node, SearchRequest
from findling.domain.resources import Document
from findling.domain.results import Explanation, Hit, LegVerdict
from findling.pipelines.assembling import asked_for, make_hit
from findling.pipelines.candidates import allowed_resources
from findling.pipelines.checking import check_request
from findling.pipelines.meaning import find_by_meaning
from findling.pipelines.searching import Legs, Ranking, rank
from findling.pipelines.understanding import Question, understand
from findling.text.query_tree import canonical

if TYPE_CHECKING:
    from findling.domain.ports import TruthStore

__all__ = ["explain", "find_document"]

_DEEPEST = 100_000
"""Ranks are counted this far; nobody has read beyond."""


def explain(legs: Legs, request: SearchRequest, name: str, below: str = "") -> Explanation:
    """Why the document that a name stands for is among the hits of a request, or what keeps it out.

    Raises as `find_document` does, and NotFoundError also for a document that the caller may not see.
    """
    document, cids = find_document(legs.store, name, below)
    principals = request.filters.principals
    if principals is not None and set(principals).isdisjoint(document.resource.visibility or ()):
        raise _not_found(name)
    plan, shown = request.plan or Plan(), request.limit
    exclude = check_request(request, plan)
    question = understand(request, plan, legs.store)
    deep = question._replace(request=replace(request, limit=_DEEPEST, offset=0, min_score=0.0))
    ranking = rank(legs, deep, exclude)
    question = ranking.question
    wanted = set(cids)
    place = next((at for at, one in enumerate(ranking.ranked, start=1) if one.stored.chunk.cid in wanted), 0)
    hit = None
    if place:
        asked = asked_for(question, ranking.found.keyword.forms, 3)
        hit = make_hit(ranking.ranked[place - 1], asked, legs.store)
    filters = tuple(_filters(legs, question, document))
    verdicts = tuple(_verdicts(legs, ranking, list(wanted)))
    least = max(request.min_score, plan.min_score)
    is_in = 0 < place <= shown and hit is not None and hit.score >= least
    return Explanation(
        query=request.query,
        understood_as=question.understood_as,
        reading=question.reading,
        rid=document.resource.rid,
        path=document.resource.path,
        found=is_in,
        rank=place,
        shown=shown,
        reasons=tuple(_reasons(legs, ranking, document, wanted, place, shown, hit, least)) if not is_in else (),
        filters=filters,
        legs=verdicts,
        hit=hit,
    )


def find_document(store: TruthStore, name: str, below: str = "") -> tuple[Document, list[int]]:
    """The document that an id, the id of a hit or a path names, and the chunks that are meant.

    A path may be given from the root or from the folder `below` it. Raises NotFoundError when there is none,
    InvalidValueError when a shortened id fits several.
    """
    path = name.removeprefix("./")
    names = (name, f"file:{below}/{path}" if below else f"file:{path}", f"file:{path}")
    document = next(filter(None, map(store.document, names)), None)
    if document is not None:
        return document, [chunk.cid for chunk in document.chunks]
    if len(name) == 16 and _is_hex(name):
        stored = store.chunks([int(name, 16)])
        for cid, chunk in stored.items():
            owner = store.document(chunk.resource.rid)
            if owner is not None:
                return owner, [cid]
    path, _, line = name.rpartition(":")
    if path and line.isdecimal():
        document, cids = find_document(store, path, below)
        at = [chunk.cid for chunk in document.chunks if chunk.line_start <= int(line) <= chunk.line_end]
        return document, at or cids
    fitting = [rid for rid in store.rids() if rid.startswith(name)] if len(name) >= 8 else []
    if len(fitting) > 1:
        some = ", ".join(fitting[:5])
        raise InvalidValueError(f"{name} is the beginning of {len(fitting)} ids: {some}", hint="write more of it")
    if fitting:
        return find_document(store, fitting[0])
    raise _not_found(name)


def _not_found(name: str) -> NotFoundError:
    return NotFoundError(f"there is no {name} in the index", hint="findling ls lists what is")


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)


def _reasons(
    legs: Legs,
    ranking: Ranking,
    document: Document,
    cids: set[int],
    place: int,
    shown: int,
    hit: Hit | None,
    least: float,
) -> Iterator[str]:
    """Why it is not among the hits, the most telling first."""
    question = ranking.question
    if place and hit is not None and hit.score < least:
        yield f"its score {hit.score:.4g} is below the {least:g} that is asked for"
    if place > shown:
        yield f"it is hit {place:,}, and {shown:,} are shown; findling search -k {place}"
    if place:
        return
    if not document.chunks:
        yield "it holds no text"
        return
    failed = [name for name, ok in _filters(legs, question, document) if not ok]
    for name in failed:
        yield f"the filter {name} leaves it out"
    if question.request.exclude_pattern and not failed:
        yield f"the pattern {question.request.exclude_pattern} may exclude it"
    yield from _unmatched(legs, question, list(cids))


def _unmatched(legs: Legs, question: Question, cids: list[int]) -> Iterator[str]:
    """The parts of the query that none of the chunks fulfils."""
    keyword = legs.keyword
    if keyword.scores(question.node, cids):
        return
    parts: tuple[Node, ...] = question.node.nodes if isinstance(question.node, All) else (question.node,)
    for part in parts:
        if not keyword.scores(part, cids):
            inner = part.nodes if isinstance(part, Any) else (part,)
            told = " or ".join(map(canonical, inner))
            excluded = canonical(part).startswith("-")
            yield f"it has what {told} excludes" if excluded else f"it does not have {told}"
    if all(keyword.scores(part, cids) for part in parts):
        yield "no single passage of it has all that is asked for"


def _filters(legs: Legs, question: Question, document: Document) -> Iterator[tuple[str, bool]]:
    """Every filter of the question and whether the document passes it."""
    from findling.stores.filtering import passes

    given = question.filters
    for name in ("ext", "not_ext", "path", "type", "lang", "tag", "author", "after", "before", "principals"):
        value = getattr(given, name)
        if value not in ((), None):
            told = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield f"{name} {told}", passes(document.resource, Filters(**{name: value}))
    if given.where is not None:
        parts = given.where.nodes if isinstance(given.where, All) else (given.where,)
        for part in parts:
            yield canonical(part), passes(document.resource, Filters(where=part))


def _verdicts(legs: Legs, ranking: Ranking, cids: list[int]) -> Iterator[LegVerdict]:
    """What each leg makes of the chunks: the best rank and score, and whether that leg finds them."""
    question, plan = ranking.question, ranking.question.plan
    hits = legs.keyword.search(question.node, question.filters, _DEEPEST, weights=plan.weights).hits
    at = next((place for place, (cid, _) in enumerate(hits, start=1) if cid in cids), 0)
    yield LegVerdict(leg="keyword", found=at > 0, rank=at, score=hits[at - 1][1] if at else 0.0, total=len(hits))
    if not ranking.meaning.spaces:
        return
    allowed = allowed_resources(legs.store, question.filters)
    near, judges = find_by_meaning(ranking.meaning.spaces, question.text, _DEEPEST, allowed=allowed, also=cids)
    order = sorted(near, key=lambda cid: (-near[cid].strength, cid))
    best = next((cid for cid in order if cid in cids), None)
    if best is None:
        yield LegVerdict(leg="semantic", found=False, rank=0, score=0.0, total=len(order))
    else:
        hit = near[best]
        yield LegVerdict(
            leg="semantic",
            found=hit.is_near,
            rank=order.index(best) + 1,
            score=hit.cosine,
            least=judges[0].least if judges else 0.0,
            total=len(order),
        )
