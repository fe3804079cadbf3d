"""The keyword leg in plain dictionaries: small enough to be read as the definition of what a keyword leg does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from findling.domain.backends import Scoring
from findling.domain.ports import Change, KeywordHits
from findling.domain.queries import Filters, Node
from findling.domain.resources import Resource
from findling.stores.filtering import passes
from findling.text.analysis.scripts import name_terms
from findling.text.chunking.defined_names import defined_terms
from findling.text.query.tree import asks_for_text
from tests.memory_scoring import Postings, Question

__all__ = ["MemoryLeg"]


class MemoryLeg:
    """Implements `KeywordLeg`; keeps nothing when the process ends."""

    unit = "chunk"

    def __init__(self, scoring: Scoring | None = None) -> None:
        self._scoring = scoring or Scoring()
        self._postings = Postings()
        self._defines: dict[int, set[str]] = {}
        self._seq = 0
        self._pending: list[Change] = []

    def is_current(self) -> bool:
        """Whether nobody else has rewritten it: nobody can."""
        return True

    def seq(self) -> int:
        return self._seq

    def apply(self, changes: Iterable[Change]) -> None:
        self._pending += changes

    def commit(self, seq: int) -> None:
        for change in self._pending:
            for cid in change.dropped:
                self._postings.drop(cid)
                self._defines.pop(cid, None)
            if change.document is not None:
                text, chunks = change.document.text, change.document.chunks
                names = defined_terms(text, change.document.resource.lang, chunks)
                for chunk, defined in zip(chunks, names, strict=True):
                    if chunk.cid in change.added:
                        self._postings.add(chunk, change.document)
                        self._defines[chunk.cid] = set(defined.split())
        self._seq, self._pending = seq, []

    def clear(self) -> None:
        self._seq, self._pending, self._postings, self._defines = 0, [], Postings(), {}

    def close(self) -> None:
        self._pending = []

    def cids(self) -> set[int]:
        return set(self._postings.resources)

    def size(self) -> int:
        return len(self._postings.resources)

    def frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        return {term: self._postings.spread(term) for term in terms}

    def vocabulary(self, prefix: str = "") -> Iterator[tuple[str, int]]:
        return ((term, self._postings.spread(term)) for term in self._postings.beginning(prefix))

    def search(
        self, node: Node, filters: Filters, limit: int, *, weights: Mapping[str, float] | None = None
    ) -> KeywordHits:
        question = Question(self._postings, self._weighted(weights))
        found = question.found(node)
        resources = self._postings.resources
        hits = [(cid, found[cid]) for cid, resource in resources.items() if cid in found and passes(resource, filters)]
        if asks_for_text(node):
            hits.sort(key=lambda hit: -hit[1])
        else:
            hits.sort(key=lambda hit: _age(resources[hit[0]]))
        return KeywordHits(hits[:limit], len(hits), question.ceiling(node), question.forms(node))

    def scores(
        self, node: Node, cids: Sequence[int], *, weights: Mapping[str, float] | None = None
    ) -> dict[int, float]:
        found = Question(self._postings, self._weighted(weights)).found(node)
        return {cid: found[cid] for cid in cids if cid in found}

    def count(
        self, node: Node, filters: Filters, least: float, *, most: int, weights: Mapping[str, float] | None = None
    ) -> int:
        return sum(score >= least for _, score in self.search(node, filters, most, weights=weights).hits)

    def definers(
        self, names: Iterable[str], node: Node, filters: Filters, limit: int, weights: Mapping[str, float] | None = None
    ) -> list[tuple[int, float]]:
        found = Question(self._postings, self._weighted(weights)).found(node)
        wanted = [set(name_terms(name).split()) for name in names]
        hits = [
            (cid, found.get(cid, 0.0))
            for cid, defined in self._defines.items()
            if any(both <= defined for both in wanted) and passes(self._postings.resources[cid], filters)
        ]
        return sorted(hits, key=lambda hit: -hit[1])[:limit]

    def _weighted(self, weights: Mapping[str, float] | None) -> Scoring:
        return self._scoring._replace(weights={**self._scoring.weights, **(weights or {})})


def _age(resource: Resource) -> float:
    return math.inf if resource.updated_at is None else -resource.updated_at
