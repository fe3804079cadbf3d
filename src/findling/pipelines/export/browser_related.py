"""Related passages of a page: the nearest ones by existing vectors, because the page runs no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from findling.domain.ports import TruthStore
from findling.domain.resources import Document
from findling.models.ports import Embedder
from findling.pipelines.export.browser_index import Related
from findling.pipelines.indexing.fanout import to_rows
from findling.text.chunking.chunk_plan import passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from findling.domain.ports import Vectors

_ENOUGH_READ = 0.9  # share of the passages that a model must have read; with less, most passages have no neighbour
_BLOCK = 512  # passages compared with all others at once: 40 MB of cosines for 20,000 passages
_LEAST = 0.3  # the least cosine of related passages, unless two passages are nearer on average
_EQUAL = 0.9995  # the cosine from which on two passages are the same text


class Relations(NamedTuple):
    """The related passages of each, nearest first, and the `speed` of the vectors that were compared."""

    passages: list[list[Related]]
    speed: str


def relate(documents: Sequence[Document], store: TruthStore, instant: Embedder | None, count: int) -> Relations:
    """Up to `count` nearest passages of each, by vectors of the model that has read most, or instant ones."""
    vectors, speed = _model_vectors(documents, store) if count > 0 else None, "refined"
    if vectors is None and instant is not None and count > 0:
        vectors, speed = _instant_vectors(documents, instant), "instant"
    if vectors is None:
        return Relations([], "none")
    places = [(number, at) for number, document in enumerate(documents) for at in range(len(document.chunks))]
    return Relations(nearest_passages(vectors, places, count), speed)


def nearest_passages(vectors: Vectors, places: Sequence[tuple[int, int]], count: int) -> list[list[Related]]:
    """The nearest others of each row, without its neighbours in the document; `places` are documents and places."""
    where = np.array(places, np.int64).reshape(-1, 2)
    known = vectors.any(axis=1)
    least = _least_cosine(vectors[known])
    found: list[list[Related]] = []
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        for row, values in enumerate(cosines, start):
            is_beside = (where[:, 0] == where[row, 0]) & (np.abs(where[:, 1] - where[row, 1]) <= 1)
            values[is_beside | ~known | (values < least) | (values >= _EQUAL)] = 0
            found.append(_best(values, count))
    return found


def _model_vectors(documents: Sequence[Document], store: TruthStore) -> Vectors | None:
    """The vectors of the model that has read most of the passages, if that is enough of them."""
    digests = [chunk.digest for document in documents for chunk in document.chunks]
    for model, _ in sorted(store.models().items(), key=lambda entry: (-entry[1], entry[0])):
        kept = store.vectors(model, digests)
        read = [row for row, digest in enumerate(digests) if digest in kept]
        if len(read) >= _ENOUGH_READ * len(digests) > 0:
            rows = to_rows([kept[digests[row]] for row in read])
            vectors = np.zeros((len(digests), rows.shape[1]), np.float32)
            vectors[read] = rows
            return vectors
    return None


def _instant_vectors(documents: Sequence[Document], instant: Embedder) -> Vectors:
    rows = [
        instant.embed([passage(resource, c.heading, text[c.start : c.end], c.cid) for c in chunks])
        for resource, text, chunks, *_ in documents
    ]
    return np.concatenate(rows)


def _least_cosine(vectors: Vectors) -> float:
    """The mean cosine of a fair sample of pairs, and at least `_LEAST`."""
    sample = vectors[:: max(1, len(vectors) // 1000)]
    if len(sample) < 2:
        return _LEAST
    pairs = (sample @ sample.T)[np.triu_indices(len(sample), 1)]
    return max(_LEAST, float(pairs.mean()))


def _best(values: NDArray[np.float32], count: int) -> list[Related]:
    count = min(count, int(np.count_nonzero(values)))
    top = np.argpartition(-values, count - 1)[:count] if count else np.empty(0, np.int64)
    ordered = top[np.lexsort((top, -values[top]))]
    return [Related(int(number), float(values[number])) for number in ordered]
