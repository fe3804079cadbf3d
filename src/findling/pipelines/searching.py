"""Searching: parse → leg → assemble, with a receipt for every hit and an account of every stage."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from findling.domain.errors import InvalidValueError
from findling.domain.ports import KeywordHits, KeywordLeg, TruthStore
from findling.domain.queries import Filters, Node, SearchRequest
from findling.domain.resources import StoredChunk
from findling.domain.results import Hit, Line, Receipt, SearchAnswer, TermMatch
from findling.text.analysis import WordSpan, matching_spans, terms
from findling.text.query_language import canonical, identifier_parts, parse, positive_terms
from findling.text.snippets import MatchSpan, best_line, snippet

__all__ = ["search"]


def search(
    store: TruthStore,
    leg: KeywordLeg,
    request: SearchRequest,
    *,
    unit: str = "chunk",
    snippet_lines: int = 3,
    degraded: Sequence[str] = (),
) -> SearchAnswer:
    """Answer the request from what the leg and the store hold now.

    Raises InvalidValueError for a limit, score or pattern that cannot be used.
    """
    exclude = _check(request)
    clock = _Clock()
    node = parse(request.query)
    clock.lap("parse")
    wanted = request.offset + request.limit
    accepted, found = _accepted(store, leg, node, request, exclude, wanted, unit)
    clock.lap("keyword")
    asked = positive_terms(node)
    # What a caller with limited rights may not see must not show in what the vocabulary knows, either.
    is_owner = request.filters.principals is None
    forms = {form: term for term in asked for form in found.forms.get(term, ())}
    identifiers = identifier_parts(node)
    page = accepted[request.offset : wanted]
    hits = tuple(
        _hit(rank, stored, score, found.ceiling, asked, forms, identifiers, request, snippet_lines)
        for rank, (stored, score) in enumerate(page, start=request.offset + 1)
    )
    clock.lap("assemble")
    return SearchAnswer(
        query=request.query,
        understood_as=canonical(node),
        hits=hits,
        total=found.total,
        strategy="keyword",
        degraded=tuple(degraded),
        unknown_terms=tuple(term for term in asked if is_owner and not found.forms.get(term)),
        timings_ms=clock.laps,
        plan=_plan(request, node, found, unit) if request.explain else {},
    )


def _check(request: SearchRequest) -> re.Pattern[str] | None:
    if request.limit < 0 or request.offset < 0:
        raise InvalidValueError(f"limit {request.limit} and offset {request.offset} must not be negative")
    if not 0 <= request.min_score <= 1:
        raise InvalidValueError(f"min_score {request.min_score} is not between 0 and 1", hint="scores run from 0 to 1")
    if request.exclude_pattern is None:
        return None
    try:
        return re.compile(request.exclude_pattern)
    except re.error as error:
        raise InvalidValueError(
            f"exclude pattern {request.exclude_pattern!r} is no regular expression: {error}",
            hint="escape special characters with a backslash",
        ) from error


def _accepted(
    store: TruthStore,
    leg: KeywordLeg,
    node: Node,
    request: SearchRequest,
    exclude: re.Pattern[str] | None,
    wanted: int,
    unit: str,
) -> tuple[list[tuple[StoredChunk, float]], KeywordHits]:
    """The first `wanted` hits that stand up to the truth, asking the leg for more when some do not."""
    limit = wanted
    while True:
        found = leg.search(node, request.filters, limit)
        good_enough = [hit for hit in found.hits if _relative(hit[1], found.ceiling) >= request.min_score]
        stored = store.chunks([cid for cid, _ in good_enough])
        accepted = []
        for cid, score in good_enough:
            chunk = stored.get(cid)
            if chunk is None or not _may_see(chunk, request.filters):
                continue
            if unit == "page":
                from findling.pipelines.passages import best_passage

                chunk = best_passage(store, chunk, found.forms)
            if exclude is None or not exclude.search(chunk.text):
                accepted.append((chunk, score))
        if len(accepted) >= wanted or len(good_enough) < limit:
            return accepted[:wanted], found
        limit *= 4


def _may_see(chunk: StoredChunk, filters: Filters) -> bool:
    """The leg has filtered already; rights are checked again against the truth, which may be newer than the leg."""
    if filters.principals is None:
        return True
    return not set(filters.principals).isdisjoint(chunk.resource.visibility or ())


def _relative(score: float, ceiling: float) -> float:
    """A score between 0 and 1 on one scale for all queries.

    One half says: half of all that the query's words could contribute in the body. Words that no chunk contains
    count in the ceiling too, so an answer that ignores half of the question scores low.
    """
    return score / (score + ceiling / 2) if score > 0 else 0.0


def _hit(
    rank: int,
    stored: StoredChunk,
    score: float,
    ceiling: float,
    asked: Sequence[str],
    forms: Mapping[str, str],
    identifiers: Mapping[str, set[str]],
    request: SearchRequest,
    snippet_lines: int,
) -> Hit:
    chunk, resource, text = stored
    words = matching_spans(text, forms)
    spans = _shown_spans(
        [MatchSpan(start, end, tuple([forms[term] for term in found])) for start, end, found in words], identifiers
    )
    relative = round(_relative(score, ceiling), 4)
    matches = tuple(_matches(stored, words, forms))
    found = {match.term for match in matches}
    lines = snippet(text, chunk.line_start, spans, max_lines=snippet_lines, context=request.context)
    first, last = chunk.line_start, chunk.line_end
    best = Line(number=best_line(text, first, spans, lines), text="")
    if chunk.places:
        from findling.text.places import placed_lines

        placed = placed_lines([*lines, best], chunk, text)
        lines, best = placed[:-1], placed[-1]
        numbers = [place.line for place in chunk.places if place.line]
        first, last = (numbers[0], max(numbers)) if numbers else (0, 0)
    return Hit(
        id=f"{chunk.cid:016x}",
        rid=resource.rid,
        path=resource.path,
        type=resource.type,
        title=resource.title,
        heading=chunk.heading,
        line_start=first,
        line_end=last,
        score=relative,
        lines=lines,
        line=best.number,
        place=best.place,
        receipt=Receipt(
            keyword_rank=rank,
            keyword_score=round(score, 4),
            fused_score=round(score, 4),
            final_score=relative,
            matches=matches,
            missing=tuple(term for term in asked if term not in found),
        ),
    )


def _shown_spans(spans: list[MatchSpan], identifiers: Mapping[str, set[str]]) -> list[MatchSpan]:
    """The spans to show: where an identifier stands as a whole, its parts elsewhere in the chunk are noise."""
    present = {term for span in spans for term in span.terms}
    noise = set().union(*(parts for whole, parts in identifiers.items() if whole in present))
    return [span for span in spans if not noise.issuperset(span.terms)] if noise else spans


def _matches(stored: StoredChunk, spans: Sequence[WordSpan], forms: Mapping[str, str]) -> Iterator[TermMatch]:
    chunk, resource, _ = stored
    body = [word for span in spans for word in span.terms]
    others = {
        "title": terms(resource.title),
        "heading": terms("\n".join(chunk.heading)),
        "path": terms(resource.path),
        "tags": terms(" ".join(resource.tags)),
    }
    for name, words in {"body": body, **others}.items():
        counts: dict[str, dict[str, int]] = {}
        for word in filter(forms.__contains__, words):
            seen = counts.setdefault(forms[word], {})
            seen[word] = seen.get(word, 0) + 1
        for term, seen in counts.items():
            yield TermMatch(term=term, field=name, forms=tuple(seen), count=sum(seen.values()))


def _plan(request: SearchRequest, node: Node, found: KeywordHits, unit: str) -> dict[str, Any]:
    filters = {name: value for name, value in asdict(request.filters).items() if value not in ((), None)}
    return {
        "legs": ["keyword"],
        "unit": unit,
        "understood_as": canonical(node),
        "forms": {} if "principals" in filters else {term: list(forms) for term, forms in found.forms.items()},
        "filters": filters,
        "limit": request.limit,
        "offset": request.offset,
        "ceiling": round(found.ceiling, 4),
    }


class _Clock:
    """Milliseconds of wall time per stage."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.laps[stage] = round((now - self._last) * 1000, 3)
        self._last = now
