"""Candidates in the order of evidence about their resources, where code was searched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from findling.domain.resources import Resource, StoredChunk
from findling.domain.results import Evidence, Step
from findling.domain.values import changed, loose_name
from findling.pipelines.retrieve.legs import COMPARED, KEYWORD, Candidate, Found, Retrievers, in_new_order
from findling.pipelines.retrieve.query_planner import AnalyzedQuery
from findling.ranking.evidence import words_evidence
from findling.ranking.resource_evidence import Clue, ResourceQuestion, ResourceRanking
from findling.text.analysis.scripts import name_parts, written_name
from findling.text.chunking.code_grammars import CODE_LANGS
from findling.text.chunking.defined_names import NamedLine, enclosing_name, named_lines
from findling.text.query.asked_names import asks_in_prose, defines, looks_like_code

_JUDGED = 10
"""Best candidates of which one must be code. Where there are no files, they are all that is judged, by their look: two
of ten made code of documentation that shows some, which cost anthropic-docs .018 NDCG@10 by words."""

_FIRST, _CODE_OF_FIRST = 3, 2
"""Best candidates that tell what is asked for. A document among them keeps a question in prose from evidence about
code; with less code among them documents are held back for a name alone. Fitted to `bench/mixed.py` and nine
repositories, NDCG@10 of prose and code in mixed projects and of repositories, by words and instant:

