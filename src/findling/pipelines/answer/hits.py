"""Assembling: from a ranked chunk to a hit with its lines, its place and its receipt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from findling.domain.ports import ReadStore
from findling.domain.queries import SPELLING, Same
from findling.domain.resources import StoredChunk
from findling.domain.results import AliasMatch, Evidence, Hit, Line, Passage, Receipt, ScorePart, Step, TermMatch
from findling.domain.values import begun
from findling.pipelines.answer.rankings import MOST_PASSAGES, SMALL_WORD, HighlightSpec, Ranked, Run, line_span, runs
from findling.pipelines.retrieve.legs import KEYWORD, SEMANTIC
from findling.text.analysis.analysis import WordSpan, index_form, matching_spans, terms
from findling.text.analysis.lines import LineIndex
from findling.text.query.leaves import CODE_LANGUAGES
from findling.text.query.tree import canonical, positive_terms, positive_texts
from findling.text.snippets import JudgedText, Match, Telling, plain_line

if TYPE_CHECKING:
    from findling.text.chunking.windows import Span

_PATTERN = 100.0
"""The weight of a pattern: the line in which it matches is shown, whatever words stand elsewhere."""

_DEFINITION = "its definition"
"""The term of a definition that was asked for, which weighs as much: no word has a space."""


def make_hit(ranked: Ranked, asked: HighlightSpec, store: ReadStore) -> Hit:
    """The hit that people and programs see; its symbol and the details of its receipt are made when they are read."""
    stored = chunk, resource, _ = ranked.stored
    shown = _show(stored, asked)
    first, last = line_span(chunk)
    hit = begun(
        Hit,
        lambda: {"symbol": _symbol(stored, shown.best.number)},
        id=f"{chunk.cid:016x}",
        rid=resource.rid,
        path=resource.path,
        type=resource.type,
        title=resource.title,
        heading=chunk.heading,
        line_start=first,
        line_end=last,
        score=round(ranked.score, 4),
        lines=shown.lines,
        line=shown.best.number,
        place=shown.best.place,
        author=resource.author,
        at=resource.updated_at,
        receipt=_receipt(ranked, shown.words, asked, store),
        passages=(),
        around=(),
        workspace="",
    )
    if resource.type == "chat":
        from findling.pipelines.answer.chat_context import in_conversation

        hit = in_conversation(hit, ranked.stored, chunk.start + shown.offset, asked, store)
    if ranked.others:
        hit = with_passages(hit, ranked, asked)
    return hit


def _symbol(stored: StoredChunk, line: int) -> str:
    """The name of the definition around a line of code; empty for everything else."""
    chunk, resource, text = stored
    if not chunk.heading or chunk.places or resource.lang not in CODE_LANGUAGES:
        return ""
    from findling.text.chunking.defined_names import enclosing_name

    return enclosing_name(text, resource.lang, chunk.heading, line - chunk.line_start)


class _Shown(NamedTuple):
    """The part of a chunk to show: lines, the best of them, and its end in the chunk's text.

    `words` are all words of the text that were asked for.
    """

    lines: tuple[Line, ...]
    best: Line
    offset: int
    words: list[WordSpan]


def judged_text(stored: StoredChunk, asked: HighlightSpec) -> tuple[list[WordSpan], JudgedText]:
    """The words of a chunk that were asked for, and its sentences; each chunk is read once for a question."""
    chunk, _, text = stored
    if chunk.cid in asked.judged:
        return asked.judged[chunk.cid]
    words = matching_spans(text, asked.forms)
    forms = asked.forms
    # Nearly every word gives one term.
    spans = _shown_spans(
        [
            (start, end, (forms[found[0]],) if len(found) == 1 else tuple([forms[term] for term in found]))
            for start, end, found in words
        ],
        asked.identifiers,
    )
    weights, said = asked.weights, _said(stored.resource.title, chunk.heading)
    matched = list[Match]()
    if asked.patterns:
        from findling.pipelines.retrieve.pattern_matches import match_spans

        matched += match_spans(asked.patterns, text)
    elif chunk.cid in asked.definitions:
        # The heading of a passage of code is often the very line of the definition.
        matched, said = [(*asked.definitions[chunk.cid], (_DEFINITION,))], frozenset()
    if matched:
        apart = [one for one in spans if not any(start < one[1] and one[0] < end for start, end, _ in matched)]
        spans = apart + matched
        weights = {**weights, **dict.fromkeys([terms[0] for _, _, terms in matched], _PATTERN)}
    aside: list[Span] = []
    if stored.resource.lang == "chat":
        from findling.text.chunking.chat_messages import people_in, said_by_others

        # Who was asked says so in every message: the name tells no two of them apart.
        aside, names = said_by_others(text, people_in(asked.text))
        weights = {**weights, **dict.fromkeys(names, SMALL_WORD)}
    judged = asked.judged[chunk.cid] = words, JudgedText(text, spans, Telling(weights, said, asked.nearness, aside))
    return judged


def _show(stored: StoredChunk, asked: HighlightSpec) -> _Shown:
    """The lines of a chunk that say best why it was found."""
    chunk, _, text = stored
    lines, number = tuple[Line, ...](), chunk.line_start
    if asked.snippet_lines:
        words, judged = judged_text(stored, asked)
        lines, number = judged.show(number, asked.snippet_lines, asked.context)
    else:
        words = matching_spans(text, asked.forms)
    best = Line(number=number, text="")
    offset = 0
    if chunk.places:
        from findling.text.snippets import placed_lines

        offset = LineIndex(text).line_span(best.number - chunk.line_start + 1)[1]
        placed = placed_lines([*lines, best], chunk, text)
        lines, best = placed[:-1], placed[-1]
    return _Shown(lines, best, offset, words)


@lru_cache(maxsize=4096)
def _said(title: str, heading: tuple[str, ...]) -> frozenset[str]:
    """The lines that stand above a hit wherever it is shown."""
    return frozenset(map(plain_line, (title, *heading))) - {""}


def with_passages(hit: Hit, ranked: Ranked, asked: HighlightSpec) -> Hit:
    """The hit of a group with its other passages; those that lie beside its own widen its lines instead."""
    own, *others = runs((ranked, *ranked.others))
    first, last = _lines_of(own)
    passages = tuple([_passage(run, asked) for run in others[:MOST_PASSAGES]])
    return replace(hit, line_start=first, line_end=last, passages=passages)


def _passage(run: Run, asked: HighlightSpec) -> Passage:
    shown = _show(run.best.stored, asked)
    first, last = _lines_of(run)
    return Passage(
        id=f"{run.best.stored.chunk.cid:016x}",
        rid=run.best.stored.resource.rid,
        line_start=first,
        line_end=last,
        place=shown.best.place,
        score=round(run.best.score, 4),
        lines=shown.lines,
    )


def _lines_of(run: Run) -> tuple[int, int]:
    spans = [line_span(chunk) for chunk in run.chunks]
    return min(first for first, _ in spans), max(last for _, last in spans)


def _shown_spans(spans: list[Match], identifiers: Mapping[str, set[str]]) -> list[Match]:
    """The spans to show: where an identifier stands as a whole, its parts elsewhere in the chunk are noise."""
    if not identifiers:
        return spans
    present = {term for _, _, terms in spans for term in terms}
    noise = set().union(*(parts for whole, parts in identifiers.items() if whole in present))
    return [span for span in spans if not noise.issuperset(span[2])] if noise else spans


def _receipt(ranked: Ranked, words: Sequence[WordSpan], asked: HighlightSpec, store: ReadStore) -> Receipt:
    """The receipt of a hit; the say of its words and of the legs is told when somebody reads it."""
    resource = ranked.stored.resource
    older, newer = tuple[str, ...](), tuple[str, ...]()
    if "supersedes" in resource.fields or any(step.name == "superseded" for step in ranked.steps):
        from findling.pipelines.answer.versions import predecessors, replaced_by, successors

        older = predecessors(store, resource)
        newer = successors(resource.rid, replaced_by(store, [resource.rid]))
    return begun(Receipt, lambda: _told(ranked, words, asked), supersedes=older, superseded_by=newer)


def _told(ranked: Ranked, words: Sequence[WordSpan], asked: HighlightSpec) -> dict[str, object]:
    """The values of a receipt that words and legs give."""
    candidate, matches = ranked.candidate, _matches(ranked.stored, words, asked.forms)
    legs = {one.leg: one for one in candidate.evidence}
    by_words, near = legs.get(KEYWORD, _NOTHING), legs.get(SEMANTIC, _NOTHING)
    counts: dict[str, int] = {}
    for match in matches:
        counts[match.term] = counts.get(match.term, 0) + match.count
    return {
        "keyword_rank": by_words.rank,
        "keyword_score": round(by_words.raw, 4),
        "vector_rank": near.rank,
        "vector_score": round(near.raw, 4),
        "speed": near.why,
        "words": by_words.worth,
        "meaning": near.worth,
        "fused_score": round(candidate.score, 4),
        "final_score": round(ranked.score, 4),
        "parts": tuple([_part(one) for one in candidate.evidence]),
        "steps": (*ranked.all_steps, *_context_step(ranked.stored, matches)),
        "matches": matches,
        "aliases": tuple(_aliases(ranked.stored, asked.same, counts)) if asked.same else (),
        "missing": tuple(_missing(asked, counts)),
    }


def _context_step(stored: StoredChunk, matches: Sequence[TermMatch]) -> tuple[Step, ...]:
    """The sentence of a language model by which words have found a hit; it is no text of the document."""
    if not any(match.field == "context" for match in matches):
        return ()
    from findling.text.chunking.contexts import sentences_of

    by, of = sentences_of(stored.resource)
    return (Step(name="context", factor=1.0, reason=f"{by} wrote about it: {of[stored.chunk.cid]}"),)


_NOTHING = Evidence("", 0.0, 0.0, 0.0)


def _part(one: Evidence) -> ScorePart:
    """The evidence of a leg as receipts show it."""
    leg, raw, _, worth, why, measure, rank, normalised, weight, share, _ = one
    return ScorePart(
        leg=leg,
        rank=rank,
        raw=raw,
        normalised=normalised,
        weight=weight,
        value=share,
        measure=measure,
        evidence=worth,
        why=why,
    )


def _aliases(stored: StoredChunk, groups: Sequence[Same], counts: Mapping[str, int]) -> Iterator[AliasMatch]:
    """The ways to say something that the hit uses, other than the one that was typed."""
    for same in groups:
        typed = canonical(same.nodes[0])
        for node in same.nodes[1:]:
            row = positive_terms(node)
            count = min([counts.get(term, 0) for term in row], default=0)
            if count and (len(row) == 1 or _has_row(stored, row)):
                yield AliasMatch(
                    group="" if same.group == SPELLING else same.group,
                    typed=typed,
                    alias=" ".join(positive_texts(node)),
                    count=count,
                )


def _has_row(stored: StoredChunk, row: Sequence[str]) -> bool:
    resource = stored.resource
    wanted = f" {' '.join(row)} "
    heading, tags = "\n".join(stored.chunk.heading), " ".join(resource.tags)
    texts = (stored.text, resource.title, heading, resource.path, tags, resource.fields.get("description", ""))
    return any(wanted in f" {index_form(text)} " for text in texts)


def _missing(asked: HighlightSpec, counts: Mapping[str, int]) -> list[str]:
    """The terms that the hit lacks; of several ways to say something one is enough."""
    if not asked.same:
        return [term for term in asked.terms if term not in counts]
    spared: set[str] = set()
    for same in asked.same:
        ways = [positive_terms(node) for node in same.nodes]
        said = [way for way in ways if all(term in counts for term in way)]
        spared.update(term for way in (ways if said else ways[1:]) for term in way)
    return [term for term in asked.terms if term not in counts and term not in spared]


def _matches(stored: StoredChunk, spans: Sequence[WordSpan], forms: Mapping[str, str]) -> tuple[TermMatch, ...]:
    chunk, resource, _ = stored
    found: dict[str, tuple[dict[str, int], list[tuple[int, int]]]] = {}
    for start, end, words in spans:
        for word in words:
            term = forms[word]
            if term not in found:
                found[term] = {word: 1}, [(start, end)]
                continue
            seen, places = found[term]
            seen[word] = seen[word] + 1 if word in seen else 1
            if places[-1][0] != start:
                places.append((start, end))
    matches = [
        TermMatch(term=term, field="body", forms=tuple(seen), count=sum(seen.values()), spans=tuple(places))
        for term, (seen, places) in found.items()
    ]
    texts = {"title": resource.title, "heading": "\n".join(chunk.heading), "path": resource.path}
    if resource.tags or resource.fields:
        own = resource.fields
        texts |= {
            "tags": " ".join(resource.tags),
            "name": own.get("name", ""),
            "description": own.get("description", ""),
        }
        if "situated" in own:
            from findling.text.chunking.contexts import sentence_of

            texts["context"] = sentence_of(resource, chunk.cid)
    asked = forms.keys()
    for name, text in texts.items():
        # Most fields hold no word of the query: one look for all of them says so.
        if text and not asked.isdisjoint(given := _terms_of(text)):
            matches += _field_matches(name, [word for word in given if word in forms], forms)
    return tuple(matches)


def _field_matches(name: str, words: Sequence[str], forms: Mapping[str, str]) -> Iterator[TermMatch]:
    counts: dict[str, dict[str, int]] = {}
    for word in words:
        seen = counts.setdefault(forms[word], {})
        seen[word] = seen.get(word, 0) + 1
    for term, seen in counts.items():
        yield TermMatch(term=term, field=name, forms=tuple(seen), count=sum(seen.values()))


@lru_cache(maxsize=4096)
def _terms_of(text: str) -> tuple[str, ...]:
    # Titles and paths of the best hits come again and again: with every chunk of a file, and with every query.
    return tuple(terms(text))
