"""The best passage of a whole resource, for plans that score whole resources."""

from __future__ import annotations

from collections.abc import Mapping

from findling.domain.ports import ReadStore
from findling.domain.resources import StoredChunk
from findling.text.analysis.analysis import terms

__all__ = ["best_passage"]

_SATURATION = 1.2


def best_passage(store: ReadStore, stored: StoredChunk, forms: Mapping[str, tuple[str, ...]]) -> StoredChunk:
    """The chunk of the same resource that holds most of the query: many of its terms, each often enough."""
    document = store.document(stored.resource.rid)
    if document is None or len(document.chunks) < 2:
        return stored
    term_of = {form: term for term, members in forms.items() for form in members}
    best, best_score = stored, 0.0
    for chunk in document.chunks:
        text = document.text[chunk.start : chunk.end]
        counts: dict[str, int] = {}
        for word in terms(text):
            if word in term_of:
                counts[term_of[word]] = counts.get(term_of[word], 0) + 1
        score = sum(count / (count + _SATURATION) for count in counts.values())
        if score > best_score:
            best, best_score = StoredChunk(chunk, document.resource, text), score
    return best
