"""Similar: the resources most like one, by the meaning of its passages or, without vectors, by its key words.

Files of code are also related by names: one uses what another one defines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING

from findling.domain.budgets import current_budget, spending
from findling.domain.errors import InvalidValueError, MissingExtraError, ModelError
from findling.domain.ports import KeywordLeg, ReadStore
from findling.domain.queries import Any, Field, Filters, Not, Word
from findling.domain.resources import Chunk, Document
from findling.domain.results import Degradation, Evidence, Hit, SearchAnswer, Step
from findling.pipelines.answer.hits import make_hit
from findling.pipelines.answer.rankings import HighlightSpec, Ranked, group_of, grouped
from findling.pipelines.answer.steps import vector_account
from findling.pipelines.answer.versions import demote, replaced_by
from findling.pipelines.lookup.code_relations import NAMES, SharedNames, related_by_names
from findling.pipelines.lookup.document_names import find_document
from findling.pipelines.retrieve.legs import KEYWORD, Candidate, Retrievers, alone
from findling.pipelines.retrieve.vector_retrieval import Meaning, Space, SpaceQuery, able_to_read, within
from findling.ranking.evidence import words_evidence
from findling.text.analysis.analysis import STOP_WORDS, terms
from findling.text.chunking.chunk_plan import passage

if TYPE_CHECKING:
    from findling.domain.ports import Vectors

_READ = 8  # passages that stand for a document, evenly from beginning to end; a model takes 25 ms for each
_WORDS = 16  # words that stand for a document: more find the same, fewer depend on chance
_DEEPER = 10  # passages that are looked at first for each resource: some have several


@spending()
def similar(legs: Retrievers, name: str, limit: int = 10, *, below: str = "") -> SearchAnswer:
    """The resources most like the resource or passage of a name, without that one and its thread.

    A hit's score is the evidence of its meaning, or of its words; a superseded one has half of it. Raises as
    `find_document` does, and InvalidValueError for a limit below 0.
    """
    if limit < 0:
        raise InvalidValueError(f"limit {limit} must not be negative")
    document, cids = find_document(legs.store, name, below)
    meant = set(cids)
    chunks = [chunk for chunk in document.chunks if chunk.cid in meant]
    words = telling_words(legs.keyword, document, chunks)
    names = related_by_names(legs, document, _text(document, chunks))
    meaning, ranked = _by_meaning(legs, document, chunks, limit)
    notes: tuple[str, ...] = ()
    if not meaning.spaces:
        ranked = _by_words(legs, document, words, limit)
        notes = (f"compared by its most telling words: {', '.join(words)}",) if words else ("it has no telling word",)
    ranked = _with_names(legs, ranked, names)
    page = ranked[:limit]
    asked = HighlightSpec(words, {word: word for word in words}, {})
    return SearchAnswer(
        query=name,
        understood_as=f"like {document.resource.path or document.resource.rid}",
        hits=tuple(_hits(page, asked, legs.store)),
        total=len(ranked),
        strategy="semantic" if meaning.spaces else "keyword",
        quality="reduced" if meaning.degraded else "good",
        degraded=meaning.degraded + tuple(Degradation(what=one) for one in current_budget().refused),
        notes=notes,
        meaning=vector_account(meaning, page) if meaning.spaces else {},
    )


def _text(document: Document, chunks: Sequence[Chunk]) -> str:
    """The text that is meant: all of it, or that of some chunks."""
    if len(chunks) == len(document.chunks):
        return document.text
    return "\n".join([document.text[chunk.start : chunk.end] for chunk in chunks])


def _with_names(legs: Retrievers, ranked: Sequence[Ranked], names: Mapping[str, SharedNames]) -> list[Ranked]:
    """The ranking with the files that names relate: what else was found is lifted, the others come in."""
    if not names:
        return list(ranked)
    known = {entry.stored.resource.rid for entry in ranked}
    new = [
        Ranked(stored, Candidate(stored.chunk.cid, evidence.worth, (evidence,)), evidence.worth)
        for rid, (stored, evidence) in names.items()
        if rid not in known
    ]
    replaced = replaced_by(legs.store, [entry.stored.resource.rid for entry in new])
    lifted = [_lifted(entry, names.get(entry.stored.resource.rid)) for entry in ranked]
    return sorted([*lifted, *(demote(new, replaced) if replaced else new)], key=lambda entry: -entry.score)


def _lifted(entry: Ranked, relation: SharedNames | None) -> Ranked:
    """The entry with the evidence of names as far as its own leaves room: 0.5 and 0.5 are 0.75."""
    if relation is None:
        return entry
    candidate, evidence = entry.candidate, relation.evidence
    score = candidate.score + evidence.worth * (1 - candidate.score)
    step = Step(name=NAMES, factor=score / max(candidate.score, evidence.worth), reason=evidence.why)
    both = Candidate(candidate.cid, candidate.score, (*candidate.evidence, evidence))
    return entry._replace(candidate=both, score=entry.score / candidate.score * score, steps=(*entry.steps, step))


def _hits(page: Sequence[Ranked], asked: HighlightSpec, store: ReadStore) -> Iterator[Hit]:
    for place, entry in enumerate(page):
        if place and current_budget().is_over("fewer are shown than were asked for"):
            return
        yield make_hit(entry, asked, store)


def telling_words(keyword: KeywordLeg, document: Document, chunks: Sequence[Chunk]) -> list[str]:
    """The words that distinguish these chunks and that others have, too; the most telling first."""
    some = current_budget().take("read", len(chunks), "its first passages alone stand for it")
    texts = [terms(document.text[chunk.start : chunk.end]) for chunk in chunks[:some]]
    counts = Counter(word for text in texts for word in text)
    holding = Counter(word for text in texts for word in set(text))
    candidates = [word for word in counts if len(word) > 1 and not word.isdecimal() and word not in STOP_WORDS]
    size, frequencies = keyword.size(), keyword.frequencies(candidates)
    own = Counter({word: 1 if keyword.unit == "page" else holding[word] for word in candidates})
    values = {
        word: log(1 + size / frequencies[word]) * (1 + log(counts[word]))
        for word in candidates
        if frequencies.get(word, 0) > own[word]
    }
    return sorted(values, key=lambda word: (-values[word], word))[:_WORDS]


def _by_meaning(
    legs: Retrievers, document: Document, chunks: Sequence[Chunk], limit: int
) -> tuple[Meaning, list[Ranked]]:
    """The nearest resources, and the one space they were compared in, if there is any."""
    if legs.meaning is None or legs.keyword.unit == "page" or not chunks:
        return Meaning(), []
    texts = _some_texts(document, chunks)
    meaning = able_to_read(legs.meaning(), "\n".join(texts), [])
    # Cosines of two models do not compare, and nothing is sent anywhere.
    able = [space for space in meaning.spaces if space.is_whole and not space.embedder.host]
    try:
        for space in able:
            vector = _vector(space, texts)
            return meaning._replace(spaces=(space,)), _near(legs, space, vector, document, limit)
    except (MissingExtraError, ModelError) as error:
        return Meaning(degraded=(*meaning.degraded, Degradation.of(error))), []
    return Meaning(degraded=meaning.degraded), []


def _some_texts(document: Document, chunks: Sequence[Chunk]) -> list[str]:
    """Some of the chunks as a model reads them."""
    some = chunks[:: -(-len(chunks) // _READ)]
    resource, text = document.resource, document.text
    return [passage(resource, chunk.heading, text[chunk.start : chunk.end], chunk.cid) for chunk in some]


def _vector(space: Space, texts: Sequence[str]) -> Vectors:
    """The mean vector of some texts."""
    middle: Vectors = space.embedder.embed(texts).mean(axis=0)
    length = float(middle @ middle) ** 0.5
    return middle / (length or 1.0)


def _near(legs: Retrievers, space: Space, vector: Vectors, document: Document, limit: int) -> list[Ranked]:
    # A document is nearest to itself, and looking up 13,000 of its own passages takes a second.
    own = {chunk.cid for chunk in document.chunks}
    depth = len(own) + max(limit, 1) * _DEEPER
    while True:
        found = space.leg.search(vector, depth, allowed=within(space.share, None))
        asked = SpaceQuery(space, vector, found.mean, found.deviation)
        near = [(cid, hit) for cid, cosine in found.hits if (hit := asked.hit(cosine)).worth]
        candidates = [
            Candidate(cid, hit.worth, (alone(hit, rank),))
            for rank, (cid, hit) in enumerate(near, start=1)
            if cid not in own
        ]
        most = current_budget().candidates
        if len(candidates) > most:
            current_budget().refuse(f"only the best {most:,} passages were compared")
            del candidates[most:]
        ranked, holding = _others(legs, document, candidates)
        if holding >= limit or len(near) < depth or _is_deep(depth):
            return ranked
        depth *= 4


def _by_words(legs: Retrievers, document: Document, words: Sequence[str], limit: int) -> list[Ranked]:
    node = Any(tuple(Word(word) for word in words))
    filters = Filters(where=Not(Field("rid", (document.resource.rid,))))
    depth = max(limit, 1) * _DEEPER
    while words:
        found = legs.keyword.search(node, filters, depth)
        candidates = [
            Candidate(cid, worth, (alone(Evidence(KEYWORD, raw, raw, worth, measure="BM25"), rank),))
            for rank, (cid, raw) in enumerate(found.hits, start=1)
            if (worth := words_evidence(raw, found.ceiling))
        ]
        ranked, holding = _others(legs, document, candidates)
        if holding >= limit or len(found.hits) < depth or _is_deep(depth):
            return ranked
        depth *= 4
    return []


def _is_deep(depth: int) -> bool:
    """Whether the budget allows no more passages."""
    budget = current_budget()
    return depth >= budget.candidates or budget.is_over("less was compared than is there")


def _others(legs: Retrievers, document: Document, candidates: Sequence[Candidate]) -> tuple[list[Ranked], int]:
    """The candidates by resource and thread, without the document's own, and the number of current ones."""
    own, stored = group_of(document.resource, "thread"), legs.store.chunks([one.cid for one in candidates])
    found = [Ranked(stored[one.cid], one, one.score) for one in candidates if one.cid in stored]
    others = [entry for entry in grouped(found, "thread") if group_of(entry.stored.resource, "thread") != own]
    replaced = replaced_by(legs.store, {entry.stored.resource.rid for entry in others})
    holding = sum(entry.stored.resource.rid not in replaced for entry in others)
    return demote(others, replaced) if replaced else others, holding