- 0.8: .723 .813, .937 .945, .881 .877; without evidence about code .814 .856, .819 .804, .736 .757;
- only a question in prose left alone: .803 .853, .937 .945, .881 .877;
- documents never held back besides: .818 .858, .941 .916, .867 .866;
- this: .811 .856, .937 .928, .878 .873."""

_SOME, _MOST = 0.25, 0.5
"""Shares of code among all that are compared: from the first one on, resources are weighed. From the second one on,
documents may be held back: they are often the best by words and meaning."""

_MOST_DEFINERS = 60
"""Chunks that define an asked name, best by words: those that words have not found among the best are added."""

_DOCUMENTS = frozenset("asciidoc latex markdown mdx org roff rst texinfo text textile".split())
"""Languages of documents beside code."""


def order_by_resources(
    legs: Retrievers, question: AnalyzedQuery, found: Found, resources: Mapping[int, Resource]
) -> Found:
    """The findings with the best candidates in the order of their evidence and of that about their resources.

    The first hit keeps the score of its evidence, and the others score in proportion. Answers that are not about code
    stay as they are; a question that is a name, written like one, is about the code that defines it. `resources` are
    those of the best candidates.
    """
    best = found.candidates[:COMPARED]
    look = _looks(legs, best, resources)
    first = [*look.values()][:_FIRST]
    share, is_defined = _share_of_code(look, resources), bool(written_name(question.text))
    if share < _SOME and not is_defined:
        return found
    is_prose = asks_in_prose(question.text) or (not is_defined and _is_worded_by_documents(found, resources))
    if is_prose and not all(first):
        return found
    from findling.sources.files.path_clues import resource_question  # prose needs no clues of paths

    asked = resource_question(question.text)
    bare = [cid for cid, resource in resources.items() if not resource.lang]
    definers = _definers(legs, question, asked.names, bare)
    is_defined = is_defined and definers.is_exact
    may_hold = asked.names or sum(first) >= min(_CODE_OF_FIRST, len(first))
    if not (share >= _MOST and may_hold) and not is_defined:
        if share < _SOME:
            return found
        asked = asked._replace(roles=asked.roles | {"documentation"})
    # A name as a whole is asked of the passages that hold it: get_text is no _get_text.
    is_whole, scores = question.parts is not None, definers.scores
    missing = [cid for cid in definers.names if cid not in resources and (scores[cid] or not is_whole)]
    if asked.is_name and missing:
        best += _as_candidates(found, {cid: scores[cid] for cid in missing})
        resources = {**resources, **legs.store.resources_of(missing)}
    clues = _clues(best, resources, definers)
    ranking = ResourceRanking(clues, asked)
    candidates = _moved(best, found.candidates, ranking)
    effect = _told(best, clues, ranking, asked)
    return changed(found, candidates=candidates, resources=effect, definitions=definers.places)


def _is_worded_by_documents(found: Found, resources: Mapping[int, Resource]) -> bool:
    """Whether words stand in documents alone: code is near in meaning then, as hues of asters to colours of rich."""
    worded = {resources[cid].lang for cid, _ in found.keyword.hits if cid in resources}
    return bool(worded) and worded <= _DOCUMENTS


def _clues(best: Sequence[Candidate], resources: Mapping[int, Resource], definers: _Definers) -> list[Clue]:
    from findling.sources.files.path_clues import told_by_path

    clues: list[Clue] = []
    made = tuple.__new__  # sixty for a question, each as the tuple that it is: a third of its constructor's time
    for candidate in best:
        if (resource := resources.get(candidate.cid)) is not None:
            told = told_by_path(resource.path, resource.lang in _DOCUMENTS)
            defined = definers.names.get(candidate.cid, ())
            clues.append(made(Clue, (candidate.cid, candidate.strength, resource.rid, *told, defined)))
    return clues


def _looks(legs: Retrievers, best: Sequence[Candidate], resources: Mapping[int, Resource]) -> dict[int, bool]:
    """Whether each of the best is code: a file by its language, anything else by its look.

    A chat is none: `[2026-04-08 08:38] Ann: hi` looks like code.
    """
    first = [candidate.cid for candidate in best[:_JUDGED] if candidate.cid in resources]
    bare = [cid for cid in first if not resources[cid].path and resources[cid].type != "chat"]
    stored = legs.store.chunks(bare) if bare else {}
    return {
        cid: looks_like_code(stored[cid].text) if cid in stored else resources[cid].lang in CODE_LANGS for cid in first
    }


def _share_of_code(look: Mapping[int, bool], resources: Mapping[int, Resource]) -> float:
    """The share of code among all candidates, 0 without any among the best; where none is a file, of the best."""
    if not any(look.values()):
        return 0.0
    if not any(resources[cid].path for cid in look):
        return sum(look.values()) / len(look)
    return sum([resource.lang in CODE_LANGS for resource in resources.values()]) / len(resources)


class _Definers(NamedTuple):
    """By chunk, the asked names that it defines, the place of the first of them, and its score by words.

    `is_exact` says that a definition is written as the question writes the name.
    """

    names: dict[int, list[str]]
    places: dict[int, tuple[int, int]]
    scores: Mapping[int, float]
    is_exact: bool


def _definers(legs: Retrievers, question: AnalyzedQuery, names: Sequence[str], bare: Sequence[int]) -> _Definers:
    """The chunks that define any of the names, as they are written, else in another case or style.

    Of a qualified name the definitions in its scope count, if there are any. `bare` chunks have no language, so that no
    field tells their names.
    """
    if not names:
        return _Definers({}, {}, {}, is_exact=False)
    weights = question.plan.weights
    scores = dict(legs.keyword.definers(names, question.node, question.filters, _MOST_DEFINERS, weights))
    stored = legs.store.chunks(list(scores))
    lines = [
        (stored[cid], one)
        for cid in scores
        if cid in stored
        for one in named_lines(stored[cid].text, stored[cid].resource.lang)
    ]
    words = question.text.replace("`", " ").split()
    scopes = {parts[-1]: parts[-2] for word in words if len(parts := name_parts(word)) > 1}
    found = _Definers({}, {}, scores, is_exact=any(line.name in names for _, line in lines))
    for name in names:
        own = [(chunk, line) for chunk, line in lines if line.name == name]
        own = own or [(chunk, line) for chunk, line in lines if loose_name(line.name) == loose_name(name)]
        scope = scopes.get(name, "")
        for chunk, line in (scope and [one for one in own if _is_within(scope, *one)]) or own:
            defined = found.names.setdefault(chunk.chunk.cid, [])
            if name not in defined:
                defined.append(name)
            if place := re.compile(rf"(?<!\w){re.escape(line.name)}(?!\w)").search(chunk.text, line.start):
                found.places.setdefault(chunk.chunk.cid, place.span())
    for cid, chunk in legs.store.chunks(bare).items() if bare else ():
        if looking := [name for name in names if defines(chunk.text, name)]:
            found.names[cid] = looking
    return found


def definitions_within(legs: Retrievers, question: AnalyzedQuery, name: str) -> list[int]:
    """The chunks that define a qualified name in its scope: a class, a module or a folder."""
    parts = name_parts(name)
    if len(parts) < 2:
        return []
    found = legs.keyword.definers(parts[-1:], question.node, question.filters, _MOST_DEFINERS)
    return [
        cid
        for cid, stored in legs.store.chunks([cid for cid, _ in found]).items()
        for line in named_lines(stored.text, stored.resource.lang)
        if line.name == parts[-1] and (parts[-2] in _modules(stored.resource) or _is_within(parts[-2], stored, line))
    ]


def _modules(resource: Resource) -> list[str]:
    *folders, file = resource.path.split("/")
    return [*folders[-1:], file.partition(".")[0]]


def _is_within(scope: str, stored: StoredChunk, line: NamedLine) -> bool:
    """Whether a definition stands in a scope, which may begin above its chunk."""
    row = stored.text.count("\n", 0, line.start)
    around = enclosing_name(stored.text, stored.resource.lang, stored.chunk.heading, row).split(".")[:-1]
    return loose_name(scope) in map(loose_name, (line.scope, *around))


def _as_candidates(found: Found, scores: Mapping[int, float]) -> list[Candidate]:
    """Chunks that words have not found among the best, as candidates of the least strength there."""
    strength, ceiling = found.candidates[:COMPARED][-1].strength, found.keyword.ceiling
    added = []
    for cid, raw in scores.items():
        evidence = Evidence(KEYWORD, raw, raw, words_evidence(raw, ceiling), measure="BM25")
        added.append(Candidate(cid, evidence.worth, (evidence,), strength))
    return added


def _moved(best: Sequence[Candidate], all_found: Sequence[Candidate], ranking: ResourceRanking) -> list[Candidate]:
    """The best candidates in the order of a ranking, and the others behind them."""
    by_cid = {candidate.cid: candidate for candidate in best}
    ordered = [by_cid[cid] for cid, _ in ranking.ranking]
    gains = [strength / ranking.start[cid] for cid, strength in ranking.ranking]
    moved = {cid for cid, _ in ranking.ranking}

    def steps(cid: int) -> list[Step]:
        return [Step(name=part.name, factor=part.factor, reason=part.reason) for part in ranking.parts(cid)]

    return in_new_order(ordered, [one for one in all_found if one.cid not in moved], gains, steps)


def _told(best: Sequence[Candidate], clues: Sequence[Clue], ranking: ResourceRanking, asked: ResourceQuestion) -> str:
    """The effect of the evidence in words."""
    moved = sum([one.cid != cid for one, (cid, _) in zip(best, ranking.ranking, strict=False)])
    defining = sum([bool(clue.defines) for clue in clues])
    held = sum([bool(clue.role) and clue.role not in asked.roles for clue in clues])
    return ", ".join(
        [
            f"code: {moved} of {len(clues)} moved",
            *([f"{defining} define {' or '.join(asked.names)}"] if defining else []),
            *([f"{held} held back by their paths"] if held else []),
        ]
    )
