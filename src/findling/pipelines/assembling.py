"""Assembling: from a ranked chunk to a hit with its lines, its place and its receipt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from findling.domain.resources import StoredChunk
from findling.domain.results import Hit, Line, Receipt, ScorePart, Step, TermMatch
from findling.pipelines.candidates import Candidate
from findling.text.analysis import WordSpan, matching_spans, terms
from findling.text.snippets import MatchSpan, best_line, snippet

__all__ = ["Asked", "Ranked", "make_hit"]


class Ranked(NamedTuple):
    """A candidate that stands up to the truth: its chunk, its score so far, and what has moved it."""

    stored: StoredChunk
    candidate: Candidate
    score: float
    steps: tuple[Step, ...] = ()


class Asked(NamedTuple):
    """What is looked for in every hit: the terms of the query, the forms they have, identifiers and their parts.

    `nearest` gives the offset of the line that comes nearest to the query, for texts that share no word with it.
    """

    terms: Sequence[str]
    forms: Mapping[str, str]
    identifiers: Mapping[str, set[str]]
    snippet_lines: int = 3
    context: int = 0
    nearest: Callable[[str], int] = lambda text: 0


def make_hit(ranked: Ranked, asked: Asked) -> Hit:
    """The hit that people and programs see."""
    chunk, resource, text = ranked.stored
    words = matching_spans(text, asked.forms)
    spans = _shown_spans(
        [MatchSpan(start, end, tuple([asked.forms[term] for term in found])) for start, end, found in words],
        asked.identifiers,
    )
    focus = 0 if spans else asked.nearest(text)
    first, last = chunk.line_start, chunk.line_end
    lines = snippet(text, first, spans, asked.snippet_lines, asked.context, focus)
    best = Line(number=best_line(text, first, spans, lines, focus), text="")
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
        score=round(ranked.score, 4),
        lines=lines,
        line=best.number,
        place=best.place,
        receipt=_receipt(ranked, tuple(_matches(ranked.stored, words, asked.forms)), asked.terms),
    )


def _receipt(ranked: Ranked, matches: tuple[TermMatch, ...], asked: Sequence[str]) -> Receipt:
    candidate, near = ranked.candidate, ranked.candidate.vector
    found = {match.term for match in matches}
    return Receipt(
        keyword_rank=candidate.keyword_rank,
        keyword_score=round(candidate.keyword_score, 4),
        vector_rank=candidate.vector_rank,
        vector_score=round(near.cosine, 4) if near else 0.0,
        speed=near.speed if near else "",
        fused_score=round(candidate.score, 4),
        final_score=round(ranked.score, 4),
        parts=tuple(ScorePart(**part._asdict()) for part in candidate.parts),
        steps=ranked.steps,
        matches=matches,
        missing=tuple(term for term in asked if term not in found),
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
